"""Cuts the content of a file into documents, whatever way they are laid out. What a document means is not known here.

The layout is told by looking at the beginning of the content:

* JSON lines: one document a line. A bad line costs that line.
* JSON values: pretty-printed documents, one after the other or as the elements of one big array.
* messages: a 4-byte big-endian length before each, as the collector's file exporter writes protobuf (and, with its
  older zstd setting, JSON too, each message compressed by itself).
* one protobuf message that fills the file.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import orjson

from prefixscope.analyzer.ingest import unpack

MAX_DOCUMENT = 64 << 20  # bytes of one line, value or message: larger ones are passed over without being kept
HEAD = 1 << 16  # bytes looked at to tell the layout
_BOM = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
_PROTO_FIRST = 0x0A  # field 1, length-delimited: how every OTLP export request begins
_FOREIGN = {  # beginnings of formats that people try, and what to do instead
    b"PAR1": "a Parquet file: export it as JSON lines",
    b"PK\x03\x04": "a zip archive: unpack it",
    b"SQLite format 3": "an SQLite database: export it as JSON lines",
    b"BZh": "bzip2: unpack it, or compress with gzip or zstd",
    b"\xfd7zXZ": "xz: unpack it, or compress with gzip or zstd",
    b"\xff\xfe": "UTF-16 text: write it as UTF-8",
    b"\xfe\xff": "UTF-16 text: write it as UTF-8",
    b"\x89PNG\r\n": "a PNG image, not a log",
    b"\xff\xd8\xff": "a JPEG image, not a log",
    b"GIF8": "a GIF image, not a log",
    b"%PDF-": "a PDF document, not a log",
    b"\x7fELF": "a program, not a log",
    b"<": "HTML or XML, not a log in JSON",
}


class UnknownFormatError(ValueError):
    """Nothing here can be read; the message says what was seen and what is expected."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One document's bytes. ``flaw`` says why they are no document; then ``data`` is empty."""

    line: int  # 1-based; of messages: their number
    data: bytes = b""
    flaw: str = ""


def frames(chunks: Iterator[bytes]) -> Iterator[Frame]:
    """The documents in ``chunks``, in bounded memory.

    Raises:
        UnknownFormatError: neither JSON nor OTLP protobuf.
        BrokenError: of ``chunks``, after the documents before the damage.
    """
    source = Source(chunks)
    head = source.peek(HEAD)
    if head.startswith(_BOM):
        source.take(len(_BOM))
        head = head[len(_BOM) :]
    if not head.strip(_SPACE):
        return _empty(source)
    if _is_messages(head):
        return _messages(source)
    if head[0] == _PROTO_FIRST and not _is_text(head):
        return _whole(source)
    layout = _json_layout(head)
    if layout is None:
        raise UnknownFormatError(_unknown(head))
    return layout(source)


class Source:
    """A stream of bytes that can be looked at before it is taken."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._seen = b""
        self._broken: unpack.BrokenError | None = None  # raised once everything before the damage is taken

    def peek(self, size: int) -> bytes:
        """Up to ``size`` bytes from here on, less only at the end; they stay."""
        parts, have = [self._seen], len(self._seen)
        while have < size and (chunk := self._next()):
            parts.append(chunk)
            have += len(chunk)
        self._seen = b"".join(parts)
        return self._seen[:size]

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes, less only at the end."""
        found = self.peek(size)
        if len(found) < size and self._broken:
            raise self._broken
        self._seen = self._seen[size:]
        return found

    def skip(self, size: int) -> None:
        """Passes over ``size`` bytes without keeping them."""
        while size > 0 and (piece := self.take(min(size, unpack.CHUNK))):
            size -= len(piece)

    def rest(self) -> Iterator[bytes]:
        """Everything from here on, in pieces."""
        if self._seen:
            seen, self._seen = self._seen, b""
            yield seen
        while chunk := self._next():
            yield chunk
        if self._broken:
            raise self._broken

    def _next(self) -> bytes:
        try:
            return next(self._chunks, b"")
        except unpack.BrokenError as error:
            self._broken = error
            return b""


