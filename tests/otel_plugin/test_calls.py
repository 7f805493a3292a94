"""Exchanges -> calls: what is read, and what is missing when something cannot be read."""

import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchanges import CHAT, JSON, MESSAGES, SSE, chat, completion, exchange, sse
from prefixscope.otel_plugin.asked import Keys
from prefixscope.otel_plugin.calls import Call, Reader
from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.record import UNKNOWN, Usage

ANSWER = json.dumps(completion()).encode()
BILLED = Usage(
    state="reported",
    uncached=36,
    read=64,
    output=5,
    response_id="chatcmpl-1",
    served_model="gpt-5.1-2025-11-13",
)
CHUNKS = [
    {"id": "chatcmpl-1", "model": "gpt-5.1-2025-11-13", "choices": [{"delta": {"content": "hello"}}]},
    {"id": "chatcmpl-1", "model": "gpt-5.1-2025-11-13", "choices": [{"delta": {}, "finish_reason": "stop"}]},
]
LAST_CHUNK = completion() | {"choices": []}


def reader(**settings: Any) -> Reader:
    return Reader(Fingerprinter(b"key"), Guard(reraise=True), service="shop", keys=Keys(b"key"), **settings)


def read(found: Exchange, **settings: Any) -> Call:
    call = reader(**settings).read(found)
    assert call is not None
    return call


def test_a_call_is_read() -> None:
    """Who, what, when and how much."""
    found = exchange(
        chat(),
        ANSWER,
        sent={"Authorization": "Bearer sk-1", "X-Stainless-Retry-Count": "2"},
        headers=JSON | {"X-Request-Id": "req_1"},
    )
    call = read(found)
    record, prints = call.record, Fingerprinter(b"key")
    assert (record.service, record.provider, record.api, record.model) == ("shop", "openai", "openai.chat", "gpt-5.1")
    assert record.usage == BILLED
    assert (record.status, record.error, record.aborted, record.retries) == (200, "", False, 2)
    assert (record.account, record.request_id) == (prints.keyed("sk-1"), "req_1")
    assert record.started_ns == found.started_ns
    assert record.fingerprint is not None
    assert [segment.role for segment in record.fingerprint.segments] == ["system", "user"]
    assert (call.request, call.response) == ("", "")


def test_times_are_differences_of_one_clock() -> None:
    """From the request's start to the body's first byte and its end."""
    found = exchange(chat(), b"{", b"}")
    record = read(found).record
    assert found.first_byte is not None
    assert found.ended is not None
    assert record.ttft_ms == (found.first_byte - found.started) / 1e6
    assert record.duration_ms == (found.ended - found.started) / 1e6


@pytest.mark.parametrize("outcome", ["closed", "dropped", "exited"])
def test_a_body_that_is_left_is_over_with_its_last_byte(outcome: Any) -> None:
    """However much later it is closed, or garbage is collected."""
    found = exchange(chat(stream=True), b"data: {}", outcome=outcome, headers=SSE)
    assert read(found).record.duration_ms == read(found).record.ttft_ms


STREAMS: dict[str, tuple[bytes, Any, Usage, bool]] = {
    "to its end": (sse([*CHUNKS, LAST_CHUNK]), "ended", BILLED, False),
    "closed after its end": (sse([*CHUNKS, LAST_CHUNK]), "closed", BILLED, False),
    "closed at [DONE] without usage": (
        sse(CHUNKS),
        "closed",
        Usage(response_id="chatcmpl-1", served_model="gpt-5.1-2025-11-13"),
        False,
    ),
    "broken off": (
        sse(CHUNKS[:1], done=False),
        "closed",
        Usage(response_id="chatcmpl-1", served_model="gpt-5.1-2025-11-13"),
        True,
    ),
    "failed": (b"", "failed", Usage(), True),
    "dropped": (b"", "dropped", Usage(), True),
}


@pytest.mark.parametrize(("data", "outcome", "usage", "aborted"), STREAMS.values(), ids=STREAMS)
def test_how_a_stream_ends(data: bytes, outcome: Any, usage: Usage, aborted: bool) -> None:
    """Closed is not aborted, if the provider's last word was there."""
    record = read(exchange(chat(stream=True), data, headers=SSE, outcome=outcome)).record
    assert (record.usage, record.aborted) == (usage, aborted)


