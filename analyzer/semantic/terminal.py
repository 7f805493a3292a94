"""The report on response caches for a terminal. Texts and names from traces are plain: no markup counts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixscope.analyzer.report.wording import clean, counted, usd, usd_range
from prefixscope.analyzer.semantic.load_test import Line
from prefixscope.analyzer.semantic.sentences import budget_lines, headline, ttl_line

_SHOWN: Final = 8  # candidates
_CURVE: Final = (0.70, 0.80, 0.85, 0.90, 0.92, 0.95, 0.97, 0.99)
_LONGEST: Final = 110  # characters of a question
_STATUS: Final = {
    (True, True): "wrong, by hand",
    (True, False): "wrong, by its answers",
    (False, False): "refused, not judged",
}  # (known to be wrong, said by a person)


def render(report: Mapping[str, Any], console: Console) -> None:
    """Prints the whole report."""
    report = clean(report)
    console.print(Text(headline(report), style="bold"))
    for part in _parts(report) if report["calls"]["exact_possible"] else _nothing(report):
        console.print(Group(Text(), part))
    notes = [Text(f"note: {line}", style="yellow") for line in report["notes"]]
    rejected = [Text(f"  {_place(row)}: {row['reason']}", style="dim") for row in report["quarantine"][:5]]
    console.print(Group(*([Text()] if notes else []), *notes, *rejected))


def load_test(lines: Sequence[Line], console: Console) -> None:
    """Prints the published load test with its arithmetic."""
    columns = {"model": "left", "option": "left", "$ per task": "right", "$ for all": "right", "arithmetic": "left"}
    table = _table(**columns)
    for line in lines:
        table.add_row(line.model, line.option, f"{line.usd_per_task:.6f}", f"{line.usd:,.2f}", line.formula)
    title = "10,000 tasks, 60% repeats in meaning; tokens: system prompt 1,500, question 50, answer 250; $ per million"
    console.print(_titled(title, table))


def _nothing(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    if report["existing"]["hits"]:
        yield _existing(report["existing"])
    if report["left_out"]:
        yield _left_out(report["left_out"])


def _parts(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _tiers(report)
    if report["unit_cost"]:
        yield _unit_cost(report["unit_cost"])
    if report["budget"]:
        yield _budget(report)
    if len(report["scopes"]) > 1:
        yield _scopes(report)
    if report["curve"]:
        yield _curve(report["curve"])
    risky = [row for row in report["candidates"] if row["risky"] and row["cosine"] >= report["told_threshold"]]
    if risky:
        yield _candidates(risky)
    if report["freshness"]["repeats"]:
        yield _freshness(report["freshness"])
    if report["existing"]["hits"]:
        yield _existing(report["existing"])
    for number, finding in enumerate(report["findings"], 1):
        yield _finding(finding, number)
    if report["left_out"]:
        yield _left_out(report["left_out"])


def _tiers(report: Mapping[str, Any]) -> RenderableType:
    columns = {"tier": "left", "calls": "right", "share": "right", "saved": "right", "waiting saved": "right"}
    scope, table = report["scope"], _table(**columns)
    total = max(report["calls"]["total"], 1)
    for row in report["tiers"]:
        calls = row["calls"] - row["left_out"]
        saved = (usd(row["saved_usd"]), f"{row['saved_seconds']:,.1f} s") if row["tier"] != "model" else ("", "")
        table.add_row(row["tier"], f"{calls:,}", f"{calls / total:.1%}", *saved)
        if row["left_out"]:
            table.add_row("left out", f"{row['left_out']:,}", f"{row['left_out'] / total:.1%}", "", "")
    be = "is" if len(scope["fields"]) == 1 else "are"
    shared = f"shared where {', '.join(scope['fields'])} {be} the same: {counted(scope['scopes'], 'scope')}"
    return _titled(f"who answers ({shared})", table, "\n".join(_who_answers(report)))


def _who_answers(report: Mapping[str, Any]) -> Iterator[str]:
    """Why the exact cache serves less than alone, and what was left out."""
    exact, alone, model = report["tiers"][0]["calls"], report["exact_alone"]["calls"], report["tiers"][2]
    if exact < alone:
        yield (
            f"exact: {exact:,}, and {alone:,} if it stood alone: a question that the semantic cache answers leaves no "
            "answer of its own, so when it is repeated, the semantic cache answers again"
        )
    if model["left_out"]:
        already = f"; a cache in use answered {model['served_already']:,} of them" if model["served_already"] else ""
        yield f"left out: no cache may answer these, for the reasons at the end{already}"


def _unit_cost(options: Sequence[Mapping[str, Any]]) -> RenderableType:
    columns = {"option": "left", "$ per 1,000 calls": "right", "total": "right", "with these numbers": "left"}
    table = _table(**columns)
    for row in options:
        table.add_row(row["option"], f"{1000 * row['usd_per_call']:,.4f}", usd(row["usd"]), row["formula"])
    legend = (
        "M calls, R served by a response cache, L looked up by meaning; T tokens of a call the model answers: read "
        "from the provider's cache, new, generated; P their price. From 'prompt cache' on with the audit's fixes."
    )
    title = "what a call costs: C = M · [L · C_embed + (1 - R) · (T_cached · P_cached + T_new · P_in + T_gen · P_out)]"
    return _titled(title, table, legend)


def _budget(report: Mapping[str, Any]) -> RenderableType:
    budget, policy = report["budget"], report["policy"]
    return Group(
        Text("threshold for a budget of wrong answers", style="italic"), *map(Text, budget_lines(budget, policy))
    )


def _scopes(report: Mapping[str, Any]) -> RenderableType:
    columns = {"the same must be": "left", "served": "right", "saved": "right", "wrong of the extra pairs": "right",
               "at most": "right", "": "left"}  # fmt: skip
    table = _table(**columns)
    for row in report["scopes"]:
        wrong = _wrong(row["added"]) if row["added"] else ("", "")
        meaning = Text(row["meaning"], style="dim")
        table.add_row(_scope_name(row), f"{row['calls']:,}", usd(row["saved_usd"]), *wrong, meaning)
    lines = [f"  {line}" for row in report["scopes"] if row["verdict"] == "option" for line in scope_option(row)]
    return Group(_titled("who may share an answer", table), *map(Text, lines))


def _scope_name(row: Mapping[str, Any]) -> str:
    dropped = [risk["dropped"] for risk in row["risks"]]
    return (
        f"default without {', '.join(dropped)}"
        if dropped
        else "default and user"
        if "user" in row["fields"]
        else "default"
    )


def _wrong(added: Mapping[str, Any]) -> tuple[str, str]:
    """What a scope adds to the next narrower one: wrong ones, and at most how many."""
    if not added["served"]:
        return f"not known ({added['unjudged']:,} pairs)", ""
    return f"{added['wrong']:,} of {added['served']:,}", f"{added['at_most']:.1%}"


def scope_option(row: Mapping[str, Any]) -> Iterator[str]:
    """What a wider scope risks, and how to have it."""
    yield f"{_scope_name(row)}: " + "; ".join(risk["risk"] for risk in row["risks"])
    yield f"  if that is fine: --scope {','.join(row['fields'])}"


def _curve(points: Sequence[Mapping[str, Any]]) -> RenderableType:
    columns = dict.fromkeys(("cosine", "alone serves", "wrong", "with guards", "wrong "), "right")
    table = _table(**columns)
    for point in points:
        if point["threshold"] in _CURVE:
            table.add_row(
                f"{point['threshold']:.2f}",
                f"{point['alone_share']:.1%}", _rate(point["alone_wrong_rate"]),
                f"{point['guarded_share']:.1%}", _rate(point["guarded_wrong_rate"]),
            )  # fmt: skip
    return _titled(
        "over the threshold (wrong: of the served ones that can be judged; exact repeats count as right)", table
    )


def _rate(rate: float | None) -> str:
    return "not known" if rate is None else f"{rate:.1%}"


def _candidates(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    columns = {
        "cosine": "right",
        "calls": "right",
        "cost": "right",
        "status": "left",
        "why not": "left",
        "asked / answered before": "left",
    }
    table = _table(**columns)
    for row in rows[:_SHOWN]:
        why = "\n".join(_why(row["reasons"])) or "only the answers differ"
        told = {reason["reason"] for reason in row["reasons"]}
        texts = [_asked(row[side], after="conversation" in told) for side in ("call", "earlier")]
        cost = usd(row["usd_at_stake"])
        table.add_row(
            f"{row['cosine']:.3f}", f"{row['calls']:,}", cost, _STATUS[_judge(row)], Text(why), Text("\n".join(texts))
        )
    return _titled("similar, but refused or known to be wrong: what similarity alone would have served", table)


def _judge(row: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether the pair is known to be wrong, and whether a person said so."""
    return row["status"] == "wrong", row["label"] is not None