def _is_messages(head: bytes) -> bool:
    size = int.from_bytes(head[:4], "big")
    body = head[4:]
    return 0 < size <= MAX_DOCUMENT and (body[:1] in {b"{", b"\x0a"} or unpack.is_zstd(body[:4]))


def _is_text(head: bytes) -> bool:
    """A file may begin with a blank line, which is also the first byte of a protobuf message."""
    return head.lstrip(_SPACE)[:1] in {b"{", b"["} and b"\x00" not in head


def _json_layout(head: bytes) -> Callable[[Source], Iterator[Frame]] | None:
    """How the JSON that begins with ``head`` is laid out; None if it is no JSON."""
    whole = head.split(b"\n") if len(head) < HEAD else head.split(b"\n")[:-1]
    first = next((line for line in whole if line.strip(_SPACE)), b"")
    begin = head.lstrip(_SPACE)
    if begin[:1] == b"[" and not _is_json(first):
        return _values if begin[1:].lstrip(_SPACE)[:1] in {b"{", b"[", b"]"} else None
    # an indented line is part of a document, whatever it looks like
    if any(line[:1] in {b"{", b"["} and _is_json(line) for line in whole) or _is_one_long_line(head):
        return _lines
    return _values if begin[:1] == b"{" else None


def _is_one_long_line(head: bytes) -> bool:
    """An object that goes on beyond the head."""
    begin = head.strip(_SPACE)
    return begin[:1] == b"{" and b"\n" not in begin


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _unknown(head: bytes) -> str:
    foreign = next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), "")
    if head[8:12] == b"DUCK":
        foreign = "a DuckDB database: give it as the store, not as input"
    seen = foreign or f"begins with {_readable(head)}"
    expected = "OTLP (JSON or protobuf), a request log (a JSON object a line) or the transcript of an agent"
    return f"unknown format: {seen}. Expected {expected}"


def _readable(head: bytes) -> str:
    """The first characters; of what is no text nothing, since nobody can read it."""
    begin = head[:24].decode("utf-8", "ignore").strip()
    return repr(begin) if "".join(begin.split()).isprintable() and begin else "bytes that are no text"


def _empty(source: Source) -> Iterator[Frame]:
    """Raises BrokenError if there is nothing because of damage."""
    if any(chunk.strip(_SPACE) for chunk in source.rest()):
        raise UnknownFormatError("unknown format: it begins with a lot of white space")
    raise UnknownFormatError("the file is empty")


def _whole(source: Source) -> Iterator[Frame]:
    data = source.take(MAX_DOCUMENT + 1)
    yield Frame(1, flaw=_too_large("the protobuf message")) if len(data) > MAX_DOCUMENT else Frame(1, data)


def _messages(source: Source) -> Iterator[Frame]:
    number = 0
    while prefix := source.take(4):
        number += 1
        size = int.from_bytes(prefix, "big")
        if size > MAX_DOCUMENT:
            yield Frame(number, flaw=_too_large("the message"))
            source.skip(size)
            continue
        data = source.take(size)
        if len(prefix) < 4 or len(data) < size:
            yield Frame(number, flaw="the file ends inside a message: copy it again, or wait until it is written")
        else:
            yield _message(number, data)


def _message(number: int, data: bytes) -> Frame:
    try:
        return Frame(number, unpack.zstd_message(data, MAX_DOCUMENT) if unpack.is_zstd(data) else data)
    except unpack.BrokenError as error:
        return Frame(number, flaw=str(error))


def _lines(source: Source) -> Iterator[Frame]:
    """Every line that is not blank. A line over the limit is read past, not kept."""
    pending: list[bytes] = []  # the pieces of the line that is open
    number, size = 1, 0
    for chunk in source.rest():
        head, *lines = chunk.split(b"\n")
        size += len(head)
        pending = [*pending, head] if size <= MAX_DOCUMENT else []
        if lines:
            yield from _line(number, pending, size)
            for at, line in enumerate(lines[:-1], number + 1):
                yield from _line(at, [line], len(line))
            number, pending, size = number + len(lines), [lines[-1]], len(lines[-1])
    yield from _line(number, pending, size)


