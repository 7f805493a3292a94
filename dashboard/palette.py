"""Colours and axes of all charts. A colour means the same on every page, and is told apart in light and in dark."""

from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import streamlit as st

from prefixscope.dashboard import text

READ, WRITTEN, UNCACHED = "#1E9E83", "#E0A33A", "#8FA0B5"
LEAK = "#C2475B"
NOT_CLAIMED: Final = "not_claimed"
_CAUSE_COLOURS: Final = {
    "volatile_prefix": "#C2475B",
    "tools_reordered": "#7A5FB8",
    "tools_changed": "#9A83CF",
    "settings_changed": "#B5653A",
    "split_scope": "#3C9D9B",
    "history_rewritten": "#A8557A",
    "history_pruned": "#C98BA8",
    "no_marker": "#B08A1E",
    "marker_misplaced": "#D2B24C",
    "ttl_lapse": "#D9802E",
    "ttl_class_switched": "#EFAF72",
    "parallel_cold_start": "#2A7F9E",
    "write_churn": "#6B7F2A",
    "below_minimum": "#B4C0CE",
    "system_edited": "#5E8C3A",
    "compacted": "#8C6A5A",
    "forked": "#A99A8B",
    "first_seen": "#8FA0B5",
    "provider_side": "#4F6D8F",
    "unknown_usage": "#C9C2B4",
    "unknown_prompt": "#DAD5CA",
    NOT_CLAIMED: "#B4C0CE",
}
_OTHER: Final = "#54709C"  # a cause that is newer than this list
Layered = alt.LayerChart | alt.FacetChart  # what Altair says a layering may be
HEIGHT: Final = 320  # pixels, axes and legend included, as Streamlit counts
GRID: Final[dict[str, Any]] = {"gridOpacity": 0.5, "domain": False, "ticks": False}


def cause_colours(causes: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names and colours for a scale."""
    return [text.cause(name) for name in causes], [_CAUSE_COLOURS.get(name, _OTHER) for name in causes]


def time_axis() -> alt.X:
    """Days or weeks side by side: bands, so that no bar stands over an axis."""
    labels = alt.Axis(
        labelExpr="timeFormat(toDate(datum.value), '%-d %b')",
        labelOverlap=True,
        labelAngle=0,
        domain=False,
        ticks=False,
    )
    return alt.X("at:O", title=None, axis=labels, scale=alt.Scale(paddingInner=0.15, paddingOuter=0.1))


def at(unit: str) -> alt.Tooltip:
    return alt.Tooltip("at:T", title=unit.capitalize(), format="%a %-d %b %Y" if unit == "day" else "from %-d %b %Y")


def legend(columns: int = 3) -> alt.Legend:
    return alt.Legend(title=None, orient="top", symbolType="square", labelLimit=200, columns=columns)


def dollars(largest: float) -> str:
    """A format for an axis of dollars up to ``largest``: cents, and less where cents would all read alike."""
    return "$,.0f" if largest >= 20 else "$,.2f" if largest >= 0.05 else "$,.4f"


def ink() -> str:
    """A colour for text on the page itself, whose theme the browser chooses."""
    return "#D5DCE5" if st.context.theme.type == "dark" else "#334155"
