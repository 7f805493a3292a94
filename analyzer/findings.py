"""RECOMMEND: findings, each a cause in a family with its fix, its value and the evidence for it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.causes import SAID, cause_of_calls
from prefixscope.analyzer.evidence import TELL, Case
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.savings import Option, Plan
from prefixscope.analyzer.traffic import Traffic
from prefixscope.analyzer.worth import Range, Worth, added, of_step, rates, scope_of

_EXAMPLES = 5
_OF_ITS_OWN = 0.1  # of what all families of a service with one cause and fix would save
_CALLS_OF_ITS_OWN = 20  # a family of fewer calls is told with the others


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause in a family of calls. Dollars are over the window of the data; ``saving`` is (low, high)."""

    id: str
    cause: str
    service: str
    provider: str
    model: str
    hit: Bools  # calls that read more with the fix, of all calls
    family_calls: int
    missed_tokens: int
    confidence: str  # A: provider said so, B: usage and prompt agree, C: usage and prompt could not be compared
    effort: str  # of the fix: a setting, code in one place, or the design of prompts
    risk: str
    options: tuple[Option, ...]  # all that was tried, dearest first: the fix itself is one of them
    saving: Range
    action: str  # the fix's name
    fix: str  # the fix in one line
    headline: str  # the evidence in one line
    evidence: Mapping[str, Any]
    formula: tuple[Mapping[str, Any], ...]  # bucket, tokens, usd: sum of usd = saving high
    examples: tuple[Mapping[str, Any], ...] = ()  # call_id, response_id, file, line

    @property
    def calls(self) -> int:
        """How many calls read more with the fix."""
        return int(self.hit.sum())


def find(base: Baseline, plan: Plan, check: pl.DataFrame) -> list[Finding]:
    """Findings that save money, dearest first. Savings of different findings are disjoint.

    ``check`` is ``baseline.achieved_rate``: how far the provider keeps what the replay predicts.
    """
    achieved = rates(check)
    parts: dict[tuple[str, ...], list[_Part]] = {}
    for family, chosen in enumerate(plan.chosen):
        if not chosen:
            continue
        members = base.families.of_call == family
        scope = scope_of(base.traffic, members, achieved)
        for step, fix in enumerate(chosen):
            worth = of_step(plan, step, fix, scope)
            if worth.saving[1] > 0 and worth.hit.any():
                cause = _commonest(cause_of_calls(fix, base)[worth.hit])
                part = _Part(Case(base, family, members, worth.hit, cause, fix), worth, plan.options[family, step])
                parts.setdefault((*_names(part.case), cause, fix), []).append(part)
    found = [_finding(part) for group in parts.values() for part in _joined(group)]
    return sorted(found, key=lambda f: (-f.saving[1], f.id))


@dataclass(frozen=True, slots=True)
class _Part:
    """A finding in the making."""

    case: Case
    worth: Worth
    options: tuple[Option, ...]


def _joined(group: list[_Part]) -> list[_Part]:
    """Findings of one cause and fix in one service: small families are told with the dearest one of them.

    A prompt that carries another document for each customer makes a family of each; what is wrong is wrong once.
    """
    group = sorted(group, key=lambda part: -part.worth.saving[1])
    floor = _OF_ITS_OWN * sum(part.worth.saving[1] for part in group)
    large = [p for p in group if p.worth.saving[1] >= floor and p.case.members.sum() >= _CALLS_OF_ITS_OWN]
    small = [part for part in group if not any(part is other for other in large)]
    if not small:
        return large
    host = large[:1] or small[:1]
    rest = [part for part in small if part is not host[0]]
    return [_sum_of([host[0], *rest]), *large[1:]]


def _sum_of(parts: list[_Part]) -> _Part:
    first = parts[0].case
    members = np.any([part.case.members for part in parts], axis=0)
    hit = np.any([part.case.hit for part in parts], axis=0)
    saved: dict[str, list[Option]] = {}
    for option in (option for part in parts for option in part.options):
        saved.setdefault(option.fix, []).append(option)
    options = [Option(f, sum(o.saved for o in found), sum(o.premium for o in found)) for f, found in saved.items()]
    options.sort(key=lambda option: (option.fix != first.fix, -option.saved))
    return _Part(replace(first, members=members, hit=hit), added([part.worth for part in parts]), tuple(options))


def _names(case: Case) -> tuple[str, str, str]:
    """Service, provider and model of a case."""
    row = case.traffic.calls.row(int(np.flatnonzero(case.members)[0]), named=True)
    return row["service"], row["provider"], row["served_model"] or row["model"]


def _commonest(values: np.ndarray[tuple[int], np.dtype[np.str_]]) -> str:
    names, counts = np.unique(values, return_counts=True)
    return str(names[np.argmax(counts)])


def _finding(part: _Part) -> Finding:
    case, worth = part.case, part.worth
    service, provider, model = _names(case)
    told = TELL[case.fix](case)
    said = _said(case)
    alone = (
        int((case.families.of_call == case.family).sum()) >= _CALLS_OF_ITS_OWN or case.members.sum() < _CALLS_OF_ITS_OWN
    )
    return Finding(
        id=finding_id(case.cause, service, provider, model, case.families.name(case.family) if alone else ""),
        cause=case.cause,
        service=service,
        provider=provider,
        model=model,
        hit=case.hit,
        family_calls=int(case.members.sum()),
        missed_tokens=round(worth.missed_tokens),
        confidence="A" if said and said["agree"] > said["calls"] / 2 else worth.confidence,
        effort=FIXES[case.fix].effort,
        risk=FIXES[case.fix].risk,
        options=part.options,
        saving=worth.saving,
        action=case.fix,
        fix=told.fix,
        headline=told.headline,
        evidence={**told.facts, **({"provider_said": said} if said else {})},
        formula=worth.formula,
        examples=examples(case.traffic, case.hit),
    )


def _said(case: Case) -> Mapping[str, Any] | None:
    """What the provider itself gave as its reason, of the calls where it did; None where it never did."""
    reasons = case.traffic.calls.filter(pl.Series(case.hit))["miss_reason"].to_list()
    named = [reason for reason in reasons if reason in SAID]
    if not named:
        return None
    return {
        "calls": len(named),
        "agree": sum(case.cause in SAID[reason] for reason in named),
        "reasons": {reason: named.count(reason) for reason in sorted(set(named))},
    }


def examples(traffic: Traffic, hit: Bools) -> tuple[Mapping[str, Any], ...]:
    """A few of the calls, spread over the window, by every name that a reader may find them under."""
    at = np.flatnonzero(hit)
    spread = at[np.unique(np.linspace(0, len(at) - 1, _EXAMPLES).astype(np.int64))] if len(at) else at
    chosen = traffic.calls[spread.tolist()].select("call_id", "response_id", "trace_id", "file", "line")
    return tuple(chosen.iter_rows(named=True))


def finding_id(*parts: str) -> str:
    """12 hex digits that stay the same from analysis to analysis."""
    return blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()
