"""What can be explored: measures, and the dimensions that they are spread over."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.dashboard import data, text
from prefixscope.dashboard.filters import Filters

DIMENSIONS: Final = ("service", "provider", "model", "cause", "day", "week")
NOTHING_MISSED: Final = "nothing missed"


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of a cell, made from its sums."""

    label: str
    value: pl.Expr
    format: str  # d3's, for the chart
    note: str = ""


MEASURES: Final = {
    "Spend": Measure("Spend, $", pl.col("usd"), "$,.2f", "Calls without a known price are in no dollar figure"),
    "Missed": Measure("Missed, $", pl.col("usd_missed"), "$,.2f", "What reading the missed tokens would have saved"),
    "Prompt tokens": Measure("Prompt tokens", pl.col("input"), ".3~s"),
    "Hit rate": Measure(
        "Hit rate",
        pl.when(pl.col("reported_input") > 0).then(pl.col("reported_read") / pl.col("reported_input")),
        ".0%",
        "Share of prompt tokens read from cache, of calls that say how much was read",
    ),
    "Calls": Measure("Calls", pl.col("calls"), ",.0f"),
    "First token": Measure("Time to first token, ms", pl.col("median_ms"), ",.0f", "Median"),
}


def chosen() -> Measure:
    """The measure of the address."""
    key = st.selectbox("Measure", list(MEASURES), key="measure", bind="query-params", width=210)
    return MEASURES[key]


def dimension(label: str, key: str, default: str) -> str:
    """A dimension of the address."""
    return st.selectbox(label, DIMENSIONS, index=DIMENSIONS.index(default), key=key, bind="query-params", width=160)


def grid(measure: Measure, across: str, down: str, asked: Filters) -> pl.DataFrame:
    """The measure by two dimensions. Columns: across, down, value (float), calls."""
    query = "pages/explore_first_tokens" if measure is MEASURES["First token"] else "pages/explore"
    found = data.frame(query, across=across, down=down, **asked.in_week())
    return found.select("across", "down", "calls", value=measure.value.cast(pl.Float64)).drop_nulls("value")


def pick(name: str, found: pl.DataFrame, side: str) -> str | None:
    """One value of a dimension, to look at its calls; None = all of them."""
    options = found[side].unique().sort().to_list()
    return st.selectbox(
        name.capitalize(),
        options,
        index=None,
        placeholder="All",
        format_func=text.cell,
        key=f"pick_{side}_{name}",
        width=260,
    )


def narrowed(picked: Mapping[str, str | None]) -> dict[str, Any]:
    """Parameters of ``pages/calls`` for the picked values."""
    found: dict[str, Any] = {}
    for name, value in picked.items():
        if value is None:
            continue
        if name in {"day", "week"}:
            first = date.fromisoformat(value)
            found |= {"since": first, "until": first + timedelta(days=1 if name == "day" else 7)}
        elif name == "cause":
            found["cause"] = "" if value == NOTHING_MISSED else value
        else:
            found[name] = value
    return found
