"""Prompts recorded in spans are fingerprinted, whatever their shape, and left alone where something is missing."""

import json
from pathlib import Path
from typing import Any

import pytest

import ingest_samples as samples
from prefixscope.otel_plugin import call_attributes as ours
from prefixscope.otel_plugin import segments
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Usage

SYSTEM, QUESTION, ANSWER = "You are a shop assistant.", "Where is my parcel?", "In Hamburg."
ARGUMENTS = '{"id":"7"}'
FUNCTION = {
    "name": "track",
    "description": "Tracks a parcel",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
}
TOOL = {"type": "function", "function": FUNCTION}
TOOL_CALL = {"id": "t1", "type": "function", "function": {"name": "track", "arguments": ARGUMENTS}}
CHAT = {
    "model": "gpt-4.1",
    "tools": [TOOL],
    "messages": [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]},
        {"role": "tool", "tool_call_id": "t1", "content": ANSWER},
    ],
}
MESSAGES = CHAT["messages"]


def part(text: str) -> dict[str, str]:
    return {"type": "text", "content": text}


CONVENTION = [
    {"role": "user", "parts": [part(QUESTION)]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "t1", "name": "track", "arguments": json.loads(ARGUMENTS)}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t1", "response": ANSWER}]},
]
OPENINFERENCE = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4.1", "llm.token_count.prompt": 50}
NUMBERED = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": SYSTEM,
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": QUESTION,
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "t1",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "track",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": ARGUMENTS,
    "llm.input_messages.3.message.role": "tool",
    "llm.input_messages.3.message.tool_call_id": "t1",
    "llm.input_messages.3.message.content": ANSWER,
    "llm.tools.0.tool.json_schema": json.dumps(TOOL),
}
OLD_TRACELOOP = {
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": SYSTEM,
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": QUESTION,
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "t1",
    "gen_ai.prompt.2.tool_calls.0.name": "track",
    "gen_ai.prompt.2.tool_calls.0.arguments": ARGUMENTS,
    "gen_ai.prompt.3.role": "tool",
    "gen_ai.prompt.3.tool_call_id": "t1",
    "gen_ai.prompt.3.content": ANSWER,
    "llm.request.functions.0.name": FUNCTION["name"],
    "llm.request.functions.0.description": FUNCTION["description"],
    "llm.request.functions.0.parameters": json.dumps(FUNCTION["parameters"]),
}
SHAPES: dict[str, dict[str, Any]] = {
    "the body": OPENINFERENCE | {"input.value": json.dumps(CHAT)},
    "the body, tools beside it": OPENINFERENCE
    | {"input.value": json.dumps({"messages": MESSAGES}), "llm.tools.0.tool.json_schema": json.dumps(TOOL)},
    "the body, structured": samples.CALL | {"request_data": CHAT},
    "conventions, system apart": samples.CALL
    | {
        "gen_ai.system_instructions": json.dumps([part(SYSTEM)]),
        "gen_ai.input.messages": json.dumps(CONVENTION),
        "gen_ai.tool.definitions": json.dumps([TOOL]),
    },
    "conventions, system among the messages": samples.CALL
    | {
        "gen_ai.input.messages": json.dumps([{"role": "system", "parts": [part(SYSTEM)]}, *CONVENTION]),
        "gen_ai.tool.definitions": json.dumps([TOOL]),
    },
    "messages in the SDK's shape": samples.CALL
    | {"gen_ai.input.messages": json.dumps(MESSAGES), "gen_ai.tool.definitions": json.dumps([TOOL])},
    "the AI SDK": samples.CALL | {"ai.prompt.messages": json.dumps(MESSAGES), "ai.prompt.tools": [json.dumps(TOOL)]},
    "langfuse's input": samples.CALL
    | {"langfuse.observation.input": json.dumps(MESSAGES), "gen_ai.tool.definitions": json.dumps([TOOL])},
    "an attribute a field": OPENINFERENCE | NUMBERED,
    "an attribute a field, old traceloop": samples.CALL | OLD_TRACELOOP,
}


@pytest.mark.parametrize("attributes", SHAPES.values(), ids=SHAPES)
def test_every_recorded_shape_has_the_fingerprint_of_the_request(tmp_path: Path, attributes: dict[str, Any]) -> None:
    """Whoever recorded it, the same conversation shares its prefix with itself on the wire."""
    prompt = segments.parse(CHAT)
    assert prompt is not None
    expected = Fingerprinter(samples.KEY).fingerprint(prompt)
    call = samples.one_call(tmp_path, samples.otlp(attributes))
    assert call.record.fingerprint is not None
    assert call.prompt_lost == ""
    found = [(s.level, s.kind, s.content_id) for s in call.record.fingerprint.segments]
    assert found == [(s.level, s.kind, s.content_id) for s in expected.segments]


GEMINI = {"model": "gemini-3-pro", "contents": [{"role": "user", "parts": [{"text": QUESTION}]}], "config": {}}
NATIVE = {
    "anthropic": ({"system": SYSTEM, "messages": [{"role": "user", "content": QUESTION}]}, "anthropic.messages"),
    "gemini": (GEMINI, "gemini.generate_content"),
    "responses": ({"model": "gpt-4.1", "instructions": SYSTEM, "input": QUESTION}, "openai.responses"),
}


