"""The week's figures and what they are compared with."""

from datetime import date, timedelta
from typing import Any

import polars as pl
import pytest

from prefixscope.dashboard import filters, weekly

MONDAY = date(2026, 11, 16)
COLUMNS = ("calls", "usage_missing", "unpriced", "reported_input", "reported_read")


def days(count: int, first: date, **values: Any) -> pl.DataFrame:
    """``count`` days like each other."""
    row = {
        **dict.fromkeys(COLUMNS, 0),
        "usd_input": 1.0,
        "usd_output": 0.5,
        "usd_without_cache": 2.0,
        "usd_claimed": 0.2,
        "calls": 10,
        **values,
    }
    return pl.DataFrame([{"day": first + timedelta(days=n), **row} for n in range(count)])


def test_a_week_is_summed() -> None:
    """Monday to Sunday, and nothing beside."""
    found = weekly.sums(days(21, MONDAY - timedelta(days=7), reported_input=100, reported_read=40), MONDAY)
    assert (found.days, found.calls) == (7, 70)
    assert found.spend == pytest.approx(10.5)
    assert found.net_savings == pytest.approx(7.0)
    assert found.read_share == 0.4


def test_whole_weeks_are_compared_as_they_are() -> None:
    """Twice the spend is +100 %."""
    found = pl.concat([days(7, MONDAY - timedelta(days=7)), days(7, MONDAY, usd_input=2.0, usd_output=1.0)])
    assert weekly.changes(found, MONDAY)["spend"] == weekly.Delta("+100.0%", "w/w")


def test_a_part_of_a_week_is_compared_by_day() -> None:
    """Three days of the week before are no fall to less than half."""
    found = days(10, MONDAY - timedelta(days=3))
    assert weekly.changes(found, MONDAY)["spend"] == weekly.Delta("+0.0%", "w/w, per day")


def test_the_first_week_has_nothing_to_compare_with() -> None:
    """No change is shown, rather than one against nothing; nor over all weeks."""
    assert weekly.changes(days(7, MONDAY), MONDAY) == {}
    assert weekly.changes(days(14, MONDAY), None) == {}


def test_unpriced_days_are_unknown_not_zero() -> None:
    """No call has a price: no dollars."""
    unpriced = dict.fromkeys(("usd_input", "usd_output", "usd_without_cache"))
    found = weekly.sums(days(7, MONDAY, **unpriced).with_columns(pl.col(list(unpriced)).cast(pl.Float64)), MONDAY)
    assert found.spend is None
    assert found.net_savings is None


def test_sparks_end_with_the_week() -> None:
    """Four weeks of days at most; values to come are not drawn."""
    found = days(60, MONDAY - timedelta(days=50))
    sparks = weekly.sparks(found, MONDAY)
    assert {len(values) for values in sparks.values()} == {28}
    assert len(weekly.sparks(found, MONDAY - timedelta(days=49))["spend"]) == 8


@pytest.mark.parametrize(("count", "unit"), [(1, "day"), (35, "day"), (36, "week"), (400, "week")])
def test_charts_show_days_while_they_can_be_told_apart(count: int, unit: str) -> None:
    """Up to five weeks."""
    assert weekly.unit_for(days(count, MONDAY)) == unit


def test_weeks_are_listed_newest_first() -> None:
    """By their Mondays, also those without a call in between."""
    scopes = pl.DataFrame({"first_day": [MONDAY - timedelta(days=5)], "last_day": [MONDAY + timedelta(days=6)]})
    assert filters.weeks(scopes) == [MONDAY, MONDAY - timedelta(days=7)]
    assert filters.weeks(scopes.clear()) == []
