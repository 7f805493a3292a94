"""The same calls come out of every format that collectors, SDKs and people write."""

import base64
import gzip
import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import zstandard
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

import ingest_samples as samples
from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.ingest import expand, read
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import Usage

SCOPE = "opentelemetry.instrumentation.genai.openai"
DOCUMENTS = [samples.otlp(samples.CALL, scope=SCOPE, version="1.3b0", service=name) for name in ("shop", "search")]


def proto_value(value: Any) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, list):
        return AnyValue(array_value=ArrayValue(values=[proto_value(v) for v in value]))
    if isinstance(value, dict):
        pairs = [KeyValue(key=k, value=proto_value(v)) for k, v in value.items()]
        return AnyValue(kvlist_value=KeyValueList(values=pairs))
    return AnyValue(string_value=value)


def proto(service: str) -> bytes:
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name", value=proto_value(service))
    scoped = group.scope_spans.add()
    scoped.scope.name, scoped.scope.version = SCOPE, "1.3b0"
    span = scoped.spans.add(
        trace_id=bytes.fromhex(samples.TRACE),
        span_id=bytes.fromhex(samples.SPAN),
        parent_span_id=bytes.fromhex(samples.PARENT),
        start_time_unix_nano=samples.START_NS,
        end_time_unix_nano=samples.START_NS + 1_500_000_000,
    )
    span.attributes.extend(KeyValue(key=k, value=proto_value(v)) for k, v in samples.CALL.items())
    return bytes(request.SerializeToString())


def prefixed(*messages: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(m)) + m for m in messages)


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def snake(document: Any) -> Any:
    """Keys as protobuf's field names; attribute keys are values and stay."""
    if isinstance(document, list):
        return [snake(d) for d in document]
    if not isinstance(document, dict):
        return document
    return {"".join(f"_{c.lower()}" if c.isupper() else c for c in k): snake(v) for k, v in document.items()}


def respelled(change: Callable[[dict[str, Any]], None]) -> bytes:
    documents = json.loads(json.dumps(DOCUMENTS))
    for document in documents:
        change(document["resourceSpans"][0]["scopeSpans"][0]["spans"][0])
    return samples.lines(*documents)


def base64_ids(span: dict[str, Any]) -> None:
    for name in ("traceId", "spanId", "parentSpanId"):
        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()


def number_times(span: dict[str, Any]) -> None:
    span |= {"startTimeUnixNano": samples.START_NS, "endTimeUnixNano": samples.START_NS + 1_500_000_000}
    for pair in span["attributes"]:
        if "intValue" in pair["value"]:
            pair["value"] = {"intValue": int(pair["value"]["intValue"])}


def plain_attributes(span: dict[str, Any]) -> None:
    span["attributes"] = samples.CALL


LINES = samples.lines(*DOCUMENTS)
FORMATS = {
    "lines": LINES,
    "lines without a last newline": LINES.rstrip(),
    "lines with blank lines, CRLF and a byte order mark": b"\xef\xbb\xbf\r\n" + LINES.replace(b"\n", b"\r\n\r\n"),
    "pretty-printed documents": b"\n".join(json.dumps(d, indent=2).encode() for d in DOCUMENTS),
    "an array": json.dumps(DOCUMENTS).encode(),
    "a pretty-printed array": json.dumps(DOCUMENTS, indent="\t").encode(),
    "an array with an element a line": b"[\n" + b",\n".join(LINES.splitlines()) + b"\n]\n",
    "an array a line": samples.lines(DOCUMENTS[:1], DOCUMENTS[1:]),
    "one document": json.dumps({"resourceSpans": [d["resourceSpans"][0] for d in DOCUMENTS]}).encode(),
    "snake_case": samples.lines(*snake(DOCUMENTS)),
    "base64 ids": respelled(base64_ids),
    "numbers as numbers": respelled(number_times),
    "attributes as an object": respelled(plain_attributes),
    "gzip": gzip.compress(LINES),
    "several gzip members": b"".join(gzip.compress(part) for part in (LINES[:100], LINES[100:])),
    "gzip with padding": gzip.compress(LINES) + bytes(512),
    "zstd": zstd(LINES),
    "several zstd frames": zstd(LINES[:100]) + zstd(LINES[100:]),
    "length-prefixed protobuf": prefixed(proto("shop"), proto("search")),
    "length-prefixed zstd protobuf": prefixed(zstd(proto("shop")), zstd(proto("search"))),
    "length-prefixed zstd JSON": prefixed(*(zstd(json.dumps(d).encode()) for d in DOCUMENTS)),
    "length-prefixed JSON": prefixed(*(json.dumps(d).encode() for d in DOCUMENTS)),
    "zstd around length-prefixed protobuf": zstd(prefixed(proto("shop"), proto("search"))),
    "bare protobuf": proto("shop") + proto("search"),
    "gzipped bare protobuf": gzip.compress(proto("shop") + proto("search")),
}


