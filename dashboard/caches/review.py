"""The review form: one pair at a time, judged by a person with the mouse or with one key."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.report.wording import counted, plain
from prefixscope.analyzer.semantic import report as reports
from prefixscope.analyzer.semantic.analysis import Analysis
from prefixscope.analyzer.semantic.relabelled import relabelled
from prefixscope.dashboard import text
from prefixscope.dashboard.caches import chosen, judged, pairs, settings, told

_TOLD: Final = (chosen.CHOSEN, chosen.RASH, "Why", chosen.WAYS)
_LOADED: Final = "caches_loaded"  # key of session state: the uploaded queues that were taken in

Row = Mapping[str, Any]


@st.fragment
def form(found: Analysis) -> None:
    """The next pair, the buttons, what the judgements did to the threshold, and the way to keep them."""
    if not settings.shows_text():
        st.text("Have the texts shown to judge pairs.")
        return
    now = judged.labels()
    done = {*now, *judged.seen()}
    rows = judged.rows(found, now)
    queue = [row for row in rows if row.get("question") and row["pair"] not in done]
    _count(relabelled(found, now), now, rows, len(set(judged.seen()) - now.keys()))
    if queue:
        _pair(queue[0])
    else:
        st.text("No pair is left to judge.")
    _buttons(str(queue[0]["pair"]) if queue else None)
    _effect(found, now)
    _files(found, now)


def _count(found: Analysis, now: Mapping[str, bool], rows: Sequence[Row], skipped: int) -> None:
    """How many pairs wait for a person; those that were skipped still do."""
    mine = [row for row in rows if row.get("question")]  # the others are of other traffic
    here = sum(row["pair"] in now for row in mine)
    waiting = sum(row["pair"] not in now and row["suggested"] == "unclear" for row in mine)
    need = f"{counted(waiting, 'pair')} {'needs' if waiting == 1 else 'need'} you"
    aside = f" ({skipped:,} skipped)" if skipped else ""
    told_ = f"{counted(here, 'pair')} judged by hand; {need}{aside}"
    st.progress(here / max(here + waiting, 1), text.literal(told_))
    if not mine:
        return
    served = (reports.build(found, with_text=False)["budget"] or {}).get("unjudged", 0)
    first = f" Of those that nobody has judged the cache would serve {served:,}: they come first." if served else ""
    others = f"{counted(len(mine), 'pair')} in the file; the answers settle the others, and you can overrule them."
    st.caption(text.literal(f"{others}{first}"))


def _pair(row: Row) -> None:
    facts = [f"similarity {float(row['cosine']):.3f}", counted(int(row["calls"]), "call")]
    if row["suggested"] != "unclear":
        facts.append(told.ANSWERS[row["suggested"]])
    st.caption(text.literal("  ·  ".join(facts)))
    sides = (
        ("Asked", row["question"], "Its own answer", row["answer"]),
        ("Asked before", row["earlier_question"], "The answer it would have got", row["earlier_answer"]),
    )
    with st.grid(2, min_column_width=300, gap="medium"):
        for name, question, whose, answer in sides:
            with st.container(border=True, height="stretch"):
                pairs.said(name, question, strong=True)
                pairs.said(whose, answer)


def _buttons(pair: str | None) -> None:
    nothing = pair is None
    with st.container(horizontal=True):
        st.button(
            "Same answer does", icon=":material/check:", shortcut="Y",
            disabled=nothing, on_click=judged.judge, args=(pair, True),
        )  # fmt: skip
        st.button(
            "Needs its own answer", icon=":material/close:", shortcut="N",
            disabled=nothing, on_click=judged.judge, args=(pair, False),
        )  # fmt: skip
        st.button("Skip", type="tertiary", shortcut="S", disabled=nothing, on_click=judged.skip, args=(pair,))
        st.button(
            "Take the last one back", type="tertiary", icon=":material/undo:", shortcut="U",
            disabled=not judged.seen(), on_click=judged.undo,
        )  # fmt: skip


def _effect(found: Analysis, now: Mapping[str, bool]) -> None:
    """The threshold as it would be chosen now, and the way to have the whole page follow."""
    budget = reports.build(relabelled(found, now), with_text=False)["budget"]
    steps = dict(chosen.steps(budget))
    known = [f"{name}: {steps[name].rstrip('.')}." for name in _TOLD if name in steps]
    st.markdown(f"**With your judgements.** {text.literal(' '.join([chosen.verdict(budget), *known]))}")
    waiting = len(set(now.items()) ^ set(found.options.labels.items()))
    if waiting and st.button(f"Work {counted(waiting, 'judgement')} into the page", icon=":material/refresh:"):
        st.rerun(scope="app")


def _files(found: Analysis, now: Mapping[str, bool]) -> None:
    st.caption("Judgements live in this tab only: a reload drops them. Download them before you close it.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.download_button(
            "Download the queue with your judgements (CSV)",
            lambda: judged.as_csv(found, now),  # made where there is no session any more
            judged.FILE,
            "text/csv",
            icon=":material/download:",
            type="primary" if now else "secondary",
            on_click="ignore",
            help="What `prefixscope semantic PATH --labels FILE` reads. Questions and answers are in it.",
        )
        with st.popover("Load an earlier queue", icon=":material/upload_file:"):
            _load()


def _load() -> None:
    uploaded = st.file_uploader("A queue as CSV", type="csv", key="caches_queue")
    done: set[str] = st.session_state.setdefault(_LOADED, set())
    if uploaded is None or uploaded.file_id in done:
        return
    try:
        read = judged.read(uploaded)
    except InputError as error:
        st.error("The queue could not be taken in.")
        st.text(plain(str(error)))
        return
    done.add(uploaded.file_id)
    judged.take_in(read)
    st.toast(f"{counted(len(read), 'judgement')} taken in.", icon=":material/check:")
    st.rerun(scope="fragment")
