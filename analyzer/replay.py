"""REPLAY: traffic through its rule cards' cache models, all calls at once.

A provider's cache is a set of prefixes with an expiry. A call *looks up* prefixes of its prompt, reads the deepest that
is alive, and *touches* some: an automatic cache every prefix of the prompt, an explicit one those that end at a marker.
A prefix is named by a chain id: the running sum, modulo 2^64, of one hash per row (content, segment header, place), so
two calls share an id exactly if they share the prefix. Whether a prefix is alive follows from the touches before, in
time order per id: sorted once, they are running maxima, without a loop over calls.

The sequential simulator in ``sample_traces/simulator.py`` states the same rules one call at a time; tests hold the two
together call by call.
"""

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.prompts import Rows, block_ends
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints
from prefixscope.analyzer.traffic import Traffic

TTLS_MS = {"write_12h": 43_200_000, "write_1h": 3_600_000, "write_30m": 1_800_000, "write_5m": 300_000}
_DOUBT, _DOUBT_TOKENS = 0.005, 8.0  # how far a position estimated from bytes may be off: a share of it, and tokens
_Array = TypeVar("_Array", bound=np.ndarray[Any, Any])
_ROWS_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Tokens per call: read, written by TTL, processed in full; and what stood in the way of reading more."""

    read: Floats
    read_at_least: Floats  # the same if token counts, which are estimates, are somewhat too high
    writes: dict[str, Floats]  # write_5m, write_30m, write_1h, write_12h
    uncached: Floats
    unexpired: Floats  # tokens of the longest prefix that had not expired, be its first response begun or not
    shared: Floats  # tokens of the longest prefix that an earlier call had, however long ago

    def with_calls(self, chosen: Bools, part: "Outcome") -> "Outcome":
        """This outcome with that of the chosen calls taken from ``part``, which has only those."""
        arrays = {
            f.name: _put(getattr(self, f.name), chosen, getattr(part, f.name))
            for f in fields(self)
            if f.name != "writes"
        }
        writes = {name: _put(tokens, chosen, part.writes[name]) for name, tokens in self.writes.items()}
        return Outcome(writes=writes, **arrays)

    @property
    def write(self) -> Floats:
        return np.sum(list(self.writes.values()), axis=0)


@dataclass(frozen=True, slots=True)
class _Events:
    """Lookups and touches of prefixes. Times are those of their calls."""

    node: Ids
    call: Ints
    ttl_ms: Ints  # touches: how long the entry lives unless touched again; lookups: -1


def _put(values: _Array, chosen: Bools, new: _Array) -> _Array:
    found = values.copy()
    found[chosen] = new
    return found


def replay(traffic: Traffic) -> Outcome:
    """What the cache model of each call's card makes of it."""
    rows = traffic.rows
    chain = chain_ids(traffic)
    ends = ragged.running_sums(rows.tokens, rows.offsets)
    cache = traffic.per_card("cache")
    is_automatic = cache == "automatic"
    automatic = _automatic(traffic, chain, is_automatic)
    explicit = _explicit(traffic, chain, ends, cache == "explicit")
    depth, unexpired, shared = (np.where(is_automatic, a, e) for a, e in zip(automatic, explicit, strict=True))
    total = ragged.group_sums(rows.tokens, rows.offsets)
    reached, unexpired, shared = (_tokens_at(ends, rows.offsets, d) for d in (depth, unexpired, shared))
    read, unexpired, shared = (
        np.where(is_automatic, _rounded(found, traffic), found) for found in (reached, unexpired, shared)
    )
    writes = _writes(traffic, ends, reached, total)
    uncached = total - read - np.sum(list(writes.values()), axis=0)
    sure = np.maximum(reached - np.maximum(_DOUBT * reached, _DOUBT_TOKENS), 0.0)
    at_least = np.where(is_automatic & (traffic.per_card("granularity") > 1), _rounded(sure, traffic), read)
    return Outcome(read, at_least, writes, uncached, unexpired, shared)


def chain_ids(traffic: Traffic) -> Ids:
    """The id of the prefix that ends at each row, in the call's scope and under its settings."""
    rows = traffic.rows
    lengths = np.diff(rows.offsets)
    place = (np.arange(len(rows.atom)) - np.repeat(rows.offsets[:-1], lengths)).astype(np.uint64)
    with np.errstate(over="ignore"):
        in_place = rows.head * np.uint64(3) ^ ragged.mix(place + np.uint64(1))
        value = ragged.mix(traffic.contents.atom_ids[rows.atom] ^ in_place)
        value += _salts_of_levels_entered(traffic)
        total = np.cumsum(value, dtype=np.uint64)
        before = np.concatenate([np.zeros(1, dtype=np.uint64), total])[rows.offsets[:-1]]
        return ragged.mix(total + np.repeat(traffic.scope - before, lengths))


