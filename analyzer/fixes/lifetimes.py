"""How long entries live, and who waits for whom."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families, opening
from prefixscope.analyzer.fixes.volatile import last_static
from prefixscope.analyzer.prompts import block_ends, last_rows
from prefixscope.analyzer.ragged import Bools, Ints
from prefixscope.analyzer.replay.chains import chain_ids
from prefixscope.analyzer.replay.outcome import switched_off
from prefixscope.analyzer.traffic import Pings, Traffic

_IN_TIME = 0.9  # of a lifetime passes before a ping: clocks differ, and requests take their time
_MOST_PINGS = 12  # in a row
_PINGS_A_MISS = 9  # what a miss costs, in pings, where a read costs a tenth; the replay tells what is true
_MOST_ROWS = 4  # times the rows of the traffic: pings that are more than that are not replayed, nor claimed
_FOR_EVER_MS = 10**15


def extend_ttl(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """Entries live as long as the provider offers: 1h for 5m markers, the longest retention for automatic caches."""
    return _with_ttl(traffic, where, longest_ttl_ms(traffic), np.maximum)


def shorten_ttl(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """Entries live as short as the provider offers, which is what a write costs least for."""
    return _with_ttl(traffic, where, shortest_ttl_ms(traffic), np.minimum)


def warm_up(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """The first call of a burst goes ahead, and the others wait until its response has begun."""
    return replace(traffic, first_token_ms=np.where(where, traffic.at_ms, traffic.first_token_ms))


def keep_alive(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """While nobody calls, what calls begin with is sent again shortly before it expires, for as long as that pays.

    What is sent again is the newest request up to the last breakpoint in its static part, or up to that part's end
    where the cache needs no breakpoint. All calls with one such beginning keep it alive for each other. Nobody knows
    how long a pause will be, so every pause costs pings, up to the number that is best for the pauses recorded.
    """
    at, lifetime_ms = _kept_alive(traffic, families, where)
    calls = np.flatnonzero(at >= 0)
    every_ms = np.maximum((_IN_TIME * lifetime_ms).astype(np.int64), 1)
    thread = ragged.factorize(chain_ids(traffic)[at[calls]])[1]
    pause_ms = _pauses_ms(traffic.at_ms[calls], thread)
    needed = np.maximum(pause_ms - 1, 0) // every_ms[calls]
    most = _best_number(needed, pause_ms > lifetime_ms[calls], thread)
    count = np.zeros(len(traffic), dtype=np.int64)
    count[calls] = np.minimum(needed, most[thread])
    rows = np.where(at >= 0, at - traffic.rows.offsets[:-1] + 1, 0)
    sent = int((count * rows).sum())
    if not 0 < sent <= _MOST_ROWS * len(traffic.rows.atom):
        return traffic
    return replace(traffic, pings=Pings(count, every_ms, rows))


def pingable_calls(traffic: Traffic) -> Bools:
    """Calls of caches that can be kept alive: every prefix or marked blocks, read at all, and not stored apart."""
    automatic = (traffic.per_card("cache") == "automatic") & (traffic.per_card("keeps") == "prefixes")
    by_blocks = (traffic.per_card("cache") == "explicit") & (traffic.per_card("lookback_unit") == "block")
    return (automatic & ~switched_off(traffic) | by_blocks) & (traffic.stored_tokens == 0) & traffic.known


def _kept_alive(traffic: Traffic, families: Families, where: Bools) -> tuple[Ints, Ints]:
    """For each call the row up to which it is sent again, -1 where it is not, and how long that lives, ms."""
    rows = traffic.rows
    end = last_static(traffic, opening(traffic, families))
    marked = (rows.marker_ms > 0) & (np.arange(len(rows.atom)) <= end[rows.call]) & block_ends(rows)
    by_blocks = traffic.per_card("cache") == "explicit"
    at = np.where(by_blocks, last_rows(rows, marked), end)
    tokens = ragged.running_sums(rows.tokens, rows.offsets)
    at = np.where(where & pingable_calls(traffic) & (at >= 0) & (tokens[at] >= traffic.min_tokens), at, -1)
    return at, np.where(by_blocks & (at >= 0), rows.marker_ms[at], traffic.ttl_ms)


def _pauses_ms(at_ms: Ints, thread: Ints) -> Ints:
    """Time to the next call of the same thread; of the last one, as good as for ever."""
    order = np.lexsort((at_ms, thread))
    found = np.full(len(at_ms), _FOR_EVER_MS, dtype=np.int64)
    follows = thread[order][1:] == thread[order][:-1]
    found[order[:-1][follows]] = np.diff(at_ms[order])[follows]
    return found


def _best_number(needed: Ints, lapsed: Bools, thread: Ints) -> Ints:
    """For each thread the most pings in a row that pay: what they keep alive is worth nine of them.

    Args:
        needed: pings that each pause takes.
        lapsed: whether it outlasts an entry.
        thread: the calls that keep the same alive, by number.
    """
    worth = [
        np.bincount(thread, weights=_PINGS_A_MISS * (lapsed & (needed <= most)) - np.minimum(needed, most))
        for most in range(_MOST_PINGS + 1)
    ]
    return np.argmax(np.stack(worth), axis=0) if len(thread) else np.zeros(0, dtype=np.int64)


def longest_ttl_ms(traffic: Traffic) -> Ints:
    """The longest time to live that each call's provider offers, ms."""
    return _offered_ms(traffic, max)


def shortest_ttl_ms(traffic: Traffic) -> Ints:
    """The shortest time to live that each call's provider offers, ms."""
    return _offered_ms(traffic, min)


def _offered_ms(traffic: Traffic, choose: Callable[..., int]) -> Ints:
    offered = [1000 * choose(card.ttl_seconds.values(), default=0) for card in traffic.cards]
    return np.array(offered, dtype=np.int64)[traffic.card]


def _with_ttl(traffic: Traffic, where: Bools, ttl_ms: Ints, choose: Callable[[Ints, Ints], Ints]) -> Traffic:
    rows = traffic.rows
    changed = where[rows.call] & (rows.marker_ms > 0)
    marker_ms = np.where(changed, choose(rows.marker_ms, ttl_ms[rows.call]), rows.marker_ms)
    lives = np.where(where, choose(traffic.ttl_ms, ttl_ms), traffic.ttl_ms)
    return replace(traffic, ttl_ms=lives, rows=replace(rows, marker_ms=marker_ms))
