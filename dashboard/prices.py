"""The price list as far as a store's models need it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.analyzer.prices.money import PriceBook, Rates
from prefixscope.dashboard import text

SHOWN: Final = {
    "uncached": "Uncached",
    "read": "Read",
    "write_5m": "Write 5 min",
    "write_1h": "Write 1 h",
    "output": "Output",
}
_SCHEMA: Final[dict[str, Any]] = {
    "provider": pl.String,
    "model": pl.String,
    **dict.fromkeys(SHOWN, pl.Float64),
    "source": pl.String,
    "as_of": pl.Date,
}


@st.cache_resource
def book() -> PriceBook:
    """One for all sessions: it only reads and remembers what it found."""
    return PriceBook()


def table(scopes: pl.DataFrame) -> pl.DataFrame:
    """Rates of every model of ``pages/scopes``, USD per million tokens, on its last day of data."""
    models = scopes.group_by("provider", "model").agg(pl.col("last_day").max()).sort("provider", "model")
    return pl.DataFrame([_row(row) for row in models.iter_rows(named=True)], schema=_SCHEMA)


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    at = datetime.combine(row["last_day"], datetime.min.time(), UTC)
    rates = book().rates(row["provider"], row["model"], at)
    names = {"provider": text.cell(row["provider"]), "model": text.cell(row["model"])}
    return names | (_of(rates) if rates else {"source": "no price is known"})


def _of(rates: Rates) -> dict[str, Any]:
    usd = {name: float(1_000_000 * getattr(rates, name)) for name in SHOWN}
    return {**usd, "source": text.cell(rates.source), "as_of": rates.as_of}
