"""The report on response caches in sentences: what it comes to, how sure that is, how long answers last. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from prefixscope.analyzer.report.wording import counted, usd
from prefixscope.analyzer.semantic.findings import risk_of
from prefixscope.analyzer.semantic.verdict import STATUSES


def headline(report: Mapping[str, Any]) -> str:
    """What the caches would do, what is out of date, what a threshold alone would do: a line each."""
    calls, exact = report["calls"]["total"], report["exact_alone"]
    if not report["calls"]["exact_possible"]:
        return _why_nothing(report)
    text = (
        f"{calls:,} calls: an exact cache would serve {exact['calls']:,} ({exact['share']:.1%}) and save "
        f"{usd(exact['saved_usd'])}"
    )
    if report["policy"]["threshold"] is None:
        text += "; no semantic cache was replayed."
    else:
        both = [row for row in report["tiers"] if row["tier"] != "model"]
        served, saved = sum(row["calls"] for row in both), sum(row["saved_usd"] for row in both)
        text += f"; with a semantic one behind it {served:,} ({served / max(calls, 1):.1%}) and {usd(saved)}."
    return "\n".join(filter(None, (text, _out_of_date(report), _false_matches(report))))


def _out_of_date(report: Mapping[str, Any]) -> str:
    """What share of the answers is old news at the lifetime that was replayed, and which lifetime keeps the budget."""
    fresh, replayed = report["freshness"], report["freshness"]["replayed"]
    if not replayed["compared"]:
        return ""
    shorter = fresh["ttl_s"] is not None and fresh["ttl_s"] < replayed["ttl_s"]
    keeps = f"; a lifetime of {lifetime(fresh['ttl_s'])} keeps the budget" if shorter else ""
    return (
        f"Answers up to {lifetime(replayed['ttl_s'])} old are served: of {replayed['compared']:,} repeats within that "
        f"time, {replayed['rate']:.1%} had another answer by then{keeps}."
    )


def _false_matches(report: Mapping[str, Any]) -> str:
    found = report["false_matches"]
    if not (found and found["calls"]):
        return ""
    risk = risk_of(found["threshold"], found["by"])
    return f"{risk[0].upper()}{risk[1:]}."


def _why_nothing(report: Mapping[str, Any]) -> str:
    """Where no call may be served from a cache, the reason comes first."""
    total = report["calls"]["total"]
    rows = sorted(report["left_out"], key=lambda row: -row["calls"])
    if rows[:1] and rows[0]["reason"] == "no_answer":
        silent = f"{rows[0]['calls']:,} of {total:,} calls"
        return f"No answers are recorded in this log ({silent}), so nothing can be replayed."
    why = "; ".join(f"{row['calls']:,} calls: {row['meaning']}" for row in rows)
    return f"None of {total:,} calls may be served from a cache, so nothing can be replayed. {why}"


def budget_lines(budget: Mapping[str, Any], policy: Mapping[str, Any]) -> Iterator[str]:
    """The verdict, what was chosen on what ground, and what is missing to be sure."""
    yield verdict_line(budget["verdict"])
    if not budget["labels"]:
        yield f"  replayed: the default, {policy['told']}. Judge pairs: --review FILE, then --labels FILE"
        return
    yield from _kept(budget, policy) if budget["kept"] else _not_kept(budget)
    if budget["unjudged"]:
        yield (
            f"  {counted(budget['unjudged'], 'more pair')} that the cache serves are not judged, as their answers "
            "neither agree nor clearly differ: judge them with --review FILE and --labels FILE"
        )


def verdict_line(verdict: Mapping[str, Any]) -> str:
    """Goal, what was seen, how much it could be, and whether that is proven."""
    meaning = STATUSES[verdict["status"]]
    if verdict["status"] == "too_few":
        return (
            f"Goal: at most {verdict['goal']:.1%} wrong. Too few judged pairs to know: {verdict['checked']:,} checked, "
            f"and it takes {verdict['fewest']:,} to say anything."
        )
    if verdict["seen"] is None:
        return f"Goal: at most {verdict['goal']:.1%} wrong. {meaning[0].upper()}{meaning[1:]}."
    return (
        f"Goal: at most {verdict['goal']:.1%} wrong. Seen: {verdict['seen']:.1%}. Could be up to "
        f"{verdict['at_most']:.1%}. {meaning[0].upper()}{meaning[1:]}."
    )


def _kept(budget: Mapping[str, Any], policy: Mapping[str, Any]) -> Iterator[str]:
    chosen, checked, verdict = budget["chosen_on"], budget["checked_on"], budget["verdict"]
    how = "chosen automatically" if budget["policy"] == policy else "what the budget would choose; not replayed"
    yield f"  {budget['policy']['told']} ({how})"
    yield f"  on the pairs that chose it: {chosen['wrong']:,} of {chosen['served']:,} served were wrong"
    bound = f"; so at most {checked['at_most']:.1%} with {budget['confidence']:.0%} confidence"
    yield (
        f"  on {checked['served']:,} other pairs that it serves: {checked['wrong']:,} wrong"
        f"{bound if checked['served'] else ''}"
    )
    if not verdict["more"]:
        yield from () if budget["shown"] else ("  no sample, however large, shows that there are none at all",)
        return
    yield (
        f"  to prove {verdict['goal']:.1%} takes {verdict['more']:,} more such pairs without a wrong one; as every "
        f"other pair goes to the choice, judge about {2 * verdict['more']:,}"
    )


def _not_kept(budget: Mapping[str, Any]) -> Iterator[str]:
    """Which pairs forbid every threshold, and what can be done."""
    yield f"  no semantic cache was replayed; {counted(budget['labels'], 'judged pair')}"
    if other := budget["otherwise"]:
        yield (
            f"  the least wrong threshold, {other['policy']['told']}, serves {counted(other['served'], 'pair')}, "
            f"{other['wrong']:,} of them wrongly ({other['rate']:.1%}); of their {counted(other['calls'], 'call')} "
            f"{other['wrong_calls']:,} ({other['wrong_calls'] / max(other['calls'], 1):.1%})"
        )
    if budget["forbidden_by"]:
        yield "  no threshold removes these without the right ones that are less alike:"
    for row in budget["forbidden_by"]:
        texts = [row[side].get("question", row[side]["call_id"]) for side in ("call", "earlier")]
        yield f"    {row['cosine']:.3f}  {texts[0]}  <-  {texts[1]}"
    if budget["ways_out"]:
        *ways, last = map(_way, budget["ways_out"])
        yield f"  you can {', '.join(ways)}, or {last}"


def _way(way: Mapping[str, Any]) -> str:
    return str(way["meaning"]) + (f" (--budget {way['budget']:.1%})" if way["budget"] else "")


def ttl_line(fresh: Mapping[str, Any]) -> str:
    """The lifetime to recommend, or why there is none."""
    most = max(row["compared"] for row in fresh["by_age"])
    return {
        "kept": f"longest lifetime within the budget: {lifetime(fresh['ttl_s'] or 0)}",
        "too_few": f"{counted(most, 'repeat')} with answers to compare: too few to recommend a lifetime; it "
        f"takes {fresh['fewest']:,}",
        "too_wrong": "no lifetime keeps the budget: even the shortest has too many changed answers",
    }[fresh["verdict"]]


def lifetime(seconds: float) -> str:
    """``1 day``, ``12 hours``: a lifetime that is a whole number of them."""
    for size, unit in ((86_400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size and seconds % size == 0:
            return counted(int(seconds // size), unit)
    return f"{seconds:,.4g} s"
