"""Two calls side by side: what was asked, what was asked before, and the answers. All texts come from outside."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import streamlit as st

from prefixscope.analyzer.report import wording
from prefixscope.dashboard import text
from prefixscope.dashboard.caches import told

Row = Mapping[str, Any]
Names = Sequence[tuple[str, str, str]]  # side of the report, its question, its answer
_LONGEST: Final = 4000  # characters of a text that is shown
_TALL: Final = 400  # characters from which on a text scrolls in a box of its own
_PAGE: Final = 4  # pairs
_WOULD: Final = (
    ("call", "Asked", "Correct answer (would not have been given)"),
    ("earlier", "Asked before", "The answer it would have got"),
)
GIVEN: Final = (
    ("call", "Asked", "The answer that the cache gave"),
    ("earlier", "Asked before", "Its answer, which was stored"),
)


def said(name: str, words: str, *, strong: bool = False) -> None:
    """A text under its name (ours), as it was written: line breaks are kept, and nothing in it is interpreted."""
    lines = [text.literal(line) for line in readable(words).split("\n")]
    if strong:
        lines = [f"**{line}**" if line.strip() else line for line in lines]
    told_ = "  \n".join(line.strip() or "\u00a0" for line in lines) if words.strip() else ":gray[(nothing)]"
    block = f":small[:gray[{name}]]  \n{told_}"
    if len(words) <= _TALL:
        st.markdown(block)
        return
    with st.container(height=220):
        st.markdown(block)


def readable(words: str) -> str:
    """Printable characters and line breaks; what is longer than a person reads is cut, and says so."""
    lines = (wording.plain(line) if len(line) < 400 else _printable(line) for line in words[:_LONGEST].splitlines())
    shown = "\n".join(lines).strip()
    return shown if len(words) <= _LONGEST else f"{shown}\n… ({len(words):,} characters in all)"


def _printable(line: str) -> str:
    return "".join(wording.plain(character) for character in line)


def example(row: Row) -> None:
    """A false match for somebody who sees the first one."""
    with st.grid(2, min_column_width=300, gap="medium"):
        with st.container(border=True, height="stretch"):
            said("Asked first, and its answer stored", row["earlier"]["question"], strong=True)
            said("The stored answer", row["earlier"]["answer"])
        with st.container(border=True, height="stretch"):
            said(f"Asked later: similarity {row['cosine']:.3f}", row["call"]["question"], strong=True)
            said(
                "Correct answer (would not have been given)",
                row["call"]["answer"],
            )


def listed(rows: Sequence[Row], *, key: str, head: Callable[[Row], None], named: Names = _WOULD) -> None:
    """Pairs, a few at a time. ``head`` draws what is said of a pair; ``named``: how its texts are called."""
    pages = -(-len(rows) // _PAGE)
    widget = f"{key}_{pages}"  # of another list when there are more or fewer of them
    start = (st.session_state.get(widget, 1) - 1) * _PAGE
    for row in rows[start : start + _PAGE]:
        with st.container(border=True):
            head(row)
            _sides(row, named)
    if pages > 1:
        st.pagination(pages, key=widget)


def false_match(row: Row) -> None:
    """Why the pair should not be joined, what it would have cost, and who says so."""
    colour: Literal["red", "green", "orange"] = "orange"
    if told.is_wrong(row) or row["label"]:
        colour = "red" if told.is_wrong(row) else "green"
    weight = f"{wording.counted(row['calls'], 'call')}, model cost avoided: {wording.usd(row['usd_at_stake'])}"
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.badge(f"similarity {row['cosine']:.3f}", color="gray")
        st.badge(told.judged(row), color=colour)
        st.markdown(f":gray[{text.literal(weight)}]")
    why = "; ".join(told.reasons(row))
    st.markdown(f"{text.literal(why[:1].upper() + why[1:])}.")


def _sides(row: Row, named: Names) -> None:
    """The question that was asked, and the stored one; where texts are not to be seen, where the calls are found."""
    with st.grid(2, min_column_width=300, gap="medium"):
        for side, asked, answered in named:
            if side not in row:
                continue
            with st.container():
                call = row[side]
                if call.get("question"):
                    if call.get("previous") and _is_after_another(row):
                        said("Said before", call["previous"][-1]["text"])
                    said(asked, call["question"], strong=True)
                    said(answered, call["answer"])
                else:
                    st.caption(asked)
                    st.text(place(call))


def _is_after_another(row: Row) -> bool:
    """Whether the conversations before the two questions differ."""
    return any(reason["reason"] == "conversation" for reason in row.get("reasons", ()) if isinstance(reason, Mapping))


def place(call: Row) -> str:
    """Where a call is found whose text is not shown."""
    where = call["file"] if call["line"] is None else f"{call['file']}:{call['line']}"
    return "\n".join(filter(None, (f"{call['service']}, {call['model']}", call["response_id"], where)))
