"""The bytes of a file, decompressed as they are read. Gzip and zstd are told by their first bytes."""

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

CHUNK = 1 << 20  # bytes read from disk at a time
_MAGIC = 4  # bytes that tell the compression
_GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"  # after a first byte of 0x50 to 0x5f
_PIECE = 1 << 20  # decompressed bytes that gzip hands on at a time
_ZSTD_FEED = 256  # bytes given to zstd at a time: they make at most 8 MiB, since 4 bytes may stand for a 128 KiB block
_ZSTD_WINDOW = 1 << 27  # the most memory a frame may ask for; zstd's own default limit


class BrokenError(ValueError):
    """The file ends too early or is damaged; what was read before is good."""


def chunks(path: Path, on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    """The decompressed content of ``path`` in pieces of bounded size; ``on_bytes`` is told what was read from disk.

    Raises:
        BrokenError: the compressed data is cut off or damaged; everything before was yielded.
        OSError: the file cannot be read.
    """
    raw = _raw(path, on_bytes)
    first = b""
    while len(first) < _MAGIC and (more := next(raw, b"")):  # a pipe may give less at a time
        first += more
    stream = _rejoined(first, raw)
    if first.startswith(_GZIP):
        return _gunzip(stream)
    if is_zstd(first):
        return _unzstd(stream)
    return stream


def is_zstd(head: bytes) -> bool:
    return head.startswith(ZSTD) or (head[1:4] == _ZSTD_SKIPPABLE and 0x50 <= head[0] <= 0x5F)


def zstd_message(data: bytes, limit: int) -> bytes:
    """One zstd frame of at most ``limit`` decompressed bytes.

    Raises:
        BrokenError: it is damaged or larger.
    """
    found = bytearray()
    for piece in _unzstd(iter((data,))):
        found += piece
        if len(found) > limit:
            raise BrokenError(f"a message is larger than {limit >> 20} MiB when decompressed")
    return bytes(found)


def _raw(path: Path, on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        while data := file.read(CHUNK):
            on_bytes(len(data))
            yield data


def _rejoined(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _gunzip(stream: Iterator[bytes]) -> Iterator[bytes]:
    member = zlib.decompressobj(wbits=31)
    for data in stream:
        rest = data
        while rest:
            if member.eof:
                if not rest.startswith(_GZIP[: len(rest)]):
                    return  # zero padding after the last member, as tape and block tools write it
                member = zlib.decompressobj(wbits=31)
            try:
                out = member.decompress(rest, _PIECE)
            except zlib.error as error:
                raise BrokenError(f"the gzip data is damaged ({error}): copy the file again") from None
            if out:
                yield out
            rest = member.unused_data if member.eof else member.unconsumed_tail
    if not member.eof:
        raise BrokenError("the gzip data ends too early: copy the file again, or wait until it is completely written")


def _unzstd(stream: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    frame = unpacker.decompressobj()
    fed = False  # the frame has begun
    for data in stream:
        for at in range(0, len(data), _ZSTD_FEED):
            rest = data[at : at + _ZSTD_FEED]
            while rest:
                try:
                    out = frame.decompress(rest)
                except zstandard.ZstdError as error:
                    raise BrokenError(f"the zstd data is damaged ({error}): copy the file again") from None
                if out:
                    yield out
                rest, fed = frame.unused_data, not frame.eof
                if frame.eof:
                    frame = unpacker.decompressobj()
    if fed:
        raise BrokenError("the zstd data ends too early: copy the file again, or wait until it is completely written")
