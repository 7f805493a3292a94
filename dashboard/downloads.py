"""The view as files: Markdown for a chat or an issue, CSV for a spreadsheet, one HTML file for a mail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

import streamlit as st

from prefixscope.analyzer.report import csv_table, wording
from prefixscope.analyzer.report.markdown import code_span
from prefixscope.dashboard import data, text
from prefixscope.dashboard.filters import Filters

Finding = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class View:
    """What the weekly review shows, as plain data."""

    sentence: str
    asked: Filters
    figures: Sequence[tuple[str, str]]  # name, value
    findings: Sequence[Finding]  # those that are still to do, dearest first
    until: str  # the time of the last call

    @property
    def scope(self) -> str:
        """What was filtered by, in words."""
        named = [f"{name} {value}" for name, value in self.asked.names().items() if value is not None]
        least = [f"findings of {wording.usd(self.asked.min_usd)} a week or more"] if self.asked.min_usd else []
        return ", ".join([text.week(self.asked.week) if self.asked.week else "all weeks", *named, *least])


def bar(view: View) -> None:
    """Three buttons."""
    files = (
        ("Markdown", as_markdown(view), "prompt-cache-review.md", "text/markdown", ":material/download:"),
        ("CSV", as_csv(view), "prompt-cache-findings.csv", "text/csv", ":material/download:"),
        ("HTML report", as_html(view), "prompt-cache-review.html", "text/html", ":material/mail:"),
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption("This view as", width="content")
        for label, content, name, mime, icon in files:
            st.download_button(label, content, name, mime, icon=icon, on_click="ignore")
        st.download_button(
            "FOCUS 1.2",
            lambda: as_focus(view.asked),
            "prompt-cache-focus.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
            help="Costs by day, service, model and cache action for FinOps tools; made when you click",
        )


def as_focus(asked: Filters) -> str:
    """The calls of the chosen week and service as FOCUS rows (``prefixscope export focus``)."""
    from prefixscope.analyzer.audit import Selection  # noqa: PLC0415
    from prefixscope.analyzer.export import focus  # noqa: PLC0415 - the analysis, only for those who want it

    span = asked.in_week()
    since, until = (datetime.combine(day, time()) if day else None for day in (span["since"], span["until"]))
    with data.reading(data.current().path) as opened:
        return focus.csv(opened, Selection(asked.service, since, until))


def as_csv(view: View) -> str:
    """The findings, as ``prefixscope audit --csv`` writes them."""
    return csv_table.render({"findings": view.findings})


def as_markdown(view: View) -> str:
    """Sentence, figures and findings. Names are in code spans, where nothing of theirs is interpreted."""
    figures = "\n".join(f"| {text.literal(name)} | {text.literal(value)} |" for name, value in view.figures)
    head = "| $ a week | cause | service | model | status | owner | evidence |\n|---:|---|---|---|---|---|---|"
    rows = "\n".join(_markdown_row(finding) for finding in view.findings)
    return (
        f"# Prompt cache review\n\n{text.literal(view.sentence)}\n\n{text.literal(view.scope)}; data until {view.until}"
        f"\n\n| figure | value |\n|---|---:|\n{figures}\n\n{head}\n{rows}\n"
    )


def _markdown_row(finding: Finding) -> str:
    cells = (
        text.literal(text.usd_range(finding["saving_usd_per_week"])),
        finding["cause"],
        code_span(finding["service"]),
        code_span(wording.model(finding)),
        finding["status"],
        text.literal(finding["owner"] or ""),
        text.literal(finding["headline"]),
    )
    return f"| {' | '.join(cells)} |"


def as_html(view: View) -> str:
    """One file without scripts, pictures or anything to fetch."""
    figures = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in view.figures)
    dearest = max((finding["saving_usd_per_week"]["high"] for finding in view.findings), default=0.0)
    rows = "".join(_html_row(finding, dearest) for finding in view.findings)
    page = Template(files("prefixscope.dashboard").joinpath("report.html").read_text("utf-8"))
    return page.substitute(
        sentence=escape(view.sentence), scope=escape(view.scope), until=escape(view.until), figures=figures, rows=rows
    )


def _html_row(finding: Finding, dearest: float) -> str:
    week = finding["saving_usd_per_week"]
    share = 100 * week["high"] / dearest if dearest else 0.0
    bar_ = f'<span class="bar"><i style="width:{share:.1f}%"></i></span>'
    return (
        f"<tr><td class=n>{escape(text.usd_range(week))}{bar_}</td><td>{escape(text.cause(finding['cause']))}</td>"
        f"<td>{escape(finding['service'])}<br><small>{escape(wording.model(finding))}</small></td>"
        f"<td>{escape(finding['headline'])}.<br><b>Fix:</b> {escape(finding['fix']['text'])}</td>"
        f"<td>{escape(finding['status'])}</td><td>{escape(finding['owner'] or '')}</td></tr>"
    )
