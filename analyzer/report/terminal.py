"""The report for a terminal. Names from traces are plain text here: no markup of theirs is interpreted."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from prefixscope.analyzer.report import wording
from prefixscope.analyzer.report.wording import share, tokens, usd, usd_range

_BUCKETS = (("read from cache", "read"), ("written to cache", "write"), ("uncached", "uncached"))
_MOST_REASONS = 5


def render(report: Mapping[str, Any], console: Console) -> None:
    """Prints the whole report."""
    console.print(Text(wording.headline(report), style="bold"))
    if not report["calls"]["total"]:
        _print_quarantine(report, console)
        return
    console.print()
    console.print(_money(report))
    console.print(_by(report))
    for number, finding in enumerate(report["findings"], 1):
        console.print(_finding(number, finding))
    console.print(_rest(report))
    console.print(_model_check(report))
    for line in wording.caveats(report):
        console.print(Text(f"note: {line}", style="yellow"))
    _print_quarantine(report, console)


def detail(finding: Mapping[str, Any], report: Mapping[str, Any], console: Console) -> None:
    """Prints one finding: the claim, where it breaks, the formula with its numbers, and some calls to look at."""
    console.print(_finding(0, finding))
    evidence = Table(title="evidence", title_justify="left", box=None, show_header=False)
    for name, value in _flat(finding["evidence"]):
        evidence.add_row(Text(name), Text(value))
    console.print(evidence)
    console.print(_formula(finding))
    window = report["window"]
    console.print(Text(f"Measured from {window['from']} to {window['to']} ({window['days']:g} days).", style="dim"))
    console.print(Text("Calls to look at: " + ", ".join(finding["examples"]), style="dim"))


def _money(report: Mapping[str, Any]) -> Table:
    spend, count = report["spend_usd"], report["tokens"]
    table = Table(box=None, show_header=False, padding=(0, 2))
    table.add_row("spend", usd(spend["total"]), f"input {usd(spend['input'])}, output {usd(spend['output'])}")
    saved = f"net of write premiums; without any cache the input would have cost {usd(spend['input_without_cache'])}"
    table.add_row("saved by caching", usd(spend["net_cache_savings"]), saved)
    weekly = sum(f["saving_usd_per_week"]["high"] for f in report["findings"])
    table.add_row("recoverable", usd_range(report["recoverable_usd"]), f"up to {usd(weekly)} a week")
    for label, bucket in _BUCKETS:
        part = count[bucket] / count["input"] if count["input"] else None
        table.add_row(f"tokens {label}", tokens(count[bucket]), share(part))
    return table


def _by(report: Mapping[str, Any]) -> Table:
    table = Table(title="by service and model", title_justify="left", box=None, header_style="dim")
    table.add_column("service")
    table.add_column("model")
    for name in ("calls", "input", "read", "written", "hit rate", "output", "spend"):
        table.add_column(name, justify="right")
    for row in report["by"]:
        rate = share(row["read"] / row["input"] if row["input"] else None)
        figures = [tokens(row[name]) for name in ("calls", "input", "read", "write")]
        name = f"{row['provider']}/{row['model']}" if row["provider"] else row["model"]
        table.add_row(Text(row["service"]), Text(name), *figures, rate, tokens(row["output"]), usd(row["usd"]))
    return table


def _finding(number: int, finding: Mapping[str, Any]) -> RenderableType:
    title = Text(f"{number}. " if number else "", style="bold")
    title.append(f"{usd_range(finding['saving_usd'])}  {finding['cause']}", style="bold")
    title.append(f"  {finding['service']}  {finding['model']}  ", style="cyan")
    title.append(f"confidence {finding['confidence']}  id {finding['id']}", style="dim")
    lines = Group(
        Text(f"{finding['headline']}."),
        Text(f"Fix: {finding['fix']['text']}"),
        Text(f"{usd_range(finding['saving_usd_per_week'])} a week at this rate.", style="dim"),
    )
    return Group(Text(), title, Padding(lines, (0, 0, 0, 3)))


def _formula(finding: Mapping[str, Any]) -> Table:
    """Change in tokens times price, bucket by bucket; the sum is the saving."""
    table = Table(title="formula: tokens moved × price per million", title_justify="left", box=None, header_style="dim")
    for name in ("bucket", "tokens", "$ per million", "$"):
        table.add_column(name, justify="left" if name == "bucket" else "right")
    for row in finding["formula"]:
        price = row["usd"] / row["tokens"] * 1e6
        table.add_row(row["bucket"], f"{row['tokens']:+,.0f}", f"{price:.4g}", f"{row['usd']:+,.4f}")
    table.add_row("saved", "", "", f"{-sum(row['usd'] for row in finding['formula']):,.4f}", style="bold")
    return table


def _rest(report: Mapping[str, Any]) -> RenderableType:
    rest = [row for row in report["causes"] if not row["claimed"]]
    if not rest:
        return Text()
    table = Table(title="not claimed", title_justify="left", box=None, header_style="dim")
    table.add_column("cause")
    table.add_column("calls", justify="right")
    table.add_column("tokens", justify="right")
    table.add_column("")
    for row in rest:
        what = wording.CAUSES.get(row["cause"], "")
        table.add_row(row["cause"], tokens(row["calls"]), tokens(row["missed_tokens"]), Text(what, style="dim"))
    return Group(Text(), table)


def _model_check(report: Mapping[str, Any]) -> RenderableType:
    if not report["model_check"]:
        return Text()
    table = Table(title="model check: reads the provider reported against those predicted", title_justify="left", box=None)
    table.header_style = "dim"
    table.add_column("model")
    for name in ("calls", "predicted", "reported", "achieved"):
        table.add_column(name, justify="right")
    for row in report["model_check"]:
        figures = [tokens(row[name]) for name in ("calls", "predicted", "reported")]
        table.add_row(Text(f"{row['provider']}/{row['model']}"), *figures, share(row["rate"]))
    return Group(Text(), table)


def _print_quarantine(report: Mapping[str, Any], console: Console) -> None:
    for row in report["quarantine"][:_MOST_REASONS]:
        place = row["file"] if row["line"] is None else f"{row['file']}:{row['line']}"
        console.print(Text(f"  {place}: {row['reason']}", style="dim"))
    more = len(report["quarantine"]) - _MOST_REASONS
    if more > 0:
        console.print(Text(f"  … and {more:,} more, all in the report's JSON", style="dim"))


def _flat(evidence: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, value in evidence.items():
        label = f"{prefix}{name.replace('_', ' ')}"
        found += _flat(value, f"{label}: ") if isinstance(value, Mapping) else [(label, f"{value:,}" if isinstance(value, int) else str(value))]
    return found
