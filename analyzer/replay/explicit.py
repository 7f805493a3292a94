"""Caches with entries at breakpoints only."""

from dataclasses import dataclass

import numpy as np

from prefixscope.analyzer.prompts import SYSTEM
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.replay import entries
from prefixscope.analyzer.replay.automatic import owners
from prefixscope.analyzer.replay.chains import token_ends
from prefixscope.analyzer.replay.entries import Lookups, Touches
from prefixscope.analyzer.replay.nodes import NodeSet, chosen_rows
from prefixscope.analyzer.replay.touches import Depths
from prefixscope.analyzer.traffic import Traffic

_NOWHERE = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class _Markers:
    """Breakpoints in the order of their rows."""

    row: Ints
    call: Ints
    ttl_ms: Ints

    def only(self, chosen: Bools) -> "_Markers":
        return _Markers(self.row[chosen], self.call[chosen], self.ttl_ms[chosen])

    @property
    def from_start(self) -> Ints:
        """How many breakpoints of its call stand in front of each."""
        return np.arange(len(self.row)) - np.searchsorted(self.call, self.call)

    @property
    def from_end(self) -> Ints:
        """How many breakpoints of its call stand behind each."""
        return np.searchsorted(self.call, self.call, side="right") - 1 - np.arange(len(self.row))


def by_blocks(traffic: Traffic, chain: Ids, chosen: Bools) -> tuple[Depths, Ints]:
    """Each breakpoint looks back over blocks. Returns the depths, and the rows of the breakpoints that write."""
    ends = token_ends(traffic)
    markers = _markers(traffic, chosen)
    markers = markers.only(markers.from_end < traffic.per_card("max_markers")[markers.call])
    markers = markers.only(ends[markers.row] >= traffic.min_tokens[markers.call])
    touched = NodeSet(chain[markers.row])
    found: list[tuple[Ints, Ints]] = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))]
    lookback, minimum = traffic.per_card("lookback"), traffic.min_tokens
    for rows, call in chosen_rows(traffic, chosen):
        at, marker = _with_marker_behind(rows, call, markers)
        near = traffic.rows.position[markers.row[marker]] - traffic.rows.position[at] < lookback[markers.call[marker]]
        near &= _ends_of_blocks(traffic, at) & (ends[at] >= minimum[markers.call[marker]])
        near &= touched.holds(chain[at]) | traffic.rows.warm[at]
        found.append((at[near], marker[near]))
    row, marker = (np.concatenate(part) for part in zip(*found, strict=True))
    refresh_ms = np.where(markers.row[marker] == row, 0, markers.ttl_ms[marker])
    lookups = Lookups(row, markers.call[marker], chain[row], refresh_ms)
    return entries.depths(lookups, _touches(markers, chain), traffic), markers.row


def by_messages(traffic: Traffic, chain: Ids, chosen: Bools) -> tuple[Depths, Ints]:
    """The implicit breakpoint looks back over messages, explicit ones stand for themselves (OpenAI since GPT-5.6)."""
    rows, ends, minimum = traffic.rows, token_ends(traffic), traffic.min_tokens
    every = _markers(traffic, chosen)
    implicit = _implicit(every, traffic)
    is_implicit = every.row == implicit[every.call]
    explicit = every.only(~is_implicit)
    room = traffic.per_card("max_markers") - (implicit < _NOWHERE)
    written = np.concatenate([every.row[is_implicit], explicit.row[explicit.from_end < room[explicit.call]]])
    written = np.sort(written[ends[written] >= minimum[owners(traffic, written)]])
    markers = every.only(np.isin(every.row, written))
    first, latest = traffic.per_card("first_lookups"), traffic.per_card("latest_lookups")
    looked_up = (explicit.from_start < first[explicit.call]) | (explicit.from_end < latest[explicit.call])
    row = np.unique(np.concatenate([explicit.row[looked_up], _endings(traffic, implicit, chosen)]))
    call = owners(traffic, row)
    kept = (ends[row] >= minimum[call]) & (NodeSet(chain[written]).holds(chain[row]) | rows.warm[row])
    row, call = row[kept], call[kept]
    # found by its own breakpoint it lives as that says, else as the implicit one does
    refresh_ms = np.where(np.isin(row, explicit.row[looked_up]), rows.marker_ms[row], traffic.ttl_ms[call])
    refresh_ms[np.isin(row, written)] = 0
    lookups = Lookups(row, call, chain[row], refresh_ms)
    return entries.depths(lookups, _touches(markers, chain), traffic), written


def _markers(traffic: Traffic, chosen: Bools) -> _Markers:
    rows = traffic.rows
    at = np.flatnonzero(rows.marker_ms > 0)
    at = at[_ends_of_blocks(traffic, at)]
    call = owners(traffic, at)
    return _Markers(at, call, rows.marker_ms[at]).only(chosen[call])


def _touches(markers: _Markers, chain: Ids) -> Touches:
    return Touches(markers.call, chain[markers.row], markers.ttl_ms)


def _ends_of_blocks(traffic: Traffic, at: Ints) -> Bools:
    """Which of the rows are the last of their block."""
    return _changes_behind(traffic.rows.block, traffic, at)


def _changes_behind(values: Ints, traffic: Traffic, at: Ints) -> Bools:
    """Behind which of the rows the value is another one, or the call ends."""
    following = np.minimum(at + 1, max(len(values) - 1, 0))
    found = values[following] != values[at]
    ends = traffic.rows.offsets[1:]
    return found | (ends[np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)] == at + 1)


def _with_marker_behind(at: Ints, call: Ints, markers: _Markers) -> tuple[Ints, Ints]:
    """Those of a slice's rows that have a breakpoint at or behind them in their call, and the next one of each."""
    if not len(at):
        return at, at
    first, last = np.searchsorted(markers.row, [at[0], at[-1] + 1])
    behind = np.full(len(at), last, dtype=np.int64)
    behind[np.searchsorted(at, markers.row[first:last])] = np.arange(first, last)
    behind = np.minimum.accumulate(behind[::-1])[::-1]
    some = behind < last
    some[some] = markers.call[behind[some]] == call[some]
    return at[some], behind[some]


def _implicit(every: _Markers, traffic: Traffic) -> Ints:
    """For each call the row of the breakpoint that the provider has set by itself."""
    found = np.full(len(traffic), _NOWHERE, dtype=np.int64)
    implied = traffic.per_card("implicit_marker").astype(np.bool_)
    implied &= (traffic.calls["cache_mode"] != "explicit").to_numpy()
    at_message_end = (traffic.rows.position[every.row] > 0) & _changes_behind(traffic.rows.position, traffic, every.row)
    chosen = every.only(at_message_end & implied[every.call])
    found[chosen.call] = chosen.row  # of several, numpy keeps the last
    return found


def _endings(traffic: Traffic, implicit: Ints, chosen: Bools) -> Ints:
    """Rows at which eligible messages end that the implicit breakpoints look up, their own included."""
    rows = traffic.rows
    lookback = traffic.per_card("lookback")
    found = [np.zeros(0, dtype=np.int64)]
    for at, call in chosen_rows(traffic, chosen & (implicit < _NOWHERE)):
        back = rows.position[implicit[call]] - rows.position[at]
        wanted = (back >= 0) & (back < lookback[call]) | (rows.position[at] == 1) & (rows.level[at] == SYSTEM)
        wanted &= rows.position[at] > 0
        found.append(at[wanted][_changes_behind(rows.position, traffic, at[wanted])])
    return np.concatenate(found)
