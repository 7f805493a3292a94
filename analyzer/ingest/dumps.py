"""Spans as SDKs and Jaeger print them -> ``Span``. None of these formats is specified; only their keys tell them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from prefixscope.analyzer.ingest.loose import hex_id, items, mapping, moment, number, text
from prefixscope.analyzer.ingest.span import Span


def is_python(document: Mapping[str, Any]) -> bool:
    """``ReadableSpan.to_json`` of the Python SDK, which its console exporter prints."""
    return isinstance(document.get("context"), dict) and "trace_id" in document["context"]


def python(document: Mapping[str, Any]) -> Span:
    context, parent = mapping(document["context"]), mapping(document.get("parent"))
    scope = mapping(document.get("instrumentation_scope") or document.get("scope"))
    return Span(
        attributes=mapping(document.get("attributes")),
        resource=mapping(mapping(document.get("resource")).get("attributes")),
        scope=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        trace_id=hex_id(context.get("trace_id"), 32),
        span_id=hex_id(context.get("span_id"), 16),
        parent_span_id=hex_id(parent.get("span_id") or document.get("parent_id"), 16),
        start_ns=moment(document.get("start_time")),
        end_ns=moment(document.get("end_time")),
        failed=text(mapping(document.get("status")).get("status_code")).upper() == "ERROR",
        events=[
            (text(e.get("name")), moment(e.get("timestamp")), mapping(e.get("attributes")))
            for e in map(mapping, items(document.get("events")))
        ],
    )


def whole_numbers(document: Any, data: bytes) -> Any:
    """``document`` read again if trace ids in it are 128-bit numbers, which orjson takes for floats.

    What is only a part of ``data`` stays as it is: its call is then named without its trace.
    """
    spans = document if isinstance(document, list) else items(document.get("spans")) or (document,)
    if any(isinstance(mapping(mapping(span).get("context")).get("trace_id"), float) for span in spans):
        again = json.loads(data)
        if isinstance(again, type(document)) and len(again) == len(document):
            return again
    return document


def is_javascript(document: Mapping[str, Any]) -> bool:
    """A span object of the JavaScript SDK, turned to JSON."""
    return isinstance(document.get("spanContext"), dict) and "traceId" in document["spanContext"]


def javascript(document: Mapping[str, Any]) -> Span:
    context, parent = mapping(document["spanContext"]), mapping(document.get("parentSpanContext"))
    scope = mapping(document.get("instrumentationScope") or document.get("instrumentationLibrary"))
    return Span(
        attributes=mapping(document.get("attributes")),
        resource=mapping(mapping(document.get("resource")).get("attributes")),
        scope=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        trace_id=hex_id(context.get("traceId"), 32),
        span_id=hex_id(context.get("spanId"), 16),
        parent_span_id=hex_id(parent.get("spanId") or document.get("parentSpanId"), 16),
        start_ns=_hr_time(document.get("startTime")),
        end_ns=_hr_time(document.get("endTime")),
        failed=mapping(document.get("status")).get("code") == 2,
        events=[
            (text(e.get("name")), _hr_time(e.get("time")), mapping(e.get("attributes")))
            for e in map(mapping, items(document.get("events")))
        ],
    )


def _hr_time(value: Any) -> int | None:
    """[seconds, nanoseconds] since 1970."""
    if not isinstance(value, list) or len(value) != 2 or not all(type(v) is int for v in value):
        return moment(value)
    return moment(value[0] * 10**9 + value[1])


def is_jaeger(document: Mapping[str, Any]) -> bool:
    """One span of Jaeger's own JSON."""
    return "traceID" in document and "spanID" in document


def jaeger_export(document: Mapping[str, Any]) -> Iterator[Span]:
    """The answer of Jaeger's query API: {"data": [{"spans": […], "processes": {…}}]}."""
    for trace in map(mapping, items(document.get("data"))):
        processes = mapping(trace.get("processes"))
        for span in map(mapping, items(trace.get("spans"))):
            yield jaeger({"process": processes.get(text(span.get("processID"))), **span})


def jaeger(document: Mapping[str, Any]) -> Span:
    tags, process = _tags(document.get("tags")), mapping(document.get("process"))
    start = moment(document.get("startTime"))
    lasted = number(document.get("duration"))  # µs
    parents = [r for r in map(mapping, items(document.get("references"))) if r.get("refType") == "CHILD_OF"]
    parent = parents[0].get("spanID") if parents else document.get("parentSpanID")
    return Span(
        attributes=tags,
        resource={**_tags(process.get("tags")), "service.name": process.get("serviceName")},
        scope=text(tags.get("otel.scope.name") or tags.get("otel.library.name")),
        scope_version=text(tags.get("otel.scope.version") or tags.get("otel.library.version")),
        trace_id=hex_id(document.get("traceID"), 32),
        span_id=hex_id(document.get("spanID"), 16),
        parent_span_id=hex_id(parent, 16),
        start_ns=start,
        end_ns=start + int(lasted * 1000) if start is not None and lasted is not None else None,
        failed=tags.get("error") in {True, "true"} or tags.get("otel.status_code") == "ERROR",
    )


def _tags(raw: Any) -> dict[str, Any]:
    return {text(tag.get("key")): tag.get("value") for tag in map(mapping, items(raw))}
