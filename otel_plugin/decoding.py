"""Undoes Content-Encoding, within bounds: br and zstd need a library, gzip and deflate do not."""

import importlib
import zlib
from collections.abc import Callable, Iterable
from typing import Any


class UndecodableError(ValueError):
    """The bytes are not what their encoding says, or there is no library for it; ``str`` is safe to log."""


def decode(chunks: Iterable[bytes], encoding: str, *, limit: int) -> bytes:
    """``chunks`` without their ``encoding`` (the header's value, which may list several).

    A body that is cut off gives what can be decoded. No more than about ``limit`` bytes are made of it.

    Raises:
        UndecodableError: see there.
    """
    data = b"".join(chunks)
    for name in reversed([part.strip().lower() for part in encoding.split(",")]):
        if name not in {"", "identity"}:
            data = _undo(name, data, limit)
    return data


def _undo(name: str, data: bytes, limit: int) -> bytes:
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise UndecodableError(f"content encoding {name[:20]!r} is not known")
    try:
        return decoder(data, limit)
    except ImportError:
        raise UndecodableError(f"no library for content encoding {name!r} is installed") from None
    except Exception as error:
        raise UndecodableError(f"a body is not {name!r} although it says so ({type(error).__name__})") from error


def _gzip(data: bytes, limit: int) -> bytes:
    """Members one after the other, as gzip allows."""
    found: list[bytes] = []
    while data and limit > 0:
        decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
        found.append(decoder.decompress(data, limit))
        limit -= len(found[-1])
        if not decoder.eof:
            break
        data = decoder.unused_data.lstrip(b"\x00")
    return b"".join(found)


def _deflate(data: bytes, limit: int) -> bytes:
    """RFC 9110 means zlib's format; some servers send the bare stream."""
    try:
        return zlib.decompressobj().decompress(data, limit)
    except zlib.error:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, limit)


def _br(data: bytes, limit: int) -> bytes:
    module: Any = _first("brotli", "brotlicffi")
    decoder = module.Decompressor()
    if hasattr(decoder, "can_accept_more_data"):  # Brotli 1.2
        return bytes(decoder.process(data, output_buffer_limit=limit))
    return _bounded(getattr(decoder, "decompress", None) or decoder.process, data, limit)


def _zstd(data: bytes, limit: int) -> bytes:
    module: Any = _first("compression.zstd", "backports.zstd", "zstandard")
    if hasattr(module, "ZstdDecompressor") and hasattr(module.ZstdDecompressor, "decompressobj"):
        return _bounded(module.ZstdDecompressor().decompressobj().decompress, data, limit)
    return bytes(module.ZstdDecompressor().decompress(data, limit))


def _bounded(step: Callable[[bytes], bytes], data: bytes, limit: int) -> bytes:
    """Feeds small pieces, so that a bomb is noticed early where a library cannot be told a limit."""
    found: list[bytes] = []
    for start in range(0, len(data), _PIECE):
        found.append(step(data[start : start + _PIECE]))
        limit -= len(found[-1])
        if limit <= 0:
            break
    return b"".join(found)


def _first(*names: str) -> Any:
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(names[0])


_PIECE = 16_384
_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _br,
    "zstd": _zstd,
}
