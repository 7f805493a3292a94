"""Each instrumentation's token counts become the same disjoint buckets, and what it loses is never taken for zero."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ingest_samples as samples
from prefixscope.analyzer.ingest import buckets, dialects
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin.record import Usage

OTEL, TRACELOOP = "opentelemetry.instrumentation.genai", "opentelemetry.instrumentation"
INFERENCE = "openinference.instrumentation"

# The answers every emitter was measured with: OpenAI 2006 with read 1920 and write 64 in it; Anthropic 21 + 1800 + 188.
OPENAI = Usage("reported", uncached=22, read=1920, write_unknown=64, output=100)
ANTHROPIC = Usage("reported", uncached=21, read=1800, write_unknown=188, output=393)


def genai(provider: str, model: str, given: int, output: int, **more: Any) -> dict[str, Any]:
    """Attributes of the GenAI conventions; ``more`` with _ for the dot and __ for the underscore."""
    found: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": provider}
    found |= {"gen_ai.request.model": model}
    found |= {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": output}
    return found | {f"gen_ai.usage.{name}": value for name, value in more.items()}


def cached(read: int | None, write: int | None, spelling: str = "cache_write") -> dict[str, int]:
    found = {"cache_read.input_tokens": read, f"{spelling}.input_tokens": write}
    return {name: value for name, value in found.items() if value is not None}


def inference(provider: str, model: str, given: int, output: int, **details: int) -> dict[str, Any]:
    found: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.provider": provider, "llm.model_name": model}
    found |= {"llm.token_count.prompt": given, "llm.token_count.completion": output}
    return found | {f"llm.token_count.prompt_details.{name}": value for name, value in details.items()}


CLAUDE, GPT, NEW_GPT = "claude-sonnet-4-5", "gpt-4.1", "gpt-5.6"
EXCLUSIVE = Usage("reported", uncached=21, read=1800, write_unknown=188, output=393, notes=("exclusive_input",))
RAW = {"input_tokens": 21, "cache_read_input_tokens": 1800, "cache_creation_input_tokens": 188, "output_tokens": 393}
TTL_SPLIT = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 88}

CASES: dict[str, tuple[str, str, dict[str, Any], Usage]] = {
    # scope, version, attributes, expected
    "otel openai": (f"{OTEL}.openai", "1.3b0", genai("openai", NEW_GPT, 2006, 100, **cached(1920, 64)), OPENAI),
    "otel openai, zeros left out": (
        f"{OTEL}.openai",
        "1.3b0",
        genai("openai", NEW_GPT, 2006, 100),
        Usage("reported", uncached=2006, output=100),
    ),
    "otel anthropic": (
        f"{OTEL}.anthropic",
        "1.3b0",
        genai("anthropic", CLAUDE, 2009, 393, **cached(1800, 188)),
        ANTHROPIC,
    ),
    "otel google": (
        "opentelemetry.instrumentation.google_genai",
        "1.3b0",
        genai("gcp.gemini", "gemini-3-pro", 2006, 60, **cached(1920, None)),
        Usage("reported", uncached=86, read=1920, output=60),
    ),
    "otel botocore converse": (
        f"{TRACELOOP}.botocore.bedrock-runtime",
        "0.66b2",
        {
            **genai("aws.bedrock", "anthropic.claude-sonnet-4-5", 2500, 393, **cached(1800, 188, "cache_creation")),
            "rpc.method": "Converse",
        },
        Usage("reported", uncached=2500, read=1800, write_unknown=188, output=393),
    ),
    "otel botocore invoke loses the cache": (
        f"{TRACELOOP}.botocore.bedrock-runtime",
        "0.66b2",
        {**genai("aws.bedrock", "anthropic.claude-sonnet-4-5", 21, 393), "rpc.method": "InvokeModel"},
        Usage(
            "partial",
            uncached=21,
            output=393,
            notes=("cache_read_not_recorded", "cache_write_not_recorded", "emitter_loses_cache_counts"),
        ),
    ),
    "otel openai-v2 loses the cache": (
        f"{TRACELOOP}.openai_v2",
        "2.4b0",
        genai("openai", GPT, 2006, 100),
        Usage("partial", uncached=2006, output=100, notes=("cache_read_not_recorded", "emitter_loses_cache_counts")),
    ),
    "anthropic sdk": (
        "com.anthropic.sdk.python",
        "2.14.0",
        {
            **genai("anthropic", CLAUDE, 2009, 393, **cached(1800, 188)),
            **{f"anthropic.usage.cache_creation.{name}": value for name, value in TTL_SPLIT.items()},
        },
        Usage("reported", uncached=21, read=1800, write_5m=100, write_1h=88, output=393),
    ),
    "traceloop openai, free writes": (
        f"{TRACELOOP}.openai.v1",
        "0.62.4",
        genai("openai", GPT, 2006, 100, **cached(1920, None)),
        Usage("reported", uncached=86, read=1920, output=100),
    ),
    "traceloop openai loses billed writes": (
        f"{TRACELOOP}.openai.v1",
        "0.62.4",
        genai("openai", NEW_GPT, 2006, 100, **cached(1920, None)),
        Usage("partial", uncached=86, read=1920, output=100, notes=("cache_write_not_recorded",)),
    ),
    "traceloop anthropic": (
        f"{TRACELOOP}.anthropic",
        "0.62.4",
        genai("anthropic", CLAUDE, 2009, 397, **cached(1800, 188, "cache_creation")),
        Usage(
            "reported",
            uncached=21,
            read=1800,
            write_unknown=188,
            output=397,
            notes=("streamed_output_overcounted",),
        ),
    ),
    "traceloop bedrock, more input than cache": (
        f"{TRACELOOP}.bedrock",
        "0.62.4",
        genai("AWS", "anthropic.claude-sonnet-4-5", 2500, 393, **cached(1800, 188, "cache_creation")),
        Usage("reported", uncached=2500, read=1800, write_unknown=188, output=393),
    ),
    "old traceloop": (
        f"{TRACELOOP}.anthropic",
        "0.33",
        {
            "llm.request.type": "chat",
            "gen_ai.system": "Anthropic",
            "gen_ai.request.model": CLAUDE,
            "gen_ai.usage.prompt_tokens": 2009,
            "gen_ai.usage.completion_tokens": 393,
            "gen_ai.usage.cache_read_input_tokens": 1800,
            "gen_ai.usage.cache_creation_input_tokens": 188,
        },
        Usage(
            "reported", uncached=21, read=1800, write_unknown=188, output=393, notes=("streamed_output_overcounted",)
        ),
    ),
    "openinference openai": (
        f"{INFERENCE}.openai",
        "0.1.66",
        inference("openai", NEW_GPT, 2006, 100, cache_read=1920, cache_write=64),
        OPENAI,
    ),
    "openinference anthropic, zeros left out": (
        f"{INFERENCE}.anthropic",
        "3.1.0",
        inference("anthropic", CLAUDE, 21, 393),
        Usage("reported", uncached=21, output=393),
    ),
    "openinference anthropic": (
        f"{INFERENCE}.anthropic",
        "3.1.0",
        inference("anthropic", CLAUDE, 2009, 393, cache_read=1800, cache_write=188),
        ANTHROPIC,
    ),
    "openinference carries the answer": (
        f"{INFERENCE}.anthropic",
        "3.1.0",
        {
            **inference("anthropic", CLAUDE, 2009, 393, cache_read=1800, cache_write=188),
            "output.value": json.dumps(
                {"id": "msg_1", "type": "message", "model": CLAUDE, "usage": {**RAW, "cache_creation": TTL_SPLIT}}
            ),
        },
        Usage(
            "reported",
            uncached=21,
            read=1800,
            write_5m=100,
            write_1h=88,
            output=393,
            served_model=CLAUDE,
            response_id="msg_1",
        ),
    ),
    "openlit anthropic": (
        "openlit.instrumentation.anthropic",
        "",
        genai("anthropic", CLAUDE, 2500, 393, **cached(1800, 188, "cache_creation")),
        Usage("reported", uncached=2500, read=1800, write_unknown=188, output=393),
    ),
    "openlit stream may be an estimate": (
        "openlit.instrumentation.openai",
        "",
        {
            **genai("openai", GPT, 10, 7, **cached(0, 0, "cache_creation")),
            "gen_ai.request.is_stream": True,
        },
        Usage("partial", uncached=10, output=7, notes=("may_be_estimated",)),
    ),
    "openlit stream with a cache count is none": (
        "openlit.instrumentation.openai",
        "",
        {
            **genai("openai", GPT, 2006, 100, **cached(1920, 0, "cache_creation")),
            "gen_ai.request.is_stream": True,
        },
        Usage("reported", uncached=86, read=1920, output=100),
    ),
    "logfire raw usage has the TTLs": (
        "logfire.anthropic",
        "5.4.0",
        {
            **genai("anthropic", CLAUDE, 2009, 393, **cached(1800, 188, "cache_creation")),
            "gen_ai.usage.raw": json.dumps({**RAW, "cache_creation": TTL_SPLIT}),
        },
        Usage("reported", uncached=21, read=1800, write_5m=100, write_1h=88, output=393),
    ),
    "logfire, zeros left out": (
        "logfire.openai",
        "5.4.0",
        genai("openai", GPT, 2006, 100),
        Usage("reported", uncached=2006, output=100),
    ),
    "old logfire": (
        "logfire.openai",
        "4.0",
        genai("openai", GPT, 2006, 100),
        Usage("partial", uncached=2006, output=100, notes=("cache_read_not_recorded",)),
    ),
    "langfuse raw usage": (
        "langfuse-sdk",
        "5.0.4",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": GPT,
            "langfuse.observation.usage_details": json.dumps(
                {"prompt_tokens": 2006, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 1920}}
            ),
        },
        Usage("reported", uncached=86, read=1920, output=100),
    ),
    "langfuse parts are disjoint by their total": (
        "langfuse-sdk",
        "5.0.4",
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.model.name": GPT,
            "langfuse.observation.usage_details": json.dumps(
                {"input": 3000, "input_cached_tokens": 1920, "output": 100, "output_reasoning": 40, "total": 5060}
            ),
        },
        Usage("reported", uncached=3000, read=1920, output=140, reasoning=40, notes=("exclusive_input",)),
    ),
    "litellm without cache counts": (
        "litellm",
        "",
        genai("anthropic", CLAUDE, 2009, 393),
        Usage("partial", uncached=2009, output=393, notes=("cache_read_not_recorded", "cache_write_not_recorded")),
    ),
    "ddtrace tags": (
        "ddtrace",
        "4.16",
        {
            **genai("anthropic", CLAUDE, 2009, 393),
            "gen_ai.usage.cache_read_input_tokens": 1800,
            "gen_ai.usage.cache_write_input_tokens": 188,
        },
        ANTHROPIC,
    ),
    "vercel": (
        "ai",
        "",
        {
            "ai.operationId": "ai.streamText.doStream",
            "ai.model.provider": "openai.responses",
            "ai.model.id": GPT,
            "ai.usage.inputTokens": 2006,
            "ai.usage.outputTokens": 100,
            "ai.usage.cachedInputTokens": 1920,
        },
        Usage("reported", uncached=86, read=1920, output=100, notes=("assumed_inclusive",)),
    ),
    "vercel carries anthropic's usage": (
        "ai",
        "",
        {
            "ai.operationId": "ai.generateText.doGenerate",
            "ai.model.provider": "anthropic.messages",
            "ai.model.id": CLAUDE,
            "ai.usage.inputTokens": 21,
            "ai.response.providerMetadata": json.dumps({"anthropic": {"usage": RAW}}),
        },
        ANTHROPIC,
    ),
    "unknown scope, cache outnumbers input": (
        "my.own.tracer",
        "",
        genai("anthropic", CLAUDE, 21, 393, **cached(1800, 188)),
        EXCLUSIVE,
    ),
    "unknown scope, the total tells inclusive": (
        "my.own.tracer",
        "",
        genai("anthropic", CLAUDE, 2009, 393, **cached(1800, 188), total_tokens=2402),
        ANTHROPIC,
    ),
    "unknown scope, the total tells exclusive": (
        "my.own.tracer",
        "",
        genai("anthropic", CLAUDE, 2009, 393, **cached(1800, 188), total_tokens=4390),
        Usage("reported", uncached=2009, read=1800, write_unknown=188, output=393, notes=("exclusive_input",)),
    ),
    "unknown scope without cache counts": (
        "claude-code.tool.message",
        "",
        genai("anthropic", CLAUDE, 187, 53),
        Usage("partial", uncached=187, output=53, notes=("cache_read_not_recorded", "cache_write_not_recorded")),
    ),
    "an error has no usage": (
        f"{OTEL}.openai",
        "1.3b0",
        {"gen_ai.operation.name": "chat", "gen_ai.request.model": GPT, "error.type": "RateLimitError"},
        Usage(),
    ),
    "counts of the wrong kind are absent": (
        f"{OTEL}.openai",
        "1.3b0",
        genai("openai", GPT, -5, "many", **cached(1920, None)),  # type: ignore[arg-type]
        Usage("partial", read=1920, notes=("exclusive_input",)),
    ),
}


@pytest.mark.parametrize(("scope", "version", "attributes", "expected"), CASES.values(), ids=CASES)
def test_counts_become_disjoint_buckets(
    tmp_path: Path, scope: str, version: str, attributes: dict[str, Any], expected: Usage
) -> None:
    """By scope, version and provider, as dialects.toml has it."""
    call = samples.one_call(tmp_path, samples.otlp(attributes, scope=scope, version=version))
    assert call.record.usage == expected


NO_CALLS = {
    "an agent": {**samples.CALL, "gen_ai.operation.name": "invoke_agent"},
    "a tool": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "f"},
    "an embedding": {**samples.CALL, "gen_ai.operation.name": "embeddings"},
    "a chain": inference("openai", GPT, 1, 1) | {"openinference.span.kind": "CHAIN"},
    "a parent that repeats the sum": {
        "ai.operationId": "ai.generateText",
        "ai.model.id": GPT,
        "ai.usage.promptTokens": 14,
    },
    "a workflow": {**samples.CALL, "traceloop.span.kind": "workflow", "gen_ai.operation.name": "invoke_workflow"},
    "an agent run of pydantic-ai": {**samples.CALL, "all_messages_events": "[]"},
    "an HTTP request": {"http.request.method": "POST", "server.address": "api.openai.com"},
    "a step": {"langfuse.observation.type": "span", "gen_ai.usage.input_tokens": 5, "gen_ai.request.model": GPT},
}


@pytest.mark.parametrize("attributes", NO_CALLS.values(), ids=NO_CALLS)
def test_what_is_no_call_is_passed_over(tmp_path: Path, attributes: dict[str, Any]) -> None:
    """Agents and parents repeat the tokens of the calls below them: counting both doubles the bill."""
    assert samples.read_bytes(tmp_path, samples.lines(samples.otlp(attributes))) == ([], [])


def test_a_wrapper_and_its_child_are_both_handed_on(tmp_path: Path) -> None:
    """Only the store sees all of a trace, so it merges them, by ids and response id."""
    inner = samples.raw_span({**samples.CALL, "gen_ai.response.id": "r1"}, spanId="c" * 16, parentSpanId=samples.SPAN)
    outer = samples.raw_span({**samples.CALL, "gen_ai.response.id": "r1"})
    found, _ = samples.read_bytes(tmp_path, samples.lines(samples.otlp(outer, inner)))
    assert [(f.record.span_id, f.record.usage.response_id) for f in found] == [(samples.SPAN, "r1"), ("c" * 16, "r1")]
    assert found[1].record.parent_span_id == found[0].record.span_id


def test_everything_beside_the_tokens_is_taken_too(tmp_path: Path) -> None:
    """Session, timing, identity and error of a call."""
    attributes = samples.CALL | {
        "gen_ai.response.model": "gpt-4.1-2025-04-14",
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.conversation.id": "c-7",
        "server.address": "example.openai.azure.com",
        "openai.response.service_tier": "flex",
        "http.response.status_code": 429,
        "error.type": "RateLimitError",
        "anthropic.organization.id": "org",
    }
    record = samples.one_call(tmp_path, samples.otlp(attributes)).record
    assert (record.session_id, record.ttft_ms, record.status) == ("c-7", 250.0, 429)
    assert (record.provider, record.error, record.service) == ("azure", "RateLimitError", "shop")
    assert (record.usage.tier, record.usage.served_model) == ("flex", "gpt-4.1-2025-04-14")
    assert len(record.account) == 16
    assert record.account != "org"


def test_the_message_of_an_error_is_not_kept(tmp_path: Path) -> None:
    """It may quote the prompt; its class may not."""
    event = {"name": "exception", "attributes": samples.pairs({"exception.type": "E", "exception.message": "secret"})}
    span = samples.raw_span(samples.CALL, status={"code": 2, "message": "secret"}, events=[event])
    record = samples.one_call(tmp_path, samples.otlp(span)).record
    assert record.error == "E"
    assert "secret" not in repr(record)


TTFT = {
    "milliseconds": ({"ai.response.msToFirstChunk": 426.5}, [], 426.5),
    "seconds": ({"gen_ai.server.time_to_first_token": 0.5}, [], 500.0),
    "a moment, as quoted JSON": (
        {"langfuse.observation.completion_start_time": '"2026-09-21T14:13:20.750000Z"'},
        [],
        750.0,
    ),
    "an event": ({}, [{"name": "First Token Stream Event", "timeUnixNano": str(samples.START_NS + 10**8)}], 100.0),
    "before the start": ({"langfuse.observation.completion_start_time": "2026-09-20T00:00:00Z"}, [], None),
}


@pytest.mark.parametrize(("attributes", "events", "expected"), TTFT.values(), ids=TTFT)
def test_time_to_first_token_has_many_spellings(
    tmp_path: Path, attributes: dict[str, Any], events: list[Any], expected: float | None
) -> None:
    """In seconds, milliseconds, as a moment, as an event."""
    span = samples.raw_span(samples.CALL | attributes, events=events)
    assert samples.one_call(tmp_path, samples.otlp(span)).record.ttft_ms == expected


counts = st.none() | st.integers(min_value=0, max_value=10**6)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.fixed_dictionaries(
        {f"gen_ai.usage.{name}": counts for name in ("input_tokens", "output_tokens", "total_tokens")}
        | {f"gen_ai.usage.{name}.input_tokens": counts for name in ("cache_read", "cache_write")}
        | {f"ephemeral_{ttl}_input_tokens": counts for ttl in ("5m", "1h")}
        | {"gen_ai.usage.reasoning_tokens": counts}
    ),
    st.sampled_from([row.scope for row in dialects.table().dialects]),
    st.sampled_from(["openai", "anthropic", "aws", "google", ""]),
)
def test_buckets_are_disjoint_and_hold_what_was_given(attributes: dict[str, Any], scope: str, provider: str) -> None:
    """Nothing is negative, and the total is the input count or the input count and the cache on top of it."""
    found = dialects.meanings(attributes)
    usage = buckets.usage(Span(attributes, scope=scope), found, provider, "claude-sonnet-4-5")
    parts = [usage.uncached, usage.read, usage.write_5m, usage.write_1h, usage.write_unknown, usage.output]
    assert min(parts) >= 0
    assert usage.reasoning <= usage.output
    given, cached_ = found.get("input", 0), usage.read + usage.write
    assert usage.input_total in {given, given + cached_}
    if usage.state == "reported":
        assert "input" in found


def test_the_table_is_sound() -> None:
    """The last dialect fits everything, every row has a source, and no spelling is listed twice for a meaning."""
    table = dialects.table()
    assert table.dialects[-1].fits("any.scope", "", "")
    assert all(row.source for row in table.dialects)
    assert {row.input for row in table.dialects} == {"inclusive", "exclusive", "unknown"}
    assert {row.absent_read for row in table.dialects} | {row.absent_write for row in table.dialects} == {
        "zero",
        "unknown",
    }
    for pairs in table.spellings.values():
        assert len({meaning for meaning, _ in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("scope", "fits"), [("openlit", True), ("openlit.x", True), ("openlitter", False), ("my.openlit", False)]
)
def test_a_scope_is_matched_at_its_dots(scope: str, fits: bool) -> None:
    """A name that only begins alike is somebody else."""
    row = dialects.Dialect("inclusive", "zero", "zero", "test", scope="openlit")
    assert row.fits(scope, "", "") is fits
