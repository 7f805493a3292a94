"""The report as plain data, schema version 2: what every format shows and nobody computes again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import polars as pl

from prefixscope.analyzer.causes import VERDICTS, verdict
from prefixscope.analyzer.findings import Finding
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.prices import storage
from prefixscope.analyzer.savings import Option
from prefixscope.analyzer.store import Ingested
from prefixscope.analyzer.traffic import WRITE_BUCKETS
from prefixscope.analyzer.unclaimed import Unclaimed

SCHEMA_VERSION: Final = 2
Report = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """What an analysis found: what a report is made from."""

    calls: pl.DataFrame  # priced calls with the columns of the table explained_calls
    findings: Sequence[Finding]
    unclaimed: Sequence[Unclaimed]
    check: pl.DataFrame  # ``baseline.achieved_rate``
    diagnosis: pl.DataFrame  # ``causes.agreement``


def nothing(calls: pl.DataFrame) -> Results:
    """The results on calls that were not analysed."""
    return Results(calls, (), (), pl.DataFrame(), pl.DataFrame())


def build(results: Results, rejected: pl.DataFrame, ingested: Ingested | None) -> Report:
    """Sums up what was found.

    Keys: schema_version, window, calls, tokens, hit_rate, spend_usd, by, findings, recoverable_usd, not_claimed,
    causes, model_check, provider_diagnosis, stored_prefixes, unpriced_models, quarantine. Dollars are floats rounded
    to 1e-10, exact sums behind them.
    """
    calls = results.calls
    window = _window(calls)
    weeks = window["days"] / 7 if window["days"] else 1.0
    told = [_finding(finding, weeks) for finding in results.findings]
    return {
        "schema_version": SCHEMA_VERSION,
        "window": window,
        "calls": _call_counts(calls, ingested, rejected),
        "tokens": _tokens(calls),
        "hit_rate": _hit_rate(calls),
        "spend_usd": _spend(calls),
        "by": _by(calls),
        "findings": told,
        "recoverable_usd": _recoverable(told),
        "not_claimed": [_unclaimed(item, weeks) for item in results.unclaimed],
        "causes": _causes(calls) if calls.height else [],
        "model_check": results.check.to_dicts(),
        "provider_diagnosis": results.diagnosis.to_dicts(),
        "stored_prefixes": storage.of_calls(calls).to_dicts(),
        "unpriced_models": _unpriced(calls),
        "quarantine": rejected.to_dicts(),
    }


def without_small(report: Report, usd: float) -> Report:
    """The report without findings worth less than ``usd``; what is recoverable is the sum of those that stay."""
    kept = [finding for finding in report["findings"] if finding["saving_usd"]["high"] >= usd]
    return {**report, "findings": kept, "recoverable_usd": _recoverable(kept)}


def _recoverable(findings: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {end: round(sum(finding["saving_usd"][end] for finding in findings), 10) for end in ("low", "high")}


def _window(calls: pl.DataFrame) -> dict[str, Any]:
    """First and last call; ``days`` is at least one, so that a short file is not blown up to a week of the same."""
    if not calls.height:
        return {"from": None, "to": None, "days": 0}
    first, last = calls["started_at"].min(), calls["started_at"].max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    days = max((last - first) / timedelta(days=1), 1.0)
    return {"from": f"{first.isoformat()}Z", "to": f"{last.isoformat()}Z", "days": round(days, 3)}


def _tokens(calls: pl.DataFrame) -> dict[str, int]:
    found = {name: int(calls[name].sum()) for name in ("uncached", "read", "output")}
    return found | {
        "input": int(calls["input_total"].sum()),
        "write": int(calls.select(pl.sum_horizontal(WRITE_BUCKETS).sum()).item()),
    }


def _hit_rate(calls: pl.DataFrame) -> float | None:
    """Tokens read over input tokens, of the calls that say how much was read; None where none does."""
    known = calls.filter(pl.col("usage_state") == "reported")
    total = int(known["input_total"].sum())
    return int(known["read"].sum()) / total if total else None


def _call_counts(calls: pl.DataFrame, ingested: Ingested | None, rejected: pl.DataFrame) -> dict[str, int]:
    missing = calls["usage_state"] == "missing"
    unpriced = calls["rate_uncached"].is_null()
    return {
        "total": calls.height,
        "priced": int((~missing & ~unpriced).sum()),
        "unpriced": int((~missing & unpriced).sum()),
        "usage_missing": int(missing.sum()),
        "usage_partial": int((calls["usage_state"] == "partial").sum()),
        "with_prompt": int(calls["prompt_known"].sum()),
        "markers_inferred": int(calls["marker_inferred"].sum()) if "marker_inferred" in calls.columns else 0,
        "fingerprint_keys": calls.filter(pl.col("key_id") != "")["key_id"].n_unique(),
        "duplicates": ingested.duplicates if ingested else 0,
        "quarantined": rejected.height,
    }


def _spend(calls: pl.DataFrame) -> dict[str, float]:
    spent, output, without = (_usd(calls[name].sum()) for name in ("usd_input", "usd_output", "usd_without_cache"))
    return {
        "total": _number(spent + output),
        "input": _number(spent),
        "output": _number(output),
        "input_without_cache": _number(without),
        "net_cache_savings": _number(without - spent),
    }


def _by(calls: pl.DataFrame) -> list[dict[str, Any]]:
    usd = pl.col("usd_input") + pl.col("usd_output")
    rows = calls.group_by("service", "provider", "model").agg(
        calls=pl.len(),
        input=pl.col("input_total").sum(),
        read=pl.col("read").sum(),
        write=pl.sum_horizontal(pl.col(name).sum() for name in WRITE_BUCKETS),
        output=pl.col("output").sum(),
        usd=pl.when(usd.is_not_null().any()).then(usd.sum()),
    )
    ordered = rows.sort("usd", "service", "provider", "model", descending=[True, False, False, False], nulls_last=True)
    return [row | {"usd": None if row["usd"] is None else _number(row["usd"])} for row in ordered.to_dicts()]


def _causes(calls: pl.DataFrame) -> list[dict[str, Any]]:
    """Calls, missed tokens and what reading those would have saved, by cause; ``claimed``: a finding gets them."""
    dearer = (pl.col("rate_uncached") - pl.col("rate_read")).cast(pl.Float64)
    missed = pl.col("missed_tokens")
    sums = (
        calls.filter(pl.col("cause") != "")
        .group_by("cause", "claimed")
        .agg(calls=pl.len(), missed_tokens=missed.sum().round(), usd_at_stake=(missed * dearer).sum().round(10))
    )
    rows = sums.sort("missed_tokens", "cause", descending=[True, False]).to_dicts()
    return [row | {"verdict": verdict(row["cause"], claimed=row["claimed"])} for row in rows]


def _unpriced(calls: pl.DataFrame) -> list[dict[str, Any]]:
    rows = calls.filter(pl.col("rate_uncached").is_null() & (pl.col("usage_state") != "missing"))
    counted = rows.group_by("provider", "model").agg(calls=pl.len())
    return counted.sort("calls", "provider", "model", descending=[True, False, False]).to_dicts()


def _finding(finding: Finding, weeks: float) -> dict[str, Any]:
    low, high = finding.saving
    return {
        "id": finding.id,
        "cause": finding.cause,
        "verdict": VERDICTS[finding.cause],
        "service": finding.service,
        "provider": finding.provider,
        "model": finding.model,
        "calls": finding.calls,
        "family_calls": finding.family_calls,
        "missed_tokens": finding.missed_tokens,
        "confidence": finding.confidence,
        "saving_usd": {"low": round(low, 10), "high": round(high, 10)},
        "saving_usd_per_week": {"low": round(low / weeks, 10), "high": round(high / weeks, 10)},
        "fix": {"action": finding.action, "text": finding.fix, "effort": finding.effort, "risk": finding.risk},
        "options": [_option(option, weeks) for option in finding.options],
        "headline": finding.headline,
        "evidence": dict(finding.evidence),
        "formula": [dict(row) for row in finding.formula],
        "examples": list(finding.examples),
    }


def _option(option: Option, weeks: float) -> dict[str, Any]:
    """One of the ways that were tried; a premium is what writes cost more, or less where negative."""
    fix = FIXES[option.fix]
    return {
        "action": option.fix,
        "saving_usd": round(option.saved, 10),
        "saving_usd_per_week": round(option.saved / weeks, 10),
        "write_premium_usd": round(option.premium, 10),
        "effort": fix.effort,
        "risk": fix.risk,
    }


def _unclaimed(item: Unclaimed, weeks: float) -> dict[str, Any]:
    return {
        "id": item.id,
        "cause": item.cause,
        "verdict": item.verdict,
        "service": item.service,
        "provider": item.provider,
        "model": item.model,
        "calls": item.calls,
        "family_calls": item.family_calls,
        "missed_tokens": item.missed_tokens,
        "usd_at_stake": round(item.usd_at_stake, 10),
        "headline": item.headline,
        "evidence": dict(item.evidence),
        "tried": [_option(option, weeks) for option in item.tried],
        "examples": list(item.examples),
    }


def _usd(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else Decimal(value or 0)


def _number(value: Decimal) -> float:
    return float(round(value, 10))
