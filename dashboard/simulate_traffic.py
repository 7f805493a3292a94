"""The simulator's view of the store's own traffic."""

from typing import Final

import streamlit as st

from prefixscope.analyzer.cards import card_for
from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.report import wording
from prefixscope.dashboard import data, frame, parts, simulator_charts, text, what_if
from prefixscope.dashboard.data import Source
from prefixscope.dashboard.what_if import LIFETIMES, Loaded, Rules

_AT_ONCE: Final = 20_000  # calls that are replayed without being asked twice: a second or two
_AS_IT_IS: Final = "as it is"
_MARKERS: Final = {
    "as sent": "",
    "behind the static text": "mark_static",
    "at the end": "mark_last",
    "both": "mark_both",
    "none": "drop_markers",
}
_COMMON: Final = (
    "anthropic/claude-sonnet-4-5",
    "anthropic/claude-haiku-4-5",
    "openai/gpt-5.1",
    "openai/gpt-5-mini",
    "google/gemini-2.5-flash",
    "deepseek/deepseek-chat",
)


@st.cache_resource(max_entries=2, show_spinner=False)
def _loaded(source: Source, service: str | None) -> Loaded | None:
    with data.reading(source.path) as opened:
        raw = what_if.fetch(opened, service)
    return what_if.load(raw)


@st.cache_data(max_entries=64, show_spinner=False)
def _under(source: Source, service: str | None, rules: Rules) -> dict[str, float | None]:
    loaded = _loaded(source, service)
    assert loaded is not None
    return what_if.under(loaded, rules)


def draw() -> None:
    """Fixes on and off, then other rules. The service of the sidebar counts; week, provider and model do not."""
    try:
        source = data.current()
    except StoreError:
        st.text("This dashboard has no store: upload files first, or simulate one session.")
        return
    service = frame.chosen().service
    if not _agreed(service):
        return
    with st.spinner("Replaying the calls"):
        loaded = _loaded(source, service)
    if loaded is None:
        st.text("No call has a prompt to replay.")
        return
    _fixes(loaded)
    _rules(source, service, loaded)


def _agreed(service: str | None) -> bool:
    """Whether the calls are few enough to be replayed at once, or somebody has asked for it."""
    coverage = data.frame("pages/coverage", since=None, until=None, service=service, provider=None, model=None)
    calls = int(coverage["calls"].sum())
    if not calls:
        st.text("No calls yet.")
        return False
    return calls <= _AT_ONCE or st.toggle(f"Replay {calls:,} calls (choose a service in the sidebar to replay fewer)")


def _fixes(loaded: Loaded) -> None:
    with parts.card("Fixes on and off", "Each on the families where the audit puts it; each adds to those before it"):
        names = loaded.chosen
        if not names:
            st.text("No fix pays here.")
            return
        on = st.pills("Fixes", names, selection_mode="multi", default=names, format_func=text.fix)
        steps = what_if.waterfall(loaded, on or [])
        spent = what_if.spent(loaded)
        saved = float(steps["saved"].sum())
        st.altair_chart(simulator_charts.waterfall(steps, spent), alt="Input spend and what each fix takes from it")
        st.markdown(
            text.literal(f"Input {wording.usd(spent)} in the window, {wording.usd(spent - saved)} with these fixes: ")
            + f"**{text.literal(wording.usd(saved))}** less."
        )


def _rules(source: Source, service: str | None, loaded: Loaded) -> None:
    with parts.card("Other rules", "The same prompts at the same times, replayed; tokens counted as they are now"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            model = st.selectbox(
                "Model", _models(), accept_new_options=True, key="sim_model", width=330, help="provider/model"
            )
            lifetime = st.selectbox("Lifetime", list(LIFETIMES), key="sim_lifetime", width=210)
            marks = st.selectbox("Breakpoints", list(_MARKERS), key="sim_marks", width=210)
        rules = _parsed(str(model), LIFETIMES[lifetime], _MARKERS[marks])
        now, then = _under(source, service, Rules()), _under(source, service, rules)
        st.altair_chart(simulator_charts.two_bills(now, then), alt="Prompt tokens by bucket now and under other rules")
        with st.grid(3, min_column_width=200):
            parts.metric("Input now, replayed", wording.usd(now["usd"]), None)
            parts.metric("Under these rules", wording.usd(then["usd"]), None)
            both = now["usd"] is not None and then["usd"] is not None
            change = wording.usd((now["usd"] or 0) - (then["usd"] or 0)) if both else "unknown"
            parts.metric("Saved in the window", change, None)
        _told(rules, loaded)


def _models() -> list[str]:
    scopes = data.frame("pages/scopes").select("provider", "model").unique(maintain_order=True)
    own = [f"{provider}/{model}" for provider, model in scopes.iter_rows()]
    return [_AS_IT_IS, *dict.fromkeys([*own, *_COMMON])]


def _parsed(model: str, lifetime: str, marks: str) -> Rules:
    if model == _AS_IT_IS:
        return Rules("", "", lifetime, marks)
    provider, _, name = model.rpartition("/")
    return Rules(provider, name, lifetime, marks)


def _told(rules: Rules, loaded: Loaded) -> None:
    """Which rule card it was, and what could not be known."""
    if not rules.model:
        return
    day = loaded.priced["started_at"].max()
    match = card_for(rules.provider, rules.model, day.date())  # type: ignore[union-attr]
    card = match.card
    kind = {"automatic": "caches by itself", "explicit": "caches up to breakpoints", "none": "does not cache"}.get(
        card.cache, "has no rule card: nothing is predicted"
    )
    st.caption(text.literal("; ".join(filter(None, (f"{rules.model} {kind}", match.note, card.source)))))
