"""The app: navigation, filters, footer, and what is shown where a page cannot be."""

from importlib.resources import files

import streamlit as st

from prefixscope.analyzer.errors import StoreError
from prefixscope.dashboard import frame

ICON = str(files("prefixscope.dashboard").joinpath("icon.svg"))  # a file: Streamlit would fetch a named icon

PAGES = {
    "Review": [
        st.Page("app_pages/weekly.py", title="Weekly review", icon=":material/calendar_view_week:", default=True),
        st.Page("app_pages/findings.py", title="Findings", icon=":material/checklist:"),
        st.Page("app_pages/finding.py", title="Finding", icon=":material/troubleshoot:"),
        st.Page("app_pages/savings.py", title="Savings", icon=":material/savings:"),
    ],
    "Look closer": [
        st.Page("app_pages/explore.py", title="Explore", icon=":material/query_stats:"),
        st.Page("app_pages/simulator.py", title="Simulator", icon=":material/science:"),
        st.Page("app_pages/caches.py", title="Response caches", icon=":material/quickreply:"),
    ],
    "Data": [
        st.Page("app_pages/quality.py", title="Data quality", icon=":material/fact_check:"),
        st.Page("app_pages/upload.py", title="Upload", icon=":material/upload_file:"),
    ],
}

st.set_page_config(page_icon=ICON, layout="wide")  # before the navigation, which would set an icon from elsewhere
st.logo(str(files("prefixscope.dashboard").joinpath("logo.svg")), size="large", icon_image=ICON)
page = st.navigation(PAGES)
st.set_page_config(page_title=f"{page.title} · prefixscope")
try:
    frame.admit()
    frame.begin(page.title)
    page.run()
    frame.end()
except StoreError as error:
    frame.unreadable(error)
