"""JSON of request bodies, parsed once: a conversation sends its tools and messages again with every turn.

Parsing is most of what a long prompt costs on the worker's thread, and it holds the interpreter's lock. Two things are
remembered of a body that is an object. Where a body begins as an earlier one did, up to the end of a long element, its
bytes up to there are compared and not even decoded. Elsewhere members and the elements of those that are arrays are
read one by one, and long ones that were seen before are recognised by their text.
"""

import json
from itertools import islice
from json.decoder import WHITESPACE, scanstring  # type: ignore[attr-defined]
from typing import Any, NamedTuple

from prefixscope.otel_plugin.fingerprint import Memo

_HEAD = 256  # characters by which a value is looked up; the last one with that beginning is remembered
_BEGINNING = 64  # bytes by which earlier bodies are looked up
_BODIES = 8  # beginnings that are remembered of bodies that begin alike: conversations take turns
_LONG = 1024  # characters from which on remembering pays
_SELF_DELIMITING = frozenset('{["')  # a number may go on: 12 is no prefix of 123

_scan = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


class _Known(NamedTuple):
    text: str
    value: Any


class _Begun(NamedTuple):
    """How far a body was read when a long element of an array ended: everything before ``end`` is in here."""

    data: bytes
    end: int
    members: dict[str, Any]
    name: str  # of the member that is an array
    elements: list[Any]


class JsonMemo:
    """``loads`` as ``json.loads``, to the last detail; what it returns is shared and must not be changed.

    Not thread safe. ``memory`` bounds the characters that are held.
    """

    def __init__(self, memory: int) -> None:
        self._known: Memo[str, _Known] = Memo(memory // 2)
        self._bodies: Memo[bytes, tuple[_Begun, ...]] = Memo(memory // 2)

    def loads(self, data: bytes) -> Any:
        """The value of ``data``.

        Raises:
            ValueError: it is no JSON.
            RecursionError: it is nested beyond reason.
        """
        try:
            if data[:1] == b"{" and data[1:2] not in {b"", b"\x00"}:
                return self._object(data)
        except (StopIteration, IndexError, ValueError):
            pass  # json itself knows best what is wrong
        return json.loads(data)

    def _object(self, data: bytes) -> dict[str, Any]:
        begun = self._begun(data)
        text = data[begun.end if begun else 0 :].decode("utf-8", "surrogatepass")
        reading = _Reading(text, self)
        found = reading.resumed(begun) if begun else reading.whole()
        if reading.marks:
            self._remember(data, reading, begun)
        return found

    def _begun(self, data: bytes) -> _Begun | None:
        """The longest earlier beginning of ``data``."""
        candidates = self._bodies.get(data[:_BEGINNING]) or ()
        same = [one for one in candidates if data.startswith(memoryview(one.data)[: one.end])]
        return max(same, key=lambda one: one.end, default=None)

    def _remember(self, data: bytes, reading: "_Reading", begun: _Begun | None) -> None:
        skipped = begun.end if begun else 0
        new = []
        for (name, _), mark in reading.marks.items():
            end = skipped + len(reading.text[: mark.position].encode("utf-8", "surrogatepass"))
            members = dict(islice(reading.found.items(), mark.before))
            new.append(_Begun(data, end, members, name, reading.found[name][: mark.elements]))
        others = [one for one in self._bodies.get(data[:_BEGINNING]) or () if one is not begun]
        used = [begun] if begun else []
        self._bodies.put(data[:_BEGINNING], (*new, *used, *others)[:_BODIES], len(data))

    def value(self, text: str, position: int) -> tuple[Any, int, bool]:
        """The value that begins at ``position``, where it ends, and whether it was seen before."""
        head = text[position : position + _HEAD]
        known = self._known.get(head)
        if known is not None and text.startswith(known.text, position):
            return known.value, position + len(known.text), True
        value, end = _scan(text, position)
        if end - position >= _LONG and text[position] in _SELF_DELIMITING:
            self._known.put(head, _Known(text[position:end], value), 2 * (end - position))
        return value, end, False


class _Mark(NamedTuple):
    """Where the last long element of an array ended."""

    position: int
    before: int  # members before the array
    elements: int  # up to here


class _Reading:
    """One pass over an object's text.

    ``marks`` are by the name of the array, as it is not known which one will grow, and whether the element was seen
    before: then more bodies are likely to begin like that, and else perhaps the next turn of this conversation.

    Raises ValueError, StopIteration or IndexError where the text is no JSON.
    """

    def __init__(self, text: str, memo: JsonMemo) -> None:
        self.text = text
        self.found: dict[str, Any] = {}
        self.marks: dict[tuple[str, bool], _Mark] = {}
        self._memo = memo
        self._at = 0

    def whole(self) -> dict[str, Any]:
        self._at = 1
        if self._next() == "}":
            self._at += 1
        else:
            self._members()
        return self._ended()

    def resumed(self, begun: _Begun) -> dict[str, Any]:
        self.found = dict(begun.members)
        self._elements(begun.name, list(begun.elements))
        if self._next() == ",":
            self._at += 1
            self._members()
        else:
            self._expect("}")
        return self._ended()

    def _members(self) -> None:
        while True:
            self._next()
            self._expect('"')
            name, self._at = scanstring(self.text, self._at, True)
            self._next()
            self._expect(":")
            self._member(name)
            if self._next() == "}":
                self._at += 1
                return
            self._expect(",")

    def _member(self, name: str) -> None:
        if name in self.found:
            raise ValueError(name)  # given twice: too rare to be quick
        if self._next() != "[":
            self.found[name], self._at, _ = self._memo.value(self.text, self._at)
            return
        self._at += 1
        if self._next() == "]":
            self._at += 1
            self.found[name] = []
        else:
            self._elements(name, [], first=True)

    def _elements(self, name: str, elements: list[Any], *, first: bool = False) -> None:
        """The rest of an array; ``first``: no element of it has been read."""
        before = len(self.found)
        self.found[name] = elements
        while first or self._next() == ",":
            self._at += not first
            first = False
            self._next()
            start = self._at
            value, self._at, seen = self._memo.value(self.text, start)
            elements.append(value)
            if self._at - start >= _LONG:
                self.marks[name, seen] = _Mark(self._at, before, len(elements))
        self._expect("]")

    def _next(self) -> str:
        """The next character that is no white space, which ``_at`` points to then."""
        space = WHITESPACE.match(self.text, self._at)
        assert space is not None  # it may be empty
        self._at = space.end()
        return self.text[self._at]

    def _expect(self, character: str) -> None:
        if self.text[self._at] != character:
            raise ValueError(character)
        self._at += 1

    def _ended(self) -> dict[str, Any]:
        if self.text[self._at :].strip(" \t\r\n"):
            raise ValueError("more follows")
        return self.found
