"""Bodies of requests: however they are cut and compressed they come out whole, and nothing else comes out."""

import gzip
import io
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.analyzer.collect import body as collect_body
from prefixscope.analyzer.collect.body import RefusedError

ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "identity": lambda data: data,
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}


def chunked(data: bytes, sizes: list[int]) -> bytes:
    """``data`` in chunks of these sizes, the rest in one."""
    parts = []
    for size in sizes:
        parts.append(data[:size])
        data = data[size:]
    parts = [part for part in [*parts, data] if part]
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@given(st.binary(max_size=500), st.sampled_from(sorted(ENCODERS)), st.lists(st.integers(1, 50), max_size=8))
def test_a_body_comes_out_as_it_was(data: bytes, encoding: str, sizes: list[int]) -> None:
    """With a length or in chunks; what follows it is left where it is."""
    sent = ENCODERS[encoding](data)
    for framed, headers in (
        (sent, {"content-length": str(len(sent))}),
        (chunked(sent, sizes), {"transfer-encoding": "chunked"}),
    ):
        stream = io.BytesIO(framed + b"next")
        assert collect_body.read(stream, headers | {"content-encoding": encoding}) == data
        assert stream.read() == b"next"


@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "br", ""]), st.booleans())
def test_anything_else_is_refused(data: bytes, encoding: str, in_chunks: bool) -> None:
    """Nothing but a refusal is ever raised."""
    headers = {"transfer-encoding": "chunked"} if in_chunks else {"content-length": str(len(data))}
    with suppress(RefusedError):
        assert len(collect_body.read(io.BytesIO(data), headers | {"content-encoding": encoding})) <= collect_body.LIMIT


@pytest.mark.parametrize("encoding", sorted(ENCODERS))
@pytest.mark.parametrize("excess", [0, 1])
def test_the_limit(encoding: str, excess: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is exact, of what is decompressed as well."""
    monkeypatch.setattr(collect_body, "LIMIT", 1000)
    sent = ENCODERS[encoding](b"a" * (1000 + excess))
    headers = {"content-length": str(len(sent)), "content-encoding": encoding}
    if excess:
        with pytest.raises(RefusedError, match="larger than") as refusal:
            collect_body.read(io.BytesIO(sent), headers)
        assert refusal.value.status == 413
    else:
        assert collect_body.read(io.BytesIO(sent), headers) == b"a" * 1000