@pytest.mark.parametrize(("body", "api"), NATIVE.values(), ids=NATIVE)
def test_a_recorded_body_tells_its_api(tmp_path: Path, body: dict[str, Any], api: str) -> None:
    """A body that was rebuilt from messages does not: its api stays unknown."""
    native = samples.one_call(tmp_path, samples.otlp(OPENINFERENCE | {"input.value": json.dumps(body)}))
    assert native.record.api == api
    assert native.record.fingerprint is not None
    rebuilt = samples.one_call(tmp_path, samples.otlp(OPENINFERENCE | NUMBERED))
    assert rebuilt.record.api == ""


WITHOUT_ONE = {name: value for name, value in NUMBERED.items() if ".2." not in name}
LOST = {
    "attributes were dropped": (OPENINFERENCE | NUMBERED, {"droppedAttributesCount": 12}, "ATTRIBUTE_COUNT_LIMIT"),
    "a message is missing": (OPENINFERENCE | WITHOUT_ONE, {}, "a message is missing"),
    "the JSON is cut": (
        samples.CALL | {"gen_ai.input.messages": json.dumps(MESSAGES)[:-20]},
        {},
        "ATTRIBUTE_VALUE_LENGTH_LIMIT",
    ),
    "the text is masked": (
        OPENINFERENCE
        | {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "__REDACTED__"},
        {},
        "masked",
    ),
}


@pytest.mark.parametrize(("attributes", "fields", "why"), LOST.values(), ids=LOST)
def test_a_prompt_that_is_not_whole_has_no_fingerprint(
    tmp_path: Path, attributes: dict[str, Any], fields: dict[str, Any], why: str
) -> None:
    """A prefix that only looks shared would be a wrong finding; the reason says what to change."""
    call = samples.one_call(tmp_path, samples.otlp(samples.raw_span(attributes, **fields)))
    assert call.record.fingerprint is None
    assert why in call.prompt_lost


@pytest.mark.parametrize("value", ["plain text", "{}", "[1, 2]", '{"args": ["x"]}', "{'role': 'user'}"])
def test_text_that_is_no_request_is_no_prompt(tmp_path: Path, value: str) -> None:
    """input.value holds whatever a framework passed around."""
    call = samples.one_call(tmp_path, samples.otlp(OPENINFERENCE | {"input.value": value}))
    assert call.record.fingerprint is None


def test_no_text_is_left_in_a_record(tmp_path: Path) -> None:
    """What is stored are keyed ids."""
    for attributes in SHAPES.values():
        record = samples.one_call(tmp_path, samples.otlp(attributes)).record
        assert all(secret not in repr(record) for secret in (SYSTEM, QUESTION, ANSWER, "Tracks a parcel"))


def own_call() -> CallRecord:
    prompt = segments.parse(CHAT)
    assert prompt is not None
    return CallRecord(
        started_ns=samples.START_NS,
        service="shop",
        provider="openai",
        api=prompt.api,
        model="gpt-4.1",
        usage=Usage("reported", uncached=5, read=1024, write_30m=3, output=9, response_id="r1"),
        fingerprint=Fingerprinter(samples.KEY).fingerprint(prompt),
        duration_ms=1500.0,
        ttft_ms=120.5,
        status=200,
        trace_id=samples.TRACE,
        span_id=samples.SPAN,
        parent_span_id=samples.PARENT,
        instrumentation="prefixscope",
    )


def test_a_span_of_ours_comes_back_as_it_was(tmp_path: Path) -> None:
    """Live capture and the audit end in the same record."""
    document = samples.otlp(ours.encode(own_call()), scope="prefixscope")
    assert samples.one_call(tmp_path, document).record == own_call()


DAMAGE = {
    "fingerprint": {ours.FINGERPRINT: "[]"},
    "newer fingerprint": {ours.FINGERPRINT: '{"v": 99}'},
    "count": {"prefixscope.usage.read": "many"},
    "negative": {"prefixscope.usage.read": -1},
    "time": {"prefixscope.ttft_ms": "soon"},
    "status": {"http.response.status_code": 70_000},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_span_of_ours_is_rejected(tmp_path: Path, damage: dict[str, Any]) -> None:
    """Its attributes come from outside like any other."""
    document = samples.otlp({**ours.encode(own_call()), **damage}, scope="prefixscope")
    calls, [rejected] = samples.read_bytes(tmp_path, samples.lines(document))
    assert not calls
    assert "damaged prefixscope span" in rejected.reason


def test_a_langfuse_export_is_read(tmp_path: Path) -> None:
    """Observations with disjoint parts as usage; the span's own attributes are inside metadata."""
    observation = {
        "id": samples.SPAN,
        "traceId": samples.TRACE,
        "type": "GENERATION",
        "startTime": "2026-09-21T14:13:20.000Z",
        "endTime": "2026-09-21T14:13:21.500Z",
        "completionStartTime": "2026-09-21T14:13:20.250Z",
        "model": "claude-sonnet-4-5",
        "usageDetails": {
            "input": 21,
            "input_cached_tokens": 1800,
            "input_cache_creation_1h": 188,
            "output": 393,
            "total": 2402,
        },
        "input": json.dumps(MESSAGES),
        "metadata": {"scope": {"name": "langfuse-sdk", "version": "4"}, "resourceAttributes": {"service.name": "shop"}},
    }
    step = {**observation, "id": "1" * 16, "type": "SPAN"}
    call = samples.one_call(tmp_path, {"trace": {"sessionId": "s-1"}, "observations": [step, observation]})
    record = call.record
    assert (record.usage.uncached, record.usage.read, record.usage.write_1h) == (21, 1800, 188)
    assert (record.ttft_ms, record.session_id, record.service) == (250.0, "s-1", "shop")
    assert record.fingerprint is not None
