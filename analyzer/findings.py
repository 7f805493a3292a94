"""RECOMMEND: findings, each a cause in a family with its fix, its value and the evidence for it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer import evidence
from prefixscope.analyzer.causes import CAUSE_OF_FIX
from prefixscope.analyzer.evidence import Case
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.savings import BUCKETS, Change, Plan, steps
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


def find(traffic: Traffic, families: Families, plan: Plan, check: pl.DataFrame) -> list[Finding]:
    """Findings that save money, dearest first. Savings of different findings are disjoint.

    ``check`` is ``savings.achieved_rate``: how far the provider keeps what the replay predicts.
    """
    achieved = _rates(check)
    found = []
    for family, chosen in enumerate(plan.chosen):
        members = families.of_call == family
        for fix, worth in _worth(chosen, plan, members, traffic, achieved):
            if worth.hit.any():
                found.append(_finding(Case(traffic, families, family, members, worth.hit), fix, worth))
    return sorted((f for f in found if f.saving[1] > 0), key=lambda f: (-f.saving[1], f.id))


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
    hit: Bools  # calls that read more with it
    missed_tokens: float
    confidence: str
    formula: tuple[Mapping[str, Any], ...]


def _worth(
    chosen: tuple[str, ...], plan: Plan, members: Bools, traffic: Traffic, achieved: Mapping[tuple[str, str], float]
) -> Iterator[tuple[str, Worth]]:
    for fix, before, after in steps(chosen):
        formula = _formula(plan.changes[before], plan.changes[after], members)
        high = -sum(row["usd"] for row in formula)
        rate, confidence = _expectation(traffic, members, achieved)
        gained = np.where(members, plan.changes[after].tokens["read"] - plan.changes[before].tokens["read"], 0.0)
        hit = gained >= _GAIN
        doubtful = float((plan.changes[after].doubtful - plan.changes[before].doubtful)[members].sum())
        low = max(high - max(doubtful, 0.0), 0.0) * rate
        yield fix, Worth((low, high), hit, float(gained[hit].sum()), confidence, formula)


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


def _finding(case: Case, fix: str, worth: Worth) -> Finding:
    cause = CAUSE_OF_FIX[fix]
    row = case.traffic.calls.row(int(np.flatnonzero(case.members)[0]), named=True)
    model = row["served_model"] or row["model"]
    told = _TELL[fix](case)
    return Finding(
        id=_id(cause, row["service"], row["provider"], model, f"{case.families.anchor[case.family]:016x}"),
        cause=cause,
        service=row["service"],
        provider=row["provider"],
        model=model,
        hit=case.hit,
        family_calls=int(case.members.sum()),
        missed_tokens=round(worth.missed_tokens),
        confidence=worth.confidence,
        saving=worth.saving,
        action=fix,
        fix=told.fix,
        headline=told.headline,
        evidence=told.facts,
        formula=worth.formula,
        examples=_examples(case),
    )


def _examples(case: Case) -> tuple[Mapping[str, Any], ...]:
    """A few of the calls, spread over the window, by every name that a reader may find them under."""
    hit = np.flatnonzero(case.hit)
    spread = hit[np.unique(np.linspace(0, len(hit) - 1, _EXAMPLES).astype(np.int64))] if len(hit) else hit
    chosen = case.traffic.calls[spread.tolist()].select("call_id", "response_id", "trace_id", "file", "line")
    return tuple(chosen.iter_rows(named=True))


_TELL: Mapping[str, Callable[[Case], evidence.Told]] = {
    "sort_tools": evidence.of_tools,
    "move_volatile": evidence.of_volatile,
    "extend_ttl": evidence.of_ttl,
}


def _id(*parts: str) -> str:
    """12 hex digits that stay the same from analysis to analysis."""
    return blake2b("\0".join(parts).encode(), digest_size=6).hexdigest()
