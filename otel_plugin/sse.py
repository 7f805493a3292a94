"""Server-sent events -> JSON objects (WHATWG HTML, section 9.2), fed in any slicing of the bytes."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


def decode(data: bytes | str, *, wanted: re.Pattern[bytes] | None = None) -> Iterator[dict[str, Any]]:
    """The JSON objects of a whole event stream; ``wanted`` as in ``Decoder``."""
    decoder = Decoder(wanted)
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    yield from decoder.feed(_sifted(raw, wanted) if wanted else raw)
    yield from decoder.close()


def _sifted(data: bytes, wanted: re.Pattern[bytes]) -> bytes:
    """The first event and those in which ``wanted`` matches: one search over all of them, as most do not count."""
    if b"\r" in data:
        return data
    end = end_of_event(data, data.find(b"data:"))
    kept = [data[:end]]
    for match in wanted.finditer(data, end):
        if match.start() >= end:
            start = data.rfind(b"\n\n", end, match.start())
            start, end = (start if start >= 0 else end), end_of_event(data, match.end())
            kept.append(data[start:end])
    return b"".join(kept)


def end_of_event(data: bytes, position: int) -> int:
    """Behind the blank line that ends the event at ``position``."""
    found = data.find(b"\n\n", max(position, 0))
    return len(data) if found < 0 else found + 2


@dataclass(slots=True)
class Decoder:
    """Incremental decoder: ``feed`` chunks as they arrive, ``close`` at the end of the body.

    With ``wanted``, only the first event and those whose raw JSON matches are parsed. Data that is no JSON object
    (``[DONE]``, a broken event) is skipped and counted in ``skipped``. Nothing raises.
    """

    wanted: re.Pattern[bytes] | None = None
    skipped: int = 0
    _pending: list[bytes] = field(default_factory=list)  # chunks of an unfinished line
    _data: list[bytes] = field(default_factory=list)  # data lines of an unfinished event
    _lines_seen: bool = False
    _events_seen: bool = False

    def feed(self, chunk: bytes) -> list[dict[str, Any]]:
        """The events that ``chunk`` completes."""
        self._pending.append(chunk)
        if not _LINE_END.search(chunk):
            return []
        return [event for line in self._complete_lines() for event in self._take(line)]

    def close(self) -> list[dict[str, Any]]:
        """The last event, if the body ended without the blank line that should follow it."""
        self._pending.append(b"\n\n")
        return [event for line in self._complete_lines() for event in self._take(line)]

    def _complete_lines(self) -> list[bytes]:
        buffer = b"".join(self._pending)
        if not self._lines_seen:
            buffer = buffer.removeprefix(_BOM)
        self._lines_seen = True
        # A carriage return at the very end may be half of CRLF: it waits for the next chunk.
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, tail = _LINE_END.split(buffer.removesuffix(held))
        self._pending = [tail + held]
        return lines

    def _take(self, line: bytes) -> Iterator[dict[str, Any]]:
        """Fields other than ``data`` and comments say nothing about usage."""
        if line.startswith(b"data:"):
            self._data.append(line[5:])  # JSON does not mind the optional space
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            yield from self._parse(data)

    def _parse(self, data: bytes) -> Iterator[dict[str, Any]]:
        first, self._events_seen = not self._events_seen, True
        if self.wanted and not first and not self.wanted.search(data):
            return
        try:
            event = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):  # not JSON, or nested beyond reason
            event = None
        if isinstance(event, dict):
            yield event
        else:
            self.skipped += 1
