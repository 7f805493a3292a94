"""The threshold for a budget of wrong answers, chosen on labelled pairs and bounded on others.

A pair is labelled by a person, or by the recorded answers. Half of the pairs choose: of the thresholds and shares of
common words that keep the budget, the strictest that serve about as many right answers as any (guards are on unless the
user turned them off). The other half check: the bound comes from pairs that had no part in the choice, so that choosing
does not make it too good. Which half a pair is in follows from its name.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import product
from math import sqrt
from typing import Final

from prefixscope.analyzer.semantic.bound import needed, upper_bound
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
    """What a policy does on labelled pairs."""

    served: int
    wrong: int

    @property
    def right(self) -> int:
        return self.served - self.wrong

    @property
    def rate(self) -> float:
        """Wrong among the served; 0 where nothing is served."""
        return self.wrong / self.served if self.served else 0.0

    @property
    def bound(self) -> float:
        """What the rate is at most, with a confidence of ``CONFIDENCE``."""
        return upper_bound(self.wrong, self.served, confidence=CONFIDENCE)


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
    verdicts = [pair.same for pair in pairs if pair.served(policy)]
    return Measured(len(verdicts), verdicts.count(False))


def choose(pairs: Sequence[Labelled], budget: float, base: Policy) -> Choice:
    """The policy that serves most right answers while at most ``budget`` of the served ones are wrong.

    Args:
        pairs: labelled pairs, at most one for each two questions.
        budget: share of served answers that may be wrong (0 to 1).
        base: gives guards, TTL, capacity and the rest.
    """
    halves = [p for p in pairs if _chooses(p.name)], [p for p in pairs if not _chooses(p.name)]
    candidates = [(policy, measure(policy, halves[0])) for policy in _policies(halves[0], base)]
    kept = [(policy, found) for policy, found in candidates if found.right and found.rate <= budget]
    nothing = Measured(0, 0)
    if not kept:
        least = min((c for c in candidates if c[1].right), key=lambda c: (c[1].rate, -c[1].right), default=None)
        return Choice(budget, None, nothing, nothing, len(pairs), needed(budget, confidence=CONFIDENCE), least)
    most = max(measured.right for _, measured in kept)
    policy, found = max(((p, m) for p, m in kept if m.right >= most - sqrt(most)), key=_strictness)
    return Choice(budget, policy, found, measure(policy, halves[1]), len(pairs), needed(budget, confidence=CONFIDENCE))


def _strictness(candidate: tuple[Policy, Measured]) -> tuple[int, float, float]:
    """Of policies that serve about as much (within one standard error of the most), the strictest is the safest.

    Source: the one-standard-error rule of Breiman, Friedman, Olshen and Stone (Classification and Regression Trees).
    """
    policy, found = candidate
    return -found.wrong, policy.overlap, policy.threshold or 0.0


def _policies(pairs: Sequence[Labelled], base: Policy) -> Iterator[Policy]:
    """Every policy that can make a difference on these pairs. Guards are not up for choice: nothing makes them up."""
    thresholds = sorted({int(pair.cosine / _STEP) * _STEP for pair in pairs if pair.same})
    for overlap, threshold in product(OVERLAPS, thresholds):
        yield replace(base, overlap=overlap, threshold=threshold)


def _chooses(name: str) -> bool:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=1).digest()[0] % 2 == 0
