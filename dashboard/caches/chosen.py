"""How the threshold came about, in words. Pure: from the ``budget`` of the report to sentences."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from prefixscope.analyzer.report.wording import counted

Row = Mapping[str, Any]
MOST_WRONG: Final = 50.0  # % of answers that a budget may allow
CHOSEN, RASH, WAYS = "Chosen automatically", "Replayed, but not recommended", "What you can do"
_STATUS: Final = {
    "proven": "Proven.",
    "not_proven": "Not proven yet.",
    "above": "Not kept.",
    "none": "No threshold keeps it.",
    "unknown": "No pair is judged: nothing is known.",
}


def policy(row: Row) -> str:
    """How a cache decides; ``row``: the ``policy`` of a report."""
    if row["threshold"] is None:
        return "no semantic cache"
    guards = "with guards" if row["guarded"] else "without guards"
    words = f", and {10 * row['overlap']:.0f} of 10 words must be the same" if row["overlap"] else ""
    return f"a similarity of {row['threshold']:.3f} or more, {guards}{words}"


def verdict(budget: Row) -> str:
    """What was wanted, what was seen, and whether it is sure."""
    found = budget["verdict"]
    goal = f"Goal: at most {found['goal']:.1%} wrong."
    seen = f" Seen: {found['seen']:.1%}. Could be up to {found['at_most']:.1%}." if found["seen"] is not None else ""
    if found["status"] == "too_few":
        checked = counted(found["checked"], "pair")
        return f"{goal}{seen} Too few to tell: checked on {checked}, and it takes {found['fewest']:,} at least."
    return f"{goal}{seen} {_STATUS[found['status']]}"


def steps(budget: Row) -> Iterator[tuple[str, str]]:
    """Name and value of each step from the budget to the threshold, and what is not known."""
    yield "Judged pairs", f"{budget['labels']:,}, by their recorded answers or by hand"
    if not budget["labels"]:
        yield "Chosen", "nothing: without a judged pair nothing is known about wrong answers. Judge pairs below."
        return
    if budget["kept"]:
        yield (RASH if is_rash(budget) else CHOSEN), policy(budget["policy"])
        yield "On the half that chose", _counted(budget["chosen_on"])
        yield "On the half kept aside", _checked(budget)
        yield from _proof(budget["verdict"])
    else:
        yield CHOSEN, "no threshold, so no semantic cache"
        yield "Why", why(budget)
        yield WAYS, ways(budget)
    if budget["unjudged"]:
        yield "Not judged", f"{counted(budget['unjudged'], 'more pair')} that the cache would serve: judge them below"


def is_rash(budget: Row) -> bool:
    """Whether the policy was chosen on too few pairs to be recommended."""
    return bool(budget["verdict"]["status"] == "too_few")


def why(budget: Row) -> str:
    """Why no threshold keeps the budget."""
    other = budget["otherwise"]
    if not other:
        return "no setting gives a single judged pair the right answer"
    return (
        f"even the least wrong setting ({policy(other['policy'])}) serves {other['wrong']:,} of {other['served']:,} "
        f"pairs wrongly, {other['wrong_calls']:,} of {other['calls']:,} calls. The wrong ones are as alike as right "
        "ones, so no threshold parts them"
    )


def ways(budget: Row) -> str:
    """The ways on when no threshold keeps the budget."""
    found = [_way(row) for row in budget["ways_out"] if (row["budget"] or 0) <= MOST_WRONG / 100]
    return "; or ".join(found)


def _way(row: Row) -> str:
    return str(row["meaning"]) if row["budget"] is None else f"{row['meaning']}: {row['budget']:.1%}"


def _counted(measured: Row) -> str:
    return f"{measured['wrong']:,} of {measured['served']:,} served pairs wrong"


def _checked(budget: Row) -> str:
    checked = budget["checked_on"]
    if not checked["served"]:
        return "no pair of it would be served, so nothing can be said of the traffic to come"
    so = f"so at most {checked['at_most']:.1%} in all traffic like this, with {budget['confidence']:.0%} confidence"
    return f"{_counted(checked)}; {so}"


def _proof(found: Row) -> Iterator[tuple[str, str]]:
    """What would prove that the budget is kept, where it is not proven."""
    if found["status"] == "proven":
        return
    if found["more"] is None:
        yield "To prove it", "no sample, however large, shows that there are no wrong ones at all"
    else:
        yield "To prove it", f"{found['more']:,} more served pairs in the half kept aside, none of them wrong"
