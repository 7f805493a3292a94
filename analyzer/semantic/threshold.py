"""The threshold for a budget of wrong answers, chosen on labelled pairs and bounded on others.

A pair is labelled by a person, or by the recorded answers. Half of the pairs choose: of the thresholds and shares of
common words that keep the budget, the strictest that serve about as many calls rightly as any (guards are on unless the
user turned them off). The other half check: the bound comes from pairs that had no part in the choice, so that choosing
does not make it too good. Which half a pair is in follows from its name.

The budget holds twice where it chooses: for pairs, and for the calls of the traffic that they stand for, so that a
frequent wrong pair does not pass for a rare one. The bound is on pairs, which are drawn one by one; calls are not.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import sqrt
from typing import Final

import numpy as np

from prefixscope.analyzer.semantic.bound import needed, upper_bound
from prefixscope.analyzer.semantic.questions import Bools, Floats
from prefixscope.analyzer.semantic.tiers import Policy

OVERLAPS: Final = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
CONFIDENCE: Final = 0.95
_STEP: Final = 0.002  # between thresholds that are tried


@dataclass(frozen=True, slots=True)
class Labelled:
    """A pair of questions of which it is known whether one answer does for both."""

    name: str  # the same in every run
    cosine: float
    overlap: float
    reasons: tuple[str, ...]
    same: bool
    calls: int = 1  # how many calls of the traffic it stands for

    def served(self, policy: Policy) -> bool:
        """Whether a cache of that policy serves the one the answer of the other."""
        return (
            policy.threshold is not None
            and self.cosine >= policy.threshold
            and self.overlap >= policy.overlap
            and not (policy.guarded and self.reasons)
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """What a policy does on labelled pairs, and on the calls that they stand for."""

    served: int
    wrong: int
    calls: int = 0
    wrong_calls: int = 0

    @property
    def right(self) -> int:
        return self.served - self.wrong

    @property
    def right_calls(self) -> int:
        return self.calls - self.wrong_calls

    @property
    def rate(self) -> float:
        """Wrong among the served; 0 where nothing is served."""
        return self.wrong / self.served if self.served else 0.0

    @property
    def bound(self) -> float:
        """What the rate is at most, with a confidence of ``CONFIDENCE``."""
        return upper_bound(self.wrong, self.served, confidence=CONFIDENCE)

    def keeps(self, budget: float) -> bool:
        """Whether the budget holds, for pairs and for calls."""
        return self.rate <= budget and self.wrong_calls <= budget * self.calls


@dataclass(frozen=True, slots=True)
class Choice:
    """The policy for a budget. ``policy`` is None where none keeps the budget on the pairs that chose."""

    budget: float
    policy: Policy | None
    chosen_on: Measured
    checked_on: Measured
    labels: int
    needed: int | None  # served pairs without a wrong one that would show it; None: no sample shows that a rate is 0
    otherwise: tuple[Policy, Measured] | None = None  # where none keeps it: the least wrong that serves anything

    @property
    def shown(self) -> bool:
        """Whether the bound itself is within the budget, not only what was seen."""
        return self.policy is not None and self.checked_on.served > 0 and self.checked_on.bound <= self.budget


def measure(policy: Policy, pairs: Iterable[Labelled]) -> Measured:
    """Counts what the policy serves."""
    served = [pair for pair in pairs if pair.served(policy)]
    wrong = [pair for pair in served if not pair.same]
    return Measured(len(served), len(wrong), sum(p.calls for p in served), sum(p.calls for p in wrong))


def choose(pairs: Sequence[Labelled], budget: float, base: Policy) -> Choice:
    """The policy that serves most calls rightly while at most ``budget`` of the served answers are wrong.

    Args:
        pairs: labelled pairs, at most one for each two questions.
        budget: share of served answers that may be wrong (0 to 1).
        base: gives guards, TTL, capacity and the rest.
    """
    halves = [p for p in pairs if chooses(p.name)], [p for p in pairs if not chooses(p.name)]
    candidates = [tried for tried in _policies(halves[0], base) if tried.found.right]
    kept = [tried for tried in candidates if tried.found.keeps(budget)]
    enough = needed(budget, confidence=CONFIDENCE)
    nothing = Measured(0, 0)
    if not kept:
        least = min(candidates, key=lambda c: (c.found.rate, -c.found.right), default=None)
        otherwise = (least.policy, least.found) if least else None
        return Choice(budget, None, nothing, nothing, len(pairs), enough, otherwise)
    most = max(kept, key=lambda tried: tried.found.right_calls)
    close = (tried for tried in kept if tried.found.right_calls >= most.found.right_calls - most.error)
    chosen = max(close, key=_strictness)
    return Choice(budget, chosen.policy, chosen.found, measure(chosen.policy, halves[1]), len(pairs), enough)


@dataclass(frozen=True, slots=True)
class _Tried:
    """A policy and what it does. ``error`` is the standard error of the calls that it serves rightly."""

    policy: Policy
    found: Measured
    error: float


def _strictness(tried: _Tried) -> tuple[int, float, float]:
    """Of policies that serve about as much (within one standard error of the most), the strictest is the safest.

    Source: the one-standard-error rule of Breiman, Friedman, Olshen and Stone (Classification and Regression Trees).
    """
    return -tried.found.wrong, tried.policy.overlap, tried.policy.threshold or 0.0


def _policies(pairs: Sequence[Labelled], base: Policy) -> Iterator[_Tried]:
    """Every policy that can make a difference on these pairs. Guards are not up for choice: nothing makes them up."""
    same = np.array([pair.same for pair in pairs], dtype=np.bool_)
    passing = np.array([not (base.guarded and pair.reasons) for pair in pairs], dtype=np.bool_)
    cosine, overlap, calls = np.array([(p.cosine, p.overlap, p.calls) for p in pairs]).reshape(-1, 3).T
    thresholds: Floats = np.unique((cosine[same] / _STEP).astype(np.int64)).astype(np.float64) * _STEP
    for least in OVERLAPS:
        served = passing & (overlap >= least)
        right = _from_above(cosine, calls, served & same, thresholds)
        wrong = _from_above(cosine, calls, served & ~same, thresholds)
        for threshold, ok, bad in zip(thresholds.tolist(), right, wrong, strict=True):
            found = Measured(int(ok[0] + bad[0]), int(bad[0]), int(ok[1] + bad[1]), int(bad[1]))
            yield _Tried(replace(base, overlap=least, threshold=threshold), found, sqrt(ok[2]))


def _from_above(cosine: Floats, calls: Floats, chosen: Bools, thresholds: Floats) -> Floats:
    """(thresholds, 3): how many of the chosen pairs reach each threshold, their calls, the squares of their calls."""
    order = np.argsort(cosine[chosen])
    weight = calls[chosen][order]
    below = np.searchsorted(cosine[chosen][order], thresholds)
    sums = (np.concatenate([[0.0], np.cumsum(weight**power)]) for power in (0, 1, 2))
    return np.stack([total[-1] - total[below] for total in sums], axis=1)


def chooses(name: str) -> bool:
    """Whether the pair of that name has a say in the choice; the others check it."""
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == 0
