"""The figures of one week beside those of the week before: sums of daily sums, nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import polars as pl

from prefixscope.dashboard import text

_WEEK = timedelta(days=7)
_SPARK_DAYS = 28


@dataclass(frozen=True, slots=True)
class Sums:
    """Figures of a span of days. Dollars are None where no call of it has a price."""

    days: int  # calendar days of the span that lie within the data
    calls: int
    usage_missing: int
    unpriced: int
    spend: float | None
    net_savings: float | None  # what the input would have cost uncached, less what it cost
    read_share: float | None  # of the prompt tokens of calls that say how much was read


@dataclass(frozen=True, slots=True)
class Delta:
    """A change against the week before, in words, and what it is measured by."""

    change: str | None
    against: str


def sums(days: pl.DataFrame, week: date | None) -> Sums:
    """Sums over the week, over everything where it is None. ``days`` is ``pages/days`` over all time."""
    chosen = _within(days, week)
    row = chosen.select(
        pl.col("calls", "usage_missing", "unpriced", "reported_input", "reported_read").sum(),
        spend=_usd("usd_input") + _usd("usd_output"),
        net=_usd("usd_without_cache") - _usd("usd_input"),
    ).row(0, named=True)
    return Sums(
        days=_covered(days, week),
        calls=row["calls"],
        usage_missing=row["usage_missing"],
        unpriced=row["unpriced"],
        spend=row["spend"],
        net_savings=row["net"],
        read_share=row["reported_read"] / row["reported_input"] if row["reported_input"] else None,
    )


def changes(days: pl.DataFrame, week: date | None) -> Mapping[str, Delta]:
    """Changes against the week before; amounts by day where either week is not whole in the data."""
    if week is None:
        return {}
    now, before = sums(days, week), sums(days, week - _WEEK)
    if not before.calls or not now.calls:
        return {}
    whole = now.days == before.days == 7
    against = "w/w" if whole else "w/w, per day"
    return {
        "spend": Delta(text.percent_change(_daily(now.spend, now), _daily(before.spend, before)), against),
        "net_savings": Delta(
            text.percent_change(_daily(now.net_savings, now), _daily(before.net_savings, before)), against
        ),
        "read_share": Delta(text.points(now.read_share, before.read_share), "w/w"),
        "usage_missing": Delta(
            text.points(now.usage_missing / now.calls, before.usage_missing / before.calls), "w/w, of all calls"
        ),
    }


def sparks(days: pl.DataFrame, week: date | None) -> Mapping[str, list[float]]:
    """Daily values of the four weeks up to the end of the week, for sparklines; days without calls are none."""
    until = week + _WEEK if week else None
    recent = (days if until is None else days.filter(pl.col("day") < until)).tail(_SPARK_DAYS)
    share = pl.when(pl.col("reported_input") > 0).then(pl.col("reported_read") / pl.col("reported_input"))
    shown = recent.select(
        spend=pl.sum_horizontal("usd_input", "usd_output"),
        recoverable="usd_claimed",
        net_savings=(pl.col("usd_without_cache") - pl.col("usd_input")).fill_null(0.0),
        read_share=share.fill_null(strategy="forward").fill_null(0.0),
        usage_missing=pl.col("usage_missing").cast(pl.Float64),
    )
    return {name: shown[name].to_list() for name in shown.columns}


def by_unit(days: pl.DataFrame, unit: str) -> pl.DataFrame:
    """A column ``at``: the day, or the Monday of its week."""
    return days.with_columns(at=pl.col("day") if unit == "day" else pl.col("day").dt.truncate("1w"))


def unit_for(days: pl.DataFrame) -> str:
    """``day`` for up to five weeks of data, ``week`` beyond."""
    return "day" if days.is_empty() or _span(days) <= 35 else "week"


def _usd(name: str) -> pl.Expr:
    return pl.when(pl.col(name).is_not_null().any()).then(pl.col(name).sum())


def _daily(amount: float | None, found: Sums) -> float | None:
    return None if amount is None or not found.days else amount / found.days


def _within(days: pl.DataFrame, week: date | None) -> pl.DataFrame:
    return days if week is None else days.filter(pl.col("day").is_between(week, week + _WEEK, closed="left"))


def _span(days: pl.DataFrame) -> int:
    first, last = days["day"].min(), days["day"].max()
    assert isinstance(first, date)
    assert isinstance(last, date)
    return (last - first).days + 1


def _covered(days: pl.DataFrame, week: date | None) -> int:
    """Calendar days of the week between the first and the last day with calls."""
    if days.is_empty():
        return 0
    if week is None:
        return _span(days)
    first, last = days["day"].min(), days["day"].max()
    assert isinstance(first, date)
    assert isinstance(last, date)
    return max((min(last, week + timedelta(days=6)) - max(first, week)).days + 1, 0)