@pytest.mark.parametrize("content", FORMATS.values(), ids=FORMATS)
def test_every_format_gives_the_same_calls(tmp_path: Path, content: bytes) -> None:
    """The file's name says nothing; what is inside decides."""
    found, rejected = samples.read_bytes(tmp_path, content, "no-extension")
    assert not rejected
    assert [f.record.service for f in found] == ["shop", "search"]
    first = found[0].record
    assert first == replace(found[1].record, service="shop")
    assert (first.trace_id, first.span_id, first.parent_span_id) == (samples.TRACE, samples.SPAN, samples.PARENT)
    assert (first.started_ns, first.duration_ms) == (samples.START_NS, 1500.0)
    assert first.usage == Usage("reported", uncached=86, read=1920, output=100)
    assert (first.provider, first.model, first.instrumentation) == ("openai", "gpt-4.1", SCOPE)


def test_lines_are_numbered_as_an_editor_numbers_them(tmp_path: Path) -> None:
    """Blank lines count, and a pretty-printed value is where it begins."""
    by_line, _ = samples.read_bytes(tmp_path, b"\n" + LINES)
    assert [f.line for f in by_line] == [2, 3]
    pretty = b"[\n" + b",\n".join(json.dumps(d, indent=1).encode() for d in DOCUMENTS) + b"]"
    by_value, _ = samples.read_bytes(tmp_path, pretty)
    assert [f.line for f in by_value] == [2, 2 + json.dumps(DOCUMENTS[0], indent=1).count("\n") + 1]


