"""RECOMMEND: findings, each a cause in a family with its fix, its value and the evidence for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.causes import SAID, cause_of_calls
from prefixscope.analyzer.changes import BUCKETS, Change
from prefixscope.analyzer.evidence import TELL, Case
from prefixscope.analyzer.evidence.strips import strips
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.savings import Option, Plan
from prefixscope.analyzer.traffic import Traffic

Range = tuple[float, float]
_EXAMPLES = 5
_GAIN = 16  # tokens more that a call must read for a fix to count as its fix


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
    comparison: Mapping[str, Any] | None  # one of the calls laid over the one before it: ``evidence.strips``
    examples: tuple[Mapping[str, Any], ...] = ()  # call_id, response_id, file, line

    @property
    def calls(self) -> int:
        """How many calls read more with the fix."""
        return int(self.hit.sum())


def find(base: Baseline, plan: Plan, check: pl.DataFrame) -> list[Finding]:
    """Findings that save money, dearest first. Savings of different findings are disjoint.

    ``check`` is ``baseline.achieved_rate``: how far the provider keeps what the replay predicts.
    """
    achieved = _rates(check)
    found = []
    for family, chosen in enumerate(plan.chosen):
        if not chosen:
            continue
        members = base.families.of_call == family
        for step, (fix, worth) in enumerate(_worth(chosen, plan, members, base.traffic, achieved)):
            if worth.hit.any():
                cause = _commonest(cause_of_calls(fix, base)[worth.hit])
                case = Case(base, family, members, worth.hit, cause, fix)
                found.append(_finding(case, worth, plan.options[family, step]))
    return sorted((f for f in found if f.saving[1] > 0), key=lambda f: (-f.saving[1], f.id))


def _commonest(values: np.ndarray[tuple[int], np.dtype[np.str_]]) -> str:
    names, counts = np.unique(values, return_counts=True)
    return str(names[np.argmax(counts)])


def _rates(check: pl.DataFrame) -> Mapping[tuple[str, str], float]:
    """Achieved rate by (provider, model), and by (provider, "") over all of its models."""
    by_model = {(row["provider"], row["model"]): row["rate"] for row in check.iter_rows(named=True)}
    weight = pl.col("predicted")
    pooled = check.group_by("provider").agg(rate=(pl.col("rate") * weight).sum() / weight.sum())
    return by_model | {(row["provider"], ""): row["rate"] for row in pooled.iter_rows(named=True)}


@dataclass(frozen=True, slots=True)
class Worth:
    """What a fix adds to the fixes before it, over one family."""

    saving: Range
    hit: Bools  # calls that read more with it, or write less where that is what it is for
    missed_tokens: float
    confidence: str
    formula: tuple[Mapping[str, Any], ...]


def _worth(
    chosen: tuple[str, ...], plan: Plan, members: Bools, traffic: Traffic, achieved: Mapping[tuple[str, str], float]
) -> Iterator[tuple[str, Worth]]:
    for step, fix in enumerate(chosen):
        before, after = plan.changes[step], plan.changes[step + 1]
        formula = _formula(before, after, members)
        high = -sum(row["usd"] for row in formula)
        rate, confidence = _expectation(traffic, members, achieved)
        moved = _moved(fix, before, after)
        hit = members & (moved >= _GAIN)
        doubtful = float((after.doubtful - before.doubtful)[members].sum())
        low = max(high - max(doubtful, 0.0), 0.0) * (1.0 if FIXES[fix].saves_writes else rate)
        yield fix, Worth((low, high), hit, float(moved[hit].sum()), confidence, formula)


def _moved(fix: str, before: Change, after: Change) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Tokens that each call reads more, or writes less where the fix is worth that."""
    if not FIXES[fix].saves_writes:
        return after.tokens["read"] - before.tokens["read"]
    written = [name for name in BUCKETS if name.startswith("write")]
    return np.sum([before.tokens[name] - after.tokens[name] for name in written], axis=0)


def _formula(before: Change, after: Change, members: Bools) -> tuple[Mapping[str, Any], ...]:
    """Tokens moved between buckets and dollars, over the family's calls."""
    rows: list[dict[str, Any]] = [
        {
            "bucket": bucket,
            "tokens": float((after.tokens[bucket] - before.tokens[bucket])[members].sum()),
            "usd": float((after.usd[bucket] - before.usd[bucket])[members].sum()),
        }
        for bucket in BUCKETS
    ]
    return tuple(row for row in rows if abs(row["tokens"]) >= 0.5)


def _expectation(traffic: Traffic, members: Bools, achieved: Mapping[tuple[str, str], float]) -> tuple[float, str]:
    """The share of a predicted read that comes true in this scope, and the confidence that follows.

    Where nothing was predicted in the scope so far, a cache that keeps its promises is taken at its word, and one that
    misses at random at half of it: the recorded hit rates of implicit caches are 40 to 60 per cent.
    """
    first = int(np.flatnonzero(members)[0])
    row = traffic.calls.row(first, named=True)
    rate = achieved.get((row["provider"], row["served_model"] or row["model"]), achieved.get((row["provider"], "")))
    if rate is not None:
        return rate, "B" if rate >= 0.9 else "C"
    return (1.0, "C") if traffic.cards[traffic.card[first]].deterministic else (0.5, "C")


def _finding(case: Case, worth: Worth, options: tuple[Option, ...]) -> Finding:
    row = case.traffic.calls.row(int(np.flatnonzero(case.members)[0]), named=True)
    model = row["served_model"] or row["model"]
    told = TELL[case.fix](case)
    said = _said(case)
    return Finding(
        id=finding_id(case.cause, row["service"], row["provider"], model, f"{case.families.anchor[case.family]:016x}"),
        cause=case.cause,
        service=row["service"],
        provider=row["provider"],
        model=model,
        hit=case.hit,
        family_calls=int(case.members.sum()),
        missed_tokens=round(worth.missed_tokens),
        confidence="A" if said and said["agree"] > said["calls"] / 2 else worth.confidence,
        effort=FIXES[case.fix].effort,
        risk=FIXES[case.fix].risk,
        options=options,
        saving=worth.saving,
        action=case.fix,
        fix=told.fix,
        headline=told.headline,
        evidence={**told.facts, **({"provider_said": said} if said else {})},
        formula=worth.formula,
        comparison=strips(case.base, case.hit),
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
