"""Events as bytes, and bytes as the network carries them: framed, compressed, cut."""

import json
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import brotli  # type: ignore[import-untyped]
import zstandard

from fake_provider.answers import Event

EVENT_STREAM = "application/vnd.amazon.eventstream"
_STRING = 7  # the type of an event stream header


def sse(event: Event, *, crlf: bool = False) -> bytes:
    """A server-sent event."""
    data = event.data if isinstance(event.data, str) else dump(event.data)
    lines = ([f"event: {event.name}"] if event.name else []) + [f"data: {data}", "", ""]
    return ("\r\n" if crlf else "\n").join(lines).encode()


def aws(event: Event) -> bytes:
    """A frame of an AWS event stream; a name with a leading colon is an exception."""
    is_exception = event.name.startswith(":")
    names = (":exception-type", "exception") if is_exception else (":event-type", "event")
    headers = {names[0]: event.name.lstrip(":"), ":content-type": "application/json", ":message-type": names[1]}
    head = b"".join(_header(name, value) for name, value in headers.items())
    payload = dump(event.data).encode()
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def _header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def encoded(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """``chunks`` compressed as one body, each flushed, so that a client can read it before the next is there."""
    write, flush, finish = _ENCODERS[encoding]()
    for chunk in chunks:
        yield write(chunk) + flush()
    if tail := finish():
        yield tail


_Encoder = tuple[Callable[[bytes], bytes], Callable[[], bytes], Callable[[], bytes]]


def _plain() -> _Encoder:
    return bytes, bytes, bytes


def _zlib(wbits: int) -> _Encoder:
    encoder = zlib.compressobj(wbits=wbits)
    return encoder.compress, lambda: encoder.flush(zlib.Z_SYNC_FLUSH), encoder.flush


def _brotli() -> _Encoder:
    encoder = brotli.Compressor(quality=4)
    return encoder.process, encoder.flush, encoder.finish


def _zstd() -> _Encoder:
    encoder = zstandard.ZstdCompressor().compressobj()
    return encoder.compress, lambda: encoder.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK), encoder.flush


_ENCODERS: dict[str, Callable[[], _Encoder]] = {
    "": _plain,
    "gzip": lambda: _zlib(31),
    "deflate": lambda: _zlib(15),
    "br": _brotli,
    "zstd": _zstd,
}


def cut(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """``chunks`` in pieces of ``size`` bytes, across their bounds; 0 leaves them as they are."""
    if not size:
        yield from (chunk for chunk in chunks if chunk)
        return
    body = b"".join(chunks)
    yield from (body[i : i + size] for i in range(0, len(body), size))


def truncated(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """The first ``size`` bytes of ``chunks``."""
    for chunk in chunks:
        if size <= 0:
            return
        yield chunk[:size]
        size -= len(chunk)
