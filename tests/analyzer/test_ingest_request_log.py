"""Request logs: the request as sent, and the answer in any form that people keep it."""

import json
from pathlib import Path
from typing import Any

import pytest

import ingest_samples as samples
from prefixscope.analyzer.ingest.loose import hex_id, moment
from prefixscope.otel_plugin.record import Usage

REQUEST = {"model": "gpt-4.1", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
USAGE = {"prompt_tokens": 2006, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 1920}}
BODY = {"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-4.1", "choices": [{}], "usage": USAGE}
CHUNKS = [
    {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "hi"}}]},
    {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": USAGE},
]
SSE = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in CHUNKS) + "data: [DONE]\n\n"
COUNTED = Usage("reported", uncached=86, read=1920, output=100)

ANSWERS: dict[str, dict[str, Any]] = {
    "a body": {"response": BODY},
    "a body as text": {"response": json.dumps(BODY)},
    "an event stream as text": {"response": SSE},
    "events": {"response": CHUNKS},
    "events as text": {"response": [json.dumps(chunk) for chunk in CHUNKS]},
    "events as lines": {"response": [f"data: {json.dumps(chunk)}" for chunk in CHUNKS] + ["data: [DONE]"]},
    "events with names": {"response": [{"event": "chunk", "data": json.dumps(chunk)} for chunk in CHUNKS]},
    "usage": {"usage": USAGE},
    "usage as text": {"usage": json.dumps(USAGE)},
    "usage beside an answer without": {"response": {"id": "chatcmpl-1", "choices": []}, "usage": USAGE},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_every_form_of_answer_has_the_same_usage(tmp_path: Path, answer: dict[str, Any]) -> None:
    """Streamed or not, as text or decoded."""
    usage = samples.one_call(tmp_path, {"timestamp": 1_790_000_000, "request": REQUEST, **answer}).record.usage
    assert (usage.state, usage.uncached, usage.read, usage.output) == ("reported", 86, 1920, 100)


def test_a_stream_that_broke_off_is_partial(tmp_path: Path) -> None:
    """Its usage never came; that is not a call without cache reads."""
    entry = {"timestamp": 1_790_000_000, "request": REQUEST, "response": CHUNKS[:1]}
    assert samples.one_call(tmp_path, entry).record.usage.state != "reported"


ANTHROPIC = {
    "timestamp": "2026-09-21T16:13:20+02:00",
    "request": json.dumps(
        {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9,
            "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "messages": [{"role": "user", "content": "hello"}],
        }
    ),
    "usage": {"input_tokens": 21, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 3},
    "url": "https://api.anthropic.com/v1/messages?beta=true",
    "agent": "planner",
    "conversation_id": "c-7",
    "account": "sk-key-of-team-a",
    "region": "eu",
    "status": "200",
    "ttft_ms": 120,
    "duration_ms": "900.5",
    "request_id": "req_1",
    "trace_id": samples.TRACE,
}


def test_every_field_of_an_entry_is_taken(tmp_path: Path) -> None:
    """Names differ by team; the account is kept as a keyed hash only."""
    call = samples.one_call(tmp_path, ANTHROPIC)
    record = call.record
    assert (record.provider, record.api, record.model) == ("anthropic", "anthropic.messages", "claude-sonnet-4-5")
    assert (record.started_ns, record.duration_ms, record.ttft_ms) == (samples.START_NS, 900.5, 120.0)
    assert (record.service, record.session_id, record.region, record.status) == ("planner", "c-7", "eu", 200)
    assert (record.request_id, record.trace_id, record.instrumentation) == ("req_1", samples.TRACE, "request_log")
    assert len(record.account) == 16
    assert "sk-key" not in repr(record)
    assert record.fingerprint is not None
    assert [s.marker for s in record.fingerprint.segments] == ["1h", ""]


PROVIDERS = {
    "named": ({"provider": "bedrock"}, "aws"),
    "by its URL": ({"url": "https://x.openai.azure.com/openai/deployments/d/chat/completions"}, "azure"),
    "by its model": ({}, "openai"),
}


@pytest.mark.parametrize(("more", "provider"), PROVIDERS.values(), ids=PROVIDERS)
def test_the_provider_is_found_out(tmp_path: Path, more: dict[str, Any], provider: str) -> None:
    """What the log says first, then where it was sent, then the model."""
    assert samples.one_call(tmp_path, samples.ENTRY | more).record.provider == provider


ENTRIES: dict[str, dict[str, Any]] = {
    "a body with a time": {"timestamp": 1_790_000_000, **REQUEST, "usage": USAGE},
    "litellm": {
        "startTime": 1_790_000_000.25,
        "endTime": 1_790_000_001.25,
        "model": "gpt-4.1",
        "custom_llm_provider": "openai",
        "messages": REQUEST["messages"],
        "response": BODY,
        "session_id": "s",
    },
    "bare text": {"timestamp": 1_760_428_258_635_837, "input": "a prompt", "output": "x", "session_id": "s"},
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_logs_that_have_no_request_field_are_read_too(tmp_path: Path, entry: dict[str, Any]) -> None:
    """Gateways log the body's fields beside their own."""
    call = samples.one_call(tmp_path, entry)
    assert call.record.fingerprint is not None
    assert call.record.started_ns > 0


SKIPPED = {
    "by its URL": {**samples.ENTRY, "path": "/v1/embeddings"},
    "by its model": {"timestamp": 1, "request": {"model": "text-embedding-3-small", "input": "x"}},
}


@pytest.mark.parametrize("entry", SKIPPED.values(), ids=SKIPPED)
def test_embeddings_are_passed_over(tmp_path: Path, entry: dict[str, Any]) -> None:
    """They have no prompt cache; nothing is wrong with them either."""
    assert samples.read_bytes(tmp_path, samples.lines(entry)) == ([], [])


def test_an_error_keeps_its_type_and_not_its_message(tmp_path: Path) -> None:
    """A failed call is a call; what the provider said about it may quote the prompt."""
    error = {"error": {"type": "rate_limit_error", "message": "secret words"}}
    record = samples.one_call(tmp_path, {**samples.ENTRY, "status": 429, "response": error}).record
    assert (record.status, record.error, record.usage.state) == (429, "rate_limit_error", "missing")
    stated = samples.one_call(tmp_path, {**samples.ENTRY, "error": "secret words of a message"}).record
    assert stated.error == "error"


@pytest.mark.parametrize("when", [None, "yesterday", {}, [], -5, 27_482, "1.2.3", True, 1e300, "NaN"])
def test_a_call_without_a_time_is_rejected(tmp_path: Path, when: Any) -> None:
    """No pause can be measured without it; the message says what to add, and the next line is read."""
    calls, [rejected] = samples.read_bytes(tmp_path, samples.lines({**samples.ENTRY, "timestamp": when}, samples.ENTRY))
    assert (len(calls), rejected.line) == (1, 1)
    assert 'add "timestamp"' in rejected.reason


def test_a_request_that_is_no_request_is_a_call_without_a_fingerprint(tmp_path: Path) -> None:
    """Its usage still counts."""
    call = samples.one_call(tmp_path, {**samples.ENTRY, "request": "GET /"})
    assert call.record.fingerprint is None
    assert call.record.usage.state == "reported"
    assert "log the body as it was sent" in call.prompt_lost


MOMENTS = {
    "seconds": 1_790_000_000,
    "milliseconds": 1_790_000_000_000,
    "microseconds": 1_790_000_000_000_000,
    "nanoseconds": 1_790_000_000_000_000_000,
    "text": "1790000000000",
    "float": 1_790_000_000.0,
    "float of milliseconds": 1_790_000_000_000.0,
    "UTC": "2026-09-21T14:13:20Z",
    "nanoseconds of ISO": "2026-09-21T14:13:20.000000000Z",
    "zone": "2026-09-21T16:13:20.000+02:00",
    "text with a fraction": "1790000000.000",
    "basic ISO": "20260921T141320Z",
    "no zone": "2026-09-21 14:13:20",
}


@pytest.mark.parametrize("value", MOMENTS.values(), ids=MOMENTS)
def test_times_are_told_by_their_magnitude(value: Any) -> None:
    """Seconds to nanoseconds since 1970, or ISO 8601."""
    assert moment(value) == samples.START_NS


def test_fractions_of_a_second_survive() -> None:
    """Floats are good to a microsecond, integers are exact."""
    assert moment(1_790_000_000.123456) == samples.START_NS + 123_456_000
    assert moment(1_790_000_000_123_456_789) == samples.START_NS + 123_456_789


IDS = {
    "hex": samples.TRACE,
    "upper case": samples.TRACE.upper(),
    "0x": f"0x{samples.TRACE}",
    "base64": "CvdlGRbNQ92ESOshHIAxnA==",
    "number": int(samples.TRACE, 16),
    "bytes": bytes.fromhex(samples.TRACE),
}


@pytest.mark.parametrize("value", IDS.values(), ids=IDS)
def test_ids_have_many_spellings(value: Any) -> None:
    """All mean the same 16 bytes."""
    assert hex_id(value, 32) == samples.TRACE


@pytest.mark.parametrize(
    "value", ["", "0" * 32, 0, -1, "not hex", "=" * 24, "abc" * 20, b"\0" * 16, None, [], 1.5, True]
)
def test_what_is_no_id_is_empty(value: Any) -> None:
    """All zeros is OpenTelemetry's own way to say there is none."""
    assert hex_id(value, 32) == ""
