"""Breakpoints that a trace does not show, inferred from what the provider reported to have read and written.

Instrumentations other than ours drop ``cache_control``. On a provider that caches only up to a breakpoint, what was
read and written together ends exactly at one; so it stands at the block end nearest to that many tokens.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.prompts import block_ends, ttl_ms
from prefixscope.analyzer.ragged import Bools, Ints
from prefixscope.analyzer.traffic import Traffic

_NEAR = 0.05  # of the tokens read and written: farther off, no breakpoint is claimed
_WRITES = {"write_5m": "5m", "write_30m": "30m", "write_1h": "1h", "write_12h": "12h"}


def inferred(traffic: Traffic) -> tuple[Traffic, Bools]:
    """The traffic with a breakpoint where each call without any must have had its last one, and for which calls."""
    rows = traffic.rows
    cached = traffic.calls.select(pl.sum_horizontal("read", *_WRITES, "write_unknown")).to_series().to_numpy()
    marked = ragged.group_sums((traffic.prompts.marker_ms > 0).astype(np.int64), traffic.prompts.offsets) > 0
    silent = (traffic.per_card("cache") == "explicit") & traffic.known & ~marked & (cached > 0)
    traffic = replace(traffic, calls=traffic.calls.with_columns(marker_inferred=pl.Series(silent)))
    if not silent.any():
        return traffic, silent
    ends = np.flatnonzero(block_ends(rows) & silent[rows.call])
    call = rows.call[ends]
    upto = ragged.running_sums(rows.tokens, rows.offsets)[ends]
    off = np.abs(upto - cached[call])
    best = _nearest(off, call)
    best = best[off[best] <= np.maximum(_NEAR * cached[call[best]], 16)]
    marker_ms = traffic.prompts.marker_ms.copy()
    segment = traffic.prompts.offsets[call[best]] + rows.block[ends[best]]
    marker_ms[segment] = _ttls(traffic)[call[best]]
    found = np.zeros(len(traffic), dtype=np.bool_)
    found[call[best]] = True
    traffic = replace(traffic, calls=traffic.calls.with_columns(marker_inferred=pl.Series(found)))
    return traffic.with_prompts(replace(traffic.prompts, marker_ms=marker_ms)), found


def _nearest(off: np.ndarray[tuple[int], np.dtype[np.float64]], call: Ints) -> Ints:
    """For each call the index of its smallest distance."""
    order = np.lexsort((off, call))
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = call[order][1:] != call[order][:-1]
    return order[first]


def _ttls(traffic: Traffic) -> Ints:
    """TTL of each call's writes, ms; the card's default for a call that only read or whose split is not known."""
    found = traffic.ttl_ms.copy()
    for bucket, name in _WRITES.items():
        found = np.where(traffic.calls[bucket].to_numpy() > 0, ttl_ms(name), found)
    return found
