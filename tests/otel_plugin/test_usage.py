"""Provider answers -> disjoint buckets."""

import dataclasses
import datetime as dt
import tomllib
from importlib import resources
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.otel_plugin import usage
from prefixscope.otel_plugin.record import Usage
from prefixscope.otel_plugin.usage_shapes import field_map


def buckets(found: Usage) -> dict[str, int]:
    """The non-zero token counts by name."""
    return {
        name: value
        for name, value in dataclasses.asdict(found).items()
        if isinstance(value, int) and value and name != "missed_tokens"
    }


ANTHROPIC_SPLIT = {
    "input_tokens": 50,
    "cache_read_input_tokens": 100_000,
    "cache_creation_input_tokens": 30_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 10_000, "ephemeral_1h_input_tokens": 20_000},
    "output_tokens": 500,
}

SHAPES: list[tuple[str, dict[str, Any], dict[str, int]]] = [
    (
        "anthropic excludes the cache from its input",
        ANTHROPIC_SPLIT,
        {"uncached": 50, "read": 100_000, "write_5m": 10_000, "write_1h": 20_000, "output": 500},
    ),
    (
        "anthropic without a split: TTL unknown",
        {"input_tokens": 4, "cache_creation_input_tokens": 8, "cache_read_input_tokens": 0, "output_tokens": 2},
        {"uncached": 4, "write_unknown": 8, "output": 2},
    ),
    (
        "openai responses with a write split",
        {
            "input_tokens": 15_000,
            "input_tokens_details": {
                "cached_tokens": 11_000,
                "cache_write_tokens": 3_000,
                "cache_write_tokens_details": {"ttl_30m_tokens": 1_000, "ttl_12h_tokens": 2_000},
            },
            "output_tokens": 100,
            "output_tokens_details": {"reasoning_tokens": 60},
            "total_tokens": 15_100,
        },
        {"uncached": 1_000, "read": 11_000, "write_30m": 1_000, "write_12h": 2_000, "output": 100, "reasoning": 60},
    ),
    (
        "openai chat writes without a split",
        {
            "prompt_tokens": 4020,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 4012},
        },
        {"uncached": 8, "write_unknown": 4012, "output": 4},
    ),
    (
        "openai realtime",
        {"input_tokens": 90, "input_token_details": {"cached_tokens": 64}, "output_tokens": 7, "total_tokens": 97},
        {"uncached": 26, "read": 64, "output": 7},
    ),
    (
        "gemini thoughts are outside candidates, tool prompts outside the prompt",
        {
            "promptTokenCount": 20_000,
            "cachedContentTokenCount": 16_000,
            "toolUsePromptTokenCount": 100,
            "candidatesTokenCount": 300,
            "thoughtsTokenCount": 50,
            "totalTokenCount": 20_450,
        },
        {"uncached": 4_100, "read": 16_000, "output": 350, "reasoning": 50},
    ),
    (
        "gemini interactions",
        {
            "total_input_tokens": 60,
            "total_cached_tokens": 40,
            "total_output_tokens": 70,
            "total_thought_tokens": 5,
            "total_tokens": 135,
        },
        {"uncached": 20, "read": 40, "output": 75, "reasoning": 5},
    ),
    (
        "bedrock converse with writes by TTL",
        {
            "inputTokens": 50,
            "outputTokens": 10,
            "totalTokens": 160_060,
            "cacheReadInputTokens": 100_000,
            "cacheWriteInputTokens": 60_000,
            "cacheDetails": [{"ttl": "1h", "inputTokens": 20_000}, {"ttl": "5m", "inputTokens": 40_000}],
        },
        {"uncached": 50, "read": 100_000, "write_5m": 40_000, "write_1h": 20_000, "output": 10},
    ),
    (
        "nova on InvokeModel",
        {"inputTokens": 22, "outputTokens": 13, "cacheReadInputTokenCount": 7, "cacheWriteInputTokenCount": 9},
        {"uncached": 22, "read": 7, "write_unknown": 9, "output": 13},
    ),
    (
        "deepseek before prompt_tokens_details",
        {
            "prompt_tokens": 563,
            "completion_tokens": 116,
            "prompt_cache_hit_tokens": 512,
            "prompt_cache_miss_tokens": 51,
        },
        {"uncached": 51, "read": 512, "output": 116},
    ),
    (
        "moonshot before K3",
        {"prompt_tokens": 300, "completion_tokens": 9, "cached_tokens": 256},
        {"uncached": 44, "read": 256, "output": 9},
    ),
    (
        "qwen explicit cache",
        {
            "prompt_tokens": 3000,
            "completion_tokens": 9,
            "prompt_tokens_details": {
                "cached_tokens": 1000,
                "cache_creation_input_tokens": 1500,
                "cache_creation": {"ephemeral_5m_input_tokens": 1500},
            },
        },
        {"uncached": 500, "read": 1000, "write_5m": 1500, "output": 9},
    ),
    (
        "litellm proxy in front of anthropic",
        {
            "prompt_tokens": 130_050,
            "completion_tokens": 500,
            "prompt_tokens_details": {"cached_tokens": 100_000, "cache_creation_tokens": 30_000},
            "cache_read_input_tokens": 100_000,
            "cache_creation_input_tokens": 30_000,
        },
        {"uncached": 50, "read": 100_000, "write_unknown": 30_000, "output": 500},
    ),
    (
        "cohere counts its cache in tokens, not in billed_units",
        {
            "billed_units": {"input_tokens": 10, "output_tokens": 1},
            "tokens": {"input_tokens": 505, "output_tokens": 9},
            "cached_tokens": 448,
        },
        {"uncached": 57, "read": 448, "output": 9},
    ),
]


