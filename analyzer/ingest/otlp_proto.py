"""OTLP protobuf messages -> spans."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar, cast

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf ships no types
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Status
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan

from prefixscope.analyzer.ingest.loose import hex_id, moment
from prefixscope.analyzer.ingest.otlp import describes_call
from prefixscope.analyzer.ingest.span import Span

FIRST_BYTE = 0x0A  # field 1, length-delimited: resource_spans or resource_logs


_Request = TypeVar("_Request", ExportTraceServiceRequest, ExportLogsServiceRequest)


class NotOtlpError(ValueError):
    """The bytes are no OTLP traces or logs."""


def spans(data: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest (TracesData on the wire is the same), or the call events of logs.

    The wire format does not say which signal it is: what of another signal decodes as this one lacks its first field.

    Raises:
        NotOtlpError: it is neither.
    """
    for read in (of_traces, of_logs):
        with suppress(NotOtlpError):
            return read(data)
    raise NotOtlpError("not OTLP traces or logs in protobuf: the file is damaged, or holds metrics or something else")


def of_traces(data: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest.

    Raises:
        NotOtlpError: it is none, or of another signal.
    """
    traces = _decoded(ExportTraceServiceRequest, data)
    if traces is None or any(len(s.trace_id) != 16 for g in traces.resource_spans for s in _of_group(g)):
        raise NotOtlpError("not OTLP traces in protobuf: damaged, or of another signal")
    return list(_spans(traces))


def of_logs(data: bytes) -> list[Span]:
    """The call events of an ExportLogsServiceRequest.

    Raises:
        NotOtlpError: it is none, or of another signal.
    """
    logs = _decoded(ExportLogsServiceRequest, data)
    if logs is None or not all(_has_time(r) for g in logs.resource_logs for s in g.scope_logs for r in s.log_records):
        raise NotOtlpError("not OTLP logs in protobuf: damaged, or of another signal")
    return list(_events(logs))


def _decoded(kind: type[_Request], data: bytes) -> _Request | None:
    try:
        return cast("_Request", kind.FromString(data))
    except DecodeError:
        return None


def _of_group(group: ResourceSpans) -> Iterator[ProtoSpan]:
    return (span for scoped in group.scope_spans for span in scoped.spans)


def _has_time(record: LogRecord) -> bool:
    return bool(record.time_unix_nano or record.observed_time_unix_nano)


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                yield _span(span, resource, scoped.scope.name, scoped.scope.version)


def _span(span: ProtoSpan, resource: dict[str, Any], scope: str, version: str) -> Span:
    return Span(
        attributes=_attributes(span.attributes),
        resource=resource,
        scope=scope,
        scope_version=version,
        trace_id=hex_id(span.trace_id, 32),
        span_id=hex_id(span.span_id, 16),
        parent_span_id=hex_id(span.parent_span_id, 16),
        start_ns=moment(span.start_time_unix_nano),
        end_ns=moment(span.end_time_unix_nano),
        failed=span.status.code == Status.STATUS_CODE_ERROR,
        dropped_attributes=span.dropped_attributes_count,
        events=[(e.name, moment(e.time_unix_nano), _attributes(e.attributes)) for e in span.events],
    )


def _events(request: ExportLogsServiceRequest) -> Iterator[Span]:
    for group in request.resource_logs:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_logs:
            for record in scoped.log_records:
                found = _attributes(record.attributes)
                if describes_call(record.event_name, found):
                    body = _plain(record.body)
                    yield Span(
                        attributes={**body, **found} if isinstance(body, dict) else found,
                        resource=resource,
                        scope=scoped.scope.name,
                        scope_version=scoped.scope.version,
                        trace_id=hex_id(record.trace_id, 32),
                        span_id=hex_id(record.span_id, 16),
                        start_ns=moment(record.time_unix_nano) or moment(record.observed_time_unix_nano),
                        dropped_attributes=record.dropped_attributes_count,
                    )


def _attributes(pairs: Iterable[KeyValue]) -> dict[str, Any]:
    return {pair.key: _plain(pair.value) for pair in pairs}


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(v) for v in value.array_value.values]
    if kind == "kvlist_value":
        return _attributes(value.kvlist_value.values)
    return None if kind in {None, "bytes_value"} else getattr(value, kind)
