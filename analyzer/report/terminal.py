"""The report for a terminal. Names from traces are plain text here: no markup or escape of theirs is interpreted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixscope.analyzer.lifecycle import ledger
from prefixscope.analyzer.report import wording
from prefixscope.analyzer.report.wording import hit_rate, missed, share, tokens, usd, usd_range

_BUCKETS = (("read from cache", "read"), ("written to cache", "write"), ("uncached", "uncached"))
_MOST_REASONS = 5
_MOST_UNCLAIMED = 12


def render(report: Mapping[str, Any], console: Console) -> None:
    """Prints the whole report."""
    report = wording.clean(report)
    console.print(Text(wording.headline(report), style="bold"))
    for part in _parts(report) if report["calls"]["total"] else ():
        console.print(Group(Text(), part))
    notes = [Text(f"note: {line}", style="yellow") for line in wording.caveats(report)]
    console.print(Group(*([Text()] if notes else []), *notes, *_quarantine(report)))


def detail(finding: Mapping[str, Any], report: Mapping[str, Any], console: Console) -> None:
    """Prints an entry of ``findings`` or ``not_claimed``: claim, where it breaks, formula, options, some calls."""
    finding, window = wording.clean(finding), report["window"]
    claimed = "saving_usd" in finding
    notes = (
        *(_doubts(finding, report["model_check"]) if claimed else _why_not(finding)),
        f"measured from {window['from']} to {window['to']}, {window['days']:.1f} days",
        "calls to look at:",
        *(f"  {_call(example)}" for example in finding["examples"]),
    )
    dim = Group(*(Text(line, style="dim") for line in notes))
    head = _finding(finding) if claimed else _quiet(finding)
    formula = _formula(finding) if claimed else None
    for part in (head, _evidence(finding), formula, _options(finding), dim):
        if part is not None:
            console.print(Group(part, Text()))


def _doubts(finding: Mapping[str, Any], check: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    saving = finding["saving_usd"]
    checked = any(row["provider"] == finding["provider"] for row in check)
    why = (
        "as this provider keeps reads that are predicted"
        if checked
        else "a guess: nothing shows yet how far it keeps predicted reads"
    )
    yield f"could be a false alarm if {wording.FALSE_ALARM[finding['cause']]}"
    yield f"risk of the fix: {finding['fix']['risk']}"
    yield f"at least: {share(saving['low'] / saving['high'])} of that, {why}"
    yield f"confidence {finding['confidence']}: {wording.CONFIDENCE[finding['confidence']]}"


def _why_not(finding: Mapping[str, Any]) -> Iterator[str]:
    yield f"verdict: {wording.VERDICTS[finding['verdict']]}"
    yield f"{usd(finding['usd_at_stake'])} is what reading the missed tokens would have saved; none of it is claimed"


def _evidence(finding: Mapping[str, Any]) -> Table:
    evidence = _table("evidence", name="left", value="left")
    for name, value in _flat(finding["evidence"]):
        evidence.add_row(name, value)
    return evidence


def _options(finding: Mapping[str, Any]) -> Table | None:
    """What was tried on this family, side by side; the first one is the fix where there is one."""
    options = finding.get("options", finding.get("tried", ()))
    if not options:
        return None
    columns = {"option": "left", "saves $": "right", "of it for writes": "right", "effort": "left", "risk": "left"}
    table = _table("options, each replayed by itself on top of the fixes before it", header=True, **columns)
    for row in options:
        name = wording.OPTIONS[row["action"]]
        premium = f"{-row['write_premium_usd']:+,.4f}"
        table.add_row(name, f"{row['saving_usd']:,.4f}", premium, row["effort"], Text(row["risk"], style="dim"))
    return table


def _quiet(finding: Mapping[str, Any]) -> RenderableType:
    title = Text(f"not claimed  {finding['cause']}", style="bold")
    title.append(f"  {finding['service']}  {finding['model']}", style="cyan")
    title.append(f"  id {finding['id']}", style="dim")
    meaning = Text(f"{wording.CAUSES[finding['cause']]}.", style="dim")
    return Group(title, Padding(Group(Text(f"{finding['headline']}."), meaning), (0, 0, 0, 3)))


def _call(example: Mapping[str, Any]) -> str:
    """A call by every name that it has."""
    names = (example["response_id"], f"trace {example['trace_id']}" if example["trace_id"] else "")
    return "  ".join(filter(None, (example["call_id"], *names, f"{example['file']}:{example['line']}")))


def _parts(report: Mapping[str, Any]) -> Iterator[RenderableType]:
    yield _money(report)
    yield _by(report)
    for number, finding in enumerate(report["findings"], 1):
        yield _finding(finding, f"{number}. ")
    if report["not_claimed"]:
        yield _not_claimed(report["not_claimed"])
    if any(finding["status"] != "open" for finding in report["findings"]) or report["ledger"]["verified"]["findings"]:
        yield _ledger(report)
    if report["model_check"]:
        yield _model_check(report)
    if report["provider_diagnosis"]:
        yield _diagnosis(report)
    if report["stored_prefixes"]:
        yield _stored(report)


def _money(report: Mapping[str, Any]) -> Table:
    spend, count = report["spend_usd"], report["tokens"]
    table = _table("", what="left", figure="right", note="left")
    table.add_row("spend", usd(spend["total"]), f"input {usd(spend['input'])}, output {usd(spend['output'])}")
    saved = f"net of write premiums; without any cache the input would cost {usd(spend['input_without_cache'])}"
    table.add_row("saved by caching", usd(spend["net_cache_savings"]), saved)
    weekly = sum(finding["saving_usd_per_week"]["high"] for finding in report["findings"])
    table.add_row("recoverable", usd_range(report["recoverable_usd"]), f"up to {usd(weekly)} a week")
    for label, bucket in _BUCKETS:
        part = count[bucket] / count["input"] if count["input"] else None
        table.add_row(f"tokens {label}", tokens(count[bucket]), f"{share(part)} of the input")
    return table


def _by(report: Mapping[str, Any]) -> Table:
    figures = dict.fromkeys(("calls", "input", "read", "written", "hit rate", "output", "spend"), "right")
    table = _table("by service and model (tokens)", header=True, service="left", model="left", **figures)
    for row in report["by"]:
        counts = [tokens(row[name]) for name in ("calls", "input", "read", "write")]
        names = Text(row["service"] or "(no name)"), Text(wording.model(row))
        table.add_row(*names, *counts, hit_rate(row), tokens(row["output"]), usd(row["usd"]))
    return table


def _finding(finding: Mapping[str, Any], number: str = "") -> RenderableType:
    title = Text(f"{number}{usd_range(finding['saving_usd'])}  {finding['cause']}", style="bold")
    title.append(f"  {finding['service']}  {finding['model']}", style="cyan")
    title.append(f"  confidence {finding['confidence']}  id {finding['id']}", style="dim")
    lines = (
        Text(f"{finding['headline']}."),
        Text(f"Fix: {finding['fix']['text']}"),
        Text(f"{usd_range(finding['saving_usd_per_week'])} a week at this rate.", style="dim"),
        *(Text(line, style="dim") for line in _life(finding)),
    )
    return Group(title, Padding(Group(*lines), (0, 0, 0, 3)))


def _life(finding: Mapping[str, Any]) -> Iterator[str]:
    """What was decided, if anything was."""
    if finding["status"] != "open":
        yield f"{ledger.life(finding)}."


def _formula(finding: Mapping[str, Any]) -> Table:
    """Change in tokens times price, bucket by bucket; the sum is the saving."""
    columns = {"bucket": "left", "tokens": "right", "$ per million": "right", "$": "right"}
    table = _table("formula: tokens moved by the fix × price", header=True, **columns)
    for row in finding["formula"]:
        price = row["usd"] / row["tokens"] * 1e6
        table.add_row(row["bucket"], f"{row['tokens']:+,.0f}", f"{price:.4g}", f"{row['usd']:+,.4f}")
    saving = finding["saving_usd"]
    table.add_row("saved at most", "", "", f"{saving['high']:,.4f}", style="bold")
    table.add_row("saved at least", "", "", f"{saving['low']:,.4f}", style="bold")
    return table


def _not_claimed(rows: list[Mapping[str, Any]]) -> Table:
    columns = {"cause": "left", "service": "left", "calls": "right", "tokens missed": "right", "id": "left"}
    table = _table("not claimed: healthy, the provider's side, or no fix pays", header=True, **columns, meaning="left")
    for row in rows[:_MOST_UNCLAIMED]:
        meaning = Text(wording.CAUSES[row["cause"]], style="dim")
        table.add_row(row["cause"], Text(row["service"]), tokens(row["calls"]), missed(row), row["id"], meaning)
    if len(rows) > _MOST_UNCLAIMED:
        table.add_row(
            f"… {len(rows) - _MOST_UNCLAIMED:,} more", *[""] * 4, Text("all in the report's JSON", style="dim")
        )
    return table


def _ledger(report: Mapping[str, Any]) -> Table:
    table = _table("what became of findings", what="left", figure="right", note="left")
    for row in ledger.lines(report["ledger"]):
        table.add_row(*row)
    return table


def _diagnosis(report: Mapping[str, Any]) -> Table:
    columns = {"provider": "left", "its reason": "left", "our cause": "left", "calls": "right", "agree": "left"}
    table = _table("miss reasons that the provider itself gave, and ours", header=True, **columns)
    for row in report["provider_diagnosis"]:
        named = Text(row["provider"]), Text(row["reason"]), row["cause"] or "(nothing missed)"
        table.add_row(*named, tokens(row["calls"]), "yes" if row["agree"] else "no")
    return table


def _stored(report: Mapping[str, Any]) -> Table:
    """Hours are from the first call to the last, so storage is the least it cost, and the net the most it saved."""
    columns = {"stored prefix": "left", "calls": "right", "tokens": "right", "hours": "right"}
    columns |= {"saved $": "right", "storage $ (at least)": "right", "made $": "right", "net $ (at most)": "right"}
    table = _table(
        "stored prefixes: what reading them saved, and what keeping them cost beside the calls", header=True, **columns
    )
    for row in report["stored_prefixes"]:
        dollars = [usd(row[name]) for name in ("saved_usd", "storage_usd", "creation_usd", "net_usd")]
        name = Text(f"{row['cached_content'][:12]} ({wording.model(row)}, {row['services']})")
        table.add_row(name, tokens(row["calls"]), tokens(row["tokens"]), f"{row['hours']:.1f}", *dollars)
    return table


def _model_check(report: Mapping[str, Any]) -> Table:
    columns = {"model": "left", "calls": "right", "predicted": "right", "reported": "right", "achieved": "right"}
    table = _table("model check: tokens read as predicted by the replay and as reported", header=True, **columns)
    for row in report["model_check"]:
        figures = [tokens(row[name]) for name in ("calls", "predicted", "reported")]
        table.add_row(Text(wording.model(row)), *figures, share(row["rate"]))
    return table


def _quarantine(report: Mapping[str, Any]) -> Iterator[Text]:
    rows = report["quarantine"]
    for row in rows[:_MOST_REASONS]:
        place = row["file"] if row["line"] is None else f"{row['file']}:{row['line']}"
        yield Text(f"  {place}: {row['reason']}", style="dim")
    if len(rows) > _MOST_REASONS:
        yield Text(f"  … and {len(rows) - _MOST_REASONS:,} more, all in the report's JSON", style="dim")


def _table(title: str, *, header: bool = False, **justify: Any) -> Table:
    """A table without lines; ``justify`` names its columns and sides."""
    table = Table(title=title or None, title_justify="left", box=None, show_header=header, header_style="dim")
    for name, side in justify.items():
        # on a narrow terminal names are folded; a figure is never cut
        table.add_column(name, justify=side, no_wrap=side == "right", overflow="fold")
    return table


def _flat(evidence: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[Text, Text]]:
    """Names and values of nested facts, one a row."""
    for name, value in evidence.items():
        label = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{label}: ")
        else:
            yield Text(label), Text(_shown(value))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