@pytest.mark.parametrize("chunk", [1, 7, 64, 4096])
def test_the_size_of_reads_changes_nothing(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents, strings and escapes may be cut anywhere between two reads."""
    monkeypatch.setattr("prefixscope.analyzer.ingest.unpack.CHUNK", chunk)
    odd = json.dumps([{**samples.ENTRY, "service": 'a "quoted" \\ {[ name\\'}] * 3, indent=1).encode()
    proto_zstd = FORMATS["length-prefixed zstd protobuf"]
    for content, calls in ((odd, 3), (gzip.compress(odd), 3), (LINES, 2), (zstd(LINES), 2), (proto_zstd, 2)):
        found, rejected = samples.read_bytes(tmp_path, content)
        assert (len(found), rejected) == (calls, [])


def test_a_log_event_with_the_whole_call_is_a_call(tmp_path: Path) -> None:
    """OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT: what the span would say, with structured content."""
    message = {"role": "user", "parts": [{"type": "text", "content": "hello"}]}
    event = {
        "timeUnixNano": str(samples.START_NS),
        "eventName": "gen_ai.client.inference.operation.details",
        "traceId": samples.TRACE,
        "spanId": samples.SPAN,
        "attributes": samples.pairs({**samples.CALL, "gen_ai.input.messages": [message]}),
    }
    chatter = {"timeUnixNano": "1", "body": {"stringValue": "hi"}, "attributes": samples.pairs(samples.CALL)}
    scoped = {"scope": {"name": SCOPE}, "logRecords": [event, chatter]}
    document = {"resourceLogs": [{"resource": {}, "scopeLogs": [scoped]}]}
    call = samples.one_call(tmp_path, document)
    assert (call.record.span_id, call.record.usage.read) == (samples.SPAN, 1920)
    assert call.record.fingerprint is not None


def test_a_log_event_in_protobuf_is_a_call(tmp_path: Path) -> None:
    """A protobuf file says nowhere which signal it holds."""
    request = ExportLogsServiceRequest()
    record = (
        request.resource_logs.add()
        .scope_logs.add()
        .log_records.add(
            time_unix_nano=samples.START_NS,
            event_name="gen_ai.client.inference.operation.details",
            trace_id=bytes.fromhex(samples.TRACE),
        )
    )
    record.attributes.extend(KeyValue(key=k, value=proto_value(v)) for k, v in samples.CALL.items())
    [call], rejected = samples.read_bytes(tmp_path, prefixed(request.SerializeToString()))
    assert (call.record.trace_id, call.record.usage.read, rejected) == (samples.TRACE, 1920, [])


PYTHON_SPAN = {
    "name": "chat",
    "context": {"trace_id": f"0x{samples.TRACE}", "span_id": f"0x{samples.SPAN}", "trace_state": "[]"},
    "kind": "SpanKind.CLIENT",
    "parent_id": f"0x{samples.PARENT}",
    "start_time": "2026-09-21T14:13:20.000000Z",
    "end_time": "2026-09-21T14:13:21.500000Z",
    "status": {"status_code": "UNSET"},
    "attributes": samples.CALL,
    "events": [],
    "resource": {"attributes": {"service.name": "shop"}},
}
NUMBERED_SPAN = {
    **PYTHON_SPAN,
    "context": {"trace_id": int(samples.TRACE, 16), "span_id": int(samples.SPAN, 16)},
    "parent": {"trace_id": int(samples.TRACE, 16), "span_id": int(samples.PARENT, 16)},
    "start_time": samples.START_NS,
    "end_time": samples.START_NS + 1_500_000_000,
}
JAVASCRIPT_SPAN = {
    "spanContext": {"traceId": samples.TRACE, "spanId": samples.SPAN},
    "parentSpanContext": {"spanId": samples.PARENT},
    "startTime": [1_790_000_000, 0],
    "endTime": [1_790_000_001, 500_000_000],
    "attributes": samples.CALL,
    "resource": {"attributes": {"service.name": "shop"}},
}
JAEGER_SPAN = {
    "traceID": samples.TRACE,
    "spanID": samples.SPAN,
    "references": [{"refType": "CHILD_OF", "spanID": samples.PARENT}],
    "startTime": samples.START_NS // 1000,
    "duration": 1_500_000,
    "tags": [{"key": k, "value": v} for k, v in samples.CALL.items()],
    "processID": "p1",
}
DUMPS = {
    "Python SDK": PYTHON_SPAN,
    "Python SDK, list of spans": {"spans": [NUMBERED_SPAN]},
    "Python SDK, ids as numbers": NUMBERED_SPAN,
    "Python SDK, ids as numbers, array": [NUMBERED_SPAN],
    "JavaScript SDK": [JAVASCRIPT_SPAN],
    "Jaeger export": {"data": [{"spans": [JAEGER_SPAN], "processes": {"p1": {"serviceName": "shop", "tags": []}}}]},
    "Jaeger span": {**JAEGER_SPAN, "process": {"serviceName": "shop"}},
}


@pytest.mark.parametrize("document", DUMPS.values(), ids=DUMPS)
def test_what_sdks_and_jaeger_print_is_read(tmp_path: Path, document: Any) -> None:
    """Their formats are specified nowhere; 128-bit ids as numbers must stay whole."""
    record = samples.one_call(tmp_path, document).record
    assert (record.trace_id, record.span_id, record.parent_span_id) == (samples.TRACE, samples.SPAN, samples.PARENT)
    assert (record.started_ns, record.duration_ms, record.service) == (samples.START_NS, 1500.0, "shop")
    assert (record.usage.read, record.usage.uncached) == (1920, 86)


def test_metrics_hold_no_calls(tmp_path: Path) -> None:
    """A collector that writes all signals into one folder is no error."""
    assert samples.read_bytes(tmp_path, samples.lines({"resourceMetrics": [{"scopeMetrics": []}]})) == ([], [])


def test_folders_patterns_and_files_are_expanded_once_each(tmp_path: Path) -> None:
    """A file named twice is read once; hidden files are not meant."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    names = ["a.json", "deep/b.json", "deep/er/c.jsonl.gz", ".git/config", ".hidden"]
    for name in names:
        (tmp_path / name).write_text("{}")
    found = expand([tmp_path / "deep" / "*.json", tmp_path, tmp_path / "a.json"])
    assert [f.relative_to(tmp_path).as_posix() for f in found] == ["deep/b.json", "a.json", "deep/er/c.jsonl.gz"]


@pytest.mark.parametrize(("name", "why"), [("nowhere.json", "no such file or folder"), ("*.none", "no file matches")])
def test_a_path_that_is_not_there_is_an_error(tmp_path: Path, name: str, why: str) -> None:
    """A typing error must not look like an empty audit."""
    with pytest.raises(InputError, match=why):
        expand([tmp_path / name])


def test_progress_counts_the_bytes_on_disk(tmp_path: Path) -> None:
    """The bar runs to the size of the file, compressed or not."""
    path = tmp_path / "traces.gz"
    seen: list[int] = []
    path.write_bytes(gzip.compress(LINES))
    assert len(list(read([path], Fingerprinter(samples.KEY), on_bytes=seen.append))) == 2
    assert sum(seen) == path.stat().st_size
