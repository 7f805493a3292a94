"""Simulator: the store's own traffic under other rules, and one made-up session, turn by turn."""

import streamlit as st

from prefixscope.dashboard import simulate_session, simulate_traffic

OWN, SESSION = "Your traffic", "One session"

wanted = st.query_params.get("simulate", "")
known = {"traffic": OWN, "session": SESSION}
view = st.segmented_control(
    "Simulate",
    list(known),
    default=wanted if wanted in known else "traffic",
    required=True,
    format_func=known.__getitem__,
    label_visibility="collapsed",
)
if view != wanted:
    st.query_params["simulate"] = str(view)
if view == "traffic":
    simulate_traffic.draw()
else:
    simulate_session.draw()
