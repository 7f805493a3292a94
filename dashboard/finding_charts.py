"""Charts of one finding."""

from typing import Any, Final

import altair as alt
import polars as pl

from prefixscope.dashboard.palette import GRID, LEAK, READ, UNCACHED, Layered, at, cause_colours, legend, time_axis

STRIP_COLOURS: Final = {
    "Same prefix": READ,
    "Break": LEAK,
    "Differs": "#E3A6B0",
    "Same text, stranded": "#E0A33A",
    "New at the end": "#C5CEDA",
}


def calls_by_cause(days: pl.DataFrame) -> alt.Chart:
    """Stacked bars of calls of one family. Columns: at (day), cause ("" = nothing was missed), calls."""
    order = sorted(days["cause"].unique().to_list(), key=lambda name: (name == "", name))
    known, colours = cause_colours([name for name in order if name])
    names = [*known, "Nothing missed"]
    shown = dict(zip(order, known + (["Nothing missed"] if "" in order else []), strict=True))
    named = days.with_columns(cause=pl.col("cause").replace_strict(shown, return_dtype=pl.String))
    return (
        alt.Chart(named)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=time_axis(),
            y=alt.Y("sum(calls):Q", title="Calls", axis=alt.Axis(format="~s", tickMinStep=1, **GRID)),
            color=alt.Color("cause:N", scale=alt.Scale(domain=names, range=[*colours, READ]), legend=legend()),
            tooltip=[
                at("day"),
                alt.Tooltip("cause:N", title="Cause"),
                alt.Tooltip("sum(calls):Q", title="Calls", format=","),
            ],
        )
        .properties(height=290)
    )


def pauses(bins: pl.DataFrame, lifetime_s: float | None) -> Layered:
    """Calls by the pause before them, and the lifetime. Columns: upto_s (right edge), label, calls, alive (bool)."""
    named = bins.with_columns(kind=pl.when("alive").then(pl.lit("Within the lifetime")).otherwise(pl.lit("After it")))
    order = bins["label"].to_list()
    colours = alt.Scale(domain=["Within the lifetime", "After it"], range=[READ, LEAK])
    chart = (
        alt.Chart(named)
        .mark_bar(cornerRadiusEnd=3)
        .encode(
            x=alt.X(
                "label:N",
                sort=order,
                title="Pause since the call before",
                axis=alt.Axis(labelAngle=0, domain=False, ticks=False),
            ),
            y=alt.Y("calls:Q", title="Calls", axis=alt.Axis(format="~s", tickMinStep=1, **GRID)),
            color=alt.Color("kind:N", scale=colours, legend=legend()) if lifetime_s else alt.value(UNCACHED),
            tooltip=[alt.Tooltip("label:N", title="Pause"), alt.Tooltip("calls:Q", title="Calls", format=",")],
        )
    )
    return alt.layer(chart).properties(height=290)


def strips(blocks: pl.DataFrame, breaks_at: float | None) -> Layered:
    """Prompts as strips over each other. Columns: call, begin, end, bytes, what, place, kind, id."""
    order = blocks["call"].unique(maintain_order=True).to_list()
    present = set(blocks["what"].to_list())
    domain = [name for name in STRIP_COLOURS if name in present]
    bars = (
        alt.Chart(blocks)
        .mark_bar(height=34, stroke="white", strokeWidth=0.6, strokeOpacity=0.6)
        .encode(
            x=alt.X(
                "begin:Q",
                title="Bytes from the start of the prompt",
                axis=alt.Axis(format="~s", tickCount=10, **GRID),
                scale=alt.Scale(nice=False),
            ),
            x2="end:Q",
            y=alt.Y(
                "call:N",
                title=None,
                sort=order,
                axis=alt.Axis(domain=False, ticks=False, labelLimit=170),
                scale=alt.Scale(paddingInner=0.35),
            ),
            color=alt.Color(
                "what:N",
                scale=alt.Scale(domain=domain, range=[STRIP_COLOURS[name] for name in domain]),
                sort=domain,
                legend=legend(),
            ),
            tooltip=[
                alt.Tooltip("what:N", title="Compared with the other call"),
                alt.Tooltip("place:N", title="Where"),
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("begin:Q", title="From byte", format=","),
                alt.Tooltip("bytes:Q", title="Bytes", format=","),
                alt.Tooltip("id:N", title="Hash"),
            ],
        )
    )
    layers: list[Any] = [bars]
    if breaks_at is not None:
        mark = alt.Chart(pl.DataFrame({"at": [breaks_at], "label": [f"first break, byte {breaks_at:,.0f}"]}))
        layers += [
            mark.mark_rule(color=LEAK, strokeWidth=2, strokeDash=[4, 3]).encode(x="at:Q"),
            mark.mark_text(color=LEAK, align="left", dx=5, dy=-6, baseline="bottom", fontWeight="bold").encode(
                x="at:Q", y=alt.value(0), text="label:N"
            ),
        ]
    return alt.layer(*layers).properties(height=62 * len(order) + 120)