def test_an_aborted_stream_of_anthropic_tells_its_input() -> None:
    """``message_start`` has it; the usage is partial."""
    start = {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "model": "claude-sonnet-4-5",
            "usage": {
                "input_tokens": 3,
                "cache_read_input_tokens": 20,
                "cache_creation_input_tokens": 0,
                "output_tokens": 1,
            },
        },
    }
    request = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    found = exchange(request, sse([start], done=False), at=MESSAGES, headers=SSE, outcome="dropped")
    record = read(found).record
    assert (record.usage.state, record.usage.uncached, record.usage.read, record.aborted) == ("partial", 3, 20, True)


def test_a_stream_beyond_the_cap_keeps_its_usage() -> None:
    """The middle is missing, and with it nothing that is billed."""
    many = [CHUNKS[0]] * 200
    lines = sse([*many, CHUNKS[1], LAST_CHUNK]).split(b"\n\n")
    found = exchange(chat(stream=True), *[line + b"\n\n" for line in lines], headers=SSE, response_cap=4096)
    assert found.cut
    assert read(found).record.usage == BILLED


@pytest.mark.parametrize(
    ("body", "headers", "error"),
    [
        ({"error": {"type": "rate_limit_error", "message": "marker"}}, JSON, "rate_limit_error"),
        ({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "marker"}}, JSON, "RESOURCE_EXHAUSTED"),
        ({"error": {"code": "a sentence with a marker"}}, JSON, ""),
        ({"message": "marker"}, JSON | {"x-amzn-ErrorType": "ThrottlingException:http://x"}, "ThrottlingException"),
        ({"error": "marker of a text"}, JSON, ""),
        ([1], JSON, ""),
    ],
)
def test_an_error_is_a_call_too(body: Any, headers: dict[str, str], error: str) -> None:
    """Named by the provider's word for it, never by its message."""
    record = read(exchange(chat(), json.dumps(body).encode(), status=429, headers=headers)).record
    assert (record.status, record.error, record.usage.state, record.aborted) == (429, error, "missing", False)


def test_an_error_inside_a_stream_is_named() -> None:
    """With the status of success."""
    events = [CHUNKS[0], {"error": {"type": "server_error", "message": "marker"}}]
    record = read(exchange(chat(stream=True), sse(events, done=False), headers=SSE)).record
    assert (record.status, record.error) == (200, "server_error")


def test_a_request_that_never_got_an_answer() -> None:
    """Is a call without a status, and not an abort."""
    record = read(exchange(chat(), status=None, outcome="failed")).record
    assert (record.status, record.aborted, record.usage.state) == (None, False, "missing")


def test_headers_that_belong_to_the_prompt() -> None:
    """Anthropic's betas are part of the cache key."""
    request = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
    plain = read(exchange(request, at=MESSAGES)).record.fingerprint
    beta = read(exchange(request, at=MESSAGES, sent={"Anthropic-Beta": "b, a"})).record.fingerprint
    same = read(exchange(request, at=MESSAGES, sent={"anthropic-beta": "a,b"})).record.fingerprint
    assert plain is not None
    assert beta is not None
    assert "anthropic_beta" not in plain.settings
    assert "anthropic_beta" in beta.settings
    assert beta == same


NO_CALLS = {
    "an extra endpoint without a prompt": ({"query": "x"}, ("gateway.test", "/ai/search")),
    "an extra endpoint without JSON": (b"<xml/>", ("gateway.test", "/ai/upload")),
    "somebody's messages": ({"to": "bob", "text": "hi"}, ("chat.example.com", "/v1/messages")),
}


@pytest.mark.parametrize(("request_", "at"), NO_CALLS.values(), ids=NO_CALLS)
def test_a_body_may_show_that_it_was_no_call(request_: Any, at: tuple[str, str]) -> None:
    """Then nothing is recorded."""
    assert reader().read(exchange(request_, at=at)) is None


def test_the_shape_of_the_body_tells_an_unknown_api() -> None:
    """At an endpoint that the user added."""
    record = read(exchange(chat(), ANSWER, at=("gateway.test", "/ai/ask"))).record
    assert (record.api, record.usage) == ("openai.chat", BILLED)


