"""Where each call's prompt parts from an earlier one that it goes on from, and what changed there.

The text is compared, not what the cache knows: settings, scope and lifetimes are apart. The earlier call is the one
before in the same session and family; for the first call of a session, the one before in the family, of any model.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families, Opening
from prefixscope.analyzer.fixes.tools import set_ids
from prefixscope.analyzer.prompts import MESSAGES, SYSTEM, TOOLS
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints
from prefixscope.analyzer.replay import chain_ids
from prefixscope.analyzer.traffic import Traffic, front_rows, numbered

_RARE = 0.02  # of a family's calls: text that fewer hold changes from call to call, text that more hold was edited
_FEW = 16.0  # tokens: the rest of a line that holds volatile text
_RECURS = 0.2  # of what the call before has behind the break: less is a phrase here and there
_SHRUNK = 0.75  # of the tokens before: a history that was summed up is shorter


@dataclass(frozen=True, slots=True)
class Breaks:
    """Per call; ``before`` is -1 where there is no earlier call to compare with."""

    before: Ints
    same_session: Bools
    depth: Ints  # rows at the head that both have
    shared: Floats  # tokens of those rows
    stranded: Floats  # tokens behind them that both have as well
    change: npt.NDArray[np.str_]  # the cause that the change is a sign of; "" = nothing changed, the prompt goes on


@dataclass(frozen=True, slots=True)
class _Changing:
    """Rows of openings that differ between the calls of a family."""

    dynamic: Bools
    rare: Bools  # few calls of the family hold it
    volatile: Bools  # of a volatile kind: a time, an id

    def at(self, own: Ints, theirs: Ints, alone: Bools) -> Bools:
        """Whether one of two rows changes from call to call: it is rare, or volatile and changed ``alone``."""
        return np.logical_or(self._is(own, alone), self._is(theirs, alone))

    def _is(self, at: Ints, alone: Bools) -> Bools:
        return (self.volatile[at] & alone | self.rare[at]) & self.dynamic[at]


def find(traffic: Traffic, families: Families, beginnings: Opening) -> Breaks:
    """Compares each call with the one before it."""
    text = text_chains(traffic)
    before, same_session = _before(traffic, families, text)
    rows = traffic.rows
    before = _forked_from(traffic, text, before, same_session)
    depth = _common(text, rows.offsets, before)
    ends = ragged.running_sums(rows.tokens, rows.offsets)
    shared = np.zeros(len(traffic))
    some = depth > 0
    shared[some] = ends[rows.offsets[:-1][some] + depth[some] - 1]
    in_both = _held_before(traffic, before, depth)
    stranded = ragged.group_sums(np.where(in_both, rows.tokens, 0.0), rows.offsets)
    found = Breaks(before, same_session, depth, shared, stranded, np.full(len(traffic), "", dtype="<U24"))
    return replace(found, change=_changes(traffic, found, in_both, _changing(traffic, families, beginnings)))


def text_chains(traffic: Traffic) -> Ids:
    """Chain ids of the text alone: equal in every scope and under all settings."""
    return chain_ids(replace(traffic, scope=np.zeros_like(traffic.scope), level_salt=np.zeros_like(traffic.level_salt)))


def _before(traffic: Traffic, families: Families, text: Ids) -> tuple[Ints, Bools]:
    """The call before each in its session, else in its family across models; and whether it is of the session."""
    known = traffic.known & (families.of_call >= 0)
    anchor = np.where(known, families.anchor[np.maximum(families.of_call, 0)], np.uint64(0)) if len(families) else None
    if anchor is None:
        return np.full(len(traffic), -1), np.zeros(len(traffic), dtype=np.bool_)
    group = numbered(traffic.calls.select("service").with_columns(anchor=pl.Series(anchor)))
    session = numbered(traffic.calls.select("service", "session_id"))
    named = known & (traffic.calls["session_id"] != "").to_numpy()
    thread = numbered(pl.DataFrame({"group": group, "session": session}))
    in_session = _previous(thread, named)
    anywhere = _previous(session, named)  # a summary may be all that a call has of its family, and so be of another
    begins_alike = _common(text, traffic.rows.offsets, anywhere) > 0
    in_session = np.where((in_session < 0) & begins_alike, anywhere, in_session)
    in_group = _previous(group, known)
    return np.where(in_session >= 0, in_session, in_group), in_session >= 0


def _previous(key: Ints, chosen: Bools) -> Ints:
    """For each chosen row the chosen row before it with the same key, -1 where there is none."""
    found = np.full(len(key), -1, dtype=np.int64)
    at = np.flatnonzero(chosen)
    order = at[np.argsort(key[at], kind="stable")]
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    found[order[same + 1]] = order[same]
    return found


def _forked_from(traffic: Traffic, text: Ids, before: Ints, same_session: Bools) -> Ints:
    """The first call of a session is compared with the one whose conversation it takes over, if there is such a one."""
    rows = traffic.rows
    fresh = np.flatnonzero((before >= 0) & ~same_session & (traffic.calls["session_id"] != "").to_numpy())
    answered = np.zeros(len(traffic), dtype=np.bool_)
    answered[rows.call[rows.answer]] = True
    fresh = fresh[answered[fresh]]  # a conversation that begins is no fork
    if not len(fresh):
        return before
    ids, number = ragged.factorize(text)
    first = np.full(len(ids), len(traffic), dtype=np.int64)
    np.minimum.at(first, number, rows.call)
    found = before.copy()
    for call in fresh.tolist():
        start, end = int(rows.offsets[call]), int(rows.offsets[call + 1])
        earlier = first[number[start:end]] < call
        depth = int(np.argmin(earlier)) if not earlier.all() else end - start
        deep = rows.answer[start : start + depth]
        if deep.any():
            found[call] = first[number[start + depth - 1]]
    return found


def _common(text: Ids, offsets: Ints, before: Ints) -> Ints:
    """Rows at the head of each prompt that the prompt before has as well."""
    lengths = np.diff(offsets)
    some = before >= 0
    compared = np.where(some, np.minimum(lengths, lengths[before]), 0)
    own = ragged.ranges(offsets[:-1], compared)
    theirs = ragged.ranges(offsets[:-1][before], compared)
    # equal chains mean equal prefixes, so the equal ones come first
    return ragged.group_sums((text[own] == text[theirs]).astype(np.int64), ragged.offsets_of(compared))


def _held_before(traffic: Traffic, before: Ints, depth: Ints) -> Bools:
    """Rows behind the common head whose atom the call before holds behind it as well."""
    rows = traffic.rows
    call = rows.call
    place = np.arange(len(call)) - rows.offsets[:-1][call]
    behind = (place >= depth[call]) & (before[call] >= 0)
    stride = int(rows.atom.max(initial=0)) + 1
    atom = rows.atom.astype(np.int64)
    wanted = np.flatnonzero(behind)
    at, lengths = before[before >= 0], np.diff(rows.offsets)
    theirs = ragged.ranges(rows.offsets[:-1][at] + depth[before >= 0], np.maximum(lengths[at] - depth[before >= 0], 0))
    asking = np.repeat(np.flatnonzero(before >= 0), np.maximum(lengths[at] - depth[before >= 0], 0))
    found = np.zeros(len(call), dtype=np.bool_)
    found[wanted] = np.isin(call[wanted] * stride + atom[wanted], asking * stride + atom[theirs])
    return found


def _changes(traffic: Traffic, found: Breaks, in_both: Bools, changing: _Changing) -> npt.NDArray[np.str_]:
    """What changed at the break, by the level and the kind of text that stands there."""
    rows = traffic.rows
    lengths = np.diff(rows.offsets)
    parted = (found.before >= 0) & (found.depth < lengths) & (found.depth < lengths[found.before])
    change = found.change.copy()
    at = np.flatnonzero(parted)
    if not len(at):
        return _named_forks(traffic, found, change)
    own = rows.offsets[:-1][at] + found.depth[at]
    theirs = rows.offsets[:-1][found.before[at]] + found.depth[at]
    level = np.minimum(rows.level[own], rows.level[theirs])
    sets = set_ids(traffic)
    same_set = sets[at] == sets[found.before[at]]
    volatile = changing.at(own, theirs, ~_rewritten(traffic, found, in_both)[at])
    recurs = _recurs(traffic, found)[at]
    history = _history_changes(traffic, found, at, in_both[own] & recurs, recurs)
    change[at] = np.select(
        [level == TOOLS, (level == SYSTEM) & volatile, level == SYSTEM, history == "history_pruned", volatile & recurs],
        [
            np.where(same_set, "tools_reordered", "tools_changed"),
            "volatile_prefix",
            "system_edited",
            np.where(found.same_session[at], history, ""),
            "volatile_prefix",
        ],
        default=np.where(found.same_session[at], history, ""),
    )
    unrecorded = front_rows(traffic)
    change[at[unrecorded[own] | unrecorded[theirs]]] = ""  # other text is supposed there, not seen
    return _named_forks(traffic, found, change)


def _named_forks(traffic: Traffic, found: Breaks, change: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    """A new session that takes over another one's answers is a fork of it."""
    rows = traffic.rows
    place = np.arange(len(rows.atom)) - rows.offsets[:-1][rows.call]
    taken_over = ragged.group_sums((rows.answer & (place < found.depth[rows.call])).astype(np.int64), rows.offsets) > 0
    named = (traffic.calls["session_id"] != "").to_numpy()
    change[(change == "") & (found.before >= 0) & ~found.same_session & taken_over & named] = "forked"
    return change


