"""Content-defined pieces: where a long text is cut so that a change in one place leaves all other pieces alike.

Cuts depend on nearby text only: at line and sentence ends, around volatile spans, and, for dynamic text that no shape
knows, where it was seen to depart from the text that stood in the same place before. A break inside a block is then
found to the word, without keeping the text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from prefixscope.otel_plugin import volatile

# A line or sentence, at most 240 characters where a space allows it. Blank lines stay with the line they follow.
_UNIT = re.compile(r"[^\n.!?]{0,240}(?:\n+|[.!?]+(?:\s+|$)|[.!?]+|$)|[^\n.!?]{1,239}(?:\s|(?<=,))|[^\n.!?]{240}")
_PARAGRAPH = re.compile(r"(?s).{1,4096}?(?:\n{2,}|$)|.{4096}")
_MIN_UNIT = 32  # characters
_FINE_CHARS = 65_536  # behind this much of one segment, paragraphs will do
_WORD_EDGE = re.compile(r"[\s\"'`,:;()\[\]{}<>=|/\\]")
_MIN_SHARED = 8  # characters two units must share at their ends to be the same sentence with other words in it

Cut = tuple[str, str]
"""A piece's text and its volatile kind ("" = static as far as shapes tell)."""


@dataclass(slots=True)
class Slot:
    """What stood last in one place of the prompt (say, the system text of a service): text in memory only."""

    follows: dict[str, str] = field(default_factory=dict)  # unit -> the unit that came behind it
    templates: dict[tuple[str, str], None] = field(default_factory=dict)  # (shared head, shared tail), insertion order


def units(text: str) -> Iterator[str]:
    """Lines and sentences of ``text``; their concatenation is ``text``.

    Short ones (a brace, a bullet) are joined to what follows: alone they would be the same in every text.
    """
    fine, rest = text[:_FINE_CHARS], text[_FINE_CHARS:]
    joined = ""
    for unit in _UNIT.findall(fine):
        joined += unit
        if len(joined) >= _MIN_UNIT:
            yield joined
            joined = ""
    if joined:
        yield joined
    if rest:
        yield from _PARAGRAPH.findall(rest)


def cut_unit(unit: str, before: str, slot: Slot) -> list[Cut]:
    """Pieces of one unit not seen before; ``before`` is the unit in front of it. Learns templates into ``slot``."""
    found = list(volatile.spans(unit))
    if found:
        return _around(unit, found)
    template = _known_template(unit, slot.templates) or _learn_template(unit, slot.follows.get(before, ""), slot)
    return _inside(unit, *template) if template else [(unit, "")]


def remember(text_units: Iterable[str], slot: Slot, limit: int = 4096) -> None:
    """Makes these units the last ones seen in ``slot``."""
    before = ""
    follows: dict[str, str] = {}
    for unit in text_units:
        follows.setdefault(before, unit)
        before = unit
        if len(follows) >= limit:
            break
    slot.follows = follows


def _around(unit: str, found: list[volatile.Span]) -> list[Cut]:
    cuts: list[Cut] = []
    at = 0
    for span in found:
        cuts += [(unit[at : span.start], ""), (unit[span.start : span.end], span.kind)]
        at = span.end
    cuts.append((unit[at:], ""))
    return [cut for cut in cuts if cut[0]]


def _inside(unit: str, head: str, tail: str) -> list[Cut]:
    middle = unit[len(head) : len(unit) - len(tail)]
    return [cut for cut in ((head, ""), (middle, ""), (tail, "")) if cut[0]]


def _known_template(unit: str, templates: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    for head, tail in templates:
        if unit.startswith(head) and unit.endswith(tail) and len(unit) > len(head) + len(tail):
            return head, tail
    return None


def _learn_template(unit: str, previous: str, slot: Slot, limit: int = 64) -> tuple[str, str] | None:
    template = _shared_ends(unit, previous)
    if template and len(slot.templates) < limit:
        slot.templates[template] = None
    return template


def _shared_ends(one: str, other: str) -> tuple[str, str] | None:
    """Longest common head and tail of two texts, drawn back to word edges; None where they share too little."""
    if not other or one == other:
        return None
    shorter = min(len(one), len(other))
    head = _common_prefix(one, other, shorter)
    while head and not _WORD_EDGE.match(one[head - 1]):
        head -= 1
    tail = _common_prefix(one[::-1], other[::-1], shorter - head)
    while tail and not _WORD_EDGE.match(one[len(one) - tail]):
        tail -= 1
    if head + tail < _MIN_SHARED:
        return None
    return one[:head], one[len(one) - tail :]


def _common_prefix(one: str, other: str, limit: int) -> int:
    for index in range(limit):
        if one[index] != other[index]:
            return index
    return limit
