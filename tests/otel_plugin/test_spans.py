"""Spans and log events, and that no backend counts a call twice."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context, set_value
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode, set_span_in_context

from exchanges import chat, completion, exchange
from prefixscope.otel_plugin import call_attributes, covering, spans
from prefixscope.otel_plugin.asked import Keys
from prefixscope.otel_plugin.calls import Reader
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.record import CallRecord, Embedded, Usage

EMPTY = Context()


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where spans go."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


def record(**more: Any) -> CallRecord:
    """A call as it comes off the wire."""
    body = json.dumps(completion(**more)).encode()
    reader = Reader(Fingerprinter(b"key"), Guard(reraise=True), service="shop", keys=Keys(b"key"))
    found = reader.read(exchange(chat(temperature=0, n=2, stream=True, web_search_options={"x": 1}), body))
    assert found is not None
    return replace(found.record, embedded=Embedded("module:function", b"\x00<\x00\x00", "ab" * 16, "cd" * 16))


def emitted(call: CallRecord, context: Context, *, covered: bool) -> tuple[str, str] | None:
    return spans.emit_span(call, call_attributes.encode(call), context, covered=covered)


def only(exporter: InMemorySpanExporter) -> ReadableSpan:
    (span,) = exporter.get_finished_spans()
    return span


def test_a_call_is_a_span(exported: InMemorySpanExporter) -> None:
    """Of its own time, with the conventions' attributes, and the audit reads it back."""
    call = record()
    ids = emitted(call, EMPTY, covered=False)
    span = only(exported)
    assert (span.name, span.kind) == ("chat gpt-5.1", SpanKind.CLIENT)
    assert span.instrumentation_scope is not None
    assert span.instrumentation_scope.name == "prefixscope"
    assert span.start_time == call.started_ns
    assert span.end_time == call.started_ns + round((call.duration_ms or 0) * 1e6)
    assert ids == (f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}")
    found = dict(span.attributes or {})
    usage = {name: value for name, value in found.items() if name.startswith("gen_ai.usage.")}
    assert usage == {
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 64,
    }
    asked = {name: value for name, value in found.items() if name.startswith("gen_ai.request.")}
    assert asked == {
        "gen_ai.request.model": "gpt-5.1",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.choice.count": 2,
        "gen_ai.request.stream": True,
    }
    assert CallRecord(call.started_ns, duration_ms=call.duration_ms, **call_attributes.decode(found)) == (call)


def test_the_parent_is_the_span_around_the_request(exported: InMemorySpanExporter) -> None:
    """Although it is over when ours is made."""
    parent = TracerProvider().get_tracer("app").start_span("work")
    parent.end()
    emitted(record(), set_span_in_context(parent, EMPTY), covered=False)
    assert only(exported).parent == parent.get_span_context()


def test_an_error_is_marked(exported: InMemorySpanExporter) -> None:
    """By status, without a description."""
    emitted(CallRecord(1, status=429, error="rate_limit_error"), EMPTY, covered=False)
    assert (only(exported).status.status_code, only(exported).status.description) == (StatusCode.ERROR, None)


def test_unknown_usage_is_not_zero(exported: InMemorySpanExporter) -> None:
    """It is left out."""
    emitted(CallRecord(1, usage=Usage()), EMPTY, covered=False)
    assert not [name for name in only(exported).attributes or {} if name.startswith("gen_ai.usage.")]


def test_a_covered_call_is_not_counted_again(exported: InMemorySpanExporter) -> None:
    """What is ours, and the response id: the audit still reads everything of it."""
    call = record()
    emitted(call, EMPTY, covered=True)
    found = dict(only(exported).attributes or {})
    assert {name for name in found if not name.startswith("prefixscope.")} == {"gen_ai.response.id"}
    assert CallRecord(call.started_ns, duration_ms=call.duration_ms, **call_attributes.decode(found)) == (call)


def test_what_is_not_sampled_has_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The spool keeps every call; its ids are those of the trace."""
    provider = TracerProvider(sampler=ALWAYS_OFF)
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    ids = emitted(CallRecord(1), EMPTY, covered=False)
    assert ids is not None
    assert [len(name) for name in ids] == [32, 16]


def test_without_a_tracer_provider_there_are_no_ids() -> None:
    """And the parent's are not ours."""
    assert emitted(CallRecord(1), EMPTY, covered=False) is None
    parent = set_span_in_context(TracerProvider().get_tracer("app").start_span("work"), EMPTY)
    assert emitted(CallRecord(1), parent, covered=False) is None


def around(scope: str, **attributes: str) -> Context:
    """The context inside a span of ``scope``."""
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return set_span_in_context(TracerProvider().get_tracer(scope).start_span("x", attributes=named), EMPTY)


COVERED = {
    "anthropic's own span": around("com.anthropic.sdk.python"),
    "conventions": around("any", gen_ai__operation__name="chat"),
    "OpenInference": around("openinference.instrumentation.openai", openinference__span__kind="LLM"),
    "Langfuse": around("langfuse-sdk", langfuse__observation__type="generation"),
    "OpenLIT": around("openlit.otel.tracing"),
    "util-genai": set_value("opentelemetry.genai.client.inference.context", object(), EMPTY),
}
NOT_COVERED = {
    "nothing": EMPTY,
    "the application's span": around("my-app", user="1"),
    "an agent": around("any", gen_ai__operation__name="invoke_agent"),
    "a chain": around("openinference.instrumentation.langchain", openinference__span__kind="CHAIN"),
}


@pytest.mark.parametrize("context", COVERED.values(), ids=COVERED)
def test_who_reports_the_call_is_seen(context: Context) -> None:
    """By the span around the request."""
    assert covering.is_covered(context, "")


@pytest.mark.parametrize("context", NOT_COVERED.values(), ids=NOT_COVERED)
def test_other_spans_report_no_call(context: Context) -> None:
    """Agents and chains have no usage of one call."""
    assert not covering.is_covered(context, "OpenAI/Python 3.57.0")


@pytest.fixture
def openai_instrumentor() -> Iterator[Any]:
    """An active instrumentor of the OpenAI SDK that makes no span current."""

    class OpenAIInstrumentor(BaseInstrumentor):  # type: ignore[misc]
        def instrumentation_dependencies(self) -> tuple[str, ...]:
            return ()

        def _uninstrument(self, **_: Any) -> None:
            pass

    OpenAIInstrumentor.__module__ = "some.instrumentation.openai"
    OpenAIInstrumentor().instrument()
    yield OpenAIInstrumentor()
    if OpenAIInstrumentor().is_instrumented_by_opentelemetry:
        OpenAIInstrumentor().uninstrument()


def test_an_active_instrumentor_covers_its_sdk(openai_instrumentor: Any) -> None:
    """And nothing that others send; switched off, it covers nothing."""
    assert covering.is_covered(EMPTY, "AsyncOpenAI/Python 3.57.0")
    assert not covering.is_covered(EMPTY, "python-httpx/0.28.1")
    assert not covering.is_covered(EMPTY, "Anthropic/Python 2.14.0")
    openai_instrumentor.uninstrument()
    assert not covering.is_covered(EMPTY, "AsyncOpenAI/Python 3.57.0")
