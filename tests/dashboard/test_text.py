"""Names stay text, figures read well."""

import doctest
from datetime import date

import pytest

from dashboards import HOSTILE
from prefixscope.dashboard import text


def test_the_examples_in_docstrings_are_true() -> None:
    """Every one of them."""
    assert doctest.testmod(text).failed == 0


@pytest.mark.parametrize("name", [*HOSTILE, "https://evil.example/x", "www.evil.example", "a@evil.example", "a\n# b"])
def test_markdown_of_a_name_is_the_name(name: str) -> None:
    """Every active character is escaped, and what looks like a link is broken up."""
    shown = text.literal(name)
    bare = shown.replace("\\", "").replace("\u2060", "")
    assert bare == name.replace("\\", "")
    for active in "`*_[]<>$:#|~":
        assert shown.count(active) == shown.count(f"\\{active}")
    for link in ("http:", "https:", "www.", "a@"):
        assert link not in shown.replace("\\", "")


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", " =", "\t=", "\uff1d"])
def test_a_cell_is_no_formula(begin: str) -> None:
    """An apostrophe makes it text."""
    assert text.cell(f"{begin}1+1").startswith("'")


def test_a_name_is_left_alone() -> None:
    """Most are harmless."""
    assert text.cell("support-bot") == "support-bot"


@pytest.mark.parametrize(
    ("monday", "shown"),
    [(date(2026, 11, 16), "16–22 Nov 2026"), (date(2026, 11, 30), "30 Nov – 6 Dec 2026")],
)
def test_a_week_is_named_by_its_days(monday: date, shown: str) -> None:
    """Across months, too."""
    assert text.week(monday) == shown


@pytest.mark.parametrize(
    ("ms", "shown"), [(12, "12 ms"), (2_000, "2 s"), (300_000, "5 min"), (5_400_000, "1.5 h"), (172_800_000, "2 d")]
)
def test_spans_of_time_read_well(ms: float, shown: str) -> None:
    """In the largest unit that fits."""
    assert text.minutes(ms) == shown
