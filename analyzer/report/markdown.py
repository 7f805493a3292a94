"""The report as Markdown. Names from traces are put into code spans, where nothing of theirs is interpreted."""

from collections.abc import Iterable, Mapping
from typing import Any

from prefixscope.analyzer.report import wording
from prefixscope.analyzer.report.wording import share, tokens, usd, usd_range


def render(report: Mapping[str, Any]) -> str:
    """The whole report, ending in a newline."""
    parts = ["# Prompt cache audit", wording.headline(report)]
    if report["calls"]["total"]:
        parts += [_by(report), *map(_finding, report["findings"]), _rest(report)]
    parts += ["\n".join(f"* {line}" for line in wording.caveats(report))]
    return "\n\n".join(filter(None, parts)) + "\n"


def _by(report: Mapping[str, Any]) -> str:
    head = ("service", "model", "calls", "input", "read", "written", "hit rate", "output", "spend")
    rows = [
        (
            _code(row["service"]),
            _code(row["model"]),
            *(tokens(row[name]) for name in ("calls", "input", "read", "write")),
            share(row["read"] / row["input"] if row["input"] else None),
            tokens(row["output"]),
            usd(row["usd"]),
        )
        for row in report["by"]
    ]
    return _table(head, rows)


def _finding(finding: Mapping[str, Any]) -> str:
    return (
        f"## {usd_range(finding['saving_usd'])}: {finding['cause']} in {_code(finding['service'])}\n\n"
        f"{finding['headline']}.\n\n"
        f"**Fix.** {finding['fix']['text']}\n\n"
        f"{usd_range(finding['saving_usd_per_week'])} a week; {tokens(finding['calls'])} calls of "
        f"{_code(finding['model'])}; confidence {finding['confidence']}; id {_code(finding['id'])}"
    )


def _rest(report: Mapping[str, Any]) -> str:
    rows = [
        (row["cause"], tokens(row["calls"]), tokens(row["missed_tokens"]), wording.CAUSES.get(row["cause"], ""))
        for row in report["causes"]
    ]
    return _table(("cause", "calls", "missed tokens", "meaning"), rows) if rows else ""


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(head)
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _code(name: str) -> str:
    """A code span that a table cell can hold and nothing can break out of."""
    clean = " ".join(name.split()).replace("|", "\\|").replace("`", "'")
    return f"`{clean}`" if clean else ""