@pytest.mark.parametrize(("case", "reported", "expected"), SHAPES, ids=[case for case, *_ in SHAPES])
def test_shape(case: str, reported: dict[str, Any], expected: dict[str, int]) -> None:
    """Each vocabulary lands in the same buckets and counts as reported."""
    found = usage.from_usage(reported)
    assert buckets(found) == expected
    assert found.state == "reported"


REPAIRS: list[tuple[str, dict[str, Any], dict[str, int], tuple[str, ...]]] = [
    (
        "more cached than prompted: the cache is on top (litellm#42093)",
        {"promptTokenCount": 100, "cachedContentTokenCount": 900, "candidatesTokenCount": 5},
        {"uncached": 100, "read": 900, "output": 5},
        ("exclusive_input",),
    ),
    (
        "the total only adds up with the cache on top",
        {
            "prompt_tokens": 1000,
            "completion_tokens": 5,
            "total_tokens": 1905,
            "prompt_tokens_details": {"cached_tokens": 900},
        },
        {"uncached": 1000, "read": 900, "output": 5},
        ("exclusive_input",),
    ),
    (
        "openrouter writes and reads one gemini prompt in one call",
        {
            "prompt_tokens": 2168,
            "completion_tokens": 100,
            "total_tokens": 2268,
            "prompt_tokens_details": {"cached_tokens": 2161, "cache_write_tokens": 2161},
        },
        {"uncached": 7, "read": 2161, "output": 100},
        ("write_within_read",),
    ),
    (
        "xai keeps reasoning outside the completion",
        {
            "prompt_tokens": 100,
            "completion_tokens": 9,
            "total_tokens": 409,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 300},
        },
        {"uncached": 36, "read": 64, "output": 309, "reasoning": 300},
        ("reasoning_outside_output",),
    ),
    (
        "more reasoning than the total has room for was not billed",
        {
            "prompt_tokens": 1638,
            "completion_tokens": 16,
            "total_tokens": 1654,
            "prompt_tokens_details": {"cached_tokens": 1536},
            "completion_tokens_details": {"reasoning_tokens": 18},
        },
        {"uncached": 102, "read": 1536, "output": 16, "reasoning": 16},
        ("reasoning_capped",),
    ),
    (
        "tokens beyond anthropic's split were written by server tools for 5m",
        ANTHROPIC_SPLIT | {"cache_creation_input_tokens": 30_700},
        {"uncached": 50, "read": 100_000, "write_5m": 10_700, "write_1h": 20_000, "output": 500},
        ("write_beyond_split",),
    ),
    (
        "a split larger than the write total is the better witness",
        ANTHROPIC_SPLIT | {"cache_creation_input_tokens": 1},
        {"uncached": 50, "read": 100_000, "write_5m": 10_000, "write_1h": 20_000, "output": 500},
        ("write_below_split",),
    ),
    (
        "a compaction was billed beside the totals, an advisor at another model's price",
        ANTHROPIC_SPLIT
        | {
            "iterations": [
                {"type": "message", **ANTHROPIC_SPLIT},
                {"type": "compaction", **ANTHROPIC_SPLIT},
                {"type": "advisor_message", **ANTHROPIC_SPLIT},
            ]
        },
        {"uncached": 100, "read": 200_000, "write_5m": 20_000, "write_1h": 40_000, "output": 1000},
        ("iteration_added", "other_model_not_counted"),
    ),
]


