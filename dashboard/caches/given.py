"""How logs get to the page on response caches, and what a reader must know before the figures."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import streamlit as st

from prefixscope.analyzer.errors import PrefixscopeError, StoreError
from prefixscope.analyzer.report.wording import counted
from prefixscope.dashboard import parts, text
from prefixscope.dashboard.caches import pairs, settings, source, told
from prefixscope.dashboard.caches.source import Looked
from prefixscope.dashboard.command import SAMPLE_OF_CACHES, UPLOAD_LIMIT_MB

_AT_ONCE: Final = 20_000  # calls of a store that are replayed without being asked twice: a second or two
_FIRST: Final = "caches_first"  # key of session state: the options when the page was first seen
_WHY: Final = (
    "Stores hold fingerprints of prompts, never their text. To tell which questions mean the same, and whether an "
    "answer would have been wrong, this page needs your logs or traces with prompts and answers in them. They are read "
    "into the memory of this browser session, shown to nobody else and not stored."
)


def store(service: str | None) -> Looked | None:
    """The calls of the store, if there is one that holds calls and is small enough, or was agreed to."""
    try:
        looked = source.of_store(service)
    except StoreError:
        return None
    if not looked.calls:
        return None
    if looked.calls > _AT_ONCE and not st.toggle(f"Replay {looked.calls:,} calls of the store through an exact cache"):
        return None
    return looked


def ask_first() -> None:
    """The page where there is nothing to replay yet."""
    explain(None)
    with parts.card("Give it your logs"):
        _ask()


def missing(looked: Looked) -> None:
    """What cannot be told without texts, and how to get it."""
    with parts.card("What is missing: meaning, and wrong answers"):
        if looked.with_text:
            st.markdown("No question in these logs is in words, or none has an answer: there is nothing to compare.")
        else:
            _ask()


def _ask() -> None:
    st.markdown(_WHY)
    _upload()
    if SAMPLE_OF_CACHES.exists() and st.button("Try it with sample traffic", icon=":material/science:"):
        names = {SAMPLE_OF_CACHES: f"sample_traces/{SAMPLE_OF_CACHES.name}"}
        _take(lambda on_bytes: source.take(names, on_bytes), SAMPLE_OF_CACHES.stat().st_size)
    st.caption("Or name them when you start the dashboard; everybody who can open it sees their texts then:")
    st.code("prefixscope dashboard --db calls.duckdb --logs traces/", language="console")


def _upload() -> None:
    st.caption(
        "OTLP as JSON or protobuf, span dumps, Jaeger, Langfuse, JSON lines of a gateway; also inside gzip or zstd."
    )
    uploaded = st.file_uploader("Logs with texts", accept_multiple_files=True, max_upload_size=UPLOAD_LIMIT_MB)
    if st.button("Replay these", type="primary", icon=":material/play_arrow:", disabled=not uploaded):
        total = sum(file.size for file in uploaded)
        _take(lambda on_bytes: source.take_uploaded(uploaded, on_bytes), total)


def _take(read: Callable[[Callable[[int], None]], None], total: int) -> None:
    bar = st.progress(0.0, "Reading")
    done = 0

    def advance(count: int) -> None:
        nonlocal done
        done += count
        bar.progress(min(done / max(total, 1), 1.0), "Reading")

    try:
        read(advance)
    except PrefixscopeError as error:
        bar.empty()
        st.error("The files could not be taken in.")
        st.text(str(error))
        return
    st.rerun()


def strip(looked: Looked) -> None:
    """What is looked at, and the way to something else."""
    with st.container(horizontal=True, vertical_alignment="center"):
        kind = "with their texts" if looked.with_text else "as fingerprints, without texts"
        whose = ", in the memory of this session alone" if source.is_own() else ""
        aside = "; the sidebar does not filter them" if looked.with_text else ""
        told_ = f"{counted(looked.calls, 'call')} of {looked.name}, {kind}{whose}{aside}"
        st.caption(text.literal(told_), width="content")
        if source.is_own():
            if st.button("Other logs", type="tertiary", icon=":material/restart_alt:"):
                source.forget()
                st.rerun()
        elif looked.with_text:
            with st.popover("Your own logs", type="tertiary", icon=":material/upload_file:"):
                _upload()
        if looked.with_text:
            settings.show_texts()


def waiting(looked: Looked) -> str:
    """What takes a while, and how long."""
    if not looked.with_text:
        return "Replaying the calls"
    return f"Comparing the questions of {counted(looked.calls, 'call')} by meaning"


def explained(report: Mapping[str, Any], asked: str) -> None:
    """The explanation to unfold: open until other options are ``asked`` for than at first, then never again."""
    if st.session_state.setdefault(_FIRST, asked) != asked:
        st.session_state[_FIRST] = ""
    with st.expander("Two caches, and how one of them goes wrong", expanded=bool(st.session_state[_FIRST])):
        explain(report)


def explain(report: Mapping[str, Any] | None) -> None:
    """The two caches and a false match, for somebody who has never heard of them."""
    st.markdown(
        "A **response cache** stands in front of the model and gives an answer again instead of asking anew.\n"
        "* An **exact cache** gives it when the very same prompt comes again (upper and lower case, white space and "
        "the order of JSON keys aside). It takes no question for another; but answers grow old, and “where is my "
        "order?” has another one for each customer.\n"
        "* A **semantic cache** gives it when a question *means* the same. It turns questions into lists of numbers "
        "(*embeddings*) and measures how close two of them are: their similarity, the *cosine*, is 1 for the same and "
        "near 0 for nothing in common. From a *threshold* on, often 0.92 or 0.95, it gives the earlier answer.\n\n"
        "A **false match** is a pair that is close and not the same: another number, name or day, or a “not”. "
        "Embeddings hardly notice these, and the customer gets the answer to another question. **Guards** compare the "
        "words themselves and refuse such pairs."
    )
    shown = told.example(report) if report else None
    if shown:
        st.markdown("**A false match in this traffic**")
        pairs.example(shown)
