"""Prices of a whole frame of calls: the same as one by one, in the same order, exact through Polars and DuckDB."""

from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any

import duckdb
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixscope.analyzer.prices.call_rates import MONEY, RATE_COLUMNS, cost, rate_calls
from prefixscope.analyzer.prices.money import BUCKETS, PriceBook

BOOK = PriceBook()
SCHEMA: dict[str, Any] = {
    "provider": pl.String,
    "model": pl.String,
    "started_at": pl.Datetime("us"),
    "tier": pl.String,
    "speed": pl.String,
    "geo": pl.String,
    "input_total": pl.Int64,
}
NAMED = [
    ("anthropic", "claude-sonnet-4-5-20250929"),  # a size threshold
    ("anthropic", "claude-sonnet-5-5"),  # an overlay day
    ("anthropic", "claude-haiku-5-5"),
    ("openai", "gpt-5.6-sol"),  # a dated price, tiers
    ("deepseek", "deepseek-v4-flash"),  # hours, days and weekends
    ("deepseek", "deepseek-chat"),  # half hours
    ("google", "gemini-4-argon"),
    ("openrouter", "deepseek/deepseek-v4-flash"),
    ("infron", "deepseek/deepseek-v4-flash"),
    ("vllm", "anything"),
    (None, None),
]
# the moments and sizes where prices change, and their neighbours
DAYS = [
    "2026-08-17",
    "2026-08-22",
    "2026-08-23",
    "2026-08-21",
    "2026-10-07",
    "2026-10-14",
    "2026-11-28",
    "2026-11-30",
    "2026-12-01",
]
CLOCKS = ["00:00:00", "00:29:59.999999", "00:30:00", "00:59:59", "01:00:00", "03:59:59", "06:00:00", "10:00:00"]
SIZES = [0, 1, 99_999, 100_000, 100_001, 200_000, 200_001, 272_000, 272_001, None]

MOMENTS = st.one_of(
    st.none(),
    st.datetimes(datetime.fromisoformat("2026-07-01"), datetime.fromisoformat("2026-12-31")),
    st.builds(
        lambda day, clock: datetime.fromisoformat(f"{day}T{clock}"), st.sampled_from(DAYS), st.sampled_from(CLOCKS)
    ),
)
CALLS = st.tuples(
    st.sampled_from(NAMED),
    MOMENTS,
    st.sampled_from(["", "default", "flex", "batch", None]),
    st.sampled_from(["", "fast", None]),
    st.sampled_from(["", "us", None]),
    st.sampled_from(SIZES),
).map(lambda call: (*call[0], *call[1:]))


@settings(max_examples=40)
@given(st.lists(CALLS, max_size=60))
def test_a_frame_is_priced_as_its_calls_are(calls: list[tuple[Any, ...]]) -> None:
    """Bands never merge two calls that have different prices, and the rows keep their order."""
    frame = pl.DataFrame(calls, schema=SCHEMA, orient="row")
    rated = rate_calls(frame, BOOK)
    assert rated.select(frame.columns).equals(frame)
    for row in rated.iter_rows(named=True):
        assert [row[column] for column in (*RATE_COLUMNS, "rate_source")] == _one_by_one(row)


def test_every_edge_of_every_price_is_a_band_of_its_own() -> None:
    """All models at all moments and sizes around which a price changes, in one frame: some 30,000 calls."""
    moments = [datetime.fromisoformat(f"{day}T{clock}") for day in DAYS for clock in CLOCKS]
    grid = product(NAMED, moments, ["", "batch"], ["us", ""], SIZES)
    calls = [(*named, at, tier, "", geo, size) for named, at, tier, geo, size in grid]
    rated = rate_calls(pl.DataFrame(calls, schema=SCHEMA, orient="row"), BOOK)
    for row in rated.iter_rows(named=True):
        assert [row[column] for column in (*RATE_COLUMNS, "rate_source")] == _one_by_one(row)


def _one_by_one(row: dict[str, Any]) -> list[Any]:
    served = {name: row[name] or "" for name in ("tier", "speed", "geo")}
    at, size = row["started_at"], row["input_total"] or 0
    rates = at and BOOK.rates(row["provider"] or "", row["model"] or "", at, **served, input_total=size)
    return [getattr(rates, name) for name in (*BUCKETS, "source")] if rates else [None] * 9


def test_an_empty_frame_has_the_columns_too() -> None:
    """No calls, no error; rates are decimals of fifteen places."""
    rated = rate_calls(pl.DataFrame(schema=SCHEMA))
    assert rated.height == 0
    assert [rated.schema[column] for column in RATE_COLUMNS] == [MONEY] * 8
    assert rated.schema["rate_as_of"] == pl.Date


def _billed() -> pl.DataFrame:
    start = datetime.fromisoformat("2026-11-02")
    rows = [
        (*NAMED[i % 3], start + timedelta(hours=i), "", "", "", 1000 * i + 7 * i + 3, 1000 * i, 7 * i, 3, 11)
        for i in range(400)
    ]
    names = {**SCHEMA, "read": pl.Int64, "write_5m": pl.Int64, "uncached": pl.Int64, "output": pl.Int64}
    return rate_calls(pl.DataFrame(rows, schema=names, orient="row"), BOOK)


def test_money_is_exact_in_polars_and_in_duckdb() -> None:
    """Tokens times rates keep all fifteen places, in products and in sums."""
    billed = _billed()
    buckets = ("uncached", "read", "write_5m", "output")
    exact = sum(
        (row[bucket] * row[f"rate_{bucket}"] for row in billed.iter_rows(named=True) for bucket in buckets), Decimal(0)
    )
    assert exact > 0
    assert billed.select(cost(buckets).sum()).item() == exact
    terms = " + ".join(f'"{bucket}" * rate_{bucket}' for bucket in buckets)
    with duckdb.connect() as connection:
        connection.register("billed", billed)
        assert connection.sql(f"SELECT sum({terms}) FROM billed").fetchall() == [(exact,)]


def test_the_cost_of_an_unpriced_call_is_unknown() -> None:
    """Null, not zero."""
    frame = pl.DataFrame(
        [("vllm", "m", datetime.fromisoformat("2026-11-02"), "", "", "", 5)], schema=SCHEMA, orient="row"
    )
    rated = rate_calls(frame, BOOK).with_columns(uncached=pl.lit(5), output=pl.lit(0))
    assert rated.select(cost(("uncached", "output"))).item() is None
