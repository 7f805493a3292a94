"""Stored prefixes (Gemini's cachedContents): what they saved, and what it cost at least to make and keep them.

No call says when a prefix was stored or how long it was kept. It was there from the first call that names it to the
last, so that is the least that was paid for; nothing of it is in the spend, which is what the calls themselves cost.
"""

from datetime import datetime

import polars as pl

from prefixscope.analyzer.prices.overlay import overlay
from prefixscope.analyzer.traffic import model_name

_KEY = ("provider", "model", "account", "region", "cached_content")
COLUMNS = (
    "services", "provider", "model", "cached_content", "calls", "tokens", "hours", "usd_per_million_hours",
    "storage_usd", "creation_usd", "saved_usd", "net_usd",
)  # fmt: skip


def of_calls(calls: pl.DataFrame) -> pl.DataFrame:
    """One row for each stored prefix, the dearest to keep first.

    Columns: ``COLUMNS``. ``tokens``: the least that a call read of it; ``hours``: from the first call to the last;
    dollars are null where a price is not known; storage is priced as on the day of the last call. ``net_usd`` is what
    was saved less creation and storage, at most.

    Args:
        calls: priced calls (``audit.with_costs``).
    """
    named = calls.filter((pl.col("cached_content") != "") & (pl.col("read") > 0)).with_columns(model=model_name())
    found = named.group_by(_KEY).agg(
        services=pl.col("service").unique().sort().str.join(", "),
        calls=pl.len(),
        tokens=pl.col("read").min(),
        last=pl.col("started_at").max(),
        hours=(pl.col("started_at").max() - pl.col("started_at").min()).dt.total_seconds() / 3600,
        rate=pl.col("rate_uncached").cast(pl.Float64).drop_nulls().first(),
        saved_usd=(pl.col("read") * (pl.col("rate_uncached") - pl.col("rate_read")).cast(pl.Float64)).sum(),
    )
    prices = [_price(*row) for row in found.select("provider", "model", "last").iter_rows()]
    found = found.with_columns(usd_per_million_hours=pl.Series(prices, dtype=pl.Float64))
    storage = pl.col("tokens") * pl.col("hours") * pl.col("usd_per_million_hours") / 1e6
    found = found.with_columns(
        storage_usd=storage,
        creation_usd=pl.col("tokens") * pl.col("rate"),
        saved_usd=pl.when(pl.col("rate").is_not_null()).then("saved_usd"),
    )
    net = pl.col("saved_usd") - pl.col("storage_usd") - pl.col("creation_usd")
    return found.with_columns(net_usd=net).sort("storage_usd", *_KEY, descending=True, nulls_last=True).select(COLUMNS)


def _price(provider: str, model: str, on: datetime) -> float | None:
    """USD for a million tokens and hour; None where it is not known."""
    row = overlay().storage(provider, model, on.date())
    return float(row.usd) if row else None
