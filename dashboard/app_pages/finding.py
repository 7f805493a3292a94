"""One finding: the claim, where the prefix breaks, what it rests on, the options, and the decision."""

import streamlit as st

from prefixscope.analyzer.report import wording
from prefixscope.dashboard import claim, decide, frame, lifecycle, parts, text
from prefixscope.dashboard.family import Family

report = lifecycle.report()
asked = frame.chosen()
linked = st.query_params.get("finding")  # a link to a finding wins over filters
findings = [finding for finding in report["findings"] if asked.fits(finding) or finding["id"] == linked]
if not findings:
    st.text("No finding fits these filters." if report["findings"] else "The last analysis found no leak.")
    st.stop()

by_id = {finding["id"]: finding for finding in findings}
chosen = parts.from_address("Finding", "finding", list(by_id), lambda id_: claim.label(by_id[id_]))
finding = by_id[chosen]
family = Family.of(finding)

claim.banner(finding)
week, window = finding["saving_usd_per_week"], finding["saving_usd"]
with st.grid(4, min_column_width=185):
    parts.metric("Recoverable a week", text.usd_range(week), None)
    parts.metric(f"In {report['window']['days']:.1f} days", text.usd_range(window), None)
    parts.metric("Calls that miss", f"{finding['calls']:,} of {finding['family_calls']:,}", None)
    parts.metric("Confidence", finding["confidence"], None, help=wording.CONFIDENCE.get(finding["confidence"]))

with parts.card("What to change"):
    claim.options(finding)
if family:
    with parts.card("Where the prefix breaks", "Two calls in a row, as they were sent: sizes and hashes, no text"):
        family.draw_strips()
with st.grid(2, min_column_width=380, gap="medium"):
    with parts.card("The formula with its numbers", "Tokens that the fix moves, times their price"):
        claim.formula(finding)
    with parts.card("Evidence"):
        parts.lines(text.facts(finding["evidence"]))
if family:
    with st.grid(2, min_column_width=380, gap="medium"):
        with parts.card("Calls over time", "Of this family, by what kept them from reading more"):
            family.draw_days()
        with parts.card("Pauses", family.lifetime_told()):
            family.draw_pauses()
    family.draw_reasons()
with st.grid(2, min_column_width=380, gap="medium"):
    with parts.card("What could make it a false alarm"):
        claim.doubts(finding, report)
    with parts.card("Decision"):
        known = decide.state_lines(finding)
        if known:
            st.markdown("  \n".join(f":gray[{name}] {text.literal(value)}" for name, value in known))
        decide.form([finding["id"]], key="decision")
with parts.card("Calls to look at", "By every name that they have"):
    claim.examples(finding)
