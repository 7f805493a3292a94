"""A call that was written into the spool comes back from it as the same record."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.context import get_current
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import use_span

from exchanges import CHAT, JSON, MESSAGES, SSE, chat, completion, exchange, sse
from prefixscope.analyzer.ingest import Observed, read
from prefixscope.otel_plugin import attributes, codec
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord
from prefixscope.otel_plugin.settings import Settings

ANSWER = json.dumps(completion(completion_tokens_details={"reasoning_tokens": 3})).encode()
LONG = "\n".join(f"{n}. line {n * 7919} of the handbook, 2026-11-{n % 28 + 1:02d}T10:00:00Z" for n in range(3000))
TOOL_CALL = {"choices": [{"index": 0, "message": {"tool_calls": [{"id": "1"}]}, "finish_reason": "tool_calls"}]}
CLAUDE = {
    "model": "claude-sonnet-4-5",
    "system": [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [{"name": "b", "input_schema": {}}, {"name": "a", "input_schema": {}}],
}
CLAUDE_USAGE = {
    "input_tokens": 3,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 30,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 9,
    "service_tier": "standard",
    "inference_geo": "eu",
}
CLAUDE_ANSWER = {
    "id": "msg_1",
    "model": "claude-sonnet-4-5-20250929",
    "usage": CLAUDE_USAGE,
    "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 7}},
}


def named() -> Exchange:
    """Inside a span and with all names there are."""
    span = TracerProvider().get_tracer("app").start_span("work")
    with use_span(span), attributes(service="other", prompt_name="greet", conversation_id="42"):
        return exchange(chat(), ANSWER, context=get_current())


CALLS: dict[str, Callable[[], Exchange]] = {
    "plain": lambda: exchange(chat(), ANSWER, sent={"authorization": "Bearer sk-1", "x-stainless-retry-count": "2"}),
    "streamed": lambda: exchange(chat(stream=True), sse([completion() | {"choices": []}]), headers=SSE),
    "aborted": lambda: exchange(chat(stream=True), b"data: {", headers=SSE, outcome="dropped"),
    "an error": lambda: exchange(chat(), b'{"error":{"type":"overloaded_error"}}', status=529),
    "no answer": lambda: exchange(chat(), status=None, outcome="failed"),
    "everything of Anthropic": lambda: exchange(
        CLAUDE,
        json.dumps(CLAUDE_ANSWER).encode(),
        at=MESSAGES,
        headers=JSON | {"request-id": "req_1"},
        sent={"anthropic-beta": "x,y"},
    ),
    "in a region": lambda: exchange(
        chat(), ANSWER, at=("bedrock-runtime.us-east-1.amazonaws.com", "/openai/v1/chat/completions")
    ),
    "a prompt at length": lambda: exchange(chat(LONG), ANSWER, at=CHAT),
    "named": named,
    "temperature 0": lambda: exchange(chat(temperature=0), ANSWER),
    "hot, with choices and a search": lambda: exchange(
        chat(temperature=0.7, n=3, web_search_options={"x": 1}, stream=True), ANSWER
    ),
    "a tool call": lambda: exchange(chat(), json.dumps(TOOL_CALL).encode()),
}


@pytest.fixture
def capture(tmp_path: Path) -> Iterator[Capture]:
    found = Capture(
        Settings(spool=str(tmp_path), service="shop", spans="off", reraise=True), {"PREFIXSCOPE_KEY": "key"}
    )
    yield found
    found.close()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_comes_back(name: str, capture: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times, counts, names, hashes and the fingerprint, as the audit reads them."""
    seen: list[CallRecord] = []
    monkeypatch.setattr(capture.sinks, "_learn", lambda _, record: seen.append(record))
    capture.sinks.take([CALLS[name]()])
    (found,) = read([tmp_path], Fingerprinter(b"another key"))
    assert isinstance(found, Observed)
    (expected,) = seen
    assert len(found.record.trace_id) == 32
    assert len(found.record.span_id) == 16
    ids: dict[str, Any] = {"trace_id": expected.trace_id or found.record.trace_id, "span_id": found.record.span_id}
    print_ = expected.fingerprint and codec.unpack(codec.pack(expected.fingerprint))
    assert found.record == replace(expected, **ids, fingerprint=print_)
