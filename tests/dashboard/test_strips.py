"""Two prompts laid over each other: where they part, what is stranded, and that nothing is lost in the drawing."""

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.dashboard import strips

NAMES = ("earlier", "later")
SCHEMA = {
    "segment": pl.Int64,
    "level": pl.String,
    "kind": pl.String,
    "role": pl.String,
    "marker": pl.String,
    "piece_id": pl.UInt64,
    "bytes": pl.Int64,
    "volatile": pl.String,
}


def prompt(*pieces: tuple[int, int, int]) -> pl.DataFrame:
    """Pieces as (segment, id, bytes); segment 1 is the system prompt."""
    rows: list[dict[str, Any]] = [
        {
            "segment": segment,
            "level": "system" if segment == 1 else "messages",
            "kind": "text",
            "role": "system" if segment == 1 else "user",
            "marker": "",
            "piece_id": piece,
            "bytes": size,
            "volatile": "timestamp" if piece >= 900 else "",
        }
        for segment, piece, size in pieces
    ]
    return pl.DataFrame(rows, schema=SCHEMA)


CLOCK_A = prompt((1, 1, 100), (1, 901, 20), (1, 2, 4000), (2, 3, 60))
CLOCK_B = prompt((1, 1, 100), (1, 902, 20), (1, 2, 4000), (2, 4, 60))


def kinds(found: strips.Comparison, name: str) -> list[str]:
    return found.blocks.filter(pl.col("call") == name)["what"].to_list()


def test_a_clock_strands_what_stands_behind() -> None:
    """The break is at the clock, the static text behind it is stranded, the new question is not."""
    found = strips.compare(CLOCK_A, CLOCK_B, NAMES)
    assert (found.breaks_at, found.segment, found.level) == (100, 1, "system")
    assert (found.shared, found.stranded) == (100, 4000)
    assert kinds(found, "later") == ["Same prefix", "Differs", "Same text, stranded", "New at the end", "Break"]


def test_a_longer_conversation_has_no_break() -> None:
    """What is merely added is no leak."""
    longer = pl.concat([CLOCK_A, prompt((3, 7, 500))])
    found = strips.compare(CLOCK_A, longer, NAMES)
    assert found.breaks_at is None
    assert (found.shared, found.stranded) == (CLOCK_A["bytes"].sum(), 0)
    assert set(kinds(found, "later")) == {"Same prefix", "New at the end"}


def test_tools_in_another_order_are_all_stranded() -> None:
    """From the first tool that moved."""
    one = prompt((1, 1, 300), (2, 2, 300), (3, 3, 300))
    other = prompt((2, 2, 300), (1, 1, 300), (3, 3, 300))
    found = strips.compare(one, other, NAMES)
    assert (found.breaks_at, found.stranded) == (0, 900)


def test_a_stray_line_break_is_not_stranded_text() -> None:
    """A piece of a few bytes that both hold somewhere proves nothing."""
    one = prompt((1, 1, 100), (2, 10, 200), (2, 5, 1), (2, 11, 200))
    other = prompt((1, 1, 100), (2, 20, 200), (2, 5, 1), (2, 21, 200))
    assert strips.compare(one, other, NAMES).breaks_at is None


def test_an_empty_prompt_is_compared() -> None:
    """A call whose pieces are gone gives an empty strip."""
    found = strips.compare(prompt(), CLOCK_B, NAMES)
    assert (found.shared, found.stranded, found.breaks_at) == (0, 0, None)


SIZES = (0, 1, 3, 20, 47, 48, 90, 300, 4000, 7)  # of a piece, by its id
pieces = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=12)


@given(pieces, pieces)
def test_strips_tile_their_prompts(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    """Blocks but the mark of the break stand edge to edge and make up all bytes; what is shared is at the front."""
    a, b = (prompt(*((segment, piece, SIZES[piece]) for segment, piece in sorted(side))) for side in (one, other))
    found = strips.compare(a, b, NAMES)
    for name, whole in zip(NAMES, (a, b), strict=True):
        blocks = found.blocks.filter((pl.col("call") == name) & (pl.col("what") != strips.BREAK))
        assert blocks["bytes"].sum() == whole["bytes"].sum()
        assert blocks["begin"].to_list() == [0, *blocks["end"].to_list()[:-1]]
    assert found.shared <= min(a["bytes"].sum(), b["bytes"].sum())


@pytest.mark.parametrize("same", [CLOCK_A, prompt((1, 1, 9))])
def test_a_prompt_equals_itself(same: pl.DataFrame) -> None:
    """It is all prefix."""
    found = strips.compare(same, same, NAMES)
    assert set(found.blocks["what"]) == {strips.SAME}
    assert found.shared == same["bytes"].sum()
