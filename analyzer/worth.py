"""What a fix is worth: a range of dollars, the calls it moves, and the formula behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.changes import BUCKETS, Change
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.savings import Plan
from prefixscope.analyzer.traffic import Traffic

Range = tuple[float, float]
_GAIN = 16  # tokens more that a call must read, or fewer that it writes, for a fix to count as its fix


def rates(check: pl.DataFrame) -> Mapping[tuple[str, str], float]:
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


@dataclass(frozen=True, slots=True)
class Scope:
    """A family, and how far its provider keeps what is predicted."""

    members: Bools
    rate: float  # the share of a predicted read that comes true
    confidence: str


def of_step(plan: Plan, step: int, fix: str, scope: Scope) -> Worth:
    """What the fix that is a family's next step adds to the steps before it."""
    members = scope.members
    before, after = plan.changes[step], plan.changes[step + 1]
    formula = _formula(before, after, members)
    high = -sum(row["usd"] for row in formula)
    moved = _moved(fix, before, after)
    hit = members & (moved >= _GAIN)
    doubtful = float((after.doubtful - before.doubtful)[members].sum())
    rate = 1.0 if FIXES[fix].saves_writes else scope.rate
    # of pings, as many find nothing as reads do not come true, and are paid in full
    missed = (1 - rate) * float((after.pings_missed - before.pings_missed)[members].sum())
    low = max(min((high - max(doubtful, 0.0)) * rate - missed, high), 0.0)
    return Worth((low, high), hit, float(moved[hit].sum()), scope.confidence, formula)


def added(worths: Sequence[Worth]) -> Worth:
    """Several families' worth of one fix as one; the confidence is the least of theirs."""
    formula: dict[str, dict[str, Any]] = {}
    for row in (row for worth in worths for row in worth.formula):
        total = formula.setdefault(row["bucket"], {"bucket": row["bucket"], "tokens": 0.0, "usd": 0.0})
        total["tokens"] += row["tokens"]
        total["usd"] += row["usd"]
    return Worth(
        (sum(worth.saving[0] for worth in worths), sum(worth.saving[1] for worth in worths)),
        np.any([worth.hit for worth in worths], axis=0),
        sum(worth.missed_tokens for worth in worths),
        max(worth.confidence for worth in worths),
        tuple(row for row in formula.values() if abs(row["tokens"]) >= 0.5),
    )


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


def scope_of(traffic: Traffic, members: Bools, achieved: Mapping[tuple[str, str], float]) -> Scope:
    """What can be expected of a family's provider.

    Where nothing was predicted in the scope so far, a cache that keeps its promises is taken at its word, and one that
    misses at random at half of it: the recorded hit rates of implicit caches are 40 to 60 per cent.
    """
    first = int(np.flatnonzero(members)[0])
    row = traffic.calls.row(first, named=True)
    rate = achieved.get((row["provider"], row["served_model"] or row["model"]), achieved.get((row["provider"], "")))
    if rate is not None:
        return Scope(members, rate, "B" if rate >= 0.9 else "C")
    return Scope(members, 1.0 if traffic.cards[traffic.card[first]].deterministic else 0.5, "C")
