"""EXPORT: costs as FOCUS 1.2 rows (FinOps Open Cost and Usage Specification), for the tools that FinOps has already.

Grain: a UTC day, service, provider, account, region, model, tier, price and cache action. Costs are list prices times
tokens, not an invoice: calls without usage or price are left out and told. Columns beside the specification begin with
``x_``. Source: https://focus.finops.org/focus-specification/v1-2/
"""

import io
import json
from collections.abc import Mapping
from typing import IO, Final

import polars as pl

from prefixscope.analyzer.audit import Selection, with_costs
from prefixscope.analyzer.report.csv_table import safe_cell
from prefixscope.analyzer.store import Store

_ACTIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "uncached": ("uncached", "", "Input tokens"),
    "read": ("read", "", "Input tokens read from cache"),
    "write_5m": ("write", "5m", "Input tokens written to cache for 5 minutes"),
    "write_30m": ("write", "30m", "Input tokens written to cache for 30 minutes"),
    "write_1h": ("write", "1h", "Input tokens written to cache for 1 hour"),
    "write_12h": ("write", "12h", "Input tokens written to cache for 12 hours"),
    "write_unknown": ("write", "", "Input tokens written to cache"),
    "output": ("output", "", "Output tokens"),
}
"""Bucket -> cache action, its time to live, and what the meter counts."""
_BY: Final = ("day", "service", "provider", "account", "region", "model", "tier")
COLUMNS: Final = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingAccountType", "BillingCurrency"),
    *("BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription"),
    *("ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity", "ConsumedUnit"),
    *("ContractedCost", "ContractedUnitPrice", "EffectiveCost", "InvoiceIssuerName", "ListCost", "ListUnitPrice"),
    *("PricingCategory", "PricingQuantity", "PricingUnit", "ProviderName", "PublisherName", "RegionId", "RegionName"),
    *("ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId", "SkuMeter", "SkuPriceId", "Tags"),
    *("x_CacheAction", "x_CacheTtl", "x_Calls", "x_CostIfUncached", "x_Model", "x_PriceSource", "x_Service"),
)


def csv(store: Store, selection: Selection) -> str:
    """The export as one text."""
    out = io.StringIO()
    write(rows(store, selection)[0], out)
    return out.getvalue()


def rows(store: Store, selection: Selection) -> tuple[pl.DataFrame, Mapping[str, int]]:
    """FOCUS rows (``COLUMNS``; costs and prices are Decimal), and calls that have none: no usage, no price."""
    chosen = {"service": selection.service, "since": selection.since, "until": selection.until}
    calls = with_costs(store.frame("analysis/calls", **chosen)).with_columns(day=pl.col("started_at").dt.truncate("1d"))
    unknown = pl.col("usage_state") == "missing"
    left_out = {
        "without usage": int(calls.select(unknown.sum()).item()),
        "without a known price": int(calls.select((~unknown & pl.col("rate_uncached").is_null()).sum()).item()),
    }
    priced = calls.filter(~unknown & pl.col("rate_uncached").is_not_null())
    parts = [_of_bucket(priced, bucket) for bucket in _ACTIONS]
    return pl.concat(parts).sort("ChargePeriodStart", "x_Service", "SkuPriceId", "ListUnitPrice"), left_out


def _of_bucket(calls: pl.DataFrame, bucket: str) -> pl.DataFrame:
    """The rows of one cache action."""
    action, ttl, meter = _ACTIONS[bucket]
    by = [*_BY, f"rate_{bucket}", "rate_source"]
    money = pl.Decimal(38, 15)
    alone = pl.col(f"rate_{bucket}") if bucket == "output" else pl.col("rate_uncached")
    sums = (
        calls.filter(pl.col(bucket) > 0)
        .group_by(by)
        .agg(tokens=pl.col(bucket).sum(), calls=pl.len(), if_uncached=(pl.col(bucket) * alone).sum())
    )
    cost = (pl.col("tokens") * pl.col(f"rate_{bucket}")).cast(money)
    account = pl.when(pl.col("account") == "").then(pl.lit("unknown")).otherwise("account")
    region = pl.when(pl.col("region") != "").then("region")
    sku = pl.concat_str("provider", "model", separator="/")
    tier = pl.when(pl.col("tier") == "").then(pl.lit("standard")).otherwise("tier")
    month = pl.col("day").dt.month_start()
    named = {
        "BilledCost": cost,
        "BillingAccountId": account,
        "BillingAccountName": account,
        "BillingAccountType": pl.lit("API account"),
        "BillingCurrency": pl.lit("USD"),
        "BillingPeriodEnd": month.dt.offset_by("1mo"),
        "BillingPeriodStart": month,
        "ChargeCategory": pl.lit("Usage"),
        "ChargeClass": pl.lit(None, pl.String),
        "ChargeDescription": pl.format("{} of {} at list price, estimated from usage", pl.lit(meter), "model"),
        "ChargeFrequency": pl.lit("Usage-Based"),
        "ChargePeriodEnd": pl.col("day").dt.offset_by("1d"),
        "ChargePeriodStart": pl.col("day"),
        "ConsumedQuantity": pl.col("tokens"),
        "ConsumedUnit": pl.lit("Tokens"),
        "ContractedCost": cost,
        "ContractedUnitPrice": pl.col(f"rate_{bucket}"),
        "EffectiveCost": cost,
        "InvoiceIssuerName": pl.col("provider"),
        "ListCost": cost,
        "ListUnitPrice": pl.col(f"rate_{bucket}"),
        "PricingCategory": pl.lit("Standard"),
        "PricingQuantity": pl.col("tokens"),
        "PricingUnit": pl.lit("Tokens"),
        "ProviderName": pl.col("provider"),
        "PublisherName": pl.col("provider"),
        "RegionId": region,
        "RegionName": region,
        "ServiceCategory": pl.lit("AI and Machine Learning"),
        "ServiceName": pl.format("{} API", "provider"),
        "ServiceSubcategory": pl.lit("Generative AI"),
        "SkuId": sku,
        "SkuMeter": pl.lit(meter),
        "SkuPriceId": pl.concat_str(sku, tier, pl.lit(bucket), separator="/"),
        "Tags": pl.col("service").map_elements(_tags, return_dtype=pl.String),
        "x_CacheAction": pl.lit(action),
        "x_CacheTtl": pl.lit(ttl or None, pl.String),
        "x_Calls": pl.col("calls"),
        "x_CostIfUncached": pl.col("if_uncached").cast(money),
        "x_Model": pl.col("model"),
        "x_PriceSource": pl.col("rate_source"),
        "x_Service": pl.col("service"),
    }
    return sums.select(**{name: named[name] for name in COLUMNS})


def _tags(service: str) -> str:
    return json.dumps({"service.name": service}, ensure_ascii=False)


def write(exported: pl.DataFrame, out: IO[str]) -> None:
    """As CSV: times in ISO 8601 UTC, and no text that a spreadsheet would run."""
    texts = pl.selectors.string().map_elements(safe_cell, return_dtype=pl.String)
    out.write(exported.with_columns(texts).write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ"))
