"""The simulator's view of one made-up session."""

from dataclasses import replace
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.analyzer.counting import token_counts
from prefixscope.analyzer.report import wording
from prefixscope.dashboard import parts, session_model, simulator_charts, text
from prefixscope.dashboard.session_model import Session

_MODELS: Final = {
    "Claude Sonnet 4.5": ("anthropic", "claude-sonnet-4-5"),
    "Claude Haiku 4.5": ("anthropic", "claude-haiku-4-5"),
    "GPT-5.1": ("openai", "gpt-5.1"),
    "GPT-5 mini": ("openai", "gpt-5-mini"),
    "Gemini 2.5 Flash": ("google", "gemini-2.5-flash"),
    "DeepSeek": ("deepseek", "deepseek-chat"),
}
_TTLS: Final = {"default": "", "5 min": "5m", "1 h": "1h"}


@st.cache_data(max_entries=64, show_spinner=False)
def _turns(session: Session, day: str) -> pl.DataFrame:  # noqa: ARG001 - prices change from day to day
    return session_model.turns(session, session_model.today())


def draw() -> None:
    """Sizes and traps on the left, what they cost on the right."""
    with st.grid(2, min_column_width=330, gap="medium"):
        with parts.card("A session", "Sizes in tokens"):
            session = _asked()
        with parts.card("What a turn is billed", "Prompt tokens by bucket"):
            turns = _turns(session, str(session_model.today().date()))
            st.altair_chart(simulator_charts.session_tokens(turns), alt="Prompt tokens of each turn by bucket")
    clean = _turns(_without_traps(session), str(session_model.today().date()))
    _totals(turns, clean)
    with parts.card("Input cost so far", "Dollars after each turn"):
        if turns["usd"].is_null().all():
            st.text("This model has no known price.")
        else:
            st.altair_chart(
                simulator_charts.session_cost(_lines(turns, clean)),
                alt="Input cost after each turn, with and without caching",
            )
    card = session_model.card(session, session_model.today())
    lives = card.ttl_seconds.get(session.ttl) or card.ttl_seconds.get(card.default_ttl)
    st.caption(
        text.literal(
            f"Rule card {card.provider} {card.name}: {card.cache} cache, at least {card.min_tokens:,} tokens, "
            f"lifetime {text.minutes(1000 * lives) if lives else 'not known'}; source {card.source or 'not noted'}"
        )
    )


def _asked() -> Session:
    name = st.selectbox("Model", list(_MODELS), key="session_model", bind="query-params")
    provider, model = _MODELS[name]
    with st.grid(2, min_column_width=140):
        numbers: dict[str, Any] = {
            "static": st.number_input(
                "System prompt and tools", 0, 500_000, 8_000, 500, key="static", bind="query-params"
            ),
            "question": st.number_input("A turn adds", 1, 100_000, 300, 50, key="question", bind="query-params"),
            "answer": st.number_input("An answer", 1, 100_000, 600, 50, key="answer", bind="query-params"),
            "turns": st.number_input("Turns", 1, 60, 10, 1, key="turns", bind="query-params"),
        }
    _count_a_text(model)
    pause = st.number_input("Minutes between turns", 0.0, 1440.0, 3.0, 0.5, key="pause", bind="query-params")
    ttl = st.segmented_control(
        "Lifetime of breakpoints", list(_TTLS), default="default", required=True, key="ttl", bind="query-params"
    )
    clock = st.toggle("Trap: the system prompt begins with the time", key="clock", bind="query-params")
    compact = st.toggle("Trap: the history is compacted every 4 turns", key="compact", bind="query-params")
    whole = {name: int(value) for name, value in numbers.items()}
    return Session(
        provider,
        model,
        **whole,
        pause_minutes=float(pause),
        ttl=_TTLS[str(ttl)],
        clock=clock,
        compact_every=4 if compact else 0,
    )


def _count_a_text(model: str) -> None:
    """Tells how many tokens a pasted text has; it goes nowhere but into this process."""
    with st.expander("Count a text of yours"):
        pasted = st.text_area("System prompt and tools, as text", key="counted_text", max_chars=400_000)
        if pasted:
            found = token_counts.count(pasted, model)
            how = "counted with this model's vocabulary" if found.exact else "estimated at four bytes a token"
            st.text(f"{found.tokens:,} tokens, {how}")


def _without_traps(session: Session) -> Session:
    return replace(session, clock=False, compact_every=0)


def _totals(turns: pl.DataFrame, clean: pl.DataFrame) -> None:
    usd, uncached, best = turns["usd"].sum(), turns["usd_uncached"].sum(), clean["usd"].sum()
    unknown = turns["usd"].is_null().all()
    share = float(turns["read"].sum()) / float(turns["input"].sum())
    with st.grid(4, min_column_width=165, gap="small"):
        parts.metric("Input, whole session", wording.usd(None if unknown else float(usd)), None)
        parts.metric("Without caching", wording.usd(None if unknown else float(uncached)), None)
        parts.metric("Without the traps", wording.usd(None if unknown else float(best)), None)
        parts.metric("Read from cache", wording.share(share), None)


def _lines(turns: pl.DataFrame, clean: pl.DataFrame) -> pl.DataFrame:
    """Columns: turn, usd (so far), what."""
    shown = [("This session", turns["usd"]), ("Without caching", turns["usd_uncached"])]
    if not turns.equals(clean):
        shown.append(("Without the traps", clean["usd"]))
    return pl.concat(
        [
            pl.DataFrame({"turn": turns["turn"], "usd": values.cum_sum()}).with_columns(what=pl.lit(name))
            for name, values in shown
        ]
    )
