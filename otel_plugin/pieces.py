"""Content-defined pieces: where a text is cut so that a change in one place leaves all other pieces alike.

Cuts depend on nearby text alone, never on what was seen before: two hosts cut one text alike. Lines and sentences are
the units; around volatile spans, and everywhere in the head of a segment, units are cut finer, so that dynamic text
which no shape knows costs its few neighbouring words and not its whole sentence.
"""

import re
from collections.abc import Iterator

from prefixscope.otel_plugin import volatile

_FINE_CHARS = 8_192  # of a segment: cut to a few words
_UNIT_CHARS = 65_536  # of a segment: cut to lines and sentences; behind it paragraphs will do
_MIN_UNIT = 32  # characters
# A line or sentence, at most 240 characters where a space allows it. Blank lines stay with the line they follow.
_UNIT = re.compile(r"[^\n.!?]{0,240}(?:\n+|[.!?]+(?:\s+|$)|[.!?]+|$)|[^\n.!?]{1,239}(?:\s|(?<=,))|[^\n.!?]{240}")
_PARAGRAPH = re.compile(r"(?s).{1,4096}?(?:\n{2,}|$)|.{4096}")
# A few words: up to the first that ends in one of these letters, or to a mark that parts what is around it.
_WORDS = re.compile(r"(?s).{12,48}?(?:[densty]\s+|[,;:)}\]>]\s*|$)|.{1,48}")

Cut = tuple[str, str]
"""A piece's text and its volatile kind ("" = static as far as shapes tell)."""


def units(text: str) -> Iterator[tuple[str, bool]]:
    """Lines and sentences of ``text``, and whether each is to be cut finer; their concatenation is ``text``.

    Short ones (a brace, a bullet) are joined to what follows: alone they would be the same in every text.
    """
    joined = ""
    done = 0
    for unit in _UNIT.findall(text[:_UNIT_CHARS]):
        joined += unit
        if len(joined) >= _MIN_UNIT:
            yield joined, done < _FINE_CHARS
            done += len(joined)
            joined = ""
    if joined:
        yield joined, done < _FINE_CHARS
    for paragraph in _PARAGRAPH.findall(text[_UNIT_CHARS:]):
        yield paragraph, False


def cut(unit: str, *, fine: bool) -> Iterator[Cut]:
    """Pieces of one unit, in order; their concatenation is ``unit``."""
    at = 0
    for span in volatile.spans(unit):
        yield from _static(unit[at : span.start], fine=fine)
        yield unit[span.start : span.end], span.kind
        at = span.end
    yield from _static(unit[at:], fine=fine)


def _static(text: str, *, fine: bool) -> Iterator[Cut]:
    if text:
        yield from ((words, "") for words in (_WORDS.findall(text) if fine else [text]))
