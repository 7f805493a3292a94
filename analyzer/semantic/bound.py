"""How wrong a rate may be that was measured on a sample: an exact bound, without a normal approximation."""

from math import exp, lgamma, log, log1p
from typing import Final

FEWEST: Final = 30
"""A sample from which on something is recommended: of fewer, none wrong would leave a tenth of them open."""


def upper_bound(wrong: int, served: int, *, confidence: float = 0.95) -> float:
    """The one-sided upper bound of Clopper and Pearson on a share.

    Args:
        wrong: how many of the sample were wrong.
        served: the size of the sample; of nothing nothing is known, and the bound is 1.
        confidence: how often such a bound holds.

    Source: Clopper and Pearson, Biometrika 26 (1934), 404-413: the share at which so few wrong ones or fewer have the
    probability 1 - confidence.
    """
    if not 0 <= wrong <= served:
        raise ValueError(f"{wrong} wrong of {served}")
    if wrong == served:
        return 1.0
    low, high = wrong / served, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if at_most(wrong, served, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def at_most(wrong: int, served: int, share: float) -> float:
    """The probability of at most ``wrong`` wrong ones among ``served`` if the true share is ``share``."""
    if share <= 0:
        return 1.0
    if share >= 1:
        return float(wrong >= served)
    base = lgamma(served + 1)
    return min(
        1.0,
        sum(
            exp(base - lgamma(k + 1) - lgamma(served - k + 1) + k * log(share) + (served - k) * log1p(-share))
            for k in range(wrong + 1)
        ),
    )


def needed(budget: float, *, confidence: float = 0.95) -> int | None:
    """How many served pairs without a wrong one it takes to show that a budget is kept; None: no number does."""
    if not 0 < budget < 1:
        return None
    return int(-(-log(1 - confidence) // log1p(-budget)))


def more_needed(wrong: int, served: int, budget: float, *, confidence: float = 0.95) -> int | None:
    """How many further served pairs, none of them wrong, would show that the budget is kept; None: no number does."""
    if not 0 < budget < 1:
        return None
    low, high = -1, 1  # more than low are needed, and high are enough
    while upper_bound(wrong, served + high, confidence=confidence) > budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = upper_bound(wrong, served + middle, confidence=confidence) <= budget
        low, high = (low, middle) if enough else (middle, high)
    return high
