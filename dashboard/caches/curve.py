"""The curve over the threshold: what a semantic cache answers, and how much of it wrongly, under each other."""

from collections.abc import Mapping
from typing import Any, Final

import altair as alt
import polars as pl

from prefixscope.dashboard.palette import GRID, LEAK, READ, UNCACHED, Layered, ink, legend

ALONE, GUARDED = "Similarity alone", "With guards"
_COLOURS: Final = {ALONE: LEAK, GUARDED: READ}
_LEFT: Final = 54  # pixels for labels of the y axis: the same in both, so that their x axes align
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


def answered(found: pl.DataFrame, marks: Mapping[str, float]) -> Layered:
    """Share of all calls that the cache answers. ``marks``: thresholds by name."""
    y = alt.Y("share:Q", title="Calls answered", axis=_axis("%"), scale=alt.Scale(domain=[0, 1]))
    return alt.layer(_lines(found, y, with_legend=True), *_marks(marks, named=True)).properties(height=310)


def wrong(found: pl.DataFrame, marks: Mapping[str, float], budget: float) -> Layered:
    """Share of the judged answers that are wrong, and the budget."""
    highest = max([budget * 1.6, *found["rate"].drop_nulls().to_list()])
    y = alt.Y(
        "rate:Q",
        title="Wrong, of the judged",
        axis=_axis(".0%" if highest > 0.04 else ".1%"),
        scale=_from_zero(highest),
    )
    line = pl.DataFrame({"rate": [budget], "told": [f"budget {budget:.1%}"], "threshold": [_LOWEST]})
    base = alt.Chart(line).encode(y="rate:Q")
    rule = base.mark_rule(strokeDash=[5, 4], color=ink(), opacity=0.8)
    name = base.mark_text(align="left", dx=4, dy=-7, fontSize=11.5, color=ink()).encode(x="threshold:Q", text="told:N")
    drawn = _lines(found.drop_nulls("rate"), y, with_legend=False)
    return alt.layer(drawn, rule, name, *_marks(marks, named=False)).properties(height=250)


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
    texts = base.mark_text(align="left", dx=5, dy=9, fontSize=11.5, color=ink()).encode(y=alt.value(0), text="name:N")
    return [rules, texts] if named else [rules]


def _axis(form: str) -> alt.Axis:
    return alt.Axis(format=form, tickCount=5, minExtent=_LEFT, maxExtent=_LEFT, **GRID)


def _from_zero(highest: float) -> alt.Scale:
    return alt.Scale(domain=[0, highest], nice=True)
