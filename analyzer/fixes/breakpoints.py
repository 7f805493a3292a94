"""Where explicit breakpoints stand."""

from dataclasses import replace

import numpy as np

from prefixscope.analyzer.families import Families, opening
from prefixscope.analyzer.fixes.volatile import last_static
from prefixscope.analyzer.prompts import Rows, block_ends, ttl_ms
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.traffic import Traffic

_SPLIT_HEAD = np.uint64(0x73706C6974)  # the segment header of a block that a breakpoint has cut off another


def mark_static(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """One breakpoint, behind the static part of the prompt; a block that goes on there is cut in two."""
    return _marked(traffic, families, where, static=True, last=False)


def mark_last(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """One breakpoint, behind the last message (what the top-level ``cache_control`` does)."""
    return _marked(traffic, families, where, static=False, last=True)


def mark_both(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """A breakpoint behind the static part, and one behind the last message."""
    return _marked(traffic, families, where, static=True, last=True)


def mark_trail(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """Breakpoints behind the static part and the last message, and two on the way as far apart as the lookback sees.

    An agent that adds more blocks in a turn than a breakpoint looks back finds the end of its last turn by them.
    """
    marked = _marked(traffic, families, where, static=True, last=True)
    rows, lifetime = marked.rows, _lifetimes(traffic)
    marker_ms = rows.marker_ms.copy()
    last = rows.position[np.maximum(rows.offsets[1:] - 1, 0)] if len(rows.position) else rows.position
    behind = np.repeat(last, np.diff(rows.offsets)) - rows.position  # positions between each row and the last one
    lookback = traffic.per_card("lookback")[rows.call]
    ends = block_ends(rows) & where[rows.call]
    ends[:-1] &= (rows.position[1:] != rows.position[:-1]) | (rows.call[1:] != rows.call[:-1])
    for step in (1, 2):
        at = ends & (lookback > 0) & (behind == step * lookback)
        marker_ms[at] = lifetime[rows.call[at]]
    return replace(marked, rows=replace(rows, marker_ms=marker_ms))


def drop_markers(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """No breakpoint, so that nothing is written, nor paid for."""
    rows = traffic.rows
    return replace(traffic, rows=replace(rows, marker_ms=np.where(where[rows.call], 0, rows.marker_ms)))


def markable_calls(traffic: Traffic) -> Bools:
    """Calls whose breakpoints the request decides, and the trace shows."""
    implicit = traffic.per_card("implicit_marker").astype(np.bool_)
    shown = ~traffic.calls["marker_inferred"].to_numpy()
    return (traffic.per_card("cache") == "explicit") & ~implicit & shown & traffic.known


def marked_calls(traffic: Traffic) -> Bools:
    """Calls that have a breakpoint."""
    found = np.zeros(len(traffic), dtype=np.bool_)
    found[traffic.rows.call[traffic.rows.marker_ms > 0]] = True
    return found


def _marked(traffic: Traffic, families: Families, where: Bools, *, static: bool, last: bool) -> Traffic:
    rows = traffic.rows
    lifetime = _lifetimes(traffic)
    marker_ms = np.where(where[rows.call], 0, rows.marker_ms)
    if static:
        at = last_static(traffic, opening(traffic, families))
        at = at[where & (at >= 0)]
        rows = _cut_behind(rows, at)
        marker_ms[at] = lifetime[rows.call[at]]
    if last:
        at = rows.offsets[1:][where & traffic.known] - 1
        marker_ms[at] = lifetime[rows.call[at]]
    return replace(traffic, rows=replace(rows, marker_ms=marker_ms))


def _lifetimes(traffic: Traffic) -> Ints:
    """The TTL of each call's breakpoints, the longest it has; where it has none, the shortest on offer."""
    rows = traffic.rows
    found = np.zeros(len(traffic), dtype=np.int64)
    np.maximum.at(found, rows.call, rows.marker_ms)
    default = np.array([ttl_ms(card.default_ttl) for card in traffic.cards], dtype=np.int64)[traffic.card]
    return np.where(found > 0, found, default)


def _cut_behind(rows: Rows, at: Ints) -> Rows:
    """The same rows; a block that goes on behind one of the given rows begins anew there."""
    cut = at[~block_ends(rows)[at]] + 1
    if not len(cut):
        return rows
    head: Ids = rows.head.copy()
    head[cut] = _SPLIT_HEAD
    begins = np.zeros(len(head), dtype=np.int64)
    begins[cut] = 1
    total = np.cumsum(begins)
    before = np.concatenate([np.zeros(1, dtype=np.int64), total])[rows.offsets[:-1]]
    inserted = total - np.repeat(before, np.diff(rows.offsets))
    return replace(rows, head=head, block=rows.block + inserted, position=rows.position + inserted)
