"""Charts of the review pages. Frames come in from the store."""

import altair as alt
import polars as pl

from prefixscope.dashboard import text
from prefixscope.dashboard.palette import (
    GRID,
    HEIGHT,
    NOT_CLAIMED,
    READ,
    UNCACHED,
    WRITTEN,
    Layered,
    at,
    cause_colours,
    dollars,
    ink,
    legend,
    time_axis,
)


def tokens_by_bucket(days: pl.DataFrame, unit: str) -> alt.Chart:
    """Stacked bars of prompt tokens. ``days`` has a column ``at`` (date), and read, write, uncached."""
    long = days.unpivot(["read", "write", "uncached"], index="at", variable_name="bucket", value_name="tokens")
    long = long.with_columns(
        bucket=pl.col("bucket").replace_strict(text.BUCKETS),
        rank=pl.col("bucket").replace_strict({"read": 0, "write": 1, "uncached": 2}),
    )
    scale = alt.Scale(domain=list(text.BUCKETS.values()), range=[READ, WRITTEN, UNCACHED])
    return (
        alt.Chart(long)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=time_axis(),
            y=alt.Y("sum(tokens):Q", title="Prompt tokens", axis=alt.Axis(format="~s", **GRID)),
            color=alt.Color("bucket:N", scale=scale, sort=list(text.BUCKETS.values()), legend=legend()),
            order=alt.Order("rank:Q"),
            tooltip=[
                at(unit),
                alt.Tooltip("bucket:N", title="Tokens"),
                alt.Tooltip("sum(tokens):Q", title="Count", format=","),
            ],
        )
        .properties(height=HEIGHT)
    )


def dollars_by_cause(days: pl.DataFrame, unit: str) -> alt.Chart:
    """Stacked bars of what reading the missed tokens would have saved. Columns: at, cause, usd."""
    order = days.group_by("cause").agg(pl.col("usd").sum()).sort("usd", descending=True)["cause"].to_list()
    order.sort(key=lambda name: name == NOT_CLAIMED)
    names, colours = cause_colours(order)
    largest = max(days.group_by("at").agg(pl.col("usd").sum())["usd"].to_list(), default=0.0)
    named = days.with_columns(
        cause=pl.col("cause").replace_strict(dict(zip(order, names, strict=True)), return_dtype=pl.String),
        rank=pl.col("cause").replace_strict({name: n for n, name in enumerate(order)}, return_dtype=pl.Int64),
    )
    return (
        alt.Chart(named)
        .mark_bar(cornerRadiusEnd=2)
        .encode(
            x=time_axis(),
            y=alt.Y("sum(usd):Q", title="Missed, $", axis=alt.Axis(format=dollars(largest), tickCount=5, **GRID)),
            color=alt.Color("cause:N", scale=alt.Scale(domain=names, range=colours), sort=names, legend=legend(2)),
            order=alt.Order("rank:Q"),
            tooltip=[
                at(unit),
                alt.Tooltip("cause:N", title="Cause"),
                alt.Tooltip("sum(usd):Q", title="Missed", format="$,.4f"),
            ],
        )
        .properties(height=HEIGHT)
    )


def hit_rates(days: pl.DataFrame, unit: str) -> alt.Chart:
    """Share of prompt tokens read, a row a service, a cell a day or week. Columns: at, service, input, read."""
    shares = days.with_columns(share=pl.col("read") / pl.col("input"))
    order = days.group_by("service").agg(pl.col("input").sum()).sort("input", descending=True)["service"].to_list()
    return (
        alt.Chart(shares)
        .mark_rect(cornerRadius=2)
        .encode(
            x=time_axis(),
            y=alt.Y(
                "service:N",
                title=None,
                sort=order,
                axis=alt.Axis(domain=False, ticks=False, labelLimit=150),
                scale=alt.Scale(paddingInner=0.12),
            ),
            color=alt.Color(
                "share:Q",
                scale=alt.Scale(
                    domain=[0, 0.5, 1], range=["rgba(143,160,181,0.28)", "rgba(63,168,147,0.75)", "rgba(14,124,112,1)"]
                ),
                legend=alt.Legend(
                    title=None, format=".0%", orient="top", gradientLength=140, gradientThickness=8, values=[0, 0.5, 1]
                ),
            ),
            tooltip=[
                alt.Tooltip("service:N", title="Service"),
                at(unit),
                alt.Tooltip("share:Q", title="Read from cache", format=".1%"),
                alt.Tooltip("input:Q", title="Prompt tokens", format=","),
            ],
        )
        .properties(height=26 * len(order) + 100)
    )


