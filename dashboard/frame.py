"""What surrounds every page: title, filters, footer, and the page shown where there is nothing to show yet."""

import os
import shutil
import tempfile
import weakref
from importlib.metadata import version
from pathlib import Path
from typing import Final

import streamlit as st

from prefixscope.analyzer.errors import StoreError
from prefixscope.dashboard import data, filters, text
from prefixscope.dashboard.command import DEMO_STORE, LOGS_VARIABLE, SAMPLE, SIGN_IN_VARIABLE

WITHOUT_DATA: Final = ("Upload", "Simulator", "Response caches")  # pages that need no store


def admit() -> None:
    """Where the dashboard was started with --sign-in, ends the run of whoever has not signed in."""
    if not os.environ.get(SIGN_IN_VARIABLE) or st.user.get("is_logged_in"):
        return
    st.title("Sign in", anchor=False)
    st.text("This dashboard is for people who have signed in.")
    st.button("Sign in", type="primary", icon=":material/login:", on_click=st.login)
    st.stop()


def begin(title: str) -> None:
    """Draws title and filters; ends the run with the way on where the store holds nothing."""
    st.title(title, anchor=False)
    st.session_state["filters"] = filters.Filters()
    if title in WITHOUT_DATA and not _readable():
        return
    scopes = data.frame("pages/scopes")
    st.session_state["filters"] = filters.sidebar(scopes, disabled=title == "Response caches" and _has_texts())
    if scopes.is_empty() and title not in WITHOUT_DATA:
        empty()
        st.stop()


def _has_texts() -> bool:
    """Whether the page on response caches looks at logs, which the filters of the store do not reach."""
    from prefixscope.dashboard.caches import source  # noqa: PLC0415 - all of the analysis, for that page alone

    return source.is_own() or bool(os.environ.get(LOGS_VARIABLE))


def chosen() -> filters.Filters:
    """The filters of this run."""
    found = st.session_state["filters"]
    assert isinstance(found, filters.Filters)
    return found


def end() -> None:
    """The footer: what all figures rest on."""
    if not _readable():
        return
    report, source = data.report(), data.current()
    until = (report or {}).get("window", {}).get("to")
    parts = (
        f"data until {text.moment(until)}" if until else "no calls yet",
        f"prices of genai-prices {version('genai-prices')} at the time of each call",
        _store_told(source.path),
    )
    st.space("small")
    st.caption(text.literal("  ·  ".join(parts)))


def _store_told(path: Path) -> str:
    if data.is_private():
        return "a private store of this browser session"
    return "sample data" if path.name == DEMO_STORE else f"store {path}"


def empty() -> None:
    """The next command, and the sample data in one click."""
    path = data.current().path
    st.subheader("No calls yet", anchor=False)
    st.text("This store holds no analysed calls. Read exported traces or request logs into it:")
    st.code(f"prefixscope audit traces/ --db {path}", language="console")
    with st.container(horizontal=True):
        if SAMPLE.exists() and st.button("Look around with sample data", type="primary", icon=":material/play_arrow:"):
            open_sample()
        if st.button("Upload files", icon=":material/upload_file:"):
            st.switch_page("app_pages/upload.py")


def open_sample() -> None:
    """Audits the sample traffic into a store of this session."""
    from prefixscope.dashboard import intake  # noqa: PLC0415 - all of the analysis, which pages do without

    path = private_store()
    with st.spinner("Auditing the sample traffic"):
        intake.take_in(path, intake.SAMPLE_NAMES)
    data.use(path)
    st.rerun()


class _Folder:
    """A folder that is gone when nobody holds it any more, or the server ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="prefixscope-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def private_store() -> Path:
    """A path for a store of this session alone; its folder goes when the session does."""
    if "private_folder" not in st.session_state:
        st.session_state["private_folder"] = _Folder()
    return Path(st.session_state["private_folder"].path) / "uploaded.duckdb"


def has_shared_store() -> bool:
    """Whether the command line named a store."""
    return bool(data.shared().name)


def unreadable(error: StoreError) -> None:
    """Says why the store cannot be read, and what to do."""
    st.error(icon=":material/lock:", body="The store cannot be read right now.")
    st.text(str(error))
    with st.container(horizontal=True):
        if st.button("Try again", type="primary", icon=":material/refresh:"):
            st.rerun()
        if data.is_private() and st.button("Back to the store of this dashboard"):
            data.use(None)
            st.rerun()
        if SAMPLE.exists() and st.button("Look around with sample data", icon=":material/play_arrow:"):
            open_sample()


def _readable() -> bool:
    try:
        data.current()
    except StoreError:
        return False
    return True
