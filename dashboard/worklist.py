"""Findings as rows of tables: what the last report says of them and what people made of it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import polars as pl

from prefixscope.analyzer.lifecycle.states import TO_DO
from prefixscope.analyzer.report import wording
from prefixscope.dashboard import data, text

Finding = Mapping[str, Any]  # a row of ``findings`` of ``lifecycle.report``
SCHEMA: Final[dict[str, Any]] = {
    "id": pl.String,
    "status": pl.String,
    "usd_per_week": pl.Float64,  # the upper end
    "range": pl.String,
    "confidence": pl.String,
    "cause": pl.String,
    "service": pl.String,
    "provider": pl.String,
    "model": pl.String,
    "calls": pl.Int64,
    "first_seen": pl.Datetime,
    "trend": pl.List(pl.Float64),  # USD a week in each analysis
    "effort": pl.String,
    "owner": pl.String,
    "due": pl.String,
    "headline": pl.String,
}


def rows(findings: Sequence[Finding]) -> pl.DataFrame:
    """A row a finding, in their order. Columns: as in ``SCHEMA``."""
    history = data.frame("pages/finding_history")
    return pl.DataFrame([_row(finding, history) for finding in findings], schema=SCHEMA)


def _row(finding: Finding, history: pl.DataFrame) -> dict[str, Any]:
    week = finding["saving_usd_per_week"]
    return {
        "id": finding["id"],
        "status": finding["status"].replace("_", " "),
        "usd_per_week": week["high"],
        "range": text.usd_range(week),
        "confidence": finding["confidence"],
        "cause": text.cause(finding["cause"]),
        "service": text.cell(finding["service"]),
        "provider": text.cell(finding["provider"]),
        "model": text.cell(finding["model"]),
        "calls": finding["calls"],
        "first_seen": _time(finding["first_seen"]),
        "trend": history.filter(pl.col("id") == finding["id"])["usd_per_week"].to_list(),
        "effort": effort(finding),
        "owner": text.cell(finding["owner"] or ""),
        "due": finding["due"] or "",
        "headline": text.cell(finding["headline"]),
    }


_QUIET: Final[dict[str, Any]] = {
    "cause": pl.String,
    "verdict": pl.String,
    "service": pl.String,
    "model": pl.String,
    "calls": pl.Int64,
    "missed_tokens": pl.Float64,
    "usd_at_stake": pl.Float64,
    "headline": pl.String,
}


def quiet(found: Sequence[Finding]) -> pl.DataFrame:
    """A row for each of the report's ``not_claimed``, as they come."""
    return pl.DataFrame([_quiet(one) for one in found], schema=_QUIET)


def _quiet(one: Finding) -> dict[str, Any]:
    why = "no fix is known to pay" if one["verdict"] == "actionable" else wording.VERDICTS[one["verdict"]]
    return {
        "cause": text.cause(one["cause"]),
        "verdict": why,
        "service": text.cell(one["service"]),
        "model": text.cell(one["model"]),
        "headline": text.cell(one["headline"]),
        **{name: one[name] for name in ("calls", "missed_tokens", "usd_at_stake")},
    }


def effort(finding: Finding) -> str:
    """The effort of the fix, "" where the report does not say."""
    best = (one for one in finding.get("options") or () if one["action"] == finding["fix"]["action"])
    return next((str(one["effort"]) for one in best if one.get("effort")), "")


def to_do(findings: Iterable[Finding]) -> list[Finding]:
    """Those whose saving is still to be had."""
    return [finding for finding in findings if finding["status"] in TO_DO]


def total(findings: Iterable[Finding], *, per_week: bool = True) -> dict[str, float]:
    """Low and high end over all of them: savings of different findings are disjoint."""
    key = "saving_usd_per_week" if per_week else "saving_usd"
    kept = list(findings)
    return {end: sum(finding[key][end] for finding in kept) for end in ("low", "high")}


def _time(told: str | None) -> datetime | None:
    return datetime.fromisoformat(told).replace(tzinfo=None) if told else None
