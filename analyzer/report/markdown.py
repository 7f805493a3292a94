"""The report as Markdown. Names from traces are put into code spans, where nothing of theirs is interpreted."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from prefixscope.analyzer.report import wording
from prefixscope.analyzer.report.wording import hit_rate, missed, tokens, usd, usd_range

_MOST_REASONS = 20
_ACTIVE = re.compile(r"[\\`*\[\]<>|~&@]|://")


def render(report: Mapping[str, Any]) -> str:
    """The whole report, ending in a newline."""
    report = wording.clean(report)
    parts = ["# Prompt cache audit", wording.headline(report)]
    if report["calls"]["total"]:
        parts += [_by(report), *map(_finding, report["findings"]), _causes(report), _stored(report)]
    parts += ["\n".join(f"* {_text(line)}" for line in wording.caveats(report)), _quarantine(report)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _by(report: Mapping[str, Any]) -> str:
    head = ("service", "model", "calls", "input", "read", "written", "hit rate", "output", "spend")
    rows = [
        (
            code_span(row["service"]),
            code_span(wording.model(row)),
            *(tokens(row[name]) for name in ("calls", "input", "read", "write")),
            hit_rate(row),
            tokens(row["output"]),
            usd(row["usd"]),
        )
        for row in report["by"]
    ]
    return _table(head, rows, numbers_from=2)


def _finding(finding: Mapping[str, Any]) -> str:
    return (
        f"## {usd_range(finding['saving_usd'])}: {finding['cause']} in {code_span(finding['service'])}\n\n"
        f"{_text(finding['headline'])}.\n\n"
        f"**Fix.** {_text(finding['fix']['text'])}\n\n"
        f"{usd_range(finding['saving_usd_per_week'])} a week; {wording.counted(finding['calls'], 'call')} of "
        f"{code_span(finding['model'])}; confidence {finding['confidence']}; id {code_span(finding['id'])}"
    )


def _causes(report: Mapping[str, Any]) -> str:
    rows = [
        (
            row["cause"],
            "yes" if row["claimed"] else "no",
            row["verdict"].replace("_", " "),
            tokens(row["calls"]),
            missed(row),
            wording.CAUSES.get(row["cause"], ""),
        )
        for row in report["causes"]
    ]
    return (
        _table(("cause", "claimed", "verdict", "calls", "missed tokens", "meaning"), rows, numbers_from=3)
        if rows
        else ""
    )


def _stored(report: Mapping[str, Any]) -> str:
    """Stored prefixes; hours are from the first call to the last, so storage is the least that it cost."""
    head = ("stored prefix", "model", "calls", "tokens", "hours", "saved", "storage, at least", "made", "net, at most")
    rows = [
        (
            code_span(row["cached_content"][:12]),
            code_span(wording.model(row)),
            *(tokens(row[name]) for name in ("calls", "tokens")),
            f"{row['hours']:.1f}",
            *(usd(row[name]) for name in ("saved_usd", "storage_usd", "creation_usd", "net_usd")),
        )
        for row in report["stored_prefixes"]
    ]
    return _table(head, rows, numbers_from=2) if rows else ""


def _quarantine(report: Mapping[str, Any]) -> str:
    rows = [(code_span(row["file"]), str(row["line"] or ""), code_span(row["reason"])) for row in report["quarantine"]]
    return _table(("file", "line", "reason"), rows[:_MOST_REASONS], numbers_from=3) if rows else ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, numbers_from: int) -> str:
    rules = ["---" if at < numbers_from or name == "meaning" else "---:" for at, name in enumerate(head)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, rules, *rows))


def code_span(name: str) -> str:
    """A code span that a table cell can hold and nothing can break out of."""
    shown = name.replace("|", "\\|").replace("`", "'").strip()
    return f"`{shown}`" if shown else ""


def _text(text: str) -> str:
    """Running text in which nothing that came from outside is interpreted."""
    return _ACTIVE.sub(lambda found: f"\\{found[0]}", text)
