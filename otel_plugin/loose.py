"""Values of JSON that nobody has checked: every function takes anything and answers with the type it promises."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

MAX_COUNT: Final = 1 << 53  # above it JSON numbers are no longer exact: no token count is that large


def mapping(value: Any) -> Mapping[str, Any]:
    """An object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> Sequence[Any]:
    """The items of a list; anything else has none."""
    return value if isinstance(value, list) else ()


def text(value: Any) -> str:
    """A string; numbers are spelled out, anything else is ""."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def number(value: Any) -> float | None:
    """A finite number that is not negative, also from a string; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found >= 0 else None


def count(value: Any) -> int | None:
    """A whole number of tokens, also from a string; None for anything that is not one."""
    if type(value) is int:  # the common case first: this runs for every attribute
        return value if 0 <= value <= MAX_COUNT else None
    found = number(value)
    return int(found) if found is not None and found <= MAX_COUNT and found.is_integer() else None


def values(places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[Any]:
    """The values under ``names``, in their order, in each of the places; a dotted name may also be a path."""
    found = []
    for name in names:
        for place in places:
            value = place.get(name)
            if value is None and "." in name:
                holder, _, key = name.partition(".")
                value = mapping(place.get(holder)).get(key)
            if value is not None:
                found.append(value)
    return found
