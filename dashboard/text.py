"""Texts and figures for pages. Names from traces are shown as they are, and nothing in them is interpreted."""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from prefixscope.analyzer.report import wording

_ACTIVE: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&^=])")
_LINK: Final = re.compile(  # Markdown links what looks so; Streamlit draws :names:, escaped or not
    r"https?(?=:)|ftp(?=:)|www(?=\.)|\w(?=@)|:(?=[a-z+-][\w/+-]*:)", re.IGNORECASE
)
_STARTS_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # noqa: RUF001 - as spreadsheets do
_CAUSES: Final = {"ttl_lapse": "Lifetime lapsed", "ttl_class_switched": "Lifetime switched"}  # where TTL reads badly
BUCKETS: Final = {"read": "Read from cache", "write": "Written to cache", "uncached": "Uncached"}


def literal(text: str) -> str:
    r"""``text`` for Markdown, with everything in it that Markdown or Streamlit would interpret made plain.

    >>> literal("a ![x](y) $1")
    'a \\!\\[x\\]\\(y\\) \\$1'
    """
    return _ACTIVE.sub(r"\\\1", _LINK.sub("\\g<0>\u2060", text))


def cell(text: str) -> str:
    """A name for a table that can be downloaded: no spreadsheet runs it as a formula."""
    return f"'{text}" if text.lstrip().startswith(_STARTS_FORMULA) else text


def cause(name: str) -> str:
    """``ttl_lapse`` -> ``Lifetime lapsed``; a cause that has no name here shows its own."""
    return _CAUSES.get(name, name.replace("_", " ").capitalize())


def fix(name: str) -> str:
    """``move_volatile`` -> what it does, in words."""
    told = wording.OPTIONS.get(name, name.replace("_", " "))
    return f"{told[:1].upper()}{told[1:]}"


def moment(told: str) -> str:
    """``2026-11-30T12:00:00Z`` -> ``2026-11-30 12:00 UTC``."""
    return f"{told[:16].replace('T', ' ')} UTC"


def usd_range(ends: Mapping[str, float]) -> str:
    return wording.usd_range(ends)


def week(first: date) -> str:
    """``16–22 Nov 2026``, ``30 Nov – 6 Dec 2026``."""
    last = first + timedelta(days=6)
    if first.month == last.month:
        return f"{first.day}–{last.day} {last:%b %Y}"
    return f"{first.day} {first:%b} – {last.day} {last:%b %Y}"


def percent_change(now: float | None, before: float | None) -> str | None:
    """``+3.1%``; None where there is nothing to compare with."""
    if now is None or not before:
        return None
    return f"{now / before - 1:+.1%}"


def points(now: float | None, before: float | None) -> str | None:
    """Difference of two shares in percentage points."""
    if now is None or before is None:
        return None
    return f"{100 * (now - before):+.1f} pp"


def minutes(ms: float) -> str:
    """A span of time in the unit that reads best."""
    for size, unit in ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")):
        if ms >= size:
            return f"{ms / size:.3g} {unit}"
    return f"{ms:.0f} ms"


def facts(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Evidence as lines of name and value."""
    return [(name.replace("_", " "), _value(value)) for name, value in evidence.items()]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
