"""Calls as OpenTelemetry spans and log events, for those who want them in their backend."""

from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from opentelemetry import trace
from opentelemetry._logs import Logger, LoggerProvider, LogRecord, get_logger_provider
from opentelemetry.context import Context
from opentelemetry.instrumentation.utils import _SUPPRESS_INSTRUMENTATION_KEY  # type: ignore[attr-defined]
from opentelemetry.trace import SpanKind, Status, StatusCode

from prefixscope.otel_plugin import call_attributes, otlp
from prefixscope.otel_plugin.call_attributes import Encoded
from prefixscope.otel_plugin.record import CallRecord

EVENT: Final = "gen_ai.client.inference.operation.details"


@cache
def own_version() -> str:
    """The version of this package, "" where it is not installed."""
    try:
        return version("prefixscope")
    except PackageNotFoundError:
        return ""


def span_attributes(record: CallRecord, encoded: Encoded, *, covered: bool) -> dict[str, Any]:
    """The call as attributes of a span in somebody's backend.

    Where the call is covered by another span, only ``prefixscope.*`` and the response id, so that nothing is counted
    twice; else with ``gen_ai.usage.*`` as the conventions have it: the input includes what was read and written.
    """
    found = {**encoded, call_attributes.SERVICE: record.service} if record.service else {**encoded}
    return call_attributes.beside(found) if covered else found | _usage(record)


def _usage(record: CallRecord) -> dict[str, int]:
    usage = record.usage
    if usage.state == "missing":
        return {}
    counts = {
        "gen_ai.usage.cache_read.input_tokens": usage.read,
        "gen_ai.usage.cache_write.input_tokens": usage.write,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
    }
    totals = {"gen_ai.usage.input_tokens": usage.input_total, "gen_ai.usage.output_tokens": usage.output}
    return totals | {name: count for name, count in counts.items() if count}


@lru_cache(maxsize=4)  # making a tracer takes as long as making a span
def _tracer(provider: trace.TracerProvider) -> trace.Tracer:
    return provider.get_tracer(otlp.SCOPE, own_version())


@lru_cache(maxsize=4)
def _logger(provider: LoggerProvider) -> Logger:
    return provider.get_logger(otlp.SCOPE, own_version())


def emit_span(record: CallRecord, encoded: Encoded, context: Context, *, covered: bool) -> tuple[str, str] | None:
    """Makes the span of a call that is over; gives its trace id and span id, None if no tracer provider is set up.

    Sampling is the tracer provider's: a span that is not sampled has ids all the same.
    """
    span = _tracer(trace.get_tracer_provider()).start_span(
        otlp.name(record),
        context=context,
        kind=SpanKind.CLIENT,
        attributes=span_attributes(record, encoded, covered=covered),
        start_time=record.started_ns,
    )
    if otlp.failed(record):
        span.set_status(Status(StatusCode.ERROR))
    span.end(end_time=otlp.end_ns(record))
    made = span.get_span_context()
    around = trace.get_current_span(context).get_span_context()
    if not made.is_valid or made.span_id == around.span_id:
        return None
    return f"{made.trace_id:032x}", f"{made.span_id:016x}"


def emit_event(record: CallRecord, encoded: Encoded, context: Context) -> None:
    """Logs the call as one event in the trace of the request: log records are not sampled away."""
    _logger(get_logger_provider()).emit(
        LogRecord(
            timestamp=record.started_ns,
            context=context,
            event_name=EVENT,
            attributes=span_attributes(record, encoded, covered=False),
        )
    )


def is_suppressed(context: Context) -> bool:
    """Whether the caller asked OpenTelemetry for silence; usage is kept all the same, in the spool."""
    return bool(context.get(_SUPPRESS_INSTRUMENTATION_KEY))
