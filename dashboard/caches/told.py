"""What the page on response caches says in words. Pure: from the report of ``analyzer.semantic`` to sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from prefixscope.analyzer.report.wording import counted, usd

Report = Mapping[str, Any]
Row = Mapping[str, Any]

TIERS: Final = {
    "exact": "Exact cache: the very same prompt again",
    "semantic": "Semantic cache: a question that is taken for the same",
    "model": "The model, with the provider's prompt cache in front",
}
OPTIONS: Final = {
    "no cache": "Without any cache",
    "as is": "As it was billed",
    "prompt cache": "Prompt cache at its best",
    "exact + prompt cache": "Exact cache + prompt cache",
    "all three": "Exact + semantic + prompt cache",
}
ANSWERS: Final = {
    "same": "by the recorded answers: the same",
    "different": "by the recorded answers: wrong",
    "unclear": "not judged yet",
}
SCOPES: Final = {
    "chosen": "used here",
    "saves_less": "saves no more",
    "too_wrong": "does not keep the budget",
    "option": "an option, if you may share that far",
    "not_judged": "what it adds is not judged",
}
_SHORT: Final = 160  # characters of a question that fits into a sentence


def at(report: Report, threshold: float) -> Row | None:
    """The point of the curve at that threshold."""
    return next((point for point in report["curve"] if abs(point["threshold"] - threshold) < 1e-9), None)


def risky(report: Report) -> list[Row]:
    """The pairs that the told threshold alone would have joined and (perhaps) should not; known ones first."""
    found = [row for row in report["candidates"] if row["risky"] and row["cosine"] >= report["told_threshold"]]
    return sorted(found, key=lambda row: (not is_wrong(row), -row["usd_at_stake"]))


def marks(report: Report) -> dict[str, float]:
    """Thresholds to be marked on the curve: name -> cosine."""
    naive, used = report["told_threshold"], report["policy"]["threshold"]
    if used is None:
        return {f"{naive:.2f}": naive}
    return {f"used {used:.2f}": used} if used == naive else {f"{naive:.2f}": naive, f"used {used:.2f}": used}


def example(report: Report) -> Row | None:
    """The false match that a newcomer sees best: known to be wrong, in other words, short, the most alike."""
    known = [row for row in risky(report) if is_wrong(row) and row["call"].get("question")]
    return max(known, key=lambda row: (_is_plain(row), row["cosine"], row["pair"]), default=None)


def _is_plain(row: Row) -> bool:
    """Whether the two questions alone, at a glance, tell that they are two."""
    asked = [row[side]["question"] for side in ("call", "earlier")]
    names = {reason["reason"] for reason in row["reasons"]}
    return bool(names) and not names & {"conversation", "personal"} and all(len(text) <= _SHORT for text in asked)


def is_wrong(row: Row) -> bool:
    """Whether it is known that one answer does not do for both, by hand or by the recorded answers."""
    return row["label"] is False or (row["label"] is None and row["answers"] == "different")


def verdict(report: Report) -> str:
    """What a reader takes away who reads nothing else."""
    total, alone = report["calls"]["total"], report["exact_alone"]
    point = at(report, report["told_threshold"])
    if point is None:
        saved = dollars(report, alone["saved_usd"])
        return f"An exact cache would have answered {_share(alone['calls'], total)} and saved {saved}."
    judged_ = point["alone_wrong"] + point["alone_right"]
    found = (
        f"Going by a similarity (cosine) of {point['threshold']:.2f} and nothing else, a cache that gives stored "
        f"answers to alike questions would have answered {_share(point['alone'], total)}"
    )
    if not point["alone"]:
        return f"{found}: no two questions are as alike."
    if not judged_:
        return f"{found}; whether rightly, nobody knows, as no two answers can be compared."
    return f"{found}, and {point['alone_wrong']:,} of the {judged_:,} that can be judged would have been wrong."


def instead(report: Report) -> str:
    """What the caches do as they are set below; "" where there is no semantic one to speak of."""
    if not report["curve"]:
        return ""
    both = [row for row in report["tiers"] if row["tier"] != "model"]
    calls, saved = sum(row["calls"] for row in both), sum(row["saved_usd"] for row in both)
    answered = f"{_share(calls, report['calls']['total'])} and saved {dollars(report, saved)}"
    if report["policy"]["threshold"] is None:
        wrong = f"{report['budget']['wrong_answers']:.1%}"
        return f"No threshold keeps a budget of {wrong} wrong answers. An exact cache would have answered {answered}."
    guards = "refusing what differs in numbers, names or a “not”" if report["policy"]["guarded"] else "without guards"
    start = f"An exact and a semantic cache together, as set below and {guards}, would have answered {answered}"
    return f"{start}{_checked(report)}."


def _checked(report: Report) -> str:
    """What is known of the wrong answers of the chosen policy; nothing where the user chose it."""
    budget = report["budget"]
    if not is_chosen(report) or not budget["checked_on"]["served"]:
        return ""
    checked = budget["checked_on"]
    return (
        f"; on {checked['served']:,} pairs of questions kept aside to check it, it was wrong {_times(checked['wrong'])}"
    )


def _times(number: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number:,} times")


def is_chosen(report: Report) -> bool:
    """Whether the budget chose what was replayed."""
    budget = report["budget"]
    return bool(budget and budget["kept"] and budget["policy"] == report["policy"])


def dollars(report: Report, amount: float) -> str:
    """An amount; where the cost of no call is known, nothing is."""
    return "an unknown amount" if report["calls"]["unpriced"] == report["calls"]["total"] else usd(amount)


def _share(calls: int, total: int) -> str:
    return f"{calls:,} of {counted(total, 'call')} ({calls / total:.1%})" if total else "no call"


def choice(budget: Row) -> Iterator[tuple[str, str]]:
    """How the threshold came about: name and value of each step."""
    wrong = f"{budget['wrong_answers']:.1%}"
    yield "Budget", f"at most {wrong} of the answers that a cache gives may be wrong"
    yield "Judged pairs", f"{budget['labels']:,}, by their recorded answers or by hand"
    if not budget["labels"]:
        yield "Chosen", "nothing: without a judged pair nothing is known about wrong answers. Judge pairs below."
        return
    if budget["kept"]:
        chosen = budget["chosen_on"]
        yield "Chosen", budget["policy"]["told"]
        yield "On the half that chose", f"{chosen['wrong']:,} of {chosen['served']:,} served pairs wrong"
        yield "On the half kept aside", _bound(budget)
    else:
        yield "Chosen", "no threshold: none keeps the budget on these pairs"
        if other := budget["otherwise"]:
            yield (
                "The least wrong one",
                f"{other['policy']['told']}: {other['wrong']:,} of {other['served']:,} served pairs wrong",
            )
    if budget["unjudged"]:
        yield "Not judged", f"{counted(budget['unjudged'], 'more pair')} that the cache would serve: judge them below"
    yield "Is that sure?", _sure(budget)


def _bound(budget: Row) -> str:
    checked = budget["checked_on"]
    if not checked["served"]:
        return "no pair of it would be served, so nothing can be said of the traffic to come"
    return (
        f"{checked['wrong']:,} of {checked['served']:,} served pairs wrong; so at most {checked['at_most']:.1%} in all "
        f"traffic like this, with {budget['confidence']:.0%} confidence"
    )


def _sure(budget: Row) -> str:
    if budget["shown"]:
        return "yes: even the upper bound is within the budget"
    needed = budget["served_pairs_needed"]
    if needed is None:
        return "no: no sample, however large, shows that there are no wrong ones at all"
    return f"not yet: it takes {needed:,} served pairs without a wrong one in the half kept aside to show it"


def reasons(row: Row) -> Sequence[str]:
    """Why one answer does not do for both, in plain words."""
    return [reason["meaning"] for reason in row["reasons"]] or ["only the recorded answers tell them apart"]


def judged(row: Row) -> str:
    """Who says whether one answer does for both."""
    by_hand = {True: "by hand: the same answer does", False: "by hand: needs its own answer"}.get(row["label"])
    if by_hand is None and row["answers"] == "unclear" and row["reasons"]:
        return "guards refuse it, nobody judged it"
    return by_hand or ANSWERS[row["answers"]]


def scope(row: Row) -> str:
    """What must be the same before an answer is shared, in one word or two."""
    dropped = [risk["dropped"] for risk in row["risks"]]
    if dropped:
        return f"as usual, but any {' and any '.join(dropped)}"
    return "as usual, and the same user" if "user" in row["fields"] else "as usual: service, model, system prompt…"


def lifetime(seconds: float) -> str:
    """``1 day``, ``12 hours``: a lifetime that is a whole number of them."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), unit)
    return counted(int(seconds), "second")
