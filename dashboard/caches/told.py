"""What the page on response caches says in words. Pure: from the report of ``analyzer.semantic`` to sentences."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from prefixscope.analyzer.report.wording import counted, usd
from prefixscope.dashboard.caches.chosen import is_rash

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
    "prompt cache": "Prompt cache with the audit's fixes",
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
_OPEN: Final = "not_judged"
WRONG: Final = {
    "conversation": "{:,} after another conversation",
    "words": "{:,} with a number, day, name or other word that differs",
    "answers": "{:,} told apart by their answers alone",
    _OPEN: "{:,} more that a guard refuses and nobody has judged",
}
_SHORT: Final = 160  # characters of a question that fits into a sentence


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


def in_use(report: Report) -> float | None:
    """Share of all calls that the replayed caches answered; None where there is no semantic one."""
    if report["policy"]["threshold"] is None:
        return None
    return float(sum(row["share"] for row in report["tiers"] if row["tier"] != "model"))


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
    total, alone, found = report["calls"]["total"], report["exact_alone"], report["false_matches"]
    if not report["calls"]["exact_possible"]:
        return _nothing(report)
    if not found:
        saved = dollars(report, alone["saved_usd"])
        return f"An exact cache would have answered {_share(alone['calls'], total)} and saved {saved}."
    start = (
        f"Going by a similarity (cosine) of {found['threshold']:.2f} and nothing else, a cache that gives stored "
        f"answers to alike questions would have answered {_share(found['served'], total)}"
    )
    if not found["served"]:
        return f"{start}: no two questions are as alike."
    if not found["wrong"] + found["right"]:
        return f"{start}; whether rightly, nobody knows, as no two answers can be compared."
    return f"{start}, and given {found['wrong']:,} of them the answer to another question."


def why_wrong(report: Report) -> str:
    """Why those answers are wrong, so that the counts add up to the headline's, and how many more may be."""
    found = report["false_matches"]
    if not found or not found["calls"]:
        return ""
    known = [WRONG[why].format(calls) for why, calls in found["by"].items() if calls and why != _OPEN]
    open_ = found["by"][_OPEN]
    more = f"{'and perhaps' if known else 'perhaps'} {WRONG[_OPEN].format(open_)}" if open_ else ""
    return f"Wrong at {found['threshold']:.2f}: {'; '.join(filter(None, (', '.join(known), more)))}."


def _nothing(report: Report) -> str:
    """That no call can be replayed, and the most frequent reason."""
    total = report["calls"]["total"]
    start = f"Nothing can be replayed: of {counted(total, 'call')}, no cache may answer one"
    most = max(report["left_out"], key=lambda row: row["calls"], default=None)
    if most is None:
        return f"{start}."
    if most["reason"] == "no_answer":
        return f"No answers are recorded in these logs ({most['calls']:,} of {total:,} calls): nothing can be replayed."
    return f"{start}. {most['calls']:,} of {total:,}: {most['meaning']}."


def instead(report: Report) -> str:
    """What the caches do as they are set below; "" where there is no semantic one to speak of."""
    if not report["curve"]:
        return ""
    both = [row for row in report["tiers"] if row["tier"] != "model"]
    calls, saved = sum(row["calls"] for row in both), sum(row["saved_usd"] for row in both)
    answered = f"{_share(calls, report['calls']['total'])} and saved {dollars(report, saved)}"
    if report["policy"]["threshold"] is None:
        wrong = f"{report['budget']['wrong_answers']:.1%}"
        return (
            f"No threshold keeps a budget of {wrong} wrong answers (why, and what you can do, is told below). "
            f"An exact cache would have answered {answered}."
        )
    guards = "refusing what differs in numbers, names or a “not”" if report["policy"]["guarded"] else "without guards"
    start = f"An exact and a semantic cache together, as set below and {guards}, would have answered {answered}"
    return f"{start}{_checked(report)}."


