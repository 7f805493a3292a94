"""What a page is asked for: the filters of the sidebar, which are part of the address, so that a view is a link."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.dashboard import text

ALL: Final = "all"
_KEYS: Final = ("week", "provider", "model", "service", "min_usd")


@dataclass(frozen=True, slots=True)
class Filters:
    """None = everything. ``week`` is a Monday."""

    week: date | None = None
    provider: str | None = None
    model: str | None = None
    service: str | None = None
    min_usd: float = 0.0  # a week

    def names(self) -> Mapping[str, str | None]:
        """The parameters of a query over all time."""
        return {"service": self.service, "provider": self.provider, "model": self.model}

    def over_time(self) -> Mapping[str, Any]:
        """The parameters of a query that shows all weeks."""
        return {"since": None, "until": None, **self.names()}

    def in_week(self) -> Mapping[str, Any]:
        """The parameters of a query that is bound to the week."""
        until = self.week + timedelta(days=7) if self.week else None
        return {"since": self.week, "until": until, **self.names()}

    def is_of(self, finding: Mapping[str, Any]) -> bool:
        """Whether a finding is of the service, provider and model that were asked for."""
        return all(value is None or finding[name] == value for name, value in self.names().items())

    def fits(self, finding: Mapping[str, Any]) -> bool:
        """Whether it is one of them, and worth enough."""
        return self.is_of(finding) and finding["saving_usd_per_week"]["high"] >= self.min_usd


def weeks(scopes: pl.DataFrame) -> list[date]:
    """The Mondays of the weeks that hold calls, newest first."""
    if scopes.is_empty():
        return []
    first, last = (
        _monday(scopes[name].min() if name == "first_day" else scopes[name].max()) for name in ("first_day", "last_day")
    )
    return [last - timedelta(weeks=n) for n in range((last - first).days // 7 + 1)]


def _monday(day: Any) -> date:
    assert isinstance(day, date)
    return day - timedelta(days=day.weekday())


def sidebar(scopes: pl.DataFrame, *, disabled: bool = False) -> Filters:
    """Draws the filters and returns what they are set to. ``disabled``: the page looks at calls of its own."""
    known = [monday.isoformat() for monday in weeks(scopes)]
    with st.sidebar:
        week = st.selectbox(
            "Week from Monday (UTC)",
            [*known, ALL],
            key="week",
            bind="query-params",
            disabled=disabled,
        )
        service, provider, model = (
            _one_of(name, scopes[name].unique().sort().to_list(), disabled=disabled)
            for name in ("service", "provider", "model")
        )
        least = st.number_input(
            "Smallest finding, $ a week",
            min_value=0.0,
            step=0.1,
            format="%.2f",
            key="min_usd",
            bind="query-params",
            disabled=disabled,
        )
    chosen = date.fromisoformat(week) if week in known else None
    return Filters(chosen, provider, model, service, float(least or 0.0))


def _one_of(key: str, names: Sequence[str], *, disabled: bool) -> str | None:
    return st.selectbox(
        key.capitalize(),
        names,
        index=None,
        placeholder="All",
        format_func=_shown,
        key=key,
        bind="query-params",
        disabled=disabled,
    )


def _shown(name: str) -> str:
    return text.cell(name) or "(none)"
