"""Savings: what could be saved, what was taken on, what is live, and what calls before and after it have proven."""

import polars as pl
import streamlit as st

from prefixscope.analyzer.report.wording import counted, usd
from prefixscope.dashboard import charts, data, frame, lifecycle, parts, text, weekly

report = lifecycle.report()
asked = frame.chosen()
book = report["ledger"]
days = data.frame("pages/days", **asked.over_time())
native = weekly.sums(days, asked.week).net_savings

with st.grid(4, min_column_width=200, gap="small"):
    potential, accepted, fixed, verified = (book[name] for name in ("potential", "accepted", "fixed", "verified"))
    parts.metric(
        "Potential a week",
        text.usd_range(potential["usd_per_week"]),
        None,
        help=counted(potential["findings"], "finding"),
    )
    parts.metric(
        "Accepted a week",
        text.usd_range(accepted["usd_per_week"]),
        None,
        help=f"part of the potential: {counted(accepted['findings'], 'finding')} with an owner",
    )
    parts.metric(
        "Fixed, not verified",
        counted(fixed["findings"], "finding"),
        None,
        help="A fix has saved nothing until calls after it show it.",
    )
    parts.metric(
        "Verified so far",
        usd(verified["usd"]["estimate"]),
        None,
        help="With what the calls after a fix would have cost without it.",
    )

with parts.card("From potential to verified", "Dollars a week; verified with its 95 % interval"):
    stages = pl.DataFrame(
        [
            {"stage": "Potential", **potential["usd_per_week"], "estimate": potential["usd_per_week"]["high"]},
            {"stage": "Accepted", **accepted["usd_per_week"], "estimate": accepted["usd_per_week"]["high"]},
            {
                "stage": "Fixed (promised)",
                **fixed["promised_usd_per_week"],
                "estimate": fixed["promised_usd_per_week"]["high"],
            },
            {"stage": "Verified", **verified["usd_per_week"]},
        ]
    )
    st.altair_chart(charts.ledger(stages), alt="Dollars a week by stage of a saving")
    st.caption(
        text.literal(
            f"The providers' caches themselves saved {usd(native)} "
            f"{'in this week' if asked.week else 'over all weeks'}, write premiums deducted: that is not counted above."
        )
    )

with parts.card("Fixes", "Measured on the calls of the same family before and after, at the volume after"):
    rows = lifecycle.fixes()
    if rows.is_empty():
        st.text("No finding is said to be fixed yet. Decide on a finding's page; then the calls after it are measured.")
    else:
        st.dataframe(
            rows,
            hide_index=True,
            column_config={
                "finding": "Finding",
                "status": "Status",
                "cause": "Cause",
                "service": "Service",
                "fixed_on": "Fixed on",
                "confounders": "What else changed",
            }
            | parts.numbers(
                {
                    "promised": ("Promised, $ a week", "$%.2f"),
                    "estimate": ("Verified, $ a week", "$%.2f"),
                    "low": ("low", "$%.2f"),
                    "high": ("high", "$%.2f"),
                    "total": ("So far", "$%.2f"),
                    "provider": ("Provider's cache", "$%.2f"),
                }
            ),
            alt="Fixes with what each has saved",
        )
    if st.button("Measure all fixes now", icon=":material/rule:", disabled=rows.is_empty()):
        with st.spinner("Comparing the calls before and after each fix"):
            judged = lifecycle.verify_all()
        st.toast(f"{counted(judged, 'fix')[:-1] + 'es' if judged != 1 else '1 fix'} measured.")
        st.rerun()
