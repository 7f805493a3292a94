"""Volatile spans: parts of a text that tend to differ from call to call, found by their shape.

A span is only a suspicion. Whether it really changes is seen later by comparing calls; here its bounds are made exact,
so that the static text around it keeps its own identity.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_DAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,?\s)?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_ZONE = r"(?:\s?(?:Z\b|UTC|GMT|[+-]\d\d:?\d\d\b))?"
_AT = rf"(?:(?:,?\s(?:at\s)?|T){_CLOCK}{_ZONE})?"

# First match wins at each position, so longer shapes stand before the shapes they contain.
_SHAPES = {
    "uuid": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "timestamp": rf"\b\d{{4}}-\d\d-\d\d{_AT}"
    rf"|\b{_DAY}\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH},?\s\d{{4}}{_AT}"
    rf"|\b{_DAY}{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}}{_AT}"
    rf"|\b\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{4}}\b{_AT}"
    rf"|\b{_CLOCK}{_ZONE}",
    "epoch": r"\b1[5-9]\d{8}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?\b",
    "address": r"\b\d{1,3}(?:\.\d{1,3}){3}\b",
    "hash": r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b|\b(?=[0-9A-F]*\d)[0-9A-F]{12,}\b",
    "random_id": r"\b[A-Za-z]{2,12}[-_](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{8,}\b",
    "path": r"(?<![\w/:.])(?:/home|/Users|/tmp|/var/folders|/root|/workspaces?|/mnt)(?:/[\w.@+-]+)+"
    r"|\b[A-Za-z]:\\Users(?:\\[\w.@+-]+)+",
    "counter": r"#\d+\b|\b\d{5,}\b",
}
KINDS = tuple(_SHAPES)
_SPAN = re.compile("|".join(f"(?P<{kind}>{shape})" for kind, shape in _SHAPES.items()))
_WORTH_A_LOOK = re.compile(r"\d|/home|/Users|/root|\\Users")  # every shape but a path holds a digit


@dataclass(frozen=True, slots=True)
class Span:
    kind: str  # one of KINDS
    start: int  # character offsets
    end: int


def spans(text: str) -> Iterator[Span]:
    """Volatile spans of ``text``, left to right, not overlapping."""
    if _WORTH_A_LOOK.search(text):
        for match in _SPAN.finditer(text):
            yield Span(match.lastgroup or "", match.start(), match.end())
