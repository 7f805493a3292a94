"""Whether two recorded answers say the same: the label that traffic itself gives a pair of questions.

Pure. Models word one answer in many ways, so a difference in wording says little; a difference in numbers, links, code
or in yes and no says much. What is neither is unclear and left to a person.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal

from prefixscope.analyzer.semantic import guards
from prefixscope.analyzer.semantic.parsed import parsed
from prefixscope.analyzer.semantic.words import canonical

Verdict = Literal["same", "different", "unclear"]

AS_LABEL: Final[Mapping[Verdict, bool | None]] = {"same": True, "different": False, "unclear": None}
"""Whether one answer does for both questions, as far as the answers tell."""

ALIKE: Final = 0.90  # cosine of two answers from which on they are taken for one, if no fact differs
UNLIKE: Final = 0.50  # and below which they are taken for two
_YES: Final = re.compile(r"(yes|yeah|yep|correct|certainly|of course|absolutely)\b")
_NO: Final = re.compile(r"(no|nope|not|unfortunately|sorry|i'm sorry|i am sorry|you can not|you can't|cannot)\b")


def verdict(one: str, other: str, cosine: float | None) -> Verdict:
    """What two answers are to each other. ``cosine`` is that of their vectors, None where there are none."""
    a, b = canonical(one), canonical(other)
    if a == b:
        return "same"
    if _says(a) and _says(b) and _says(a) != _says(b):
        return "different"
    if _facts_differ(one, other) or (cosine is not None and cosine < UNLIKE):
        return "different"
    return "same" if cosine is not None and cosine >= ALIKE and not _contrary(one, other) else "unclear"


def _says(text: str) -> str:
    return "yes" if _YES.match(text) else "no" if _NO.match(text) else ""


def _facts_differ(one: str, other: str) -> bool:
    """Both state numbers or code, and neither states all that the other does."""
    a, b = parsed(one), parsed(other)
    numbers = {value for value, _ in a.numbers}, {value for value, _ in b.numbers}
    return any(left and right and not (left <= right or right <= left) for left, right in (numbers, (a.code, b.code)))


def _contrary(one: str, other: str) -> bool:
    """A guard finds in two answers that are worded alike what would make two questions different."""
    found = guards.compare(one, other).reasons
    return bool({"negation", "opposite", "name", "number", "unit"} & set(found))
