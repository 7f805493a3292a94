"""Moving text that changes behind the text that stays."""

from dataclasses import replace

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families, Opening, opening
from prefixscope.analyzer.prompts import MESSAGES, TOOLS, Rows, last_rows
from prefixscope.analyzer.ragged import Bools, Floats, Ints
from prefixscope.analyzer.traffic import Traffic

_MOVED_HEAD = np.uint64(0x6D6F766564)  # the segment header of text that a fix has moved
_WORTH_MOVING = 256  # bytes of static text behind; the wording around a question is no prefix worth saving


def move_volatile(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """Dynamic text in front of static text moves behind it.

    What stays the same for a session moves to the end of the static part; what changes from call to call moves to the
    very end of the prompt, behind all markers.
    """
    rows = traffic.rows
    found = opening(traffic, families)
    moved = volatile_rows(traffic, families, found) & where[rows.call]
    if not moved.any():
        return traffic
    steady = steady_rows(traffic, moved)
    place = np.arange(len(rows.atom), dtype=np.float64)
    static_end = last_static(traffic, found)[rows.call]
    place[steady] = static_end[steady] + 0.5
    place[moved & ~steady] = len(rows.atom)
    return replace(traffic, rows=_moved(traffic, moved, place))


def volatile_rows(traffic: Traffic, families: Families, found: Opening) -> Bools:
    """Dynamic rows of the opening with static rows behind them, or with a marker behind them in a block of static text.

    A tool that differs as a whole cannot be moved.
    """
    rows = traffic.rows
    mixed = _blocks_with(found.static, traffic)
    static_behind = _bytes_behind(found.static, traffic) >= _WORTH_MOVING
    marked_behind = mixed & _blocks_with(rows.marker_ms > 0, traffic) & (rows.level != MESSAGES)
    dynamic = found.rows & ~found.static & (families.of_call[rows.call] >= 0)
    return dynamic & (static_behind | marked_behind) & ((rows.level != TOOLS) | mixed)


def last_static(traffic: Traffic, found: Opening) -> Ints:
    """For each call the last static row of its opening, -1 where there is none."""
    return last_rows(traffic.rows, found.static)


def _bytes_behind(flags: Bools, traffic: Traffic) -> Floats:
    """Bytes of flagged rows behind each row, in its call."""
    rows = traffic.rows
    size = np.where(flags, traffic.contents.atom_bytes[rows.atom], 0.0)
    upto = ragged.running_sums(size, rows.offsets)
    return ragged.group_sums(size, rows.offsets)[rows.call] - upto


def _blocks_with(flags: Bools, traffic: Traffic) -> Bools:
    """Rows whose block holds a flagged row."""
    rows = traffic.rows
    block = rows.call * (int(rows.block.max(initial=0)) + 1) + rows.block
    return np.isin(block, block[flags])


def steady_rows(traffic: Traffic, moved: Bools) -> Bools:
    """Moved rows that stay the same for a session: more than half of its calls, and several, hold their atom."""
    rows = traffic.rows
    names = traffic.calls["session_id"]
    session = np.where((names != "").to_numpy(), names.rank("dense").to_numpy().astype(np.int64), -1)
    of_row = session[rows.call]
    chosen = moved & (of_row >= 0)
    stride = int(rows.atom.max(initial=0)) + 1
    _, number = ragged.factorize(of_row[chosen] * stride + rows.atom[chosen])
    holders = np.bincount(ragged.distinct(number * len(traffic) + rows.call[chosen]) // len(traffic))
    calls = np.bincount(session[session >= 0])
    found = np.zeros(len(moved), dtype=np.bool_)
    at = np.flatnonzero(chosen)
    held = holders[number]
    found[at] = (held > 1) & (2 * held > calls[of_row[at]])
    return found


def _moved(traffic: Traffic, moved: Bools, place: Floats) -> Rows:
    """Rows in the order of ``place`` within each call; moved ones become blocks of their own without a marker.

    A marker behind a moved row stays where it was: behind the row in front.
    """
    rows = traffic.rows
    order = np.lexsort((np.arange(len(place)), place, rows.call))
    begun = np.maximum.accumulate(np.where(rows.head != 0, np.arange(len(place)), 0))
    apart = int(rows.block.max(initial=0)) + 1
    changed = replace(
        rows,
        block=np.where(moved, rows.block + apart, rows.block),
        head=np.where(moved, _MOVED_HEAD, rows.head[begun]),
        level=np.where(moved, MESSAGES, rows.level),
        position=np.where(moved, rows.position[np.maximum(rows.offsets[1:] - 1, 0)][rows.call] + 1, rows.position),
        marker_ms=_markers_left_behind(rows, moved),
        warm=rows.warm & ~moved,
    ).reordered(order)
    begins = np.ones(len(place), dtype=np.bool_)
    begins[1:] = (changed.block[1:] != changed.block[:-1]) | (changed.call[1:] != changed.call[:-1])
    return replace(changed, head=np.where(begins, changed.head, np.uint64(0)))


def _markers_left_behind(rows: Rows, moved: Bools) -> Ints:
    """TTLs of markers once the moved rows are gone: each at the last row in front of it that stays in its call."""
    index = np.arange(len(moved))
    stays = np.maximum.accumulate(np.where(moved, -1, index))
    marker_ms = np.where(moved, 0, rows.marker_ms)
    lost = np.flatnonzero(moved & (rows.marker_ms > 0))
    heir = stays[lost]
    same_call = (heir >= 0) & (rows.call[heir] == rows.call[lost])
    np.maximum.at(marker_ms, heir[same_call], rows.marker_ms[lost[same_call]])
    return marker_ms
