"""The part of the report that tells how sure the threshold is: the choice, its verdict, labels by hand."""

from dataclasses import asdict
from typing import Any, Final

from prefixscope.analyzer.semantic import side_by_side, verdict
from prefixscope.analyzer.semantic.analysis import Analysis, unjudged
from prefixscope.analyzer.semantic.threshold import CONFIDENCE, Choice, Measured
from prefixscope.analyzer.semantic.tiers import Policy

_FORBIDDING: Final = 5  # pairs


def budget(found: Analysis, choice: Choice, *, with_text: bool) -> dict[str, Any]:
    """The choice, its verdict, and where none keeps the budget, the wrong pairs that forbid it and the ways out."""
    forbidding = verdict.forbidding(choice, found.candidates, found.options.policy)
    ways = verdict.WAYS_OUT if choice.labels and choice.policy is None else {}
    needed = verdict.budget_needed(choice)
    return _choice(choice) | {
        "unjudged": unjudged(found),
        "verdict": asdict(verdict.of_choice(choice)),
        "forbidden_by": side_by_side.pairs(found, forbidding[:_FORBIDDING], with_text=with_text),
        "ways_out": [
            {"way": way, "meaning": meaning, "budget": needed if way == "allow_more" else None}
            for way, meaning in ways.items()
        ],
    }


def labels(found: Analysis) -> dict[str, int]:
    """Labels by hand that were read, those that name a pair of this traffic, and pairs that nothing has judged."""
    by_hand, pairs = found.options.labels, found.candidates
    return {
        "read": len(by_hand),
        "used": len({c.name for c in pairs} & by_hand.keys()),
        "open": sum(c.label is None for c in pairs),
    }


def _choice(choice: Choice) -> dict[str, Any]:
    found: dict[str, Any] = {
        "wrong_answers": choice.budget,
        "confidence": CONFIDENCE,
        "labels": choice.labels,
        "kept": choice.policy is not None,
        "shown": choice.shown,
        "served_pairs_needed": choice.needed,
        "policy": policy(choice.policy) if choice.policy else None,
        "chosen_on": measured(choice.chosen_on),
        "checked_on": measured(choice.checked_on),
        "otherwise": None,
    }
    if choice.otherwise:
        least, did = choice.otherwise
        found["otherwise"] = {"policy": policy(least)} | measured(did)
    return found


def measured(found: Measured) -> dict[str, Any]:
    """What a policy does on pairs, with the upper bound of its rate."""
    return {
        "served": found.served,
        "wrong": found.wrong,
        "rate": round(found.rate, 6) if found.served else None,
        "at_most": round(found.bound, 6),
        "calls": found.calls,
        "wrong_calls": found.wrong_calls,
    }


def policy(chosen: Policy) -> dict[str, Any]:
    """A policy with its description."""
    threshold = None if chosen.threshold is None else round(chosen.threshold, 4)
    return asdict(chosen) | {"threshold": threshold, "told": chosen.told}