def _changing(traffic: Traffic, families: Families, beginnings: Opening) -> _Changing:
    rows = traffic.rows
    family = families.of_call[rows.call]
    stride = int(rows.atom.max(initial=0)) + 1
    dynamic = beginnings.rows & ~beginnings.static
    chosen = np.flatnonzero(dynamic & (family >= 0))
    ids, number = ragged.factorize(family[chosen] * stride + rows.atom[chosen])
    pairs = ragged.distinct(number * len(traffic) + rows.call[chosen])
    holders = np.bincount(pairs // max(len(traffic), 1), minlength=len(ids))
    size = np.bincount(families.of_call[families.of_call >= 0], minlength=len(families))
    rare = np.zeros(len(rows.atom), dtype=np.bool_)
    rare[chosen] = holders[number] <= 2 + _RARE * size[family[chosen]]
    volatile = (traffic.contents.atom_kinds != "").to_numpy()[rows.atom]
    return _Changing(dynamic, rare, volatile)


def _rewritten(traffic: Traffic, found: Breaks, in_both: Bools) -> Bools:
    """Calls of whose tools and system prompt more than volatile text is another one than before."""
    rows = traffic.rows
    place = np.arange(len(rows.atom)) - rows.offsets[:-1][rows.call]
    plain = (traffic.contents.atom_kinds == "").to_numpy()[rows.atom]
    new = (place >= found.depth[rows.call]) & ~in_both & plain & (rows.level != MESSAGES)
    return ragged.group_sums(np.where(new, rows.tokens, 0.0), rows.offsets) > _FEW


def _recurs(traffic: Traffic, found: Breaks) -> Bools:
    """Calls that hold a good part of what the call before has behind the break: it was moved, and not given up."""
    total = ragged.group_sums(traffic.rows.tokens, traffic.rows.offsets)
    before = total[np.maximum(found.before, 0)]
    return found.stranded > np.maximum(_FEW, _RECURS * (before - found.shared))


def _history_changes(traffic: Traffic, found: Breaks, at: Ints, goes_on: Bools, recurs: Bools) -> npt.NDArray[np.str_]:
    """What became of the messages that were sent before; ``goes_on``: the text at the break stood farther back."""
    total = ragged.group_sums(traffic.rows.tokens, traffic.rows.offsets)
    shrunk = total[at] < _SHRUNK * total[found.before[at]]
    return np.select([goes_on, recurs, shrunk], ["history_pruned", "history_rewritten", "compacted"], default="")
