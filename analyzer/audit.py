"""From a store to a report: runs the stages in their order."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl

from prefixscope.analyzer import baseline, savings, traffic, unclaimed
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.causes import agreement, explain
from prefixscope.analyzer.findings import Finding, find
from prefixscope.analyzer.prices.call_rates import cost, rate_calls
from prefixscope.analyzer.report import data
from prefixscope.analyzer.report.data import Report, Results
from prefixscope.analyzer.store import Ingested, Store
from prefixscope.analyzer.traffic import INPUT_BUCKETS, Traffic, model_name


@dataclass(frozen=True, slots=True)
class Selection:
    """Which calls to analyse; None = all. Times are UTC without a zone, ``until`` exclusive."""

    service: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis leaves behind."""

    report: Report  # ``report.data`` tells its keys
    explained: pl.DataFrame  # a row a call, columns of the store's table explained_calls


def analyse(store: Store, selection: Selection, ingested: Ingested | None = None) -> Analysis:
    """Analyses the selected calls."""
    chosen = {"service": selection.service, "since": selection.since, "until": selection.until}
    calls = store.frame("analysis/calls", **chosen)
    priced = with_costs(calls)
    rejected = store.frame("analysis/quarantine")
    if not calls.height:
        return Analysis(data.build(data.nothing(priced), rejected, ingested), _explained(priced))
    contents = contents_of(store.arrow("analysis/contents"))
    loaded = traffic.load(calls, store.arrow("analysis/prompts", **chosen), contents)
    results = run(loaded, priced)
    return Analysis(data.build(results, rejected, ingested), _explained(results.calls))


def run(loaded: Traffic, priced: pl.DataFrame) -> Results:
    """EXPLAIN, PRICE and RECOMMEND: ``priced`` (``with_costs``) gets the columns of the table explained_calls."""
    counted, grouped, inferred = baseline.counted(loaded)
    base = baseline.of(counted, grouped)
    plan = savings.plan(base, priced)
    causes = explain(base, plan)
    check = baseline.achieved_rate(base)
    found = find(base, plan, check)
    explained = priced.with_columns(
        family=pl.Series(grouped.names()),
        cause=pl.Series(causes.cause.astype(str)),
        claimed=pl.Series(causes.claimed),
        finding=pl.Series(_finding_of_call(found, len(loaded))),
        missed_tokens=pl.Series(causes.missed),
        predicted_read=pl.Series(base.outcome.read),
        marker_inferred=pl.Series(inferred.astype(np.bool_)),
    )
    quiet = unclaimed.find(base, causes, plan, priced)
    return Results(explained, found, quiet, check, agreement(base.traffic, causes))


def _finding_of_call(found: Sequence[Finding], calls: int) -> list[str]:
    """The id of the dearest finding that a call belongs to, "" where there is none."""
    ids = np.full(calls, "", dtype=object)
    for finding in reversed(found):
        ids[finding.hit] = finding.id
    return list(ids)


def _explained(calls: pl.DataFrame) -> pl.DataFrame:
    """The columns of the table explained_calls."""
    dearer = pl.col("rate_uncached") - pl.col("rate_read")
    usd = pl.selectors.starts_with("usd_").cast(pl.Decimal(28, 12))
    if "cause" not in calls.columns:
        return pl.DataFrame(schema={"call_id": pl.String})
    return calls.with_columns(usd_missed=pl.col("missed_tokens").round().cast(pl.Int64) * dearer).select(
        "call_id", "family", "cause", "claimed", "finding", "missed_tokens", "predicted_read", "marker_inferred", usd
    )


def with_costs(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls with their rates and, where usage and price are known, usd_input, usd_output and usd_without_cache.

    ``model`` becomes the model that served the call. usd_without_cache is what the input would have cost uncached.
    """
    named = calls.with_columns(model=model_name(), input_total=pl.sum_horizontal(INPUT_BUCKETS))
    known = pl.col("usage_state") != "missing"
    return rate_calls(named).with_columns(
        usd_input=pl.when(known).then(cost(INPUT_BUCKETS)),
        usd_output=pl.when(known).then(cost(["output"])),
        usd_without_cache=pl.when(known).then(pl.col("input_total") * pl.col("rate_uncached")),
    )
