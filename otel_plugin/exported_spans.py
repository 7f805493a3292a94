"""Spans that a tracer provider hands to an exporter, as documents and lines of OTLP/JSON.

Other instrumentations write prompts and answers into attributes. Where these must not be kept, ``withheld`` leaves of a
span what cannot be text of a prompt: numbers, switches, and the few names in ``exported_spans.toml``.
"""

import json
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import SpanContext, StatusCode

from prefixscope.otel_plugin.otlp import SCOPE, pairs

_FACTS: Mapping[str, Any] = tomllib.loads(
    files("prefixscope.otel_plugin").joinpath("exported_spans.toml").read_text("utf-8")
)
_HARMLESS: Final = frozenset(_FACTS["texts"])
_LONGEST: Final[int] = _FACTS["longest"]
_ERROR: Final = 2  # status code


def document(span: ReadableSpan) -> dict[str, Any]:
    """``span`` as an export request of its own, with everything in it that says something of a call."""
    return _document(span, _raw(span, dict(span.attributes or {}), events=True))


def withheld(span: ReadableSpan) -> dict[str, Any]:
    """The same without anything that may be text of a prompt or an answer; our own spans have none and are whole."""
    if span.instrumentation_scope is not None and span.instrumentation_scope.name == SCOPE:
        return document(span)
    kept = {name: value for name, value in (span.attributes or {}).items() if _is_harmless(name, value)}
    return _document(span, _raw(span, kept, events=False))


def line(made: Mapping[str, Any]) -> bytes:
    """A document as a line, with its line end."""
    return json.dumps(made, separators=(",", ":")).encode() + b"\n"


def _is_harmless(name: str, value: Any) -> bool:
    if isinstance(value, bool | int | float):
        return True
    return name in _HARMLESS and isinstance(value, str) and len(value) <= _LONGEST


def _document(span: ReadableSpan, raw: dict[str, Any]) -> dict[str, Any]:
    scope = span.instrumentation_scope
    scoped = {"scope": {"name": scope.name, "version": scope.version or ""} if scope else {}, "spans": [raw]}
    resource = {"attributes": pairs({"service.name": span.resource.attributes.get("service.name", "")})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scoped]}]}


def _raw(span: ReadableSpan, attributes: Mapping[str, Any], *, events: bool) -> dict[str, Any]:
    found = {
        **_ids(span.context),
        "parentSpanId": f"{span.parent.span_id:016x}" if span.parent else "",
        "name": span.name if events else "",
        "kind": span.kind.value + 1,  # OTLP counts from 1: 0 is unspecified
        "startTimeUnixNano": str(span.start_time or ""),
        "endTimeUnixNano": str(span.end_time or ""),
        "attributes": pairs(attributes),
        "droppedAttributesCount": span.dropped_attributes,
        "events": [_event(event) for event in span.events] if events else [],
        "status": {"code": _ERROR} if span.status.status_code is StatusCode.ERROR else {},
    }
    return {name: value for name, value in found.items() if value or name == "attributes"}


def _ids(context: SpanContext | None) -> dict[str, str]:
    return {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"} if context else {}


def _event(event: Event) -> dict[str, Any]:
    return {
        "name": event.name,
        "timeUnixNano": str(event.timestamp),
        "attributes": pairs(event.attributes or {}),
    }