def _salts_of_levels_entered(traffic: Traffic) -> Ids:
    """At the first row of each level, and of each level it skips, the salt of the settings that invalidate it."""
    rows = traffic.rows
    found = np.zeros(len(rows.level), dtype=np.uint64)
    if not traffic.level_salt.any():
        return found
    call = rows.call
    before = np.full(len(rows.level), -1, dtype=np.int64)
    before[1:] = rows.level[:-1]
    before[rows.offsets[:-1][np.diff(rows.offsets) > 0]] = -1
    highest = np.maximum.accumulate(before + 3 * call) - 3 * call  # a moved row may step back a level
    for level in range(3):
        enters = (highest < level) & (rows.level >= level)
        found[enters] += traffic.level_salt[call[enters], level]
    return found


def _tokens_at(ends: Floats, offsets: Ints, depth: Ints) -> Floats:
    """Tokens of each call's first ``depth`` rows."""
    found = np.zeros(len(depth))
    some = depth > 0
    found[some] = ends[offsets[:-1][some] + depth[some] - 1]
    return found


def _rounded(tokens: Floats, traffic: Traffic) -> Floats:
    granularity = np.maximum(traffic.per_card("granularity"), 1)
    floored = np.floor(np.round(tokens, 6) / granularity) * granularity
    return np.where(floored >= traffic.min_tokens, floored, 0.0)


def _automatic(traffic: Traffic, chain: Ids, chosen: Bools) -> list[Ints]:
    """Rows at the head of each automatic call's prompt that are alive, that have not expired, and ever seen before."""
    rows = traffic.rows
    at = np.flatnonzero(np.repeat(chosen, np.diff(rows.offsets)))
    call = rows.call[at].astype(np.int32)
    events = _Events(chain[at], call, traffic.ttl_ms[call])
    alive, unexpired, seen = _states(events, traffic) | rows.warm[at]
    return [_leading(flags, at, rows.offsets) for flags in (alive, unexpired, seen)]


def _leading(flags: Bools, at: Ints, offsets: Ints) -> Ints:
    """For each call the length of the run of set rows that begins with its first row."""
    unset = np.ones(int(offsets[-1]) + 1, dtype=np.bool_)
    unset[at] = ~flags
    stops = np.flatnonzero(unset)
    return np.minimum(stops[np.searchsorted(stops, offsets[:-1])], offsets[1:]) - offsets[:-1]


def _ranks(traffic: Traffic) -> tuple[Ints, Ints]:
    """First-response times and request times as ranks on one scale, so that running minima stay small integers."""
    scale = np.unique(np.concatenate([traffic.first_token_ms, traffic.at_ms]))
    return np.searchsorted(scale, traffic.first_token_ms), np.searchsorted(scale, traffic.at_ms)


def _states(events: _Events, traffic: Traffic) -> Bools:
    """(3, events): was the prefix alive just before the event, had it not expired, had anybody ever touched it."""
    ready, clock = _ranks(traffic)
    found = np.zeros((3, len(events.node)), dtype=np.bool_)
    parts = 1 + len(events.node) // _ROWS_AT_ONCE
    part = (events.node % np.uint64(parts)).astype(np.uint16)
    for i in range(parts):
        at = np.flatnonzero(part == i)
        # in time order, a call's lookups before its touches; then by prefix
        at = at[np.argsort(2 * events.call[at].astype(np.int64) + (events.ttl_ms[at] >= 0), kind="stable")]
        at = at[ragged.stable_order(events.node[at])]
        call, ttl_ms = events.call[at], events.ttl_ms[at]
        at_ms, touch = traffic.at_ms[call], ttl_ms >= 0
        expires_ms = np.where(touch, at_ms + ttl_ms, -1)
        # a lookup expires at once and begins never
        begins = np.where(touch, ready[call], len(traffic) * 2 + 1)
        found[:, at] = _states_sorted(events.node[at], at_ms, expires_ms, begins, clock[call])
    return found


