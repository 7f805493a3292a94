"""Caches that keep the last prompt of a slot and no other (llama.cpp): one slot a scope."""

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.replay.automatic import warm_depths
from prefixscope.analyzer.replay.nodes import chosen_rows
from prefixscope.analyzer.replay.touches import Depths
from prefixscope.analyzer.traffic import Traffic


def depths(traffic: Traffic, chain: Ids, chosen: Bools) -> Depths:
    """What each chosen call has in common with the one before it in its slot.

    A slot serves one request after the other, so that the one before is complete.
    """
    before = _before(traffic, chosen)
    shared = np.maximum(_in_common(traffic, chain, before), warm_depths(traffic, chosen))
    late = (before >= 0) & (traffic.at_ms > (traffic.at_ms + traffic.ttl_ms)[before])
    kept = np.where(late, warm_depths(traffic, chosen), shared)
    return Depths(kept, kept, shared)


def _before(traffic: Traffic, chosen: Bools) -> Ints:
    """The call before each chosen one in its scope, -1 = none."""
    found = np.full(len(traffic), -1, dtype=np.int64)
    calls = np.flatnonzero(chosen)
    calls = calls[np.argsort(traffic.scope[calls], kind="stable")]
    same = traffic.scope[calls[1:]] == traffic.scope[calls[:-1]]
    found[calls[1:][same]] = calls[:-1][same]
    return found


def _in_common(traffic: Traffic, chain: Ids, before: Ints) -> Ints:
    """Rows at the head of each call that the given other call has too; 0 where there is none."""
    offsets, lengths = traffic.rows.offsets, np.diff(traffic.rows.offsets)
    found = np.zeros(len(traffic), dtype=np.int64)
    for at, call in chosen_rows(traffic, before >= 0):
        place = at - offsets[call]
        there = place < lengths[before[call]]
        same = np.zeros(len(at), dtype=np.bool_)
        same[there] = chain[at[there]] == chain[(offsets[before[call]] + place)[there]]
        calls = ragged.distinct(call)
        inner = np.append(np.searchsorted(call, calls), len(call))
        found[calls] = ragged.leading(same, inner)
    return found
