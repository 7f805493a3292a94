"""Compressed bodies: every encoding, cut off, mislabelled, and bombs."""

import gzip
import zlib

import brotli  # type: ignore[import-untyped]
import pytest
import zstandard

from prefixscope.otel_plugin.decoding import UndecodableError, decode

TEXT = b"".join(b'data: {"n": %d}\n\n' % number for number in range(5000))
RAW_DEFLATE = zlib.compressobj(wbits=-zlib.MAX_WBITS)
ENCODED = {
    "": TEXT,
    "identity": TEXT,
    "gzip": gzip.compress(TEXT),
    "GZIP": gzip.compress(TEXT[:100]) + gzip.compress(TEXT[100:]),
    "x-gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    " deflate": RAW_DEFLATE.compress(TEXT) + RAW_DEFLATE.flush(),
    "br": brotli.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
    "gzip, br": brotli.compress(gzip.compress(TEXT)),
}


def pieces(data: bytes, size: int = 61) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("encoding", ENCODED)
def test_every_encoding_is_undone(encoding: str) -> None:
    """Wherever the pieces are cut."""
    assert decode(pieces(ENCODED[encoding]), encoding, limit=1 << 20) == TEXT


@pytest.mark.parametrize("encoding", [name for name in ENCODED if name not in {"", "identity", "gzip, br"}])
def test_a_body_that_breaks_off_gives_its_beginning(encoding: str) -> None:
    """The usage may have come before."""
    data = ENCODED[encoding]
    assert TEXT.startswith(decode([data[: len(data) // 2]], encoding, limit=1 << 20))


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_is_not_inflated(encoding: str) -> None:
    """Much less than it would be is made of it."""
    bomb = {
        "gzip": lambda data: gzip.compress(data, 9),
        "deflate": lambda data: zlib.compress(data, 9),
        "br": brotli.compress,
        "zstd": zstandard.compress,
    }[encoding](bytes(200 << 20))
    assert len(decode(pieces(bomb, 4096), encoding, limit=1 << 20)) < 100 << 20


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "compress", "deflate"])
def test_what_cannot_be_decoded_is_told(encoding: str) -> None:
    """Without a byte of the body in the message."""
    with pytest.raises(UndecodableError) as raised:
        decode([b"marker-of-plain-text" * 10], encoding, limit=1 << 20)
    assert "marker" not in str(raised.value)
