"""The page's controls: how the response caches are to decide, as options of the analysis."""

from dataclasses import replace
from typing import Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from prefixscope.analyzer.audit import Selection
from prefixscope.analyzer.semantic.analysis import NAIVE, Options
from prefixscope.analyzer.semantic.questions import DEFAULT_SCOPE, SCOPE_FIELDS
from prefixscope.analyzer.semantic.tiers import Policy
from prefixscope.dashboard import text
from prefixscope.dashboard.caches import judged
from prefixscope.dashboard.caches.chosen import MOST_WRONG
from prefixscope.dashboard.caches.source import Looked
from prefixscope.dashboard.caches.told import lifetime

CHOSEN, OWN = "For the budget", "My own"
_TEXTS: Final = "caches_texts"
_LIFETIMES: Final = (300, 3600, 6 * 3600, 12 * 3600, 86_400, 7 * 86_400, 30 * 86_400)
_KEPT: Final[dict[str, Any]] = {"persist_state": "session"}  # over a visit to another page


def shows_text() -> bool:
    """Whether questions and answers are to be seen."""
    return bool(st.session_state.get(_TEXTS, True))


def show_texts() -> None:
    """Draws the switch that hides questions and answers."""
    st.toggle("Show texts", value=True, key=_TEXTS, help="Questions and answers, as they are in the logs", **_KEPT)


def options(looked: Looked, service: str | None) -> tuple[Options, DeltaGenerator | None]:
    """Draws the controls and returns what they are set to, and the place where the scope in use is to be told.

    Args:
        looked: the calls.
        service: what the sidebar asks for.
    """
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if not looked.with_text:
            policy = Policy(ttl_s=_lifetime(), capacity=_capacity())
            return Options(selection=Selection(service=service), policy=policy), None
        budget, threshold = _budget(), _threshold()
        guarded = st.toggle(
            "Guards",
            value=True,
            key="caches_guards",
            help="Refuse a stored answer where numbers, units, dates, names, negation, direction or code differ.",
            **_KEPT,
        )
        with st.popover("More", icon=":material/tune:"):
            rest, in_use = _more(looked)
    policy = replace(rest.policy, threshold=NAIVE if threshold is None else threshold, guarded=guarded)
    given = threshold is not None
    return replace(rest, policy=policy, threshold_given=given, budget=budget, labels=judged.labels()), in_use


def _budget() -> float:
    wrong = st.number_input(
        f"Wrong answers allowed, % (at most {MOST_WRONG:.0f})",
        min_value=0.0,
        max_value=MOST_WRONG,
        value=1.0,
        step=0.5,
        format="%.1f",
        key="caches_budget",
        width=265,
        help="The budget: of 100 answers that the semantic cache gives, so many may be another question's.",
        **_KEPT,
    )
    return float(wrong or 0.0) / 100


def _threshold() -> float | None:
    """The user's own threshold; None leaves it to the budget."""
    way = st.segmented_control("Threshold", [CHOSEN, OWN], default=CHOSEN, required=True, key="caches_way", **_KEPT)
    if way == CHOSEN:
        return None
    return float(st.slider("Cosine", 0.60, 1.0, NAIVE, 0.01, format="%.2f", key="caches_threshold", width=170, **_KEPT))


def _more(looked: Looked) -> tuple[Options, DeltaGenerator]:
    """What is seldom changed: which calls, who shares with whom, and the cache itself; and where to tell the scope."""
    service = None
    if len(looked.services) > 1:
        key = f"caches_service_{looked.identity}"  # other logs have other services
        service = st.selectbox(
            "Service", looked.services, index=None, placeholder="All", format_func=text.cell, key=key, **_KEPT
        )
    chosen = st.multiselect(
        "Shared only where these are the same",
        SCOPE_FIELDS,
        default=DEFAULT_SCOPE,
        key="caches_scope",
        help="The scope. As long as it is left as it is, keeping users apart is tried too, and wider ones are told.",
        **_KEPT,
    )
    in_use = st.empty()
    same_context = st.toggle(
        "Only after the same conversation",
        value=True,
        key="caches_context",
        help="“How much is it?” means something else in each conversation.",
        **_KEPT,
    )
    policy = Policy(same_context=same_context, ttl_s=_lifetime(), capacity=_capacity())
    usd = st.number_input(
        "Embedding, $ per million tokens",
        min_value=0.0,
        value=0.0,
        step=0.01,
        format="%.3f",
        key="caches_usd",
        help="What your cache would pay to look a question up; the embedding used here runs on this machine.",
        **_KEPT,
    )
    scope = tuple(name for name in SCOPE_FIELDS if name in chosen)
    asked = Options(
        policy=policy,
        scope=scope,
        scope_given=scope != DEFAULT_SCOPE,
        usd_per_million=float(usd or 0.0),
        selection=Selection(service=service),
    )
    return asked, in_use


def _lifetime() -> float:
    chosen = st.selectbox(
        "Answers live for",
        _LIFETIMES,
        index=_LIFETIMES.index(86_400),
        format_func=lifetime,
        key="caches_ttl",
        help="The time to live (TTL): an older answer is not given any more.",
        width=180,
        **_KEPT,
    )
    return float(chosen)


def _capacity() -> int:
    kept = st.number_input(
        "Answers kept",
        min_value=1,
        value=100_000,
        step=1000,
        key="caches_capacity",
        help="The capacity: when it is full, the answer that was not used for longest goes.",
        width=180,
        **_KEPT,
    )
    return int(kept or 1)
