"""From a store to a report: runs the stages in their order. The report is plain data, and all that anybody shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from prefixscope.analyzer import families as families_module
from prefixscope.analyzer import savings, tokens, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.call_rates import cost, rate_calls
from prefixscope.analyzer.causes import Causes, explain
from prefixscope.analyzer.findings import Finding, find
from prefixscope.analyzer.store import Ingested, Store
from prefixscope.analyzer.traffic import Traffic, model_name

SCHEMA_VERSION = 1
_WRITES = ("write_5m", "write_30m", "write_1h", "write_12h", "write_unknown")
_INPUT = ("uncached", "read", *_WRITES)
Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Selection:
    """Which calls to analyse; None = all. Times are UTC without a zone, ``until`` exclusive."""

    service: str | None = None
    since: datetime | None = None
    until: datetime | None = None


def analyse(store: Store, selection: Selection, ingested: Ingested | None = None) -> Report:
    """The report of schema version 1 on the selected calls."""
    chosen = {"service": selection.service, "since": selection.since, "until": selection.until}
    calls = store.frame("analysis/calls", **chosen)
    priced = _priced(calls)
    findings: list[Finding] = []
    causes = pl.DataFrame(schema=_CAUSE_COLUMNS)
    check = pl.DataFrame(schema=_CHECK_COLUMNS)
    if calls.height:
        loaded = traffic.load(calls, store.arrow("analysis/prompts", **chosen), contents_of(store.arrow("analysis/contents")))
        found = families_module.find(loaded)
        loaded, base = savings.base_outcome(tokens.calibrated(loaded, found))
        plan = savings.plan(loaded, found, base, priced)
        why = explain(loaded, found, base, plan)
        check = savings.achieved_rate(loaded, base)
        findings = find(loaded, found, base, plan, why, check)
        causes = _causes(loaded, why, priced)
    rejected = store.frame("analysis/quarantine")
    return _report(calls, priced, findings, causes, check, rejected, ingested)


def without_small(report: Report, usd: float) -> Report:
    """The report without findings worth less than ``usd``; what is recoverable is the sum of those that stay."""
    kept = [finding for finding in report["findings"] if finding["saving_usd"]["high"] >= usd]
    return {**report, "findings": kept, "recoverable_usd": _recoverable(kept)}


def _recoverable(findings: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {end: sum(finding["saving_usd"][end] for finding in findings) for end in ("low", "high")}


def _priced(calls: pl.DataFrame) -> pl.DataFrame:
    named = calls.with_columns(requested=pl.col("model"), model=model_name(), input_total=pl.sum_horizontal(_INPUT))
    rated = rate_calls(named)
    known = pl.col("usage_state") != "missing"
    without_cache = (pl.col("input_total") * pl.col("rate_uncached")).alias("usd_without_cache")
    costs = [cost(_INPUT).alias("usd_input"), cost(["output"]).alias("usd_output"), without_cache]
    return rated.with_columns(pl.when(known).then(expression).alias(expression.meta.output_name()) for expression in costs)


_CAUSE_COLUMNS = {"cause": pl.String, "calls": pl.UInt32, "missed_tokens": pl.Float64, "usd_at_stake": pl.Float64}
_CHECK_COLUMNS = {
    "provider": pl.String,
    "model": pl.String,
    "calls": pl.UInt32,
    "predicted": pl.Float64,
    "reported": pl.Int64,
    "rate": pl.Float64,
}


def _causes(loaded: Traffic, why: Causes, priced: pl.DataFrame) -> pl.DataFrame:
    """Calls, missed tokens and what a read instead would have saved on them, by cause; claimed or not."""
    difference = (pl.col("rate_uncached") - pl.col("rate_read")).cast(pl.Float64)
    frame = priced.select(difference.alias("difference")).with_columns(
        cause=pl.Series(why.cause.astype(str)), missed=pl.Series(why.missed)
    )
    sums = frame.filter(pl.col("cause") != "").group_by("cause").agg(
        calls=pl.len(), missed_tokens=pl.col("missed").sum(), usd_at_stake=(pl.col("missed") * pl.col("difference")).sum()
    )
    return sums.sort("missed_tokens", "cause", descending=[True, False])


def _report(  # noqa: PLR0913, PLR0917 - the results of all stages
    calls: pl.DataFrame,
    priced: pl.DataFrame,
    findings: list[Finding],
    causes: pl.DataFrame,
    check: pl.DataFrame,
    rejected: pl.DataFrame,
    ingested: Ingested | None,
) -> Report:
    window = _window(calls)
    weeks = window["days"] / 7 if window["days"] else 1.0
    tokens_ = {name: int(priced[name].sum()) for name in ("uncached", "read", "output")}
    tokens_ |= {"input": int(priced["input_total"].sum()), "write": int(priced.select(pl.sum_horizontal(_WRITES)).sum().item())}
    told = [_finding(finding, weeks) for finding in findings]
    return {
        "schema_version": SCHEMA_VERSION,
        "window": window,
        "calls": _call_counts(priced, ingested, rejected),
        "tokens": tokens_,
        "hit_rate": tokens_["read"] / tokens_["input"] if tokens_["input"] else None,
        "spend_usd": _spend(priced),
        "by": _by(priced),
        "findings": told,
        "recoverable_usd": _recoverable(told),
        "causes": causes.to_dicts(),
        "model_check": check.to_dicts(),
        "unpriced_models": _unpriced(priced),
        "quarantine": rejected.to_dicts(),
    }


def _window(calls: pl.DataFrame) -> dict[str, Any]:
    """First and last call; ``days`` is at least one, so that a short file is not blown up to a week of the same."""
    if not calls.height:
        return {"from": None, "to": None, "days": 0}
    first, last = calls["started_at"].min(), calls["started_at"].max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    days = max((last - first) / timedelta(days=1), 1.0)
    return {"from": f"{first.isoformat()}Z", "to": f"{last.isoformat()}Z", "days": round(days, 3)}


def _call_counts(priced: pl.DataFrame, ingested: Ingested | None, rejected: pl.DataFrame) -> dict[str, int]:
    missing = priced["usage_state"] == "missing"
    unpriced = priced["rate_uncached"].is_null()
    return {
        "total": priced.height,
        "priced": int((~missing & ~unpriced).sum()),
        "unpriced": int((~missing & unpriced).sum()),
        "usage_missing": int(missing.sum()),
        "usage_partial": int((priced["usage_state"] == "partial").sum()),
        "with_prompt": int(priced["prompt_known"].sum()),
        "duplicates": ingested.duplicates if ingested else 0,
        "quarantined": rejected.height,
    }


def _spend(priced: pl.DataFrame) -> dict[str, float]:
    spent, output, without = (_usd(priced[name].sum()) for name in ("usd_input", "usd_output", "usd_without_cache"))
    return {
        "total": _number(spent + output),
        "input": _number(spent),
        "output": _number(output),
        "input_without_cache": _number(without),
        "net_cache_savings": _number(without - spent),
    }


def _by(priced: pl.DataFrame) -> list[dict[str, Any]]:
    usd = pl.col("usd_input") + pl.col("usd_output")
    rows = priced.group_by("service", "provider", "model").agg(
        calls=pl.len(),
        input=pl.col("input_total").sum(),
        read=pl.col("read").sum(),
        write=pl.sum_horizontal(pl.col(name).sum() for name in _WRITES),
        output=pl.col("output").sum(),
        usd=pl.when(usd.is_not_null().any()).then(usd.sum()),
    )
    ordered = rows.sort("usd", "service", "provider", "model", descending=[True, False, False, False], nulls_last=True)
    return [row | {"usd": None if row["usd"] is None else _number(row["usd"])} for row in ordered.to_dicts()]


def _unpriced(priced: pl.DataFrame) -> list[dict[str, Any]]:
    rows = priced.filter(pl.col("rate_uncached").is_null() & (pl.col("usage_state") != "missing"))
    return rows.group_by("provider", "model").agg(calls=pl.len()).sort("calls", descending=True).to_dicts()


def _finding(finding: Finding, weeks: float) -> dict[str, Any]:
    low, high = finding.saving
    return {
        "id": finding.id,
        "cause": finding.cause,
        "service": finding.service,
        "provider": finding.provider,
        "model": finding.model,
        "calls": finding.calls,
        "family_calls": finding.family_calls,
        "missed_tokens": finding.missed_tokens,
        "confidence": finding.confidence,
        "saving_usd": {"low": round(low, 10), "high": round(high, 10)},
        "saving_usd_per_week": {"low": round(low / weeks, 10), "high": round(high / weeks, 10)},
        "fix": {"action": finding.action, "text": finding.fix},
        "headline": finding.headline,
        "evidence": dict(finding.evidence),
        "formula": [dict(row) for row in finding.formula],
        "examples": list(finding.examples),
    }


def _usd(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value or 0)


def _number(value: Decimal) -> float:
    return float(round(value, 10))