def _line(number: int, parts: list[bytes], size: int) -> Iterator[Frame]:
    line = b"".join(parts)
    if size > MAX_DOCUMENT:
        yield Frame(number, flaw=_too_large("the line"))
    elif line and not line.isspace():
        yield Frame(number, line)


def _too_large(what: str) -> str:
    return f"{what} is larger than {MAX_DOCUMENT >> 20} MiB: split it, or export fewer spans a batch"


_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]|"', re.DOTALL)


def _values(source: Source) -> Iterator[Frame]:
    splitter = _Splitter()
    for chunk in source.rest():
        yield from splitter.feed(chunk)
    yield from splitter.end()


@dataclass(slots=True)
class _Splitter:
    """Finds JSON values in a growing buffer by counting brackets outside of strings."""

    buffer: bytes = b""
    scanned: int = 0  # the buffer is looked through up to here
    done: int = 0  # and handed on, or known to be white space, up to here
    line: int = 1  # the line number at ``done``
    depth: int = 0  # open brackets
    base: int = 0  # the depth at which documents begin: 1 inside a top-level array
    too_large: bool = False  # the value that is open is passed over

    def feed(self, data: bytes) -> Iterator[Frame]:
        self.buffer += data
        for token in _TOKEN.finditer(self.buffer, self.scanned):
            mark = token[0]
            self.scanned = token.start() if mark == b'"' else token.end()
            if mark == b'"':
                break  # a string that goes on beyond the buffer
            if mark in {b"{", b"["}:
                yield from self._open(token.start(), mark)
            elif mark in {b"}", b"]"}:
                yield from self._close(token.end(), mark)
        else:
            self.scanned = len(self.buffer)
        if self.depth > self.base and len(self.buffer) - self.done > MAX_DOCUMENT:
            self._pass_over()
        elif self.depth == self.base and self.scanned - self.done > HEAD:
            yield from self._between(self.scanned)
            self._advance(self.scanned)
        self.buffer, self.scanned, self.done = self.buffer[self.done :], self.scanned - self.done, 0

    def end(self) -> Iterator[Frame]:
        if self.depth:
            yield Frame(self.line, flaw="the file ends inside a JSON value: copy it again, or wait until it is written")
        else:
            yield from self._between(len(self.buffer))

    def _open(self, start: int, mark: bytes) -> Iterator[Frame]:
        if self.depth == self.base:
            yield from self._between(start)
            self._advance(start)
        if self.depth == 0 and mark == b"[":
            self.base = 1
            self._advance(start + 1)
        self.depth += 1

    def _close(self, end: int, mark: bytes) -> Iterator[Frame]:
        self.depth -= 1
        if self.depth == self.base:
            yield self._value(end)
            self._advance(end)
            self.too_large = False
        elif self.depth < self.base:
            yield from self._between(end - 1)
            if self.base == 0 or mark == b"}":
                yield Frame(self.line, flaw="a bracket is closed that was never opened")
            self._advance(end)
            self.depth = self.base = 0

    def _value(self, end: int) -> Frame:
        if self.too_large or end - self.done > MAX_DOCUMENT:
            return Frame(self.line, flaw=_too_large("the value"))
        return Frame(self.line, self.buffer[self.done : end])

    def _between(self, end: int) -> Iterator[Frame]:
        """Between two documents there is white space or a comma, or else something is wrong."""
        if self.buffer[self.done : end].strip(b" \t\r\n,"):
            yield Frame(self.line, flaw="there is text here that is no JSON object")

    def _advance(self, to: int) -> None:
        self.line += self.buffer.count(b"\n", self.done, to)
        self.done = to

    def _pass_over(self) -> None:
        """Forgets what is open, except that a string is open and whether its next character is escaped."""
        self.too_large = True
        self._advance(self.scanned)
        tail = self.buffer[self.scanned :]
        if tail:
            self.line += tail.count(b"\n")
            escapes = tail[len(tail.rstrip(b"\\")) :]
            self.buffer, self.scanned, self.done = b'"' + escapes, 0, 0
