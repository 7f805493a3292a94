"""Tokens from depths: what each call reads, writes and pays in full."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.cards import RuleCard
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints
from prefixscope.analyzer.replay import automatic, explicit, pings, slot, units
from prefixscope.analyzer.replay.chains import chain_ids, token_ends
from prefixscope.analyzer.replay.touches import Depths, no_depths
from prefixscope.analyzer.traffic import Traffic, numbered

TTLS_MS = {"write_12h": 43_200_000, "write_1h": 3_600_000, "write_30m": 1_800_000, "write_5m": 300_000}
_DOUBT, _DOUBT_TOKENS = 0.005, 8.0  # how far a position estimated from bytes may be off: a share of it, and tokens
_Model = Callable[[Traffic, Ids, Bools], tuple[Depths, Ints]]
_NO_ROWS = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Tokens per call: read, written by TTL, processed in full; and what stood in the way of reading more."""

    read: Floats
    read_at_least: Floats  # the same if token counts, which are estimates, are somewhat too high
    writes: dict[str, Floats]  # write_5m, write_30m, write_1h, write_12h
    uncached: Floats
    unexpired: Floats  # tokens of the longest prefix that had not expired, be its first response begun or not
    shared: Floats  # tokens of the longest prefix that an earlier call had, however long ago
    pinged: dict[str, Floats] = field(default_factory=dict)  # of pings after it: read, uncached, write_5m…; {} = none

    def with_calls(self, chosen: Bools, part: "Outcome") -> "Outcome":
        """This outcome with that of the chosen calls taken from ``part``, which has only those."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        if part.pinged and not self.pinged:
            found["pinged"] = {name: np.zeros(len(chosen)) for name in part.pinged}
        return Outcome(**{name: _put(values, chosen, getattr(part, name)) for name, values in found.items()})

    def only(self, chosen: Bools) -> "Outcome":
        """What the chosen calls do."""
        return Outcome(**{f.name: _only(getattr(self, f.name), chosen) for f in fields(self)})

    @property
    def write(self) -> Floats:
        return np.sum(list(self.writes.values()), axis=0)


def _put(values: Any, chosen: Bools, new: Any) -> Any:
    if isinstance(values, dict):
        return {name: _put(column, chosen, new.get(name, 0.0)) for name, column in values.items()}
    found = values.copy()
    found[chosen] = new
    return found


def _only(values: Any, chosen: Bools) -> Any:
    return {n: column[chosen] for n, column in values.items()} if isinstance(values, dict) else values[chosen]


_MODELS: Mapping[tuple[str, str], _Model] = {
    ("automatic", "prefixes"): lambda *given: (automatic.depths(*given), _NO_ROWS),
    ("automatic", "units"): lambda *given: (units.depths(*given), _NO_ROWS),
    ("automatic", "last_prompt"): lambda *given: (slot.depths(*given), _NO_ROWS),
    ("explicit", "block"): explicit.by_blocks,
    ("explicit", "message"): explicit.by_messages,
}
"""By the card's cache, and what an automatic one keeps, or what an explicit one looks back over: from traffic, its
chain ids and the calls with such a cache, the depths of those calls, and the rows of the breakpoints that write."""


def replay(traffic: Traffic) -> Outcome:
    """What the cache model of each call's card makes of it, and of the pings that follow it."""
    if traffic.pings is None:
        return _replayed(traffic)
    everything, repeats = pings.sent(traffic, traffic.pings)
    outcome, is_ping = _replayed(everything), repeats >= 0
    pinged = {
        name: np.bincount(repeats[is_ping], weights=tokens[is_ping], minlength=len(traffic)).astype(np.float64)
        for name, tokens in (("read", outcome.read), ("uncached", outcome.uncached), *outcome.writes.items())
    }
    return replace(outcome.only(~is_ping), pinged=pinged)


