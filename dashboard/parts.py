"""Pieces that several pages draw."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import altair as alt
import polars as pl
import streamlit as st

from prefixscope.dashboard import text
from prefixscope.dashboard.palette import Layered
from prefixscope.dashboard.weekly import Delta


def metric(  # noqa: PLR0913 - what a metric shows
    label: str,
    value: str,
    delta: Delta | None,
    spark: Sequence[float] = (),
    *,
    good: Literal["up", "down"] = "up",
    help: str | None = None,  # noqa: A002 - Streamlit's name for it
) -> None:
    """A figure with its change against the week before and its daily trend."""
    change = delta.change if delta else None
    st.metric(
        text.literal(label),
        text.literal(value),
        change,
        delta_color="normal" if good == "up" else "inverse",
        delta_description=text.literal(delta.against) if delta and change else None,
        chart_data=list(spark) if len(spark) > 1 else None,
        chart_type="area",
        border=True,
        height="stretch",
        help=help,
    )


@contextmanager
def card(title: str, caption: str = "") -> Iterator[None]:
    """A bordered box with a heading. Both texts are ours, never a trace's."""
    with st.container(border=True, height="stretch"):
        below = f"  \n:gray[:small[{text.literal(caption)}]]" if caption else ""
        st.markdown(f"**{text.literal(title)}**{below}")
        yield


def chart_or(rows: pl.DataFrame, draw: Callable[[], alt.Chart | Layered], nothing: str, told: str) -> None:
    """The chart, or why there is none."""
    if rows.is_empty():
        st.text(nothing)
    else:
        st.altair_chart(draw(), alt=told)


def findings_table(shown: pl.DataFrame, *, key: str, selectable: bool = False) -> list[str]:
    """Findings, dearest first; a row's button opens it. Returns the ids of selected rows."""
    if shown.is_empty():
        st.text("No finding fits these filters.")
        return []
    event = st.dataframe(
        shown.with_columns(open=pl.lit(":material/open_in_new: Open")),
        hide_index=True,
        column_order=_COLUMNS,
        column_config=_columns(key, float(shown["usd_per_week"].max() or 0)),  # type: ignore[arg-type]
        on_select="rerun" if selectable else "ignore",
        selection_mode="multi-row",
        key=f"{key}_table",
        alt="Findings with what each is worth a week",
    )
    click = st.session_state.get(f"{key}_open")
    if click:
        open_finding(shown["id"][click["row"]])
    rows = event["selection"]["rows"] if isinstance(event, dict) else []
    return shown["id"][rows].to_list()


_COLUMNS = (
    *("open", "status", "usd_per_week", "range", "cause", "service", "model", "confidence", "headline"),
    *("effort", "owner", "due", "first_seen", "trend"),
)


def _columns(key: str, dearest: float) -> dict[str, Any]:
    column, confidence = st.column_config, "A: the provider says so; B: usage and prompt agree; C: usage alone"
    return {
        "open": column.ButtonColumn("", key=f"{key}_open", type="tertiary", width=84),
        "status": column.TextColumn("Status", width=80),
        "usd_per_week": column.ProgressColumn(
            "$ a week", format="$%.2f", min_value=0.0, max_value=dearest or 1.0, width=120, color="primary"
        ),
        "range": column.TextColumn("Range", width=95),
        "cause": column.TextColumn("Cause", width=125),
        "service": column.TextColumn("Service", width=135),
        "model": column.TextColumn("Model", width=185),
        "confidence": column.TextColumn("Conf.", width=50, help=confidence),
        "headline": column.TextColumn("Evidence", width="large"),
        "effort": column.TextColumn("Effort", width="small"),
        "owner": column.TextColumn("Owner", width="small"),
        "due": column.TextColumn("Due", width="small"),
        "first_seen": column.DatetimeColumn("First seen", format="D MMM YYYY", width="small"),
        "trend": column.LineChartColumn("Trend", width="small", help="$ a week in each analysis"),
    }


def open_finding(id_: str) -> None:
    """Goes to a finding's own page, filters and all."""
    st.switch_page("app_pages/finding.py", query_params={**st.query_params.to_dict(), "finding": id_})


def from_address(label: str, key: str, options: Sequence[str], format_func: Callable[[str], str]) -> str:
    """One of ``options``, as the address says. Binding a widget would put its label there instead of its value."""
    wanted = st.query_params.get(key, "")
    index = options.index(wanted) if wanted in options else 0
    chosen = st.selectbox(label, options, index=index, format_func=format_func)
    if chosen != wanted:
        st.query_params[key] = chosen
    return chosen


def lines(pairs: Sequence[tuple[str, str]]) -> None:
    """Names and values under each other; values may come from outside."""
    frame = pl.DataFrame({"name": [name for name, _ in pairs], "value": [value for _, value in pairs]})
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        column_config={
            "name": st.column_config.TextColumn("What", width=180),
            "value": st.column_config.TextColumn("Found", width="large"),
        },
        alt="Names and values",
    )


def numbers(columns: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Column settings for numbers: column -> (label, format)."""
    return {name: st.column_config.NumberColumn(label, format=form) for name, (label, form) in columns.items()}


def ingests(found: pl.DataFrame, *, last: bool = False) -> None:
    """Files that were read; ``last``: only those of the last time."""
    shown = found.filter(pl.col("ingest") == pl.col("ingest").max()) if last else found
    if shown.is_empty():
        st.text("No file was read.")
        return
    st.dataframe(
        named(shown, "file"),
        hide_index=True,
        column_order=["file", "read_at", "calls", "rejected"],
        column_config={
            "file": "File",
            "read_at": st.column_config.DatetimeColumn("Read at (UTC)", format="D MMM YYYY HH:mm"),
        }
        | numbers({"calls": ("Calls in it", "%,d"), "rejected": ("Rejected", "%,d")}),
        alt="Files that were read",
    )


def quarantine(found: pl.DataFrame) -> None:
    """What could not be read, with file, line and reason; nothing where all could."""
    if found.is_empty():
        return
    with st.expander(text.literal(f"{found.height:,} rejected: file, line, reason"), expanded=found.height <= 20):
        st.dataframe(
            named(found, "file", "reason"),
            hide_index=True,
            column_config={
                "file": st.column_config.TextColumn("File", width=180),
                "line": st.column_config.NumberColumn("Line", format="%d", width=60),
                "reason": st.column_config.TextColumn("Reason", width="large"),
            },
            alt="What could not be read",
        )


def named(found: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Names as cells that no spreadsheet runs."""
    return found.with_columns(pl.col(*columns).map_elements(text.cell, return_dtype=pl.String))
