"""Response caches: what an exact and a semantic cache would answer, save, and answer wrongly."""

import json

import polars as pl
import streamlit as st

from prefixscope.analyzer.errors import InputError, UsageError
from prefixscope.analyzer.report.wording import clean
from prefixscope.analyzer.semantic import report as reports
from prefixscope.dashboard import frame, parts, text
from prefixscope.dashboard.caches import given, meaning, settings, sharing, source, tables, told

try:
    looked = source.texts() or given.store(frame.chosen().service)
except InputError as error:
    st.error("The logs that the command line named cannot be read.")
    st.text(str(error))
    st.stop()
if looked is None:
    given.ask_first()
    st.stop()

given.strip(looked)
verdict = st.container()
controls = st.container(border=True)
with controls:
    options, in_use = settings.options(looked, frame.chosen().service)
try:
    with st.spinner(given.waiting(looked), show_time=True):
        replayed = sharing.replayed(looked, options)
except (InputError, UsageError) as error:
    st.error("The calls could not be replayed.")
    st.text(str(error))
    st.stop()
show_text = looked.with_text and settings.shows_text()
found, same = replayed.found, replayed.compared is replayed.found
report = clean(reports.build(found, with_text=show_text))
compared = report if same else clean(reports.build(replayed.compared, with_text=False))

with verdict:
    st.markdown(f"#### {text.literal(told.verdict(report))}")
    if report["calls"]["exact_possible"]:
        if why := told.why_wrong(report):
            st.caption(text.literal(why))
        st.markdown(text.literal(" ".join(filter(None, (told.instead(report), told.age(report))))))
        if crossing := told.crossing(report):
            st.error(crossing, icon=":material/warning:")
        tables.figures(report)
if in_use:
    in_use.caption(text.literal(told.shared(report)))
given.explained(report, repr(options))

if report["calls"]["exact_possible"]:
    with parts.card("Who answers", "Each call is answered once: by the first of these that can"):
        tables.tiers(report)
    if report["unit_cost"]:
        with parts.card(
            "What a call costs",
            "With your own tokens and prices, over the calls of known cost; the last three with the audit's fixes",
        ):
            tables.unit_costs(report)
    if report["curve"]:
        meaning.draw(found, report, compared)
    else:
        given.missing(looked)
if report["left_out"]:
    with parts.card("Left out", "What a cache must not answer: counted among all calls, and answered by none"):
        tables.left_out(report["left_out"])
for note in report["notes"]:
    st.caption(text.literal(note))
parts.quarantine(pl.DataFrame(report["quarantine"]))
st.download_button(
    "The report as JSON",
    lambda: json.dumps(reports.build(found, with_text=show_text), indent=2),
    "response-caches.json",
    "application/json",
    icon=":material/download:",
    on_click="ignore",
)
