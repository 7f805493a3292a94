"""EXPLAIN: the one cause of each call's missed tokens, decided by the first rule that fits.

A cause that has a fix which pays is proven: replayed with the fix, the call reads more (or writes less). For the rest
the prompt is compared with the one before it, and what the cache model says tells why that one could not be read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.fixes import FIXES, breakpoints
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.replay import Outcome
from prefixscope.analyzer.savings import Plan
from prefixscope.analyzer.traffic import Traffic, model_name, numbered

HEALTHY = ""
_FEW = 16.0  # tokens: less may be rounding
# Where no rules are known: what the caches of others keep, and the share of a repeat that their steps may hide.
_KEPT_MS, _CACHEABLE, _OF_STEPS = 300_000, 1024.0, 0.5
Verdict = Literal["actionable", "informational", "provider_side"]
VERDICTS: Mapping[str, Verdict] = {
    "unknown_usage": "informational",
    "unknown_prompt": "informational",
    "volatile_prefix": "actionable",
    "tools_reordered": "actionable",
    "tools_changed": "actionable",
    "settings_changed": "actionable",
    "split_scope": "actionable",
    "history_rewritten": "actionable",
    "history_pruned": "actionable",
    "no_marker": "actionable",
    "marker_misplaced": "actionable",
    "ttl_lapse": "actionable",
    "ttl_class_switched": "actionable",
    "parallel_cold_start": "actionable",
    "write_churn": "actionable",
    "below_minimum": "informational",
    "system_edited": "informational",
    "compacted": "informational",
    "forked": "informational",
    "first_seen": "informational",
    "provider_side": "provider_side",
}
"""What can be done about a cause: something, nothing since it is as it should be, or nothing since it is not ours."""


def verdict(cause: str, *, claimed: bool) -> Verdict:
    """The verdict on calls with a cause: where no fix pays there is nothing to do about it."""
    found = VERDICTS[cause]
    return "informational" if found == "actionable" and not claimed else found


SAID: Mapping[str, tuple[str, ...]] = {
    "model_changed": ("split_scope", "settings_changed"),  # Anthropic: the model, or its speed
    "prompt_cache_key_changed": ("split_scope",),
    "system_changed": ("system_edited", "volatile_prefix", "settings_changed"),
    "tools_changed": ("tools_changed", "tools_reordered", "volatile_prefix"),
    "messages_changed": ("history_rewritten", "history_pruned", "compacted", "forked", "volatile_prefix"),
    "input_changed": ("history_rewritten", "history_pruned", "compacted", "forked", "volatile_prefix", "system_edited"),
    "context_compacted": ("compacted",),
    "text_format_changed": ("settings_changed",),
    "reasoning_effort_changed": ("settings_changed",),
    "verbosity_changed": ("settings_changed",),
    "service_tier_changed": ("settings_changed",),
}
"""A provider's own miss reason -> the causes that it may stand for, likeliest first. Others name no cause."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Per call: the cause ("" = nothing was missed) and the tokens that could have been read but were not.

    ``claimed`` calls are those that a fix which pays makes read more; others have a cause, but nothing is promised.
    """

    cause: npt.NDArray[np.str_]
    missed: Floats
    claimed: Bools


def explain(base: Baseline, plan: Plan) -> Causes:
    """Decides on every call."""
    judge = _Judge(base, plan)
    judge.unknown()
    judge.proven()
    claimed = ~judge.open & ~np.isin(judge.cause, ["unknown_usage", "unknown_prompt"])
    judge.unseen()
    judge.of_provider()
    judge.without_rules()
    judge.events()
    judge.unpaid()
    judge.changed()
    judge.cut_off()
    judge.rest()
    return Causes(judge.cause, judge.missed, claimed)


class _Judge:
    """Settles calls rule by rule; a call keeps the first cause it gets."""

    def __init__(self, base: Baseline, plan: Plan) -> None:
        self._base, self._plan, self._traffic = base, plan, base.traffic
        calls = len(base.traffic)
        self.cause = np.full(calls, HEALTHY, dtype="<U24")
        self.missed = np.zeros(calls)
        self.open = np.ones(calls, dtype=np.bool_)
        self._total = base.traffic.input_total.astype(np.float64)
        self._tolerance = np.maximum(base.traffic.per_card("granularity"), np.maximum(_FEW, 0.02 * self._total))
        self._reached = base.reached

    def _settle(self, names: str | npt.NDArray[np.str_], where: Bools, tokens: Floats) -> None:
        chosen = self.open & where
        self.cause[chosen] = names if isinstance(names, str) else names[chosen]
        self.missed[chosen] = np.maximum(tokens[chosen], 0.0)
        self.open[chosen] = False

    def unknown(self) -> None:
        """Calls of which the trace does not tell enough."""
        nothing = np.zeros(len(self.cause))
        self._settle("unknown_usage", (self._traffic.calls["usage_state"] != "reported").to_numpy(), nothing)
        self._settle("unknown_prompt", ~self._traffic.known, nothing)

    def proven(self) -> None:
        """Calls that a chosen fix makes read more, or write less, step by step."""
        plan, reported = self._plan, self._base.reported
        potential = plan.outcomes[-1].read
        for step, (before, after) in enumerate(pairwise(plan.outcomes)):
            gained = np.minimum(after.read - np.maximum(before.read, reported), _processed(before) - _processed(after))
            spared = before.write - after.write
            for name in sorted({chosen[step] for chosen in plan.chosen if len(chosen) > step}):
                owns = [len(chosen) > step and chosen[step] == name for chosen in plan.chosen]
                owners = np.array([*owns, False])[self._base.families.of_call]
                moved, missed = (spared, spared) if FIXES[name].saves_writes else (gained, potential - reported)
                self._settle(cause_of_calls(name, self._base), owners & (moved > self._tolerance), missed)

    def unseen(self) -> None:
        """Calls that read less than the rules predict, and no more than text that the trace does not hold.

        Tools and system prompt are not in a transcript: they may have changed, so nobody is to blame.
        """
        short, front = self._base.outcome.read - self._base.reported, self._traffic.front_tokens
        inside = (front > 0) & (self._base.reported < front - _FEW)
        self._settle("unknown_prompt", inside & (short > self._tolerance), short)

    def of_provider(self) -> None:
        """Calls that read less than the rules predict, as things were.

        Where more was read than had been sent, what was cached before is known from that read alone: no miss.
        """
        short = self._base.outcome.read - self._base.reported
        self._settle("provider_side", (short > self._tolerance) & (self._traffic.warm_tokens == 0), short)

    def without_rules(self) -> None:
        """Calls to a provider of whose cache nothing is known, that repeat what it was sent a moment before.

        It keeps no cache, or did not use it: the caller did all that any provider asks for.
        """
        breaks, traffic = self._base.breaks, self._traffic
        before = np.maximum(breaks.before, 0)
        pause = traffic.at_ms - traffic.first_token_ms[before]
        repeats = (breaks.before >= 0) & (breaks.shared >= _CACHEABLE) & (pause >= 0) & (pause <= _KEPT_MS)
        alike = (traffic.scope == traffic.scope[before]) & (traffic.level_salt == traffic.level_salt[before]).all(
            axis=1
        )
        unruled = (traffic.per_card("cache") == "unknown") & repeats & alike
        short = breaks.shared - self._reached
        self._settle("provider_side", unruled & (short > _OF_STEPS * breaks.shared), short)

    def events(self) -> None:
        """Calls that begin something new: another version of the system prompt, a summary, a fork."""
        breaks = self._base.breaks
        before = np.where(breaks.before >= 0, self._total[np.maximum(breaks.before, 0)], 0.0)
        never = self._base.outcome.shared <= self._reached + self._tolerance
        lost = before - self._reached
        new = np.isin(breaks.change, ["system_edited", "compacted", "forked"]) & never & (lost > self._tolerance)
        new &= ~self._taken_elsewhere()
        self._settle(breaks.change, new & (before >= self._traffic.min_tokens), lost)

    def _taken_elsewhere(self) -> Bools:
        """Forks to another model, which would have found nothing in its cache without the fork either."""
        model = numbered(self._traffic.calls.select(model=model_name()))
        return (self._base.breaks.change == "forked") & (model != model[np.maximum(self._base.breaks.before, 0)])

    def unpaid(self) -> None:
        """Calls that a fix would make read more though it does not pay: the cause is that of the fix that does most."""
        names = list(self._plan.alone)
        if not names:
            return
        base = self._base.outcome
        gained = np.stack(
            [
                np.minimum(trial.outcome.read - self._reached, _processed(base) - _processed(trial.outcome))
                for trial in self._plan.alone.values()
            ]
        )
        best = gained.argmax(axis=0)
        for number, name in enumerate(names):
            where = (best == number) & (gained[number] > self._tolerance)
            self._settle(cause_of_calls(name, self._base), where, gained[number])

    def changed(self) -> None:
        """Calls whose text parts from that of the call before."""
        breaks, outcome = self._base.breaks, self._base.outcome
        recurs = breaks.shared + breaks.stranded
        lost = np.maximum(recurs - self._reached, 0.0)
        edited = np.isin(breaks.change, ["system_edited", "tools_changed"])
        never = outcome.shared <= self._reached + self._tolerance  # had anything like it: then it lapsed
        breaks_off = (breaks.change != "") & ~self._tried() & (edited | (breaks.stranded > self._tolerance))
        cacheable = (lost > self._tolerance) & (recurs >= self._traffic.min_tokens)
        self._settle(breaks.change, breaks_off & never & cacheable, lost)

    def _tried(self) -> Bools:
        """Calls on which the fix of what changed was tried: if it were the cause, they would have read more."""
        change, of_call = self._base.breaks.change, self._base.families.of_call
        found = np.isin(change, ["volatile_prefix", "tools_reordered"])
        for name, trial in self._plan.alone.items():
            found |= np.isin(change, FIXES[name].causes) & np.append(trial.families, False)[of_call]
        return found

    def cut_off(self) -> None:
        """Calls whose text goes on from the call before, of which no entry was ever there for them."""
        breaks, traffic = self._base.breaks, self._traffic
        lost = breaks.shared - self._reached
        unchanged = (breaks.change == "") | self._taken_elsewhere()
        goes_on = (breaks.before >= 0) & unchanged & (breaks.shared >= traffic.min_tokens)
        never = goes_on & (lost > self._tolerance) & (self._base.outcome.shared - self._reached <= self._tolerance)
        before = np.maximum(breaks.before, 0)
        self._settle("split_scope", never & (traffic.scope != traffic.scope[before]), lost)
        self._settle("settings_changed", never & (traffic.level_salt != traffic.level_salt[before]).any(axis=1), lost)

    def rest(self) -> None:
        """Calls whose prefix was there, too late or too early; short prompts; prompts that nobody had sent before."""
        outcome, reached, tolerance = self._base.outcome, self._reached, self._tolerance
        late = outcome.shared - np.maximum(outcome.unexpired, reached) > tolerance
        self._settle("ttl_lapse", late, outcome.shared - reached)
        self._settle("parallel_cold_start", outcome.unexpired - reached > tolerance, outcome.unexpired - reached)
        short = (self._total < self._traffic.min_tokens) & (outcome.shared <= reached + tolerance)
        breaks = self._base.breaks
        recurs = breaks.shared + breaks.stranded
        self._settle("below_minimum", short & (recurs > _FEW), recurs)
        new = self._total - reached > np.maximum(tolerance, 0.5 * self._total)
        self._settle("first_seen", new, np.zeros(len(self.cause)))


def _processed(outcome: Outcome) -> Floats:
    """Tokens of each call that are not read from cache. A fix that makes prompts longer must lower these too."""
    return outcome.uncached + outcome.write


def cause_of_calls(fix: str, base: Baseline) -> npt.NDArray[np.str_]:
    """What the fix removes from each call: the first of its causes, unless the call shows the sign of another."""
    causes = FIXES[fix].causes
    found = np.full(len(base.traffic), causes[0], dtype="<U24")
    for cause in causes[1:]:
        found[_SIGNS[cause](base)] = cause
    return found


def _after_a_longer_ttl(base: Baseline) -> Bools:
    """Calls whose breakpoints live shorter than those of an earlier call of the same session or family did."""
    lives = np.zeros(len(base.traffic), dtype=np.int64)
    np.maximum.at(lives, base.traffic.rows.call, base.traffic.rows.marker_ms)
    longest, before = lives.copy(), base.breaks.before
    for call in np.flatnonzero(before >= 0).tolist():  # in time order
        longest[call] = max(longest[call], longest[before[call]])
    return (lives > 0) & (lives < longest)


_SIGNS: Mapping[str, Callable[[Baseline], Bools]] = {
    "history_pruned": lambda base: base.breaks.change == "history_pruned",
    "marker_misplaced": lambda base: breakpoints.marked_calls(base.traffic),
    "forked": lambda base: base.breaks.change == "forked",
    "ttl_class_switched": _after_a_longer_ttl,
}


def agreement(traffic: Traffic, causes: Causes) -> pl.DataFrame:
    """The provider's own miss reasons against ours. Columns: provider, reason, cause, calls, agree."""
    frame = traffic.calls.select("provider", reason="miss_reason").with_columns(cause=pl.Series(causes.cause))
    told = frame.filter(pl.col("reason").is_in(list(SAID)))
    rows = told.group_by("provider", "reason", "cause").agg(calls=pl.len()).sort("provider", "reason", "cause")
    agree = [row["cause"] in SAID[row["reason"]] for row in rows.iter_rows(named=True)]
    return rows.with_columns(agree=pl.Series(agree, dtype=pl.Boolean))
