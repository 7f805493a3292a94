"""Explore: any measure by any two dimensions, down to single calls."""

import streamlit as st

from prefixscope.dashboard import charts, data, frame, measures, parts

_MOST_CALLS = 200

asked = frame.chosen()
with st.container(horizontal=True, vertical_alignment="bottom"):
    measure = measures.chosen()
    down = measures.dimension("Rows", "rows", "service")
    across = measures.dimension("Columns", "columns", "day")

grid = measures.grid(measure, across, down, asked)
with parts.card(f"{measure.label} by {down} and {across}", measure.note):
    parts.chart_or(
        grid,
        lambda: charts.matrix(grid, measure.format),
        "No call fits these filters.",
        f"{measure.label} by {down} and {across}",
    )
    if not grid.is_empty():
        with st.expander("As a table"):
            wide = grid.pivot("across", index="down", values="value")
            st.dataframe(
                parts.named(wide, "down"),
                hide_index=True,
                column_config={"down": down.capitalize()},
                alt=f"{measure.label} by {down} and {across}",
            )

with parts.card("Calls", f"The {_MOST_CALLS} that missed most, of what is chosen here and in the sidebar"):
    with st.container(horizontal=True, vertical_alignment="bottom"):
        picked = {name: measures.pick(name, grid, side) for side, name in (("down", down), ("across", across))}
    params = {**asked.in_week(), "cause": None, "most": _MOST_CALLS} | measures.narrowed(picked)
    calls = data.frame("pages/calls", **params)
    st.dataframe(
        parts.named(calls, "service", "provider", "model", "session_id", "response_id", "file"),
        hide_index=True,
        column_order=[
            "started_at",
            "service",
            "model",
            "cause",
            "input",
            "read",
            "write",
            "output",
            "missed_tokens",
            "usd",
            "usd_missed",
            "ttft_ms",
            "status",
            "session_id",
            "response_id",
            "file",
            "line",
            "call_id",
        ],
        column_config={
            "started_at": st.column_config.DatetimeColumn("Sent (UTC)", format="D MMM HH:mm:ss"),
            "service": "Service",
            "model": "Model",
            "cause": "Cause",
            "status": "HTTP",
            "session_id": "Session",
            "response_id": "Response",
            "file": "File",
            "line": "Line",
            "call_id": "Call",
        }
        | parts.numbers(
            {
                "input": ("Prompt", "%,d"),
                "read": ("Read", "%,d"),
                "write": ("Written", "%,d"),
                "output": ("Output", "%,d"),
                "missed_tokens": ("Missed", "%,.0f"),
                "usd": ("$", "$%.4f"),
                "usd_missed": ("Missed, $", "$%.4f"),
                "ttft_ms": ("First token, ms", "%,.0f"),
            }
        ),
        alt="Single calls",
    )
