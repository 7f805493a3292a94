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


def drop_markers(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """No breakpoint, so that nothing is written, nor paid for."""
    rows = traffic.rows
    return replace(traffic, rows=replace(rows, marker_ms=np.where(where[rows.call], 0, rows.marker_ms)))


def markable_calls(traffic: Traffic) -> Bools:
    """Calls whose breakpoints the request decides."""
    implicit = traffic.per_card("implicit_marker").astype(np.bool_)
    return (traffic.per_card("cache") == "explicit") & ~implicit & traffic.known


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