def _why(reasons: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The reasons, those that point at the same words together."""
    names: dict[str, list[str]] = {}
    for reason in reasons:
        names.setdefault(reason["detail"], []).append(reason["reason"])
    for detail, found in names.items():
        yield ", ".join(found) + (f": {detail}" if detail else "")


def _asked(call: Mapping[str, Any], *, after: bool) -> str:
    """The question, and what was said before where that is what differs."""
    asked = _short(call.get("question", call["call_id"]))
    before = call.get("previous", ())[:1] if after else ()
    return "".join([asked, *(f"  (after: {_short(turn['text'])})" for turn in before)])


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _freshness(fresh: Mapping[str, Any]) -> RenderableType:
    columns = {"answer not older than": "left", "repeats compared": "right", "answer changed": "right"}
    table = _table(**columns)
    for row in fresh["by_age"]:
        table.add_row(row["up_to"], f"{row['compared']:,}", f"{row['changed']:,}" if row["compared"] else "–")
    return _titled("the same question again: does its answer last?", table, ttl_line(fresh))


def _existing(existing: Mapping[str, Any]) -> RenderableType:
    caches = ", ".join(f"{name} {count:,}" for name, count in existing["caches"].items())
    lines = [
        f"{existing['hits']:,} calls were served by a cache in use ({caches}): {existing['exact']:,} of them repeats,",
        f"{existing['suspect']:,} suspect, {existing['source_unknown']:,} whose first question is not in this traffic",
    ]
    for row in existing["examples"][:_SHOWN]:
        texts = [_short(row[side].get("question", row[side]["call_id"])) for side in ("call", "earlier")]
        lines.append(f"  {', '.join(row['reasons'])}: {texts[0]}  <-  {texts[1]}")
    return Group(Text("a response cache in use", style="italic"), *map(Text, lines))


def _finding(finding: Mapping[str, Any], number: int) -> RenderableType:
    at_stake = finding["cause"] == "false_match_risk"
    figure = f"{usd(finding['at_stake_usd'])} at stake" if at_stake else usd_range(finding["saving_usd"])
    title = Text(f"{number}. {figure}  {finding['cause']}", style="bold")
    title.append(f"  {finding['service']}  {finding['model']}", style="cyan")
    title.append(f"  confidence {finding['confidence']}  id {finding['id']}", style="dim")
    lines = Text(f"{finding['headline']}."), Text(f"Fix: {finding['fix']}")
    return Group(title, Padding(Group(*lines), (0, 0, 0, 3)))


def _left_out(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    table = _table(reason="left", calls="right", meaning="left")
    for row in rows:
        table.add_row(row["reason"], f"{row['calls']:,}", Text(row["meaning"], style="dim"))
    return _titled("left out", table)


def _place(row: Mapping[str, Any]) -> str:
    return str(row["file"]) if row["line"] is None else f"{row['file']}:{row['line']}"


def _table(**justify: Any) -> Table:
    """A table without lines; ``justify`` names its columns and sides."""
    table = Table(box=None, header_style="dim")
    for name, side in justify.items():
        table.add_column(name, justify=side, no_wrap=side == "right", overflow="fold")
    return table


def _titled(title: str, table: Table, below: str = "") -> RenderableType:
    """A table under its title, which may be wider than it."""
    lines = [Text(below, style="dim")] if below else []
    return Group(Text(title, style="italic"), table, *lines)