@pytest.mark.parametrize(("case", "reported", "expected", "notes"), REPAIRS, ids=[case for case, *_ in REPAIRS])
def test_repair(case: str, reported: dict[str, Any], expected: dict[str, int], notes: tuple[str, ...]) -> None:
    """Figures that contradict each other are repaired, and the repair is noted."""
    found = usage.from_usage(reported)
    assert buckets(found) == expected
    assert found.notes == notes
    assert found.state == "reported"


STATES: list[tuple[str, dict[str, Any], str, str]] = [
    ("vllm without its switch", {"prompt_tokens": 9, "completion_tokens": 1}, "", "partial"),
    ("vllm's null details", {"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, "", "partial"),
    ("the label openai proves nothing", {"prompt_tokens": 9, "completion_tokens": 1}, "openai", "partial"),
    ("groq leaves the details out unless it read", {"prompt_tokens": 9, "completion_tokens": 1}, "groq", "reported"),
    ("a pair of counts kept in a log", {"input_tokens": 9, "output_tokens": 1}, "anthropic", "partial"),
    ("gemini leaves zeros out", {"promptTokenCount": 9}, "google", "reported"),
    ("converse of a model without caching", {"inputTokens": 9, "outputTokens": 1}, "aws", "reported"),
    ("only the cached count", {"cachedContentTokenCount": 9}, "google", "partial"),
    ("a cached-content resource is no call", {"totalTokenCount": 9}, "google", "missing"),
    ("nothing", {}, "openai", "missing"),
]


@pytest.mark.parametrize(("case", "reported", "provider", "state"), STATES, ids=[case for case, *_ in STATES])
def test_state(case: str, reported: dict[str, Any], provider: str, state: str) -> None:
    """Missing is not zero: a cache count counts as known only where its absence means zero."""
    assert usage.from_usage(reported, provider=provider).state == state


def test_message_without_cache_fields() -> None:
    """A whole Anthropic message without cache fields comes from a model that does not cache."""
    body = {"type": "message", "id": "msg_1", "usage": {"input_tokens": 9, "output_tokens": 1}}
    assert usage.from_body(body).state == "reported"


@pytest.mark.parametrize("value", [True, -1, 1.5, float("nan"), float("inf"), "12", [], {}, 10**13])
def test_refused_counts(value: Any) -> None:
    """What is no token count is absent, noted, and keeps the call from being concluded upon."""
    reported = {"prompt_tokens": 10, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": value}}
    found = usage.from_usage(reported)
    assert buckets(found) == {"uncached": 10, "output": 1}
    assert found.state == "partial"
    assert found.notes == ("refused:prompt_tokens_details.cached_tokens",)


def test_whole_float_is_a_count() -> None:
    """12.0, as spreadsheets and columns with nulls write integers, is 12."""
    assert usage.from_usage({"promptTokenCount": 12.0}).uncached == 12


IDENTITIES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (
        {
            "id": "msg_1",
            "model": "claude-opus-5",
            "type": "message",
            "usage": ANTHROPIC_SPLIT | {"service_tier": "priority", "speed": "fast", "inference_geo": "us"},
            "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 41850}},
        },
        {
            "response_id": "msg_1",
            "served_model": "claude-opus-5",
            "tier": "priority",
            "speed": "fast",
            "geo": "us",
            "miss_reason": "tools_changed",
            "missed_tokens": 41850,
        },
    ),
    (
        {
            "id": "resp_1",
            "model": "gpt-6",
            "service_tier": "flex",
            "usage": {"input_tokens": 9, "output_tokens": 1, "input_tokens_details": {"cached_tokens": 0}},
            "prompt_cache_diagnostics": {"type": "cache_miss", "reason": "input_changed", "cache_missed_tokens": 900},
        },
        {
            "response_id": "resp_1",
            "served_model": "gpt-6",
            "tier": "flex",
            "miss_reason": "input_changed",
            "missed_tokens": 900,
        },
    ),
    ({"usage": {}, "prompt_cache_diagnostics": {"type": "cache_hit"}}, {"miss_reason": "", "missed_tokens": None}),
    ({"usage": {}, "prompt_cache_diagnostics": {"type": "unavailable"}}, {"miss_reason": "unavailable"}),
    ({"usage": {}, "diagnostics": {"cache_miss_reason": None}}, {"miss_reason": ""}),
    (
        {
            "responseId": "r1",
            "modelVersion": "gemini-4",
            "usageMetadata": {"promptTokenCount": 1, "serviceTier": "flex"},
        },
        {"response_id": "r1", "served_model": "gemini-4", "tier": "flex"},
    ),
    ({"usage": {"inputTokens": 1, "outputTokens": 1}, "serviceTier": {"type": "priority"}}, {"tier": "priority"}),
    (
        {
            "model": "claude-fable-5",
            "usage": ANTHROPIC_SPLIT | {"iterations": [{"type": "fallback_message", "model": "claude-opus-5"}]},
        },
        {"served_model": "claude-opus-5"},
    ),
    ({"id": 7, "model": "m" * 300, "usage": {}}, {"response_id": "", "served_model": ""}),
]


@pytest.mark.parametrize(("body", "expected"), IDENTITIES)
def test_identity(body: dict[str, Any], expected: dict[str, Any]) -> None:
    """Who answered, at which tier, and the provider's own word on the miss."""
    found = dataclasses.asdict(usage.from_body(body))
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(
    "wrap",
    [
        lambda body: {"response": {"status_code": 200, "body": body}},
        lambda body: {"result": {"type": "succeeded", "message": body}},
        lambda body: {"message": body},
    ],
    ids=["openai batch", "anthropic batch", "transcript"],
)
def test_envelopes(wrap: Any) -> None:
    """Batch output lines and transcripts wrap the body."""
    body = {"id": "msg_1", "type": "message", "usage": ANTHROPIC_SPLIT}
    assert usage.from_body(wrap(body)) == usage.from_body(body)


def test_field_map_is_dated_and_sourced() -> None:
    """Every shape has a name of its own, a source, a date, and at least an input and an output."""
    raw = tomllib.loads(resources.files("prefixscope.otel_plugin").joinpath("usage_fields.toml").read_text("utf-8"))
    names = [entry["name"] for entry in raw["shape"]]
    assert len(set(names)) == len(names)
    assert all(entry["source"] and isinstance(entry["checked"], dt.date) for entry in raw["shape"])
    assert all(shape.input and shape.output for shape in field_map().shapes)


PLACES = [
    places
    for shape in field_map().shapes
    for places in (
        shape.input,
        shape.read,
        shape.write,
        shape.output,
        shape.reasoning,
        shape.total,
        *shape.writes.values(),
    )
]
KEYS = sorted(
    {step.key for places in PLACES for parts in places for path in parts for step in path.steps}
    | {step.key for path in (*field_map().roots, *field_map().ends) for step in path.steps}
    | {*field_map().envelopes, "iterations", "type", "ttl"}
)
LEAVES = (
    st.none() | st.booleans() | st.integers(-5, 10**14) | st.floats() | st.sampled_from(["compaction", "5m", "message"])
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)
OBJECTS = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=8)


def assert_lawful(found: Usage) -> None:
    """The invariant, as stored columns would have it: no bucket negative, the parts sum up, reasoning within output."""
    parts = buckets(found)
    assert all(tokens > 0 for tokens in parts.values())
    assert found.reasoning <= found.output
    assert found.state != "missing" or not parts


@given(OBJECTS)
def test_any_body_is_lawful(body: dict[str, Any]) -> None:
    """Whatever the JSON, nothing raises and the buckets are lawful."""
    assert_lawful(usage.from_body(body))
    assert_lawful(usage.from_usage(body))


@given(st.lists(OBJECTS, max_size=5))
def test_any_stream_is_lawful(events: list[dict[str, Any]]) -> None:
    """Whatever the events, nothing raises and the buckets are lawful."""
    assert_lawful(usage.from_events(events))


COUNTS = st.integers(0, 10**6)


@given(COUNTS, COUNTS, COUNTS, COUNTS, COUNTS)
def test_dialects_agree(uncached: int, read: int, write_5m: int, write_1h: int, output: int) -> None:
    """One bill told in four vocabularies is one bill."""
    written = write_5m + write_1h
    total = uncached + read + written
    split = {"ephemeral_5m_input_tokens": write_5m, "ephemeral_1h_input_tokens": write_1h}
    told = [
        {
            "input_tokens": uncached,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": split,
            "output_tokens": output,
        },
        {
            "inputTokens": uncached,
            "cacheReadInputTokens": read,
            "cacheWriteInputTokens": written,
            "cacheDetails": [{"ttl": "1h", "inputTokens": write_1h}, {"ttl": "5m", "inputTokens": write_5m}],
            "outputTokens": output,
            "totalTokens": total + output,
        },
        {
            "prompt_tokens": total,
            "completion_tokens": output,
            "total_tokens": total + output,
            "prompt_tokens_details": {
                "cached_tokens": read,
                "cache_creation_input_tokens": written,
                "cache_creation": split,
            },
        },
        {
            "input_tokens": total,
            "input_token_details": {"cache_read": read, "cache_creation": written, **split},
            "output_tokens": output,
            "total_tokens": total + output,
        },
    ]
    assert len({usage.from_usage(reported) for reported in told}) == 1