def _replayed(traffic: Traffic) -> Outcome:
    depths, written = _depths(traffic)
    ends, stored = token_ends(traffic), traffic.stored_tokens.astype(np.float64)
    total, reached, unexpired, shared = (
        _tokens_at(ends, traffic.rows.offsets, depth)
        for depth in (np.diff(traffic.rows.offsets), depths.reached, depths.unexpired, depths.shared)
    )
    is_automatic = traffic.per_card("cache") == "automatic"
    read, unexpired, shared = (
        np.where(is_automatic, _rounded(tokens, total, traffic), tokens) for tokens in (reached, unexpired, shared)
    )
    read = np.where(_below_a_reads_minimum(traffic, read), 0.0, read)
    writes = _writes(traffic, ends, reached, written)
    charged = is_automatic & traffic.per_card("charges_writes").astype(np.bool_) & (total >= traffic.min_tokens)
    for name, ttl in TTLS_MS.items():
        writes[name] += np.where(charged & (traffic.ttl_ms == ttl), total - read, 0.0)
    uncached = total - read - np.sum(list(writes.values()), axis=0)
    sure = np.maximum(reached - np.maximum(_DOUBT * reached, _DOUBT_TOKENS), 0.0)
    steps = is_automatic & (traffic.per_card("granularity") > 1)
    at_least = np.where(steps, _rounded(sure, total, traffic), read)
    return Outcome(read + stored, at_least + stored, writes, uncached, unexpired + stored, shared + stored)


def _depths(traffic: Traffic) -> tuple[Depths, Ints]:
    """What each call finds in the cache of its card, and the rows of the breakpoints that write.

    A call that names a stored prefix reads that and nothing else; one that has reading switched off reads nothing.
    """
    chain = chain_ids(traffic)
    found, written = no_depths(len(traffic)), _NO_ROWS
    for kind, model in _MODELS.items():
        chosen = np.array([_kind(card) == kind for card in traffic.cards], dtype=np.bool_)[traffic.card]
        chosen &= traffic.stored_tokens == 0
        if chosen.any():
            depths, rows = model(traffic, chain, chosen)
            # a call has one cache, and depths of 0 in the others
            found = Depths(*(getattr(found, f.name) + getattr(depths, f.name) for f in fields(Depths)))
            written = np.concatenate([written, rows])
    off = switched_off(traffic) & (traffic.per_card("cache") == "automatic")
    return replace(found, reached=np.where(off, 0, found.reached)), written


def _below_a_reads_minimum(traffic: Traffic, read: Floats) -> Bools:
    """Calls that found an entry too short to be read; they do not write it again either.

    Recorded calls of GPT-5.6 on Bedrock wrote prompts of 88 to 142 tokens, each what it was longer than the one before,
    and were billed all the rest in full.
    """
    by_messages = np.array([card.lookback_unit == "message" for card in traffic.cards], dtype=np.bool_)[traffic.card]
    reported = traffic.calls["read"].to_numpy()
    return by_messages & (reported == 0) & (read < traffic.per_card("min_tokens"))


def _kind(card: RuleCard) -> tuple[str, str]:
    return card.cache, card.keeps if card.cache == "automatic" else card.lookback_unit


def switched_off(traffic: Traffic) -> Bools:
    """Calls that say, by a setting, that nothing is to be read."""
    keys = traffic.calls.select("settings").with_columns(card=pl.Series(traffic.card))
    found = [
        _has_setting(settings, traffic.cards[card].switched_off_by)
        for settings, card in keys.unique(maintain_order=True).iter_rows()
    ]
    return np.array(found, dtype=np.bool_)[numbered(keys)]


def _has_setting(settings: str, name: str) -> bool:
    return bool(name) and any(pair.partition("=")[0] == name for pair in settings.split(","))


def _tokens_at(ends: Floats, offsets: Ints, depth: Ints) -> Floats:
    """Tokens of each call's first ``depth`` rows."""
    found = np.zeros(len(depth))
    some = depth > 0
    found[some] = ends[offsets[:-1][some] + depth[some] - 1]
    return found


def _rounded(tokens: Floats, total: Floats, traffic: Traffic) -> Floats:
    """What an automatic cache reports of that many tokens: whole steps, not below the minimum, not the very last."""
    granularity = np.maximum(traffic.per_card("granularity"), 1)
    most = np.maximum(total - traffic.per_card("always_processed"), 0.0)
    floored = np.floor(np.round(np.minimum(tokens, most), 6) / granularity) * granularity
    return np.where(floored >= traffic.min_tokens, floored, 0.0)


def _writes(traffic: Traffic, ends: Floats, reached: Floats, written: Ints) -> dict[str, Floats]:
    """Tokens written by TTL: from the read to the last marker of the longest TTL, from there to the next shorter.

    Source: Anthropic's rule for mixed TTLs; with one TTL it says "up to the last marker".
    """
    call, ttl_ms = automatic.owners(traffic, written), traffic.rows.marker_ms[written]
    edge = reached.copy()
    writes: dict[str, Floats] = {}
    for name, ttl in TTLS_MS.items():
        last = edge.copy()
        np.maximum.at(last, call[ttl_ms == ttl], ends[written[ttl_ms == ttl]])
        writes[name] = last - edge
        edge = last
    return writes