def age(report: Report) -> str:
    """How old the answers may be that are counted as saved, and how many of such an age no longer hold."""
    fresh, budget = report["freshness"], report["budget"]
    found = fresh["replayed"]
    start = f"With answers up to {lifetime(found['ttl_s'])} old"
    if not found["compared"]:
        return f"{start}; no repeat shows whether they still hold by then."
    told_ = f"{start}: {found['changed']:,} of {counted(found['compared'], 'repeat')} ({found['rate']:.1%}) out of date"
    if not budget or found["rate"] <= budget["wrong_answers"]:
        return f"{told_}."
    kept = (
        f"answers up to {lifetime(fresh['ttl_s'])} old keep it" if fresh["ttl_s"] else "no lifetime is known to keep it"
    )
    return f"{told_}, more than your {budget['wrong_answers']:.1%}; {kept}."


def lasts(report: Report) -> str:
    """What lifetime the repeats suggest."""
    fresh = report["freshness"]
    if fresh["verdict"] == "kept":
        return f"Keep answers for {lifetime(fresh['ttl_s'])} at most to stay within the budget."
    if fresh["verdict"] == "too_few":
        compared = max((row["compared"] for row in fresh["by_age"]), default=0)
        few = f"{counted(compared, 'repeat')} {'is' if compared == 1 else 'are'} too few to recommend a lifetime"
        return f"{few}: it takes {fresh['fewest']:,} at least, and some as old as the lifetime."
    return (
        "No lifetime keeps the budget: even the freshest answers are out of date too often. Leave the questions below "
        "to the model."
    )


def left_out(model: Row) -> str:
    """The calls that no cache may answer; ``model``: the last of the tiers."""
    by_cache = f", of which a cache in use answered {model['served_already']:,}" if model["served_already"] else ""
    return f"Left out{by_cache} (reasons below)"


def behind(report: Report) -> str:
    """Why the exact cache of the table answers fewer calls than one that stands alone; "" where it does not."""
    alone = report["exact_alone"]["calls"]
    exact = next(row["calls"] for row in report["tiers"] if row["tier"] == "exact")
    if alone == exact:
        return ""
    return (
        f"An exact cache that stood alone would answer {alone:,}. Here the semantic cache answers the first asking of "
        "some questions, which then leaves no stored answer of its own to repeat."
    )


_MIXED: Final = {
    "tenant": "tenants",
    "account": "accounts",
    "system": "system prompts",
    "tools": "tools",
}


def crossing(report: Report) -> str:
    """What answers may cross that never should; "" where they do not."""
    mixed = [name for field, name in _MIXED.items() if field not in report["scope"]["fields"]]
    if not mixed:
        return ""
    return f"Answers may now cross {_listed(mixed)}: what one was told may be given to another that must not see it."


def shared(report: Report) -> str:
    """The scope in use."""
    fields = list(report["scope"]["fields"])
    if not fields:
        return "In use: shared among all calls."
    return f"In use: shared only where {_listed(fields)} {'is' if len(fields) == 1 else 'are'} the same."


def _listed(names: Sequence[str]) -> str:
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def _checked(report: Report) -> str:
    """What is known of the wrong answers of the chosen policy; nothing where the user chose it."""
    budget = report["budget"]
    if not is_chosen(report):
        return ""
    if is_rash(budget):
        return "; too few pairs are judged to recommend this setting"
    if not budget["checked_on"]["served"]:
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


def reasons(row: Row) -> Sequence[str]:
    """Why one answer does not do for both, in plain words."""
    found = [f"{r['meaning']} ({r['detail']})" if r.get("detail") else r["meaning"] for r in row["reasons"]]
    return found or ["only the recorded answers tell them apart"]


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
        return f"default, but any {' and any '.join(dropped)}"
    return "default, and the same user" if "user" in row["fields"] else "default: service, model, system prompt…"


def scope_verdict(row: Row, used: Sequence[str]) -> str:
    """What came of a scope; ``used``: the fields of the one that was replayed."""
    if list(row["fields"]) == list(used):
        return SCOPES["chosen"]
    return "wider than what is used here" if row["verdict"] == "chosen" else SCOPES[row["verdict"]]


def lifetime(seconds: float) -> str:
    """``1 day``, ``12 hours``: a lifetime that is a whole number of them."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), unit)
    return counted(int(seconds), "second")
