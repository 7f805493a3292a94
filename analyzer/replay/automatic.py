"""Caches that keep every prefix of every prompt."""

import numpy as np

from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.replay.nodes import run_ends
from prefixscope.analyzer.replay.touches import Depths, Events, no_depths, states
from prefixscope.analyzer.traffic import Traffic


def depths(traffic: Traffic, chain: Ids, chosen: Bools) -> Depths:
    """The longest prefix of each chosen call that is alive, that has not expired, and that was ever seen.

    What touches a prefix touches every shorter one as well, so that the longest one decides.
    """
    rows = traffic.rows
    at = run_ends(traffic, chain, chosen)
    call = owners(traffic, at)
    events = Events(chain[at], call, traffic.ttl_ms[call])
    found = no_depths(len(traffic))
    for depth, flags in zip((found.reached, found.unexpired, found.shared), states(events, traffic), strict=True):
        deepest = at[flags]
        depth[call[flags]] = deepest - rows.offsets[:-1][call[flags]] + 1  # of several, numpy keeps the last
        np.maximum(depth, warm_depths(traffic, chosen), out=depth)
    return found


def warm_depths(traffic: Traffic, chosen: Bools) -> Ints:
    """Rows of each chosen call that were cached before the window began: a prefix."""
    warm = np.flatnonzero(traffic.rows.warm)
    found = np.zeros(len(traffic), dtype=np.int64)
    call = owners(traffic, warm)
    found[call] = warm - traffic.rows.offsets[:-1][call] + 1
    return np.where(chosen, found, 0)


def owners(traffic: Traffic, at: Ints) -> Ints:
    """The call of each given row."""
    return (np.searchsorted(traffic.rows.offsets, at, side="right") - 1).astype(np.int32)