def first_tokens(rows: pl.DataFrame) -> Layered:
    """Median time to first token of each service with and without a cache read. Columns: as ``pages/first_tokens``."""
    named = rows.with_columns(kind=pl.when("hit").then(pl.lit("Read from cache")).otherwise(pl.lit("Nothing read")))
    order = rows.group_by("service").agg(pl.col("calls").sum()).sort("calls", descending=True)["service"].to_list()
    y = alt.Y(
        "service:N",
        title=None,
        sort=order,
        axis=alt.Axis(domain=False, ticks=False, labelLimit=150, labelOverlap=False, grid=True, gridOpacity=0.4),
    )
    base = alt.Chart(named)
    line = base.mark_rule(strokeWidth=2, opacity=0.6, color=UNCACHED).encode(
        y=y, x="min(median_ms):Q", x2="max(median_ms):Q"
    )
    points = base.mark_circle(size=110, opacity=1).encode(
        y=y,
        x=alt.X(
            "median_ms:Q",
            title="Median time to first token, ms",
            scale=alt.Scale(zero=True),
            axis=alt.Axis(format=",.0f", tickCount=6, **GRID),
        ),
        color=alt.Color(
            "kind:N",
            scale=alt.Scale(domain=["Read from cache", "Nothing read"], range=[READ, UNCACHED]),
            legend=legend(),
        ),
        tooltip=[
            alt.Tooltip("service:N", title="Service"),
            alt.Tooltip("kind:N", title="Calls"),
            alt.Tooltip("calls:Q", title="How many", format=","),
            alt.Tooltip("median_ms:Q", title="Median, ms", format=",.0f"),
            alt.Tooltip("p90_ms:Q", title="90th percentile, ms", format=",.0f"),
        ],
    )
    return alt.layer(line, points).properties(height=26 * len(order) + 100)


def ledger(stages: pl.DataFrame) -> Layered:
    """Stages of a saving as bars with their ranges. Columns: stage, low, estimate, high."""
    order = stages["stage"].to_list()
    largest = float(stages["high"].max() or 0)  # type: ignore[arg-type]
    y = alt.Y("stage:N", sort=order, title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=160))
    colours = alt.Scale(domain=order, range=[UNCACHED, "#4F6D8F", WRITTEN, READ])
    told = [
        alt.Tooltip("stage:N", title="Stage"),
        *(alt.Tooltip(f"{end}:Q", title=end, format="$,.4f") for end in ("low", "estimate", "high")),
    ]
    base = alt.Chart(stages)
    bars = base.mark_bar(height=22, cornerRadiusEnd=3).encode(
        x=alt.X("estimate:Q", title="$ a week", axis=alt.Axis(format=dollars(largest), tickCount=6, **GRID)),
        y=y,
        color=alt.Color("stage:N", scale=colours, legend=None),
        tooltip=told,
    )
    spans = base.mark_rule(strokeWidth=2, color=ink(), opacity=0.6).encode(x="low:Q", x2="high:Q", y=y, tooltip=told)
    return alt.layer(bars, spans).properties(height=44 * len(order) + 70)


def matrix(cells: pl.DataFrame, form: str) -> Layered:
    """A measure by two dimensions: colour and figure of each cell. Columns: across, down, value, calls."""
    rows, columns = cells["down"].n_unique(), cells["across"].n_unique()
    told = [
        alt.Tooltip("down:N", title="Row"),
        alt.Tooltip("across:N", title="Column"),
        alt.Tooltip("value:Q", title="Value", format=form),
        alt.Tooltip("calls:Q", title="Calls", format=","),
    ]
    base = alt.Chart(cells).encode(
        x=alt.X(
            "across:N",
            title=None,
            axis=alt.Axis(
                orient="top", labelAngle=0 if columns <= 12 else -45, labelLimit=120, domain=False, ticks=False
            ),
        ),
        y=alt.Y("down:N", title=None, axis=alt.Axis(domain=False, ticks=False, labelLimit=170)),
        tooltip=told,
    )
    colours = alt.Scale(range=["rgba(42,127,158,0.08)", "rgba(42,127,158,0.85)"])
    marks = base.mark_rect(cornerRadius=3, stroke="rgba(127,127,127,0.12)").encode(
        color=alt.Color("value:Q", scale=colours, legend=None)
    )
    if columns > 16:
        return alt.layer(marks).properties(height=30 * rows + 70)
    half = float(cells["value"].max() or 0) / 2  # type: ignore[arg-type]
    figures = base.mark_text(fontSize=11.5).encode(
        text=alt.Text("value:Q", format=form),
        color=alt.condition(alt.datum.value > half, alt.value("#FFFFFF"), alt.value(ink())),
    )
    return alt.layer(marks, figures).properties(height=30 * rows + 70)
