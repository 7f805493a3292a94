"""OTLP protobuf messages -> spans."""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as ProtoSpan
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from prefixscope.analyzer.ingest.loose import hex_id, moment
from prefixscope.analyzer.ingest.otlp import CALL_EVENT
from prefixscope.analyzer.ingest.span import Span

FIRST_BYTE = 0x0A  # field 1, length-delimited: resource_spans or resource_logs


class NotOtlpError(ValueError):
    """The bytes are no OTLP traces or logs."""


def spans(data: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest (TracesData on the wire is the same), or the call events of logs.

    Raises:
        NotOtlpError: it is neither.
    """
    try:
        return list(_spans(ExportTraceServiceRequest.FromString(data)))
    except DecodeError:
        raise NotOtlpError("not an OTLP protobuf message: the file is damaged, or holds something else") from None
    except _NotTracesError:
        return list(_events(ExportLogsServiceRequest.FromString(data)))


class _NotTracesError(ValueError):
    """Logs and metrics decode as traces too, with everything inside a span unknown."""


def _spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                if len(span.trace_id) != 16:
                    raise _NotTracesError
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
                if CALL_EVENT in {record.event_name, found.get("event.name")} or "prefixscope.fingerprint" in found:
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