def test_a_call_without_a_body_at_hand() -> None:
    """A generator that only the transport may read: usage is there, the prompt is not."""
    found = exchange(chat(), ANSWER)
    found.request_body = None
    record = read(found).record
    assert (record.api, record.usage, record.fingerprint) == ("openai.chat", BILLED, None)


BROKEN: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "the prompt's parser": ("segments.parse", lambda r: r.fingerprint is None and r.usage == BILLED),
    "the usage reader": ("usage.from_body", lambda r: r.usage == Usage() and r.fingerprint is not None),
    "decompression": ("decoding.decode", lambda r: r.usage == Usage() and r.fingerprint is not None),
    "the reader of answers": ("answers.of_body", lambda r: r.reuse == UNKNOWN and r.usage == BILLED),
    "the maker of exact keys": ("asked.canonical", lambda r: r.reuse == UNKNOWN and r.fingerprint is not None),
}


@pytest.mark.parametrize(("place", "holds"), BROKEN.values(), ids=BROKEN)
def test_a_parser_that_raises_costs_what_it_should_have_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, place: str, holds: Callable[[Any], bool]
) -> None:
    """The rest of the call is recorded; the log has no text of it."""

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("marker")

    monkeypatch.setattr(f"prefixscope.otel_plugin.{place}", broken)
    guard = Guard()
    call = Reader(Fingerprinter(b"key"), guard, keys=Keys(b"key")).read(exchange(chat(), ANSWER))
    assert call is not None
    assert holds(call.record)
    assert call.record.status == 200
    assert sum(guard.errors.values()) == 1
    assert "marker" not in caplog.text


def test_an_encoding_nobody_can_undo() -> None:
    """Costs the usage, and is counted."""
    guard = Guard()
    found = exchange(chat(), b"??", headers=JSON | {"content-encoding": "compress"})
    call = Reader(Fingerprinter(b"key"), guard).read(found)
    assert call is not None
    assert call.record.usage.state == "missing"
    assert guard.errors == {"reading a response": 1}


def test_without_a_key_usage_is_recorded() -> None:
    """And neither prompt nor account."""
    call = Reader(None, Guard(reraise=True)).read(exchange(chat(), ANSWER, sent={"authorization": "Bearer sk-1"}))
    assert call is not None
    assert (call.record.usage, call.record.fingerprint, call.record.account) == (BILLED, None, "")


def test_content_is_kept_when_asked_for() -> None:
    """Decoded."""
    headers = JSON | {"content-encoding": "gzip"}
    call = read(exchange(chat(), gzip.compress(ANSWER), headers=headers), content=True)
    assert (json.loads(call.request), json.loads(call.response)) == (chat(), completion())


def test_a_share_of_conversations_is_fingerprinted() -> None:
    """Whole conversations; usage is always kept."""
    found = [
        read(exchange(chat(), ANSWER, sent={"session_id": f"s{n % 50}"}), fingerprint_share=0.5).record
        for n in range(100)
    ]
    printed = {(record.session_id, record.fingerprint is not None) for record in found}
    assert len(printed) == 50
    assert 10 < sum(is_printed for _, is_printed in printed) < 40
    assert {record.usage for record in found} == {BILLED}
    none = read(exchange(chat(), ANSWER), fingerprint_share=0.0).record
    assert none.fingerprint is None


@given(st.binary(max_size=300), st.binary(max_size=300), st.sampled_from([JSON, SSE, {}]))
def test_nothing_raises_on_any_bytes(request_: bytes, response: bytes, headers: dict[str, str]) -> None:
    """What comes from outside may be anything."""
    record = read(exchange(request_, response, headers=headers)).record
    assert (record.provider, record.api) == ("openai", "openai.chat")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda c: (
            st.lists(c)
            | st.dictionaries(
                st.sampled_from(["messages", "model", "error", "usage", "content", "type", "response", "choices"]), c
            )
        ),
    )
)
def test_nothing_raises_on_any_json(value: Any) -> None:
    """In either direction."""
    data = json.dumps(value).encode()
    reader().read(exchange(data, data, at=CHAT))
