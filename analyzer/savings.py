"""PRICE: what each fix is worth, by replaying the traffic with it.

Fixes of one family overlap, so they are put on one after the other, the dearest first, and each is worth what it adds.
Families share next to nothing, so their savings add up. No saving exceeds what the same calls cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from prefixscope.analyzer import fixes, ragged, relevance
from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.changes import Bill, Change
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.replay import Outcome, chain_ids, replay
from prefixscope.analyzer.traffic import Traffic, numbered

_MOST_STEPS = 4  # fixes on one family
_WORTHWHILE = 0.01  # of what the input of the family costs: less is not worth a change, and may be noise


@dataclass(frozen=True, slots=True)
class Option:
    """One way to remove a cause, beside others."""

    fix: str
    saved: float  # USD over the family
    premium: float  # USD more, or less, for writes


@dataclass(frozen=True, slots=True)
class Trial:
    """A fix on top of those that are chosen."""

    families: Bools  # on which it was put
    outcome: Outcome
    change: Change


@dataclass(frozen=True, slots=True)
class Plan:
    """The fixes that pay, family by family, step by step, and what the traffic does after each step."""

    chosen: tuple[tuple[str, ...], ...]  # family -> fixes in the order in which they are put on
    options: Mapping[tuple[int, int], tuple[Option, ...]]  # (family, step) -> all that was tried, dearest first
    outcomes: tuple[Outcome, ...]  # after no step, after the first one of each family, …
    changes: tuple[Change, ...]
    alone: Mapping[str, Trial]  # by fix: it alone, whether it pays or not


def plan(base: Baseline, rates: pl.DataFrame) -> Plan:
    """Puts fixes on each family, one step at a time, each time the one that saves most.

    ``rates`` are the calls with their prices (``audit.with_costs``).
    """
    search = _Search(base, Bill(base.traffic, base.outcome, rates))
    while search.step():
        pass
    return search.plan()


class _Search:
    """The greedy search, all families side by side."""

    def __init__(self, base: Baseline, bill: Bill) -> None:
        traffic, families = base.traffic, base.families
        self._traffic, self._families, self._bill = traffic, families, bill
        relevant = relevance.of_fixes(base)
        self._bonds = _bonds(traffic, families)
        self._wanted = {name: _by_family(calls.astype(float), families) > 0 for name, calls in relevant.items()}
        self._chosen: list[tuple[str, ...]] = [()] * len(families)
        self._open = np.ones(len(families), dtype=np.bool_)
        self._options: dict[tuple[int, int], tuple[Option, ...]] = {}
        self._outcomes = [base.outcome]
        self._changes = [bill.change(base.outcome)]
        self._alone: dict[str, Trial] = {}
        self._floor = np.maximum(_WORTHWHILE * _by_family(bill.spent, families), 1e-9)

    def step(self) -> bool:
        """Puts one more fix on each family where one pays; False when none does any more."""
        outcome, step = self._outcomes[-1], len(self._outcomes) - 1
        trials = {name: tried for name in self._wanted if (tried := self._trial(name)) is not None}
        saved = _by_family(self._changes[-1].saved, self._families)
        premium = _premiums(self._changes[-1], self._families)
        gains = {
            name: (
                _by_family(trial.change.saved, self._families) - saved,
                _premiums(trial.change, self._families) - premium,
            )
            for name, trial in trials.items()
        }
        if not step:
            self._alone = trials
        progress = False
        for family in np.flatnonzero(self._open).tolist():
            options = [
                Option(name, float(gained[family]), float(cost[family]))
                for name, (gained, cost) in gains.items()
                if trials[name].families[family]
            ]
            # of two that come to the same, the one that lets calls read more
            options.sort(key=lambda option: (-round(option.saved, 9), fixes.FIXES[option.fix].saves_writes))
            self._options[family, step] = tuple(options)
            if not options or options[0].saved <= self._floor[family] or step == _MOST_STEPS:
                self._open[family] = False
                continue
            best = options[0].fix
            self._chosen[family] += (best,)
            members = self._families.of_call == family
            outcome = outcome.with_calls(members, trials[best].outcome.only(members))
            progress = True
        if progress:
            self._outcomes.append(outcome)
            self._changes.append(self._bill.change(outcome))
        return progress

    def plan(self) -> Plan:
        return Plan(tuple(self._chosen), self._options, tuple(self._outcomes), tuple(self._changes), self._alone)

    def _trial(self, name: str) -> Trial | None:
        """One more fix on the families that it may help; None where there are none."""
        free = [not fixes.excludes(name, chosen) for chosen in self._chosen]
        tried = self._wanted[name] & self._open & np.array(free, dtype=np.bool_)
        if not tried.any():
            return None
        names = set(fixes.FIXES)
        masks = {
            other: self._members(np.array([other in chosen for chosen in self._chosen], dtype=np.bool_) & self._open)
            for other in names
        }
        masks[name] = masks[name] | self._members(tried)
        bound = _bound_together(self._bonds, self._members(tried))
        part = {other: mask[bound] for other, mask in masks.items()}
        fixed = replay(fixes.apply(part, self._traffic.only(bound), self._families.only(bound)))
        outcome = self._outcomes[-1].with_calls(bound, fixed)
        return Trial(tried, outcome, self._bill.change(outcome))

    def _members(self, chosen: Bools) -> Bools:
        """Calls of the chosen families."""
        of_call = self._families.of_call
        return np.append(chosen, False)[of_call]  # -1, no family, is the last


def _bonds(traffic: Traffic, families: Families) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """What calls can have in common that lets a fix of one bear on the other: a prefix, a family, a session."""
    session = np.where(traffic.calls["session_id"] == "", -1, numbered(traffic.calls.select("session_id")))
    first = np.full(len(traffic), -1, dtype=np.int64)
    first[traffic.known] = ragged.factorize(chain_ids(traffic)[traffic.rows.offsets[:-1][traffic.known]])[1]
    return first, families.of_call, session


def _bound_together(bonds: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...], chosen: Bools) -> Bools:
    """The chosen calls, those bound to them, and so on: no other call has any bearing on what a fix does to them."""
    while True:
        grown = chosen
        for bond in bonds:
            touched = np.zeros(int(bond.max(initial=-1)) + 2, dtype=np.bool_)
            touched[bond[grown]] = True
            touched[-1] = False  # where -1, no bond, has ended up
            grown = grown | touched[bond]
        if np.array_equal(grown, chosen):
            return chosen
        chosen = grown


def _by_family(values: Floats, families: Families) -> Floats:
    member = families.of_call >= 0
    return np.bincount(families.of_call[member], weights=values[member], minlength=len(families)).astype(np.float64)


def _premiums(change: Change, families: Families) -> Floats:
    """USD more for writes, by family."""
    return _by_family(np.sum([usd for name, usd in change.usd.items() if name.startswith("write")], axis=0), families)
