"""Stream events -> usage: cumulative counts, no double counting, broken streams are partial."""

import base64
import json
from typing import Any

import pytest

from prefixscope.otel_plugin import eventstream, usage

START: dict[str, Any] = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "model": "claude-sonnet-5",
        "diagnostics": {"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 800}},
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 10,
            "cache_creation_input_tokens": 4565,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 4565},
            "output_tokens": 1,
            "service_tier": "standard",
        },
    },
}
TEXT = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "ready"}}


def delta(**counts: int) -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": counts}


STOP: dict[str, Any] = {"type": "message_stop"}


def test_anthropic_totals_are_cumulative() -> None:
    """The delta's totals replace those of message_start; the split and the identity come from message_start."""
    last = delta(input_tokens=3, cache_read_input_tokens=10, cache_creation_input_tokens=4565, output_tokens=7)
    found = usage.from_events([START, TEXT, last, STOP])
    assert (found.state, found.uncached, found.read, found.write_1h, found.output) == ("reported", 3, 10, 4565, 7)
    assert (found.write_5m, found.response_id, found.served_model, found.tier) == (
        0,
        "msg_1",
        "claude-sonnet-5",
        "standard",
    )
    assert (found.miss_reason, found.missed_tokens) == ("system_changed", 800)


def test_anthropic_server_tools_write_for_five_minutes() -> None:
    """What the delta has written beyond message_start's split is 5m."""
    last = delta(input_tokens=9, cache_read_input_tokens=10, cache_creation_input_tokens=5000, output_tokens=7)
    found = usage.from_events([START, last])
    assert (found.write_1h, found.write_5m, found.uncached) == (4565, 435, 9)


def test_anthropic_delta_with_nulls() -> None:
    """A null in the delta does not unsay message_start."""
    last = {
        **delta(output_tokens=7),
        "usage": {"input_tokens": None, "cache_read_input_tokens": None, "output_tokens": 7},
    }
    found = usage.from_events([START, last])
    assert (found.state, found.uncached, found.read, found.output) == ("reported", 3, 10, 7)


def test_anthropic_delta_with_output_only() -> None:
    """Older deltas repeat the output count alone."""
    found = usage.from_events([START, delta(output_tokens=7)])
    assert (found.uncached, found.read, found.write_1h, found.output) == (3, 10, 4565, 7)
    assert found.state == "reported"


@pytest.mark.parametrize("events", [[START], [START, TEXT], [START, TEXT, {"type": "error", "error": {}}]])
def test_anthropic_broken_stream(events: list[dict[str, Any]]) -> None:
    """Without the delta the counts are not the provider's last word."""
    found = usage.from_events(events)
    assert (found.state, found.read, found.write_1h) == ("partial", 10, 4565)


CHAT_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 9,
    "total_tokens": 109,
    "prompt_tokens_details": {"cached_tokens": 64},
}


def chunk(finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"id": "c1", "model": "gpt-6", "choices": [{"delta": {"content": "x"}, "finish_reason": finish}], **more}


LAST = {"id": "c1", "model": "gpt-6", "choices": [], "usage": CHAT_USAGE, "service_tier": "default"}

CHAT_STREAMS: list[tuple[str, list[dict[str, Any]], str]] = [
    ("openai's last chunk", [chunk(usage=None), chunk("stop", usage=None), LAST], "reported"),
    ("the last chunk alone", [LAST], "reported"),
    ("usage beside the finish reason", [chunk(), chunk("stop", usage=CHAT_USAGE)], "reported"),
    ("vllm tells usage in every chunk", [chunk(usage=CHAT_USAGE), chunk("stop", usage=CHAT_USAGE)], "reported"),
    ("and is cut off", [chunk(usage=CHAT_USAGE), chunk(usage=CHAT_USAGE)], "partial"),
    ("groq", [chunk(), chunk("stop", x_groq={"id": "r", "usage": CHAT_USAGE})], "reported"),
    (
        "moonshot",
        [chunk(), {"id": "c1", "model": "gpt-6", "choices": [{"finish_reason": "stop", "usage": CHAT_USAGE}]}],
        "reported",
    ),
]


@pytest.mark.parametrize(("case", "events", "state"), CHAT_STREAMS, ids=[case for case, *_ in CHAT_STREAMS])
def test_chat_stream(case: str, events: list[dict[str, Any]], state: str) -> None:
    """Usage may come in the last chunk, in every chunk, or in a place of the provider's own."""
    found = usage.from_events(events)
    assert (found.state, found.uncached, found.read, found.output) == (state, 36, 64, 9)
    assert (found.response_id, found.served_model) == ("c1", "gpt-6")


def test_chat_stream_without_usage() -> None:
    """Without include_usage nothing is known but who answered."""
    found = usage.from_events([chunk(), chunk("stop")])
    assert (found.state, found.input_total, found.served_model) == ("missing", 0, "gpt-6")


RESPONSE = {"id": "resp_1", "model": "gpt-6", "service_tier": "auto", "usage": None}
DONE = RESPONSE | {
    "service_tier": "default",
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64},
        "output_tokens": 9,
        "total_tokens": 109,
    },
    "prompt_cache_diagnostics": {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 30},
}


