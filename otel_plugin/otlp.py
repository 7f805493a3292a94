"""Calls as lines of OTLP/JSON, one export request a line: what the collector's file exporter writes and all can read.

Source: opentelemetry.io/docs/specs/otel/protocol/file-exporter and opentelemetry-proto's JSON mapping (hex ids, 64-bit
integers as strings), checked 2026-11-30.
"""

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from prefixscope.otel_plugin.call_attributes import Encoded
from prefixscope.otel_plugin.calls import Call
from prefixscope.otel_plugin.record import CallRecord

SCOPE = "prefixscope"
REQUEST, RESPONSE = "prefixscope.content.request", "prefixscope.content.response"  # only with content capture on
_CLIENT = 3  # span kind
_ERROR = 2  # status code
_CUMULATIVE = 2  # aggregation temporality


def line(call: Call, encoded: Encoded, version: str) -> bytes:
    """The call, whose record is ``encoded``, as a span in a document of its own, with a line end."""
    texts = {REQUEST: call.request, RESPONSE: call.response}
    found = {**encoded} | {name: text for name, text in texts.items() if text}
    scoped = {"scope": {"name": SCOPE, "version": version}, "spans": [_span(call.record, pairs(found))]}
    return _document("Spans", call.record.service, scoped)


def sums(counts: Mapping[str, Mapping[str, float]], start_ns: int, now_ns: int, service: str, version: str) -> bytes:
    """Counts since ``start_ns``, by name and reason, as monotonic sums in a document of their own, with a line end."""
    times = {"startTimeUnixNano": str(start_ns), "timeUnixNano": str(now_ns)}
    metrics = [
        {
            "name": name,
            "sum": {
                "dataPoints": [
                    times | {"asDouble": value, "attributes": pairs({"reason": reason} if reason else {})}
                    for reason, value in values.items()
                ],
                "aggregationTemporality": _CUMULATIVE,
                "isMonotonic": True,
            },
        }
        for name, values in counts.items()
    ]
    scoped = {"scope": {"name": SCOPE, "version": version}, "metrics": metrics}
    return _document("Metrics", service, scoped)


def pairs(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP key-value pairs."""
    return [{"key": key, "value": _any(value)} for key, value in values.items()]


def end_ns(record: CallRecord) -> int:
    """When the call ended, UTC, Unix epoch."""
    return record.started_ns + round((record.duration_ms or 0) * 1e6)


def name(record: CallRecord) -> str:
    """The span's name, as the GenAI conventions have it."""
    return f"chat {record.model}" if record.model else "chat"


def _document(signal: str, service: str, scoped: Mapping[str, Any]) -> bytes:
    resource = {"attributes": pairs({"service.name": service})}
    document = {f"resource{signal}": [{"resource": resource, f"scope{signal}": [scoped]}]}
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def _span(record: CallRecord, found: list[dict[str, Any]]) -> dict[str, Any]:
    span = {
        "traceId": record.trace_id,
        "spanId": record.span_id,
        "parentSpanId": record.parent_span_id,
        "name": name(record),
        "kind": _CLIENT,
        "startTimeUnixNano": str(record.started_ns),
        "endTimeUnixNano": str(end_ns(record)),
        "attributes": found,
        "status": {"code": _ERROR} if failed(record) else {},
    }
    return {key: value for key, value in span.items() if value != ""}


def failed(record: CallRecord) -> bool:
    """Whether the call ended in an error; an abort by the application is none."""
    return bool(record.error) or (record.status or 0) >= 400


def _any(value: Any) -> dict[str, Any]:
    """Any value that an attribute may have; null is an empty one, and what is none of them is its text."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value} if isinstance(value, str) else _compound(value)


def _compound(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if isinstance(value, bytes):
        return {"bytesValue": b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": pairs(value)}}
    return {"arrayValue": {"values": [_any(v) for v in value]}} if isinstance(value, Sequence) else _any(str(value))
