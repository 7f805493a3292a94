"""The dashboard's figures are those of the command line for the same filters."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dashboards import Run
from prefixscope.analyzer import audit, store
from prefixscope.analyzer.report import wording
from prefixscope.dashboard import text, weekly

EVERYTHING = {"since": None, "until": None, "provider": None, "model": None}


def analysed(path: Path, service: str | None) -> Any:
    """The report of ``prefixscope audit --service``."""
    with store.opened(path) as opened:
        return audit.analyse(opened, audit.Selection(service)).report


@pytest.mark.parametrize("service", [None, "support-bot", "research-agent", "tiny-prompts"])
def test_daily_sums_are_the_report(sample: Path, service: str | None) -> None:
    """Calls, tokens, dollars and the hit rate, of everything and of one service."""
    report = analysed(sample, service)
    with store.opened(sample, read_only=True) as opened:
        days = opened.frame("pages/days", service=service, **EVERYTHING)
    sums = weekly.sums(days, None)
    assert sums.calls == report["calls"]["total"]
    assert sums.usage_missing == report["calls"]["usage_missing"]
    assert sums.spend == pytest.approx(report["spend_usd"]["total"])
    assert sums.net_savings == pytest.approx(report["spend_usd"]["net_cache_savings"])
    assert sums.read_share == report["hit_rate"]
    assert {name: days[name].sum() for name in ("uncached", "read", "write", "output")} == {
        name: report["tokens"][name] for name in ("uncached", "read", "write", "output")
    }


def test_causes_are_those_of_the_report(sample: Path) -> None:
    """Missed tokens and dollars by cause, claimed and not."""
    report = analysed(sample, None)
    with store.opened(sample, read_only=True) as opened:
        found = opened.frame("pages/cause_days", service=None, **EVERYTHING)
    sums = found.group_by("cause", "claimed").agg(pl.col("calls", "missed_tokens").sum())
    shown = {(row["cause"], row["claimed"]): (row["calls"], round(row["missed_tokens"])) for row in sums.to_dicts()}
    assert shown == {
        (row["cause"], row["claimed"]): (row["calls"], round(row["missed_tokens"])) for row in report["causes"]
    }


@pytest.mark.parametrize("service", ["", "support-bot"])
def test_the_first_page_says_what_the_audit_says(sample: Path, show: Run, service: str) -> None:
    """Spend, hit rate, savings and what is recoverable, in the same words."""
    report = analysed(sample, service or None)
    app = show(sample, week="all", **({"service": service} if service else {}))
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Spend"] == text.literal(wording.usd(report["spend_usd"]["total"]))
    assert shown["Read\\-token rate"] == text.literal(wording.share(report["hit_rate"]))
    assert shown["Net cache savings"] == text.literal(wording.usd(report["spend_usd"]["net_cache_savings"]))
    [recoverable] = (value for label, value in shown.items() if label.startswith("Recoverable"))
    high = text.literal(wording.usd(report["recoverable_usd"]["high"]))
    assert recoverable.endswith(high)
    if not service:  # an audit of one service alone has less evidence for how far its provider keeps reads
        assert recoverable == text.literal(wording.usd_range(report["recoverable_usd"]))


def test_all_findings_are_listed(sample: Path, show: Run) -> None:
    """With the same ids, causes and dollars a week, dearest first."""
    findings = json.loads(json.dumps(analysed(sample, None)["findings"]))
    table = show(sample, "findings").dataframe[0].value
    assert list(table["id"]) == [finding["id"] for finding in findings]
    assert list(table["usd_per_week"]) == [finding["saving_usd_per_week"]["high"] for finding in findings]
