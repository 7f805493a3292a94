"""Caches of whole entries: what a call looks up, what it touches, and that reading an entry prolongs its life."""

from dataclasses import dataclass

import numpy as np

from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.replay.touches import Depths, Events, no_depths, states
from prefixscope.analyzer.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Lookups:
    """Prefixes that calls look up, by call, then by row."""

    row: Ints  # the last row of the prefix
    call: Ints
    node: Ids
    refresh_ms: Ints  # TTL that the entry gets anew when it is the one that is read; 0 = the call touches it anyway


@dataclass(frozen=True, slots=True)
class Touches:
    """Entries that calls write, or prolong, whatever they read."""

    call: Ints
    node: Ids
    ttl_ms: Ints


def depths(lookups: Lookups, touches: Touches, traffic: Traffic) -> Depths:
    """The deepest entry of each call that is alive, that has not expired, and that was ever there.

    What a call reads depends on what the calls before it have prolonged by reading. So the answer is put in as touches
    until it stays the same; each round settles at least the next call in time, in practice nearly all of them.
    """
    warm = traffic.rows.warm[lookups.row]
    count = len(lookups.row)
    read = np.zeros(0, dtype=np.int64)
    while True:
        events = Events(
            node=np.concatenate([lookups.node, touches.node, lookups.node[read]]),
            call=np.concatenate([lookups.call, touches.call, lookups.call[read]]),
            ttl_ms=np.concatenate([np.full(count, -1), touches.ttl_ms, lookups.refresh_ms[read]]),
        )
        flags = states(events, traffic)[:, :count] | warm
        deepest = [_deepest(found, lookups, len(traffic)) for found in flags]
        found = deepest[0][deepest[0] >= 0]
        found = found[lookups.refresh_ms[found] > 0]
        if np.array_equal(found, read):
            return _depths(deepest, lookups, traffic)
        read = found


def _deepest(flags: Bools, lookups: Lookups, calls: int) -> Ints:
    """For each call its deepest flagged lookup, -1 = none."""
    found = np.full(calls, -1, dtype=np.int64)
    at = np.flatnonzero(flags)
    found[lookups.call[at]] = at  # of several, numpy keeps the last
    return found


def _depths(deepest: list[Ints], lookups: Lookups, traffic: Traffic) -> Depths:
    found = no_depths(len(traffic))
    for depth, lookup in zip((found.reached, found.unexpired, found.shared), deepest, strict=True):
        some = lookup >= 0
        depth[some] = lookups.row[lookup[some]] - traffic.rows.offsets[:-1][some] + 1
    return found
