"""Rates for a whole frame of calls: each distinct price is looked up once, then joined on.

Calls are cut at the days, hours and input sizes at which the price of some model among them changes, as the price list
and the overlay say: calls of one provider, model, tier, speed and geo between the same cuts have one price.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

import polars as pl

from prefixscope.analyzer.prices.money import BUCKETS, PriceBook, Rates

MONEY: Final = pl.Decimal(38, 15)  # USD per token; int64 tokens times this keep the scale, in Polars and in DuckDB
RATE_COLUMNS: Final = tuple(f"rate_{bucket}" for bucket in BUCKETS)

_KEYS: Final = ("provider", "model", "tier", "speed", "geo")
_BANDS: Final = ("_day", "_clock", "_size")
_SCHEMA: Final[dict[str, Any]] = {**dict.fromkeys(RATE_COLUMNS, MONEY), "rate_source": pl.String, "rate_as_of": pl.Date}
_QUANTUM: Final = Decimal(1).scaleb(-15)


def rate_calls(calls: pl.DataFrame, book: PriceBook | None = None) -> pl.DataFrame:
    """The same rows in the same order with the price of their tokens beside them.

    Args:
        calls: columns ``provider``, ``model`` (served, else requested), ``started_at`` (datetime, UTC), ``tier``,
            ``speed``, ``geo`` and ``input_total`` (all input tokens); others are passed through. Nulls are as good as
            "" and 0, but a call without a time is unpriced.
        book: where prices come from; the packaged one by default.

    Returns:
        ``calls`` plus ``rate_uncached``, ``rate_read``, ``rate_write_5m``, ``rate_write_30m``, ``rate_write_1h``,
        ``rate_write_12h``, ``rate_write_unknown``, ``rate_output`` (Decimal(38, 15), USD per token), ``rate_source``
        (String) and ``rate_as_of`` (Date); all of them null where the call is unpriced.
    """
    book = book or PriceBook()
    names = calls.select(_text("provider"), _text("model")).unique().iter_rows()
    banded = calls.with_columns(_cuts(book, names).bands())
    by = [*_KEYS, *_BANDS]
    distinct = banded.group_by(by).agg(pl.col("started_at", "input_total").first())
    rated = pl.DataFrame(
        [_row(_rates(book, key)) for key in distinct.iter_rows(named=True)], schema=_SCHEMA, orient="row"
    )
    priced = distinct.select(by).hstack(rated)
    return banded.join(priced, on=by, how="left", nulls_equal=True, maintain_order="left").drop(_BANDS)


def cost(buckets: Iterable[str] = BUCKETS) -> pl.Expr:
    """USD of a call, Decimal(38, 15): token columns named as the buckets times the rate columns; null if unpriced."""
    return pl.sum_horizontal([pl.col(b) * pl.col(f"rate_{b}") for b in buckets], ignore_nulls=False)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where some price changes: UTC days, seconds of the UTC day, and input sizes in tokens (exclusive)."""

    days: frozenset[date]
    seconds: frozenset[int]
    sizes: frozenset[int]
    weekends: bool

    def bands(self) -> list[pl.Expr]:
        """The band of each call along each axis. Calls alike in all bands and keys have one price."""
        started, size = pl.col("started_at"), pl.col("input_total").fill_null(0)
        clock = started.dt.hour().cast(pl.Int32) * 3600 + started.dt.minute().cast(pl.Int32) * 60 + started.dt.second()
        day = _band(started.dt.date(), sorted(self.days))
        weekend = (started.dt.weekday() > 5).cast(pl.Int16) if self.weekends else pl.lit(0, pl.Int16)
        return [
            (day * 2 + weekend).alias("_day"),
            _band(clock, sorted(self.seconds)).alias("_clock"),
            _band(size, [cut + 1 for cut in sorted(self.sizes)]).alias("_size"),
        ]


def _band(value: pl.Expr, starts: list[Any]) -> pl.Expr:
    """How many of the starts the value has reached; a null value has a band of its own."""
    reached = [(value >= start).cast(pl.Int16) for start in starts]
    return pl.sum_horizontal([value.is_not_null().cast(pl.Int16), *(flag.fill_null(0) for flag in reached)])


def _cuts(book: PriceBook, names: Iterable[tuple[str, str]]) -> Cuts:
    entries = {entry for provider, model in names if (entry := book.entry(provider, model))}
    marks = [mark for entry in entries for mark in _marks(entry.listed)]
    peaks = [peak for entry in entries if (peak := book.overlay.peak(entry.provider, entry.name))]
    return Cuts(
        days=frozenset(mark for mark in marks if isinstance(mark, date)) | book.overlay.days(),
        seconds=frozenset(_seconds(mark) for mark in marks if isinstance(mark, time))
        | {hour * 3600 for peak in peaks for hours in peak.hours for hour in hours},
        sizes=frozenset(mark for mark in marks if isinstance(mark, int)),
        weekends=bool(peaks),
    )


def _marks(model: Any) -> Iterator[date | time | int]:
    """Days, times and sizes in one genai-prices ModelInfo, from its conditions and its tiers."""
    dated = model.prices if isinstance(model.prices, list) else []
    variants = model.price_variants or []
    for condition in (row.constraint for row in (*dated, *variants) if row.constraint is not None):
        if hasattr(condition, "start_date"):
            yield condition.start_date
        else:
            yield from (condition.start_time, condition.end_time)
    plain = [] if isinstance(model.prices, list) else [model.prices]
    for price in (*plain, *(row.prices for row in (*dated, *variants))):
        for value in vars(price).values():
            yield from (tier.start for tier in getattr(value, "tiers", ()))


def _seconds(mark: time) -> int:
    offset = mark.utcoffset()
    shift = int(offset.total_seconds()) if offset else 0
    return (mark.hour * 3600 + mark.minute * 60 + mark.second - shift) % 86400


def _rates(book: PriceBook, key: dict[str, Any]) -> Rates | None:
    at: datetime | None = key["started_at"]
    if at is None:
        return None
    served = {name: key[name] or "" for name in ("tier", "speed", "geo")}
    return book.rates(key["provider"] or "", key["model"] or "", at, **served, input_total=key["input_total"] or 0)


def _row(rates: Rates | None) -> tuple[Any, ...]:
    if rates is None:
        return (None,) * len(_SCHEMA)
    return (*(getattr(rates, bucket).quantize(_QUANTUM) for bucket in BUCKETS), rates.source, rates.as_of)


def _text(column: str) -> pl.Expr:
    return pl.col(column).fill_null("")