@pytest.mark.parametrize("kind", ["response.completed", "response.incomplete", "response.failed", "response.done"])
def test_responses_stream(kind: str) -> None:
    """Any of the closing events carries the usage; its tier replaces the requested one."""
    found = usage.from_events([{"type": "response.created", "response": RESPONSE}, {"type": kind, "response": DONE}])
    assert (found.state, found.uncached, found.read, found.output) == ("reported", 36, 64, 9)
    assert (found.tier, found.response_id, found.miss_reason) == ("default", "resp_1", "tools_changed")


def test_responses_stream_cut_off() -> None:
    """Before the closing event there is an id and no usage."""
    found = usage.from_events([{"type": "response.created", "response": RESPONSE}])
    assert (found.state, found.response_id) == ("missing", "resp_1")


def gemini(finish: str | None = None, **counts: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {}} | ({"finishReason": finish} if finish else {})
    return {"candidates": [candidate], "responseId": "r1", "usageMetadata": counts}


def test_gemini_stream() -> None:
    """Early chunks may hold the cached count alone; the last value of each field wins (langchainjs#9912)."""
    events = [
        gemini(cachedContentTokenCount=80),
        gemini(promptTokenCount=100, candidatesTokenCount=3),
        gemini("STOP", promptTokenCount=100, candidatesTokenCount=9, thoughtsTokenCount=2),
    ]
    found = usage.from_events(events)
    assert (found.state, found.uncached, found.read, found.output) == ("reported", 20, 80, 11)
    assert usage.from_events(events[:2]).state == "partial"


def test_gemini_blocked_prompt() -> None:
    """A blocked prompt ends the stream without a candidate."""
    event = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
    assert usage.from_events([event]).state == "reported"


def test_interactions_stream() -> None:
    """The completed interaction carries the usage."""
    told = {"total_input_tokens": 10, "total_cached_tokens": 4, "total_output_tokens": 5, "total_tokens": 15}
    event = {"event_type": "interaction.completed", "interaction": {"id": "int_1", "usage": told}}
    found = usage.from_events([{"event_type": "step.delta"}, event])
    assert (found.state, found.uncached, found.read, found.response_id) == ("reported", 6, 4, "int_1")


def test_cohere_streams() -> None:
    """v2 tells usage in message-end's delta, v1 in stream-end's response."""
    v2 = {
        "billed_units": {"input_tokens": 1},
        "tokens": {"input_tokens": 505, "output_tokens": 9},
        "cached_tokens": 448,
    }
    found = usage.from_events([{"type": "message-start", "id": "m1"}, {"type": "message-end", "delta": {"usage": v2}}])
    assert (found.state, found.uncached, found.read, found.output, found.response_id) == ("reported", 57, 448, 9, "m1")
    v1 = {"event_type": "stream-end", "response": {"meta": {"tokens": {"input_tokens": 5, "output_tokens": 2}}}}
    assert usage.from_events([v1]).state == "partial"


def test_converse_stream() -> None:
    """The metadata event carries usage and tier."""
    told = {"inputTokens": 3, "outputTokens": 2, "cacheReadInputTokens": 7, "cacheWriteInputTokens": 0}
    events: list[dict[str, Any]] = [
        {"messageStart": {}},
        {"metadata": {"usage": told, "serviceTier": {"type": "flex"}}},
    ]
    found = usage.from_events(events)
    assert (found.state, found.uncached, found.read, found.tier) == ("reported", 3, 7, "flex")


def test_invoke_model_stream() -> None:
    """Claude's own events come in base64; Bedrock's metrics in the last chunk are not added to them."""
    metrics = {"inputTokenCount": 3, "outputTokenCount": 7, "cacheReadInputTokenCount": 10}
    events: list[dict[str, Any]] = [START, delta(output_tokens=7), STOP | {"amazon-bedrock-invocationMetrics": metrics}]
    chunks: list[dict[str, Any]] = [
        {"chunk": {"bytes": base64.b64encode(json.dumps(event).encode()).decode()}} for event in events
    ]
    found = usage.from_events(map(eventstream.unwrap, chunks))
    assert found == usage.from_events([START, delta(output_tokens=7), STOP])
    assert found.write_1h == 4565


def test_invoke_model_metrics_alone() -> None:
    """Models that tell nothing themselves are read from Bedrock's metrics."""
    metrics = {"inputTokenCount": 3, "outputTokenCount": 7, "cacheReadInputTokenCount": 10}
    found = usage.from_events([{"generation": "x"}, {"amazon-bedrock-invocationMetrics": metrics}])
    assert (found.state, found.uncached, found.read, found.output) == ("reported", 3, 10, 7)


def test_llama_cpp_timings() -> None:
    """llama.cpp tells its reads in timings when usage lacks them."""
    event = {
        "choices": [],
        "usage": {"prompt_tokens": 50, "completion_tokens": 1},
        "timings": {"cache_n": 40, "prompt_n": 10},
    }
    found = usage.from_events([event])
    assert (found.state, found.uncached, found.read) == ("reported", 10, 40)


@pytest.mark.parametrize(
    ("event", "tells"),
    [
        (START, True),
        (TEXT, False),
        (delta(output_tokens=1), True),
        (chunk(usage=None), False),
        (chunk("stop"), True),
        (LAST, True),
        (gemini(promptTokenCount=1), True),
        ({"metadata": {"usage": {}}}, True),
    ],
)
def test_telling(event: dict[str, Any], tells: bool) -> None:
    """Events that cannot change the usage need no parsing."""
    assert bool(usage.telling().search(json.dumps(event).encode())) is tells
