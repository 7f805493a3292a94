"""What a choice of a threshold comes to: whether the budget is proven, how far from it, and what stands in the way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Final, Literal

from prefixscope.analyzer.semantic.bound import FEWEST, more_needed
from prefixscope.analyzer.semantic.candidates import Candidate, served_by
from prefixscope.analyzer.semantic.threshold import CONFIDENCE, Choice, chooses
from prefixscope.analyzer.semantic.tiers import Policy

Status = Literal["proven", "not_proven", "above", "too_few", "none", "unknown"]

STATUSES: Final[dict[Status, str]] = {
    "proven": "proven: even the upper bound is within the goal",
    "not_proven": "not proven yet: what was seen is within the goal, the upper bound is not",
    "above": "not kept: on the pairs that had no say in the choice, more than the goal were wrong",
    "too_few": "not known: too few pairs were checked",
    "none": "not kept: every threshold is wrong too often, by pairs or by their calls",
    "unknown": "not known: no pair is judged, by answers or by hand",
}

WAYS_OUT: Final = {
    "allow_more": "allow more wrong answers",
    "keep_out": "keep the topics of these pairs out of the semantic cache",
    "exact_only": "use the exact cache alone",
}
"""What can be done where no threshold keeps the budget."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The budget against what was checked: pairs that the policy serves and that had no say in its choice."""

    status: Status
    goal: float
    seen: float | None  # share of the checked that is wrong; None: nothing was checked
    at_most: float | None  # its upper bound
    checked: int
    wrong: int
    more: int | None  # further served pairs without a wrong one that would prove it; None: no number does
    confidence: float = CONFIDENCE
    fewest: int = FEWEST  # checked pairs from which on they count


def of_choice(choice: Choice) -> Verdict:
    """Sums a choice up."""
    checked, kept = choice.checked_on, choice.policy is not None
    return Verdict(
        status=_status(choice),
        goal=choice.budget,
        seen=checked.rate if kept and checked.served else None,
        at_most=checked.bound if kept and checked.served else None,
        checked=checked.served,
        wrong=checked.wrong,
        more=0 if choice.shown else more_needed(checked.wrong, checked.served, choice.budget) if kept else None,
    )


def _status(choice: Choice) -> Status:
    if not choice.labels:
        return "unknown"
    if choice.policy is None:
        return "none"
    if choice.shown:
        return "proven"
    if choice.checked_on.served < FEWEST:
        return "too_few"
    return "not_proven" if choice.checked_on.rate <= choice.budget else "above"


def forbidding(choice: Choice, candidates: Sequence[Candidate], base: Policy) -> list[Candidate]:
    """The wrong pairs that speak against the least wrong policy, the most alike first; none where a policy is kept."""
    if choice.policy is not None:
        return []
    policy = choice.otherwise[0] if choice.otherwise else replace(base, threshold=0.0)
    wrong = [c for c in candidates if c.label is False and chooses(c.name) and served_by(c, policy)]
    return sorted(wrong, key=lambda c: (-c.cosine, -c.calls, c.name))


def budget_needed(choice: Choice) -> float | None:
    """The smallest budget, in tenths of a per cent, that the least wrong policy keeps; None where there is none."""
    if choice.otherwise is None:
        return None
    found = choice.otherwise[1]
    return min(1.0, ceil(1000 * max(found.rate, found.wrong_calls / max(found.calls, 1)) - 1e-9) / 1000)
