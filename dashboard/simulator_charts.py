"""Charts of the simulator."""

from collections.abc import Mapping
from textwrap import fill
from typing import Final

import altair as alt
import polars as pl

from prefixscope.dashboard import text
from prefixscope.dashboard.palette import GRID, HEIGHT, LEAK, READ, UNCACHED, WRITTEN, Layered, dollars, ink, legend

_BUCKET_COLOURS: Final = {
    "Read from cache": READ,
    "Written, 5 min": WRITTEN,
    "Written, 30 min": "#D08F2A",
    "Written, 1 h": "#B9751B",
    "Written, 12 h": "#96590F",
    "Uncached": UNCACHED,
}


_BUCKET_NAMES: Final = dict(
    zip(("read", "write_5m", "write_30m", "write_1h", "write_12h", "uncached"), _BUCKET_COLOURS, strict=True)
)


def waterfall(steps: pl.DataFrame, spent: float) -> Layered:
    """Spend, what each fix takes from it, and the rest. Columns: fix, saved, before, after."""
    rest = spent - float(steps["saved"].sum())
    rows = [
        {"name": "Input now", "low": 0.0, "high": spent, "kind": "Spend", "usd": spent},
        *(
            {
                "name": fill(text.fix(row["fix"]), 13),
                "low": row["after"],
                "high": row["before"],
                "kind": "Saved",
                "usd": row["saved"],
            }
            for row in steps.iter_rows(named=True)
        ),
        {"name": "With fixes", "low": 0.0, "high": rest, "kind": "Spend", "usd": rest},
    ]
    order = [str(row["name"]) for row in rows]
    base = alt.Chart(pl.DataFrame(rows)).encode(
        x=alt.X(
            "name:N",
            sort=order,
            title=None,
            axis=alt.Axis(
                labelAngle=0, labelExpr="split(datum.label, '\\n')", labelOverlap=False, domain=False, ticks=False
            ),
        ),
        tooltip=[alt.Tooltip("name:N", title="Step"), alt.Tooltip("usd:Q", title="$", format="$,.4f")],
    )
    bars = base.mark_bar(cornerRadius=3).encode(
        y=alt.Y("low:Q", title="$ in the window", axis=alt.Axis(format=dollars(spent), tickCount=5, **GRID)),
        y2="high:Q",
        color=alt.Color("kind:N", scale=alt.Scale(domain=["Spend", "Saved"], range=[UNCACHED, READ]), legend=None),
    )
    figures = base.mark_text(dy=-8, fontSize=12, color=ink()).encode(
        y="high:Q", text=alt.Text("usd:Q", format=dollars(spent))
    )
    return alt.layer(bars, figures).properties(height=HEIGHT)


def two_bills(now: Mapping[str, float | None], then: Mapping[str, float | None]) -> alt.Chart:
    """Prompt tokens by bucket, now and under other rules."""
    rows = [
        {"side": side, "bucket": name, "tokens": found[key] or 0.0, "rank": rank}
        for side, found in (("Now", now), ("Under these rules", then))
        for rank, (key, name) in enumerate(_BUCKET_NAMES.items())
    ]
    y = alt.Y(
        "side:N",
        sort=["Now", "Under these rules"],
        title=None,
        axis=alt.Axis(domain=False, ticks=False, labelLimit=150),
    )
    return (
        _stacked(alt.Chart(pl.DataFrame(rows)).mark_bar(height=26))
        .encode(x=alt.X("sum(tokens):Q", title="Prompt tokens", axis=alt.Axis(format="~s", tickCount=6, **GRID)), y=y)
        .properties(height=250)
    )


def session_tokens(turns: pl.DataFrame) -> alt.Chart:
    """Prompt tokens of each turn by bucket."""
    long = turns.unpivot(list(_BUCKET_NAMES), index="turn", variable_name="key", value_name="tokens").with_columns(
        bucket=pl.col("key").replace_strict(_BUCKET_NAMES),
        rank=pl.col("key").replace_strict({name: rank for rank, name in enumerate(_BUCKET_NAMES)}),
    )
    return (
        _stacked(alt.Chart(long).mark_bar())
        .encode(
            x=alt.X("turn:O", title="Turn", axis=alt.Axis(labelAngle=0, domain=False, ticks=False)),
            y=alt.Y("sum(tokens):Q", title="Prompt tokens", axis=alt.Axis(format="~s", **GRID)),
        )
        .properties(height=460)
    )


def _stacked(chart: alt.Chart) -> alt.Chart:
    used = set(chart.data.filter(pl.col("tokens") > 0.5)["bucket"])
    names = [name for name in _BUCKET_COLOURS if name in used]
    scale = alt.Scale(domain=names, range=[_BUCKET_COLOURS[name] for name in names])
    return chart.transform_filter("datum.tokens > 0.5").encode(
        color=alt.Color("bucket:N", scale=scale, sort=names, legend=legend()),
        order=alt.Order("rank:Q"),
        tooltip=[alt.Tooltip("bucket:N", title="Tokens"), alt.Tooltip("sum(tokens):Q", title="Count", format=",.0f")],
    )


def session_cost(lines: pl.DataFrame) -> alt.Chart:
    """Dollars after each turn. Columns: turn, usd, what."""
    names = ["This session", "Without caching", "Without the traps"]
    largest = float(lines["usd"].max() or 0)  # type: ignore[arg-type]
    return (
        alt.Chart(lines)
        .mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=45))
        .encode(
            x=alt.X("turn:Q", title="Turn", axis=alt.Axis(format="d", tickMinStep=1, grid=False)),
            y=alt.Y("usd:Q", title="$", axis=alt.Axis(format=dollars(largest), tickCount=5, **GRID)),
            color=alt.Color("what:N", scale=alt.Scale(domain=names, range=[LEAK, UNCACHED, READ]), legend=legend()),
            tooltip=[
                alt.Tooltip("what:N", title="Session"),
                alt.Tooltip("turn:Q", title="Turn"),
                alt.Tooltip("usd:Q", title="So far", format="$,.4f"),
            ],
        )
        .properties(height=HEIGHT)
    )
