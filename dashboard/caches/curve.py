"""The curve over the threshold: what a semantic cache answers, and how much of it wrongly, under each other."""

import json
from collections.abc import Mapping
from typing import Any, Final, Literal

import altair as alt
import polars as pl

from prefixscope.dashboard.palette import GRID, LEAK, READ, UNCACHED, Layered, ink, legend

ALONE, GUARDED = "Similarity alone", "With guards"
_COLOURS: Final = {ALONE: LEAK, GUARDED: READ}
_LEFT, _RIGHT = 54, 84  # pixels for labels beside the plot: the same in both charts, so that their x axes align
_LOWEST: Final = 0.6


def points(report: Mapping[str, Any]) -> pl.DataFrame:
    """A row a threshold and way. Columns: threshold, way, calls, share, wrong, judged, rate (null: nothing judged)."""
    return pl.DataFrame(
        [
            {
                "threshold": point["threshold"],
                "way": way,
                "calls": point[key],
                "share": point[f"{key}_share"],
                "wrong": point[f"{key}_wrong"],
                "judged": point[f"{key}_wrong"] + point[f"{key}_right"],
                "rate": point[f"{key}_wrong_rate"],
            }
            for point in report["curve"]
            for key, way in (("alone", ALONE), ("guarded", GUARDED))
        ],
        schema_overrides={"rate": pl.Float64},
    )


def answered(found: pl.DataFrame, marks: Mapping[str, float], used: float | None) -> Layered:
    """Share of all calls that the cache answers. ``marks``: thresholds by name; ``used``: what the replay answered."""
    y = alt.Y("share:Q", title="Calls answered", axis=_axis("%"), scale=alt.Scale(domain=[0, 1]))
    level = _level(used, f"in use {used:.1%}", "share") if used is not None else _level(1.0, "", "share")
    lines = _lines(found, y, with_legend=True)
    return _beside(alt.layer(lines, level, *_marks(marks, named=True)), 310)


def wrong(found: pl.DataFrame, marks: Mapping[str, float], budget: float) -> Layered:
    """Share of the judged answers that are wrong, and the budget."""
    highest = max([budget * 1.6, *found["rate"].drop_nulls().to_list()])
    y = alt.Y(
        "rate:Q",
        title="Wrong, of the judged",
        axis=_axis(".0%" if highest > 0.04 else ".1%"),
        scale=_from_zero(highest),
    )
    lines = _lines(found.drop_nulls("rate"), y, with_legend=False)
    level = _level(budget, f"budget {budget:.1%}", "rate")
    return _beside(alt.layer(lines, level, *_marks(marks, named=False)), 250)


def _level(value: float, told: str, column: str) -> alt.Chart:
    """A dashed line across the plot; its name stands right of it, where no line can cross it."""
    axis = alt.Axis(
        orient="right", values=[value], labelExpr=json.dumps(told), labelColor=ink(), labelFontSize=11.5, title=None,
        grid=False, domain=False, ticks=False, minExtent=_RIGHT, maxExtent=_RIGHT, labelLimit=_RIGHT,
    )  # fmt: skip
    opacity = 0.8 if told else 0.0
    base = alt.Chart(pl.DataFrame({column: [value]}))
    rule = base.mark_rule(strokeDash=[5, 4], color=ink(), opacity=opacity)
    return rule.encode(y=alt.Y(f"{column}:Q", axis=axis))


def _beside(chart: Layered, height: int) -> Layered:
    """Both y axes drawn: that of the lines on the left, that of the level on the right, on one scale."""
    return chart.resolve_axis(y="independent").properties(height=height)


def _lines(found: pl.DataFrame, y: alt.Y, *, with_legend: bool) -> alt.Chart:
    names = list(_COLOURS)
    return (
        alt.Chart(found)
        .mark_line(strokeWidth=2.5, point=alt.OverlayMarkDef(size=22))
        .encode(
            x=alt.X(
                "threshold:Q",
                title=None if with_legend else "Threshold: a stored answer is given from this similarity (cosine) on",
                scale=alt.Scale(domain=[_LOWEST, 1.0], nice=False),
                axis=alt.Axis(format=".2f", tickCount=9, **GRID),
            ),
            y=y,
            color=alt.Color(
                "way:N",
                scale=alt.Scale(domain=names, range=list(_COLOURS.values())),
                legend=legend() if with_legend else None,
            ),
            tooltip=[
                alt.Tooltip("way:N", title="Cache"),
                alt.Tooltip("threshold:Q", title="Threshold", format=".2f"),
                alt.Tooltip("calls:Q", title="Calls answered", format=","),
                alt.Tooltip("share:Q", title="of all calls", format=".1%"),
                alt.Tooltip("judged:Q", title="Judged", format=","),
                alt.Tooltip("wrong:Q", title="Wrong", format=","),
                alt.Tooltip("rate:Q", title="of the judged", format=".2%"),
            ],
        )
    )


def _marks(marks: Mapping[str, float], *, named: bool) -> list[alt.Chart]:
    """Thresholds as upright lines, with their names in the upper chart."""
    if not marks:
        return []
    rows = pl.DataFrame({"threshold": list(marks.values()), "name": list(marks)})
    base = alt.Chart(rows).encode(x="threshold:Q")
    rules = base.mark_rule(color=UNCACHED, strokeWidth=1.5).encode(tooltip=[alt.Tooltip("name:N", title="Threshold")])
    if not named:
        return [rules]
    texts = [
        base.transform_filter(alt.datum.name == name)
        .mark_text(align=side, dx=-4 if side == "right" else 4, dy=-8, fontSize=11.5, color=ink())
        .encode(y=alt.value(0), text="name:N")
        for name, side in _sides(marks).items()
    ]
    return [rules, *texts]


def _sides(marks: Mapping[str, float]) -> dict[str, Literal["left", "right"]]:
    """How each name stands above the plot: it starts at its line, unless another line comes after it."""
    last = max(marks.values())
    return {name: "right" if _LOWEST + 0.1 < threshold < last else "left" for name, threshold in marks.items()}


def _axis(form: str) -> alt.Axis:
    return alt.Axis(format=form, tickCount=5, minExtent=_LEFT, maxExtent=_LEFT, **GRID)


def _from_zero(highest: float) -> alt.Scale:
    return alt.Scale(domain=[0, highest], nice=True)
