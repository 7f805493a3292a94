"""Findings by status, each status with what it is worth, and one decision for several of them."""

import streamlit as st

from prefixscope.analyzer.lifecycle.states import ORDER
from prefixscope.dashboard import decide, frame, lifecycle, parts, text, worklist

EVERY = "all"

report = lifecycle.report()
asked = frame.chosen()
findings = [finding for finding in report["findings"] if asked.fits(finding)]
of_status = {EVERY: findings} | {name: [one for one in findings if one["status"] == name] for name in ORDER}
there = [name for name, found in of_status.items() if found or name in {EVERY, "open"}]


def label(name: str) -> str:
    """``Open 5 · $4.19–$4.20 a week``."""
    found = of_status[name]
    worth = f" · {text.usd_range(worklist.total(found))}" if found else ""
    return text.literal(f"{name.replace('_', ' ').capitalize()} {len(found)}{worth}")


wanted = st.query_params.get("status", EVERY)
status = st.segmented_control(
    "Status, findings, dollars a week",
    there,
    default=wanted if wanted in there else EVERY,
    required=True,
    format_func=label,
)
if status != wanted:
    st.query_params["status"] = str(status)

shown = worklist.rows(of_status[str(status)])
selected = parts.findings_table(shown, key="findings", selectable=True)
if not shown.is_empty():
    with parts.card("Decide", "On all rows that are selected in the table"):
        if selected:
            st.text(f"{len(selected)} selected: {', '.join(selected)}")
            decide.form(selected, key="bulk")
        else:
            st.text("Select rows by their first column.")

quiet = [one for one in report.get("not_claimed", ()) if asked.is_of(one)]
if quiet:
    with parts.card("Looked at, and nothing claimed", "Healthy, the provider's side, or no fix is known to pay"):
        st.dataframe(
            worklist.quiet(quiet),
            hide_index=True,
            column_config={
                "cause": st.column_config.TextColumn("Cause", width=130),
                "verdict": st.column_config.TextColumn("Why", width=265),
                "service": st.column_config.TextColumn("Service", width=140),
                "model": st.column_config.TextColumn("Model", width=190),
                "headline": st.column_config.TextColumn("Evidence", width="large"),
            }
            | parts.numbers(
                {
                    "calls": ("Calls", "%,d"),
                    "missed_tokens": ("Tokens", "%,d"),
                    "usd_at_stake": ("At stake, $", "$%.2f"),
                }
            ),
            alt="Causes for which nothing is claimed",
        )
