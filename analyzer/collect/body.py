"""The body of an HTTP request, read and decompressed within limits: whoever sends it is not trusted."""

import time
import zlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Protocol

LIMIT: Final = 20 << 20  # bytes, before and after decompression; what the OTLP specification recommends
_PATIENCE: Final = 30.0  # seconds for a whole body
_PIECE: Final = 1 << 16  # bytes read at a time
_LINE: Final = 1024  # bytes of a line between two chunks
_WBITS: Mapping[str, int] = {"gzip": 31, "deflate": 15}  # zlib's numbers for the two formats


class RefusedError(Exception):
    """The request cannot be taken; ``status`` and the message are the answer."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


class Readable(Protocol):
    """A stream of bytes that may give fewer than asked for only at its end."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes."""

    def readline(self, size: int, /) -> bytes:
        """Up to and with the next line feed, at most ``size`` bytes."""


def read(stream: Readable, headers: Mapping[str, str]) -> bytes:
    """The decompressed body that ``headers`` (names in lower case) announce.

    Raises:
        RefusedError: too large, too slow, cut off, damaged, or of unknown length or encoding.
        OSError: the connection broke.
    """
    if "transfer-encoding" in headers:
        data = _chunked(stream, headers)
    else:
        data = _exactly(stream, _length(headers), time.monotonic() + _PATIENCE)
    return _decoded(data, headers.get("content-encoding", "identity").strip().lower())


def _length(headers: Mapping[str, str]) -> int:
    told = headers.get("content-length", "").strip()
    if not told:
        raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "a request without Content-Length")
    if not (told.isascii() and told.isdecimal()):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "Content-Length is no number")
    return _small_enough(int(told[:20]))


def _small_enough(size: int) -> int:
    if size > LIMIT:
        raise RefusedError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {LIMIT >> 20} MiB: export smaller batches"
        )
    return size


def _exactly(stream: Readable, size: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < size:
        piece = stream.read(min(size - len(found), _PIECE))
        if not piece:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the body ends before its announced length")
        if time.monotonic() > deadline:
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the body comes too slowly")
        found += piece
    return bytes(found)


def _chunked(stream: Readable, headers: Mapping[str, str]) -> bytes:
    """A body in chunks (RFC 9112 §7.1), as the SDK for JavaScript sends it; trailers are read and ignored."""
    if headers["transfer-encoding"].strip().lower() != "chunked" or "content-length" in headers:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body's length is told in a way that is not clear")
    deadline = time.monotonic() + _PATIENCE
    found = bytearray()
    while size := _chunk_size(stream):
        _small_enough(len(found) + size)
        found += _exactly(stream, size, deadline)
        if stream.readline(_LINE).strip():
            raise RefusedError(HTTPStatus.BAD_REQUEST, "a chunk is longer than it says")
    while stream.readline(_LINE).strip():
        if time.monotonic() > deadline:
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, "the trailers do not end")
    return bytes(found)


def _chunk_size(stream: Readable) -> int:
    told = stream.readline(_LINE).partition(b";")[0].strip()
    try:
        return int(told, 16) if told.isalnum() and len(told) <= 16 else _no_chunk()
    except ValueError:
        return _no_chunk()


def _no_chunk() -> int:
    raise RefusedError(HTTPStatus.BAD_REQUEST, "a chunk does not begin with its size")


def _decoded(data: bytes, encoding: str) -> bytes:
    if encoding in {"identity", ""}:
        return data
    if encoding not in _WBITS:
        raise RefusedError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Encoding {encoding[:40]!r}: send gzip, deflate or none"
        )
    unpacker = zlib.decompressobj(wbits=_WBITS[encoding])
    try:
        found = unpacker.decompress(data, LIMIT + 1)
    except zlib.error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"the body is no {encoding} data") from None
    _small_enough(len(found))
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"the {encoding} data ends too early or has something behind it")
    return found
