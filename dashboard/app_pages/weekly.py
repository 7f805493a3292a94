"""Weekly review: one sentence, five figures with their trend, where it goes, and the ten dearest findings."""

from typing import Literal

import polars as pl
import streamlit as st

from prefixscope.analyzer.report import wording
from prefixscope.dashboard import charts, data, downloads, frame, lifecycle, palette, parts, text, weekly, worklist

_MOST_SERVICES = 12

asked = frame.chosen()
report = lifecycle.report()
findings = [finding for finding in report["findings"] if asked.fits(finding)]
at_stake = worklist.to_do(findings)
days = data.frame("pages/days", **asked.over_time())
sums = weekly.sums(days, asked.week)
changes = weekly.changes(days, asked.week)
sparks = weekly.sparks(days, asked.week)
recoverable = worklist.total(at_stake, per_week=asked.week is not None)
span = "a week" if asked.week else f"in {report['window']['days']:.1f} days"

title = text.week(asked.week) if asked.week else "All weeks"
whole = f"{title}: {wording.usd(sums.spend)} spent; {text.usd_range(recoverable)} {span} recoverable"
sentence = f"{whole}; {lifecycle.summary(report)}."
st.markdown(f"#### {text.literal(sentence)}")
if asked.week and sums.days < 7:
    st.caption(f"The data hold {sums.days} of this week's 7 days.")

figures: tuple[tuple[str, str, str, Literal["up", "down"]], ...] = (
    ("Spend", wording.usd(sums.spend), "spend", "down"),
    (f"Recoverable {span}", text.usd_range(recoverable), "recoverable", "down"),
    ("Net cache savings", wording.usd(sums.net_savings), "net_savings", "up"),
    ("Read-token rate", wording.share(sums.read_share), "read_share", "up"),
    ("Calls without usage", f"{sums.usage_missing:,}", "usage_missing", "down"),
)
with st.grid(5, min_column_width=165, gap="small"):
    for name, value, key, good in figures:
        parts.metric(name, value, changes.get(key), sparks[key], good=good)

unit = weekly.unit_for(days)
with st.grid(2, min_column_width=380, gap="medium"):
    with parts.card("Prompt tokens", f"By {unit}, in the bucket they were billed in"):
        st.altair_chart(
            charts.tokens_by_bucket(weekly.by_unit(days, unit), unit), alt="Prompt tokens over time by billing bucket"
        )
    with parts.card("Missed by cause", "What reading the missed tokens would have saved; grey: no fix is known to pay"):
        causes = data.frame("pages/cause_days", **asked.over_time()).filter(pl.col("usd_missed") > 0)
        told = causes.with_columns(cause=pl.when("claimed").then("cause").otherwise(pl.lit(palette.NOT_CLAIMED)))
        summed = (
            weekly.by_unit(told, unit).group_by("at", "cause", maintain_order=True).agg(usd=pl.col("usd_missed").sum())
        )
        parts.chart_or(
            summed,
            lambda: charts.dollars_by_cause(summed, unit),
            "Nothing was missed.",
            "Missed dollars over time by cause",
        )

with st.grid(2, min_column_width=380, gap="medium"):
    with parts.card("Hit rate by service", "Share of prompt tokens read from cache, the biggest services first"):
        services = weekly.by_unit(data.frame("pages/service_days", most=_MOST_SERVICES, **asked.over_time()), unit)
        rates = services.group_by("at", "service", maintain_order=True).agg(pl.col("input", "read").sum())
        parts.chart_or(
            rates,
            lambda: charts.hit_rates(rates, unit),
            "No call says how much was read.",
            "Hit rate by service over time",
        )
    with parts.card("Time to first token", "Median of calls that read from cache, and of those that did not"):
        waits = data.frame("pages/first_tokens", most=_MOST_SERVICES, **asked.in_week())
        parts.chart_or(
            waits,
            lambda: charts.first_tokens(waits),
            "No call of this week records it.",
            "Time to first token by service, with and without a cache read",
        )

with parts.card("Dearest findings", "Savings of different findings are disjoint: they add up"):
    shown = worklist.rows(at_stake[:10])
    parts.findings_table(shown, key="dearest")

downloads.bar(
    downloads.View(
        sentence, asked, [(name, value) for name, value, _, _ in figures], at_stake, report["window"]["to"] or "no call"
    )
)
