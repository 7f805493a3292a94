"""Server-sent events and AWS event streams -> JSON objects."""

import json
import re
import struct
import zlib
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.otel_plugin import eventstream, sse, usage

CASES: list[tuple[str, bytes, list[Mapping[str, Any]]]] = [
    ("one event", b'data: {"a":1}\n\n', [{"a": 1}]),
    ("no space", b'data:{"a":1}\n\n', [{"a": 1}]),
    ("crlf", b'event: x\r\ndata: {"a":1}\r\n\r\ndata: {"a":2}\r\n\r\n', [{"a": 1}, {"a": 2}]),
    ("cr", b'data: {"a":1}\r\rdata: {"a":2}\r\r', [{"a": 1}, {"a": 2}]),
    ("data over lines", b'data: {"a":\ndata: 1}\n\n', [{"a": 1}]),
    ("comments", b': keep-alive\n\ndata: {"a":1}\n: ping\n\n', [{"a": 1}]),
    ("done", b'data: {"a":1}\n\ndata: [DONE]\n\n', [{"a": 1}]),
    ("no blank line at the end", b'data: {"a":1}\n\ndata: {"a":2}', [{"a": 1}, {"a": 2}]),
    ("cut off", b'data: {"a":1}\n\ndata: {"a":', [{"a": 1}]),
    ("byte order mark", b'\xef\xbb\xbfdata: {"a":1}\n\n', [{"a": 1}]),
    ("broken utf-8", b'data: {"a":"\xff"}\n\n', [{"a": "\ufffd"}]),
    ("no object", b"data: 1\n\ndata: [1]\n\n", []),
    ("nested beyond reason", b"data: " + b"[" * 100_000 + b"\n\n", []),
    ("empty", b"", []),
]


@pytest.mark.parametrize(("case", "data", "events"), CASES, ids=[case for case, *_ in CASES])
def test_decode(case: str, data: bytes, events: list[Mapping[str, Any]]) -> None:
    """Line ends, comments and sentinels in all their forms."""
    assert list(sse.decode(data)) == events


@pytest.mark.parametrize(("case", "data", "events"), CASES[:11], ids=[case for case, *_ in CASES[:11]])
@given(cuts=st.lists(st.integers(0, 60), max_size=8))
def test_slicing(case: str, data: bytes, events: list[Mapping[str, Any]], cuts: list[int]) -> None:
    """Chunks may end anywhere: inside a character, a line end, a byte order mark."""
    decoder = sse.Decoder()
    slices = [data[start:end] for start, end in pairwise(sorted({0, *cuts, len(data)}))]
    fed = [event for part in slices for event in decoder.feed(part)]
    assert fed + decoder.close() == events


def test_events_arrive_with_their_chunk() -> None:
    """An event is there as soon as its blank line is."""
    decoder = sse.Decoder()
    assert decoder.feed(b'data: {"a":1}\n') == []
    assert decoder.feed(b"\n") == [{"a": 1}]


def test_only_telling_events_are_parsed() -> None:
    """With a pattern, the first event and those that match are parsed, others not even looked into."""
    data = b'data: {"id":"c1"}\n\ndata: {broken\n\ndata: {"usage":{"prompt_tokens":1}}\n\n'
    decoder = sse.Decoder(usage.telling())
    assert decoder.feed(data) == [{"id": "c1"}, {"usage": {"prompt_tokens": 1}}]
    assert decoder.skipped == 0


@given(st.text())
def test_text_never_raises(text: str) -> None:
    """Any text decodes to something."""
    assert isinstance(list(sse.decode(text)), list)


def frame(payload: Mapping[str, Any], kind: str = "metadata") -> bytes:
    """An AWS event-stream message with a string and an integer header."""
    texts = [(":event-type", kind), (":message-type", "event")]
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in texts
    )
    headers += b"\x03num\x04" + struct.pack(">I", 7)
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack(">I", zlib.crc32(message))


def test_event_stream() -> None:
    """Frames become boto3's objects; InvokeModel's chunks become the model's own events."""
    data = frame({"usage": {"inputTokens": 1}}) + frame({"bytes": "eyJhIjoxfQ==", "p": "abc"}, "chunk")
    assert list(eventstream.decode(data)) == [{"metadata": {"usage": {"inputTokens": 1}}}, {"a": 1}]


@given(st.integers(0, 200), st.integers(0, 255))
def test_event_stream_damage(position: int, value: int) -> None:
    """Sound frames before the damage are read, nothing after it, nothing raises."""
    first, second = frame({"a": 1}), bytearray(frame({"b": 2}))
    position %= len(second)
    damaged = second[position] != value
    second[position] = value
    found = list(eventstream.decode(first + bytes(second)))
    assert found == [{"metadata": {"a": 1}}] + ([] if damaged else [{"metadata": {"b": 2}}])


@given(st.binary(max_size=200))
def test_event_stream_never_raises(data: bytes) -> None:
    """Any bytes decode to something."""
    assert isinstance(list(eventstream.decode(data)), list)


@pytest.mark.parametrize("event", [{"bytes": "!"}, {"bytes": "AAAA"}, {"chunk": 1}, {"chunk": {"bytes": 1}}, {"a": 1}])
def test_unwrap_leaves_others_alone(event: Mapping[str, Any]) -> None:
    """What wraps no JSON object is no wrapper."""
    assert eventstream.unwrap(event) is event


@given(
    st.lists(
        st.sampled_from(
            [
                'data: {"usage": {"n": 1}}',
                'data: {"usage": null}',
                'data: {"text": "usage"}',
                'data: {"choices": []}',
                "data: [DONE]",
                'data: {"us',
                'data: age": 1}',
                'event: x\ndata: {"usage": 2}',
                ": ping",
                "",
                "\n",
                "data:",
                'data: {"deep": {"usage":{"a":"b"}}}',
            ]
        ),
        max_size=12,
    ),
    st.sampled_from(["\n\n", "\n", "\r\n\r\n", "\n\n\n"]),
)
def test_sifting_changes_nothing(parts: list[str], end: str) -> None:
    """A whole stream is searched at once; fed piece by piece, every event is looked at: the outcome is the same."""
    wanted = re.compile(rb'"usage"\s*:\s*[^\sn]')
    data = end.join(parts).encode()
    decoder = sse.Decoder(wanted)
    fed = [event for at in range(len(data)) for event in decoder.feed(data[at : at + 1])]
    assert list(sse.decode(data, wanted=wanted)) == [*fed, *decoder.close()]
