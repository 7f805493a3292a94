"""Upload: exported traces and logs, read and judged as on the command line."""

import tempfile
from pathlib import Path

import streamlit as st

from prefixscope.analyzer.errors import PrefixscopeError
from prefixscope.analyzer.report import wording
from prefixscope.dashboard import data, frame, parts, text
from prefixscope.dashboard.command import UPLOAD_LIMIT_MB

PRIVATE, SHARED = "A private store of this session", "The store of this dashboard"

st.markdown(
    "Exported traces or request logs: OTLP as JSON or protobuf, span dumps, Jaeger, Langfuse, JSON lines of a gateway; "
    f"also inside gzip or zstd. At most {UPLOAD_LIMIT_MB} MB a file. Prompts are cut into pieces and hashed, and their "
    "text is not kept."
)
uploaded = st.file_uploader("Files", accept_multiple_files=True, max_upload_size=UPLOAD_LIMIT_MB)
target = st.segmented_control(
    "Into", [PRIVATE, SHARED] if frame.has_shared_store() else [PRIVATE], default=PRIVATE, required=True
)
if target == PRIVATE:
    st.caption("Nobody else sees it, and it is gone when this browser tab is closed.")

if st.button("Audit", type="primary", icon=":material/play_arrow:", disabled=not uploaded):
    st.session_state["taken_in"] = None
    path = frame.private_store() if target == PRIVATE else data.shared()
    if target == PRIVATE:
        path.unlink(missing_ok=True)  # a fresh one
    bar = st.progress(0.0, "Reading")
    total, read = max(sum(file.size for file in uploaded), 1), 0

    def advance(count: int) -> None:
        global read  # noqa: PLW0603 - this script is the function that Streamlit runs
        read += count
        bar.progress(min(read / total, 1.0), "Reading" if read < total else "Replaying the calls")

    from prefixscope.dashboard import intake

    try:
        with tempfile.TemporaryDirectory(prefix="prefixscope-upload-") as folder, data.turn(path):
            sources = {}
            for number, file in enumerate(uploaded):
                kept = Path(folder) / str(number)  # a name of ours: theirs could point anywhere
                kept.write_bytes(file.getvalue())
                sources[kept] = wording.plain(Path(file.name).name)
            taken = intake.take_in(path, sources, on_bytes=advance)
    except PrefixscopeError as error:
        st.error("The files could not be taken in.")
        st.text(str(error))
    else:
        data.use(path if target == PRIVATE else None)
        st.session_state["taken_in"] = taken
        st.rerun()

last = st.session_state.get("taken_in")
if last:
    with parts.card("Result"):
        st.markdown(f"#### {text.literal(wording.headline(last.report))}")
        found = last.ingested
        st.text(
            f"{wording.counted(found.calls, 'new call')}, {found.duplicates:,} known already, "
            f"{wording.counted(found.rejected, 'rejection')}"
        )
        parts.ingests(data.frame("pages/ingests"), last=True)
        parts.quarantine(data.frame("analysis/quarantine"))
        if last.report["calls"]["total"] and st.button("See the weekly review", icon=":material/arrow_forward:"):
            st.switch_page("app_pages/weekly.py")
if data.is_private():
    with st.container(horizontal=True):
        st.caption("This session looks at its own store.")
        if st.button("Back to the store of this dashboard"):
            data.use(None)
            st.session_state["taken_in"] = None
            st.rerun()
