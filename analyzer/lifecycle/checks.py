"""Which calls judge which fix: reads a store and the decisions beside it, checks fixes, and says what to write down.

Several fixes of one family share its calls. Those that went live on one day are judged as one, and the saving is parted
as the reports had promised; of others each is judged by the calls between the fix before it and the fix behind it. So
no dollar is verified twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import polars as pl

from prefixscope.analyzer.audit import with_costs
from prefixscope.analyzer.lifecycle import decisions, known
from prefixscope.analyzer.lifecycle.confounders import Confounder, of_mix
from prefixscope.analyzer.lifecycle.decisions import Decision
from prefixscope.analyzer.lifecycle.known import Known, Told, causes
from prefixscope.analyzer.lifecycle.states import Lives, State, returned_on, states
from prefixscope.analyzer.lifecycle.verify import NOT_ENOUGH, Fix, Verdict, verify
from prefixscope.analyzer.store import Store
from prefixscope.analyzer.times import naive

SIGNED: Final = "prefixscope"
"""Who signs what a check found."""


@dataclass(frozen=True, slots=True)
class Board:
    """All findings of a store, where each stands, and what was odd about the file of decisions."""

    known: Known
    states: Mapping[str, State]  # first id -> state
    notes: tuple[str, ...] = ()

    def state(self, told: Told) -> State:
        """Where a finding stands."""
        return self.states[told.id]


def board(store: Store, path: Path, now: datetime) -> Board:
    """Puts together what reports told and what was decided.

    Args:
        store: an open store.
        path: its file, beside which the decisions are.
        now: a dismissal that has run out by then is over.

    Raises:
        StoreError: the decisions cannot be read.
    """
    kept = decisions.read(decisions.path_beside(path))
    found = known.load(store, kept.made)
    lives: Lives = states(found.first_seen, found.renamed(kept.made), now)
    return Board(found, lives.states, kept.notes + lives.notes)


def check(store: Store, found: Board, told: Told) -> Verdict | None:
    """Judges the last fix of a finding; None = it has not been fixed."""
    on = found.state(told).fixed_on
    if on is None:
        return None
    if not told.family:
        return Verdict(NOT_ENOUGH, on, missing=("calls of this finding in the last audit, there are none",))
    family = with_costs(store.frame("lifecycle/family_calls", family=told.family))
    finding = told.finding
    of_service = family.filter(pl.col("service") == finding["service"], pl.col("provider") == finding["provider"])
    calls = of_service.filter(pl.col("model") == finding["model"])
    verdict = verify(calls, _fix(found, told, on))
    moved = tuple(_moved(family, of_service, on))
    share, together = _part(found, told, on)
    return replace(verdict, confounders=verdict.confounders + moved, share=share, together_with=together)


def decision_of(verdict: Verdict, told: Told, state: State, now: datetime) -> Decision | None:
    """What is to be written down of a check; None where it says nothing, or nothing new."""
    measure = verdict.as_json() if verdict.status != NOT_ENOUGH else None
    if measure is None or (verdict.status == state.status and measure == state.measure):
        return None
    return Decision(told.id, verdict.status, now, SIGNED, also=told.ids[1:], measure=measure)


def _fix(found: Board, told: Told, on: datetime) -> Fix:
    """The fix with the time in which nothing else was done about its family."""
    others = [other for other, _ in _fixes_of_family(found, told) if other.date() != on.date()]
    returned = [time for past in found.state(told).past if (time := returned_on(past)) is not None and time < on]
    begin = max([*(other for other in others if other < on), *returned], default=None)
    return Fix(frozenset(causes(told.finding)), on, begin, min((other for other in others if other > on), default=None))


def _fixes_of_family(found: Board, told: Told) -> Iterator[tuple[datetime, Told]]:
    """Every finding of the same calls that has been fixed, and since when."""
    same = ("service", "provider", "model")
    for other in found.known.told.values():
        on = found.state(other).fixed_on
        alike = other.family == told.family and all(other.finding[name] == told.finding[name] for name in same)
        if alike and on is not None:
            yield on, other


def _part(found: Board, told: Told, on: datetime) -> tuple[float, tuple[str, ...]]:
    """The finding's share of what the fixes of that day saved, and the other findings that were fixed."""
    together = [other for time, other in _fixes_of_family(found, told) if time.date() == on.date()]
    promised = sum(other.promised() for other in together)
    share = told.promised() / promised if promised > 0 else 1 / len(together)
    return share, tuple(other.id for other in together if other.id != told.id)


def _moved(family: pl.DataFrame, of_service: pl.DataFrame, on: datetime) -> Iterator[Confounder]:
    """Whether the prompt's calls went to other services or models, which the comparison leaves out."""
    for frame, column in ((family, "service"), (of_service, "model")):
        live = pl.col("started_at") >= naive(on)
        for one in of_mix(frame.filter(~live), frame.filter(live), column, f"{column} of this prompt"):
            yield replace(one, treated="only calls of the same service and model are compared")


def checked(store: Store, found: Board, chosen: Sequence[Told]) -> Iterator[tuple[Told, Verdict]]:
    """The findings among ``chosen`` that were fixed, with what a check says of each."""
    for told in chosen:
        verdict = check(store, found, told)
        if verdict is not None:
            yield told, verdict