def _states_sorted(node: Ids, at_ms: Ints, expires_ms: Ints, ready: Ints, clock: Ints) -> Bools:
    """The rule itself, on events sorted by prefix, then time.

    An entry's *life* begins with a touch that finds none, and lasts while each touch comes before the latest expiry so
    far. It can be read once the earliest first response among the touches of this life has begun.
    """
    if not len(node):
        return np.zeros((3, 0), dtype=np.bool_)
    first = np.ones(len(node), dtype=np.bool_)
    first[1:] = node[1:] != node[:-1]
    group = np.cumsum(first)
    stride = int(expires_ms.max()) + 3
    latest = np.maximum.accumulate(expires_ms + 1 + group * stride)  # of the group up to and with this event
    expiry_before = np.where(first, -1, _shifted(latest) - group * stride - 1)
    touch = expires_ms >= 0
    life = np.cumsum(touch & (expiry_before < at_ms), dtype=np.int64)
    ranks = int(max(ready.max(), clock.max())) + 2
    earliest = np.minimum.accumulate(ready - life * ranks)
    ready_before = _shifted(earliest) + _shifted(life) * ranks
    seen = expiry_before >= 0
    unexpired = seen & (expiry_before >= at_ms)
    return np.stack([unexpired & (ready_before <= clock), unexpired, seen])


def _shifted(values: Ints) -> Ints:
    """Each row's predecessor; the first row gets itself."""
    return np.concatenate([values[:1], values[:-1]])


def _explicit(traffic: Traffic, chain: Ids, ends: Floats, chosen: Bools) -> list[Ints]:
    """Rows up to the deepest entry each explicit call finds: alive, not expired, and ever written."""
    rows = traffic.rows
    call = rows.call
    minimum = traffic.min_tokens[call]
    counts = chosen[call] & (ends >= minimum) & block_ends(rows)
    marker = np.flatnonzero(counts & (rows.marker_ms > 0))
    behind, candidate = _candidates(rows, call, marker, counts, traffic.per_card("lookback")[call])
    extra = np.zeros(0, dtype=np.int64)
    while True:
        touched = np.concatenate([marker, extra])
        ttl = rows.marker_ms[np.concatenate([marker, behind[extra]])]
        at = np.concatenate([candidate, touched])
        ttl_ms = np.concatenate([np.full(len(candidate), -1), ttl])
        states = _states(_Events(chain[at], call[at], ttl_ms), traffic)[:, : len(candidate)] | rows.warm[candidate]
        depths = [_deepest(flags, candidate, rows.offsets) for flags in states]
        found = _read_through_lookback(depths[0], rows)
        if np.array_equal(found, extra):
            return depths
        extra = found


def _candidates(rows: Rows, call: Ints, marker: Ints, counts: Bools, lookback: Ints) -> tuple[Ints, Ints]:
    """For each row the next marker at or behind it, and the rows that lie in that marker's lookback window."""
    behind = np.full(len(rows.block), len(rows.block), dtype=np.int64)
    behind[marker] = marker
    behind = np.minimum.accumulate(behind[::-1])[::-1]
    some = np.flatnonzero(counts & (behind < len(rows.block)))
    near = behind[some]
    inside = (call[near] == call[some]) & (rows.position[near] - rows.position[some] < lookback[some])
    return behind, some[inside]


def _deepest(flags: Bools, at: Ints, offsets: Ints) -> Ints:
    """Rows up to and with the last flagged one of each call."""
    found = np.zeros(len(offsets) - 1, dtype=np.int64)
    hit = at[flags]
    owner = np.searchsorted(offsets, hit, side="right") - 1
    np.maximum.at(found, owner, hit - offsets[owner] + 1)
    return found


def _read_through_lookback(depth: Ints, rows: Rows) -> Ints:
    """Rows of entries that were read although no marker of the call stands there: they are refreshed as well."""
    some = depth > 0
    at = rows.offsets[:-1][some] + depth[some] - 1
    return at[rows.marker_ms[at] == 0]


def _writes(traffic: Traffic, ends: Floats, reached: Floats, total: Floats) -> dict[str, Floats]:
    """Tokens written by TTL: from the read to the last marker of the longest TTL, from there to the next shorter.

    Source: Anthropic's rule for mixed TTLs; with one TTL it says "up to the last marker".
    """
    rows = traffic.rows
    explicit = traffic.per_card("cache") == "explicit"
    call = rows.call
    marked = np.flatnonzero(
        explicit[call] & (rows.marker_ms > 0) & block_ends(rows) & (ends >= traffic.min_tokens[call])
    )
    edge = reached.copy()
    writes: dict[str, Floats] = {}
    for name, ttl in TTLS_MS.items():
        last = edge.copy()
        of_class = marked[rows.marker_ms[marked] == ttl]
        np.maximum.at(last, call[of_class], ends[of_class])
        writes[name] = last - edge
        edge = last
    charged = (traffic.per_card("cache") == "automatic") & traffic.per_card("charges_writes").astype(np.bool_)
    for name, ttl in TTLS_MS.items():
        writes[name] += np.where(charged & (traffic.ttl_ms == ttl), total - _rounded(reached, traffic), 0.0)
    return writes
