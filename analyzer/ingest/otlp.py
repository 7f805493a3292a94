"""OTLP/JSON documents -> spans.

Reads what the specification says and what exporters write instead: snake_case keys, 64-bit integers as numbers, ids in
base64, enums by name, attributes as a plain object. (protobuf's own JSON parser takes the hex ids for base64.)
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prefixscope.analyzer.ingest.loose import count, hex_id, items, mapping, moment, text
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin.call_attributes import FINGERPRINT

CALL_EVENT = "gen_ai.client.inference.operation.details"
"""The log event in which GenAI instrumentations describe a whole call; its attributes are those of the span."""

_ERROR = (2, "2", "STATUS_CODE_ERROR", "ERROR", "error")


def spans(document: Mapping[str, Any]) -> Iterator[Span]:
    """Every span of a document with ``resourceSpans``."""
    for resource, scope, raw in _leaves(document, "Spans"):
        if isinstance(raw, dict):
            yield _span(raw, resource, scope)


def events(document: Mapping[str, Any]) -> Iterator[Span]:
    """Every log record of a document with ``resourceLogs`` that describes a call."""
    for resource, scope, raw in _leaves(document, "Logs", "logRecords"):
        record = mapping(raw)
        found = attributes(record.get("attributes"))
        if describes_call(text(_get(record, "eventName")), found):
            yield _event(record, found, resource, scope)


def describes_call(event_name: str, found: Mapping[str, Any]) -> bool:
    """Whether a log record of that name, with those attributes, is a whole call."""
    return CALL_EVENT in {event_name, text(found.get("event.name"))} or FINGERPRINT in found


def attributes(raw: Any) -> dict[str, Any]:
    """OTLP key-value pairs, or a plain object, as a dictionary. A key given twice has its last value."""
    if isinstance(raw, dict):
        return {key: plain(value) if isinstance(value, dict) else value for key, value in raw.items()}
    found = {}
    for pair in items(raw):
        if isinstance(pair, dict) and isinstance(key := pair.get("key"), str):
            found[key] = plain(pair.get("value"))
    return found


def plain(value: Any) -> Any:
    """An OTLP AnyValue as a plain value; an empty one is null. What is no AnyValue stays as it is."""
    if not isinstance(value, dict) or len(value) > 1:
        return value
    for kind, content in value.items():
        reader = _ANY_VALUE.get(kind)
        return reader(content) if reader else value
    return None


def _same(content: Any) -> Any:
    return content


def _whole(content: Any) -> Any:
    """A 64-bit integer, which the specification writes as a string."""
    is_number = isinstance(content, str) and len(content) <= 20 and content.removeprefix("-").isdecimal()
    return int(content) if is_number else content


def _list(content: Any) -> list[Any]:
    return [plain(v) for v in items(mapping(content).get("values"))]


def _object(content: Any) -> dict[str, Any]:
    return attributes(mapping(content).get("values"))


_ANY_VALUE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("stringValue", "string_value"), _same),
    **dict.fromkeys(("intValue", "int_value"), _whole),
    **dict.fromkeys(("doubleValue", "double_value"), _same),
    **dict.fromkeys(("boolValue", "bool_value"), _same),
    **dict.fromkeys(("arrayValue", "array_value"), _list),
    **dict.fromkeys(("kvlistValue", "kvlist_value"), _object),
    **dict.fromkeys(("bytesValue", "bytes_value"), lambda _: None),  # nothing that is read here is bytes
}


def _leaves(document: Mapping[str, Any], signal: str, leaf: str = "") -> Iterator[tuple[Any, Any, Any]]:
    """(resource attributes, scope, raw span or log record) of a document."""
    for group in items(_get(document, f"resource{signal}")):
        resource = attributes(mapping(_get(mapping(group), "resource")).get("attributes"))
        # instrumentationLibrarySpans: the name before OTLP 0.19, still in old archives
        scopes = _get(mapping(group), f"scope{signal}") or mapping(group).get(f"instrumentationLibrary{signal}")
        for scoped in items(scopes):
            scope = mapping(mapping(scoped).get("scope") or mapping(scoped).get("instrumentationLibrary"))
            for raw in items(_get(mapping(scoped), leaf or signal.lower())):
                yield resource, scope, raw


_SNAKE: dict[str, str] = {}


def _get(raw: Mapping[str, Any], name: str) -> Any:
    """``raw[name]``, or the same under its snake_case name."""
    found = raw.get(name)
    if found is None:
        snake = _SNAKE.get(name) or _SNAKE.setdefault(
            name, "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        )
        found = raw.get(snake)
    return found


def _span(raw: Mapping[str, Any], resource: Mapping[str, Any], scope: Mapping[str, Any]) -> Span:
    return Span(
        attributes=attributes(raw.get("attributes")),
        resource=resource,
        scope=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        trace_id=hex_id(_get(raw, "traceId"), 32),
        span_id=hex_id(_get(raw, "spanId"), 16),
        parent_span_id=hex_id(_get(raw, "parentSpanId"), 16),
        start_ns=moment(_get(raw, "startTimeUnixNano")),
        end_ns=moment(_get(raw, "endTimeUnixNano")),
        failed=mapping(raw.get("status")).get("code") in _ERROR,
        dropped_attributes=count(_get(raw, "droppedAttributesCount")) or 0,
        events=[_span_event(e) for e in items(raw.get("events")) if isinstance(e, dict)],
    )


def _span_event(raw: Mapping[str, Any]) -> tuple[str, int | None, Mapping[str, Any]]:
    return text(raw.get("name")), moment(_get(raw, "timeUnixNano")), attributes(raw.get("attributes"))


def _event(
    raw: Mapping[str, Any], found: Mapping[str, Any], resource: Mapping[str, Any], scope: Mapping[str, Any]
) -> Span:
    body = plain(raw.get("body"))
    return Span(
        attributes={**mapping(body), **found},
        resource=resource,
        scope=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        trace_id=hex_id(_get(raw, "traceId"), 32),
        span_id=hex_id(_get(raw, "spanId"), 16),
        start_ns=moment(_get(raw, "timeUnixNano")) or moment(_get(raw, "observedTimeUnixNano")),
        dropped_attributes=count(_get(raw, "droppedAttributesCount")) or 0,
    )
