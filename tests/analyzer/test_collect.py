"""The OTLP/HTTP receiver: what stock exporters send is in the store, and nothing that anybody sends does harm."""

import argparse
import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from collecting import JSON, PROMPT, PROTOBUF, calls, collecting, gzipped, rejected, span, traces
from prefixscope.analyzer.collect import arrivals
from prefixscope.analyzer.collect import body as collect_body
from prefixscope.analyzer.collect import command as collect_command
from prefixscope.analyzer.collect.writer import Writer
from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.ingest import Observed, read
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord

ATTRIBUTES: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-5.1",
    "gen_ai.usage.input_tokens": 3000,
    "gen_ai.usage.cache_read.input_tokens": 1024,
    "gen_ai.usage.output_tokens": 7,
    "gen_ai.system_instructions": json.dumps([{"type": "text", "content": PROMPT}]),
    "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": PROMPT}]}]),
}
GZIP = {"Content-Encoding": "gzip"}
DEFLATE = {"Content-Encoding": "deflate"}
COMMAND = """
import argparse, sys
from prefixscope.analyzer.collect import command as collect_command
parser = argparse.ArgumentParser()
collect_command.add_parser(parser.add_subparsers())
arguments = parser.parse_args()
sys.exit(arguments.run(arguments))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the store is to be."""
    return tmp_path / "calls.duckdb"


def resource() -> Resource:
    return Resource({"service.name": "shop"})


def emit(exporter: SpanExporter, count: int = 1) -> None:
    """Ends ``count`` spans of calls."""
    provider = TracerProvider(resource=resource())
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for _ in range(count):
        provider.get_tracer("test").start_span("chat gpt-5.1", attributes=ATTRIBUTES).end()
    provider.shutdown()


@pytest.mark.parametrize("compression", Compression)
def test_the_stock_exporter(path: Path, compression: Compression) -> None:
    """Whatever it compresses with, calls are in the store with their usage, and the prompt's text is not."""
    with collecting(path) as collector:
        emit(OTLPSpanExporter(f"{collector.receiver.url}/v1/traces", compression=compression), 3)
    found = calls(path)
    assert found.select("service", "model", "uncached", "read", "output", "prompt_known").unique().rows() == [
        ("shop", "gpt-5.1", 3000 - 1024, 1024, 7, True)
    ]
    assert (found.height, collector.told, collector.writer.written) == (3, [], 3)
    assert PROMPT.encode() not in path.read_bytes()


def test_the_stock_exporter_of_logs(path: Path) -> None:
    """An event that describes a call is one; other events are none."""
    with collecting(path) as collector:
        provider = LoggerProvider(resource=resource(), shutdown_on_exit=False)
        exporter = OTLPLogExporter(f"{collector.receiver.url}/v1/logs")
        provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
        logger = provider.get_logger("test")
        for name in ("gen_ai.client.inference.operation.details", "something else"):
            logger.emit(timestamp=time.time_ns(), event_name=name, attributes=ATTRIBUTES)
        provider.shutdown()
    assert calls(path)["read"].to_list() == [1024]
    assert collector.told == []


TAKEN: dict[str, tuple[Any, dict[str, str]]] = {
    "plain": (traces(span()), JSON),
    "gzip": (gzipped(traces(span())), JSON | GZIP),
    "deflate": (zlib.compress(json.dumps(traces(span())).encode()), JSON | DEFLATE),
    "in chunks": (iter([json.dumps(traces(span())).encode()[:100], json.dumps(traces(span())).encode()[100:]]), JSON),
    "with a charset": (traces(span()), {"Content-Type": "Application/JSON; charset=utf-8"}),
}


@pytest.mark.parametrize(("body", "headers"), TAKEN.values(), ids=TAKEN)
def test_json(path: Path, body: Any, headers: dict[str, str]) -> None:
    """In every layout that exporters use; the answer is JSON as well."""
    with collecting(path) as collector:
        status, answered, answer = collector.post(body, headers=headers)
    assert (status, answered["Content-Type"], json.loads(answer)) == (200, "application/json", {})
    assert calls(path)["response_id"].to_list() == ["resp_1"]


@pytest.mark.parametrize("body", [b"{}", b'{"resourceSpans":[]}'])
def test_an_export_of_nothing(path: Path, body: bytes) -> None:
    """Is fine, and does not even make a store."""
    with collecting(path) as collector:
        assert collector.post(body)[0] == 200
        assert collector.post(b"", headers=PROTOBUF)[::2] == (200, b"")
    assert not path.exists()


def test_a_retry_counts_once(path: Path) -> None:
    """Exporters send again what they are not sure of."""
    with collecting(path) as collector:
        for _ in range(3):
            collector.post(traces(span(1), span(2)))
            time.sleep(0.05)
    assert calls(path).height == 2


BOMB = gzip.compress(b"[" * (collect_body.LIMIT + 1))
REFUSED: dict[str, tuple[Any, str, dict[str, str], int, str]] = {
    "no JSON": (b"{", "/v1/traces", JSON, 400, "not JSON"),
    "no UTF-8": (b'{"a":"\xff"}', "/v1/traces", JSON, 400, "not UTF-8"),
    "no object": (b"[]", "/v1/traces", JSON, 400, "a JSON object, not a list"),
    "another signal": (traces(span()), "/v1/logs", JSON, 400, 'a list "resourceLogs"'),
    "nested": (b"[" * 100_000, "/v1/traces", JSON, 400, "nested too deeply"),
    "no gzip": (b"{}", "/v1/traces", JSON | GZIP, 400, "no gzip data"),
    "cut gzip": (gzipped(traces(span()))[:-9], "/v1/traces", JSON | GZIP, 400, "ends too early"),
    "two gzips": (gzip.compress(b"{}") * 2, "/v1/traces", JSON | GZIP, 400, "something behind it"),
    "a bomb": (BOMB, "/v1/traces", JSON | GZIP, 413, "larger than 20 MiB"),
    "too large": (b" " * (collect_body.LIMIT + 1), "/v1/traces", JSON, 413, "larger than 20 MiB"),
    "too large in chunks": ((b" " * (1 << 20) for _ in range(21)), "/v1/traces", JSON, 413, "larger than 20 MiB"),
    "a length that is none": (b"{}", "/v1/traces", JSON | {"Content-Length": "-2"}, 400, "Content-Length is no"),
    "another encoding": (b"{}", "/v1/traces", JSON | {"Content-Encoding": "br"}, 415, "send gzip, deflate or none"),
    "another type": (b"{}", "/v1/traces", {"Content-Type": "text/plain"}, 415, "application/x-protobuf"),
    "metrics": (b"{}", "/v1/metrics", JSON, 404, "OTEL_METRICS_EXPORTER=none"),
    "elsewhere": (b"{}", "/", JSON, 404, "/v1/traces and /v1/logs"),
    "a browser": (b"{}", "/v1/traces", JSON | {"Origin": "https://evil.test"}, 403, "browser"),
}


@pytest.mark.parametrize(("body", "where", "headers", "status", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken(  # noqa: PLR0917 - a row of the table
    path: Path, body: Any, where: str, headers: dict[str, str], status: int, message: str
) -> None:
    """Is answered with the reason, told once, and the next request is served."""
    with collecting(path) as collector:
        found, answered, answer = collector.post(body, where, headers)
        assert (found, answered["Content-Type"]) == (status, "application/json")
        assert message in json.loads(answer)["message"]
        assert message in "".join(collector.told)
        assert collector.post(traces(span()))[0] == 200
    assert calls(path).height == 1
    assert len(collector.told) == 1


@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"\x0a\x05hello", b"{}"])
def test_protobuf_that_is_none(path: Path, body: bytes) -> None:
    """The answer is a Status in protobuf."""
    with collecting(path) as collector:
        status, answered, answer = collector.post(body, headers=PROTOBUF)
    assert (status, answered["Content-Type"]) == (400, "application/x-protobuf")
    assert "not OTLP traces in protobuf" in Status.FromString(answer).message


def test_protobuf_of_another_signal(path: Path) -> None:
    """Spans that are sent as logs are no logs."""
    memory = InMemorySpanExporter()
    emit(memory)
    with collecting(path) as collector:
        body = encode_spans(memory.get_finished_spans()).SerializeToString()
        assert collector.post(body, "/v1/logs", PROTOBUF)[0] == 400
        assert collector.post(body, "/v1/traces", PROTOBUF)[0] == 200


def timeless() -> dict[str, Any]:
    return {name: value for name, value in span(2).items() if not name.startswith("startTime")}


@pytest.mark.parametrize("headers", [JSON, PROTOBUF], ids=["json", "protobuf"])
def test_a_call_that_is_none(path: Path, headers: dict[str, str]) -> None:
    """Is a partial success; the others are kept, and the reason is in the quarantine."""
    memory = InMemorySpanExporter()
    emit(memory, 2)
    proto = encode_spans(memory.get_finished_spans())
    proto.resource_spans[0].scope_spans[0].spans[1].start_time_unix_nano = 0
    with collecting(path) as collector:
        body = proto.SerializeToString() if headers is PROTOBUF else traces(span(1), timeless())
        status, _, answer = collector.post(body, headers=headers)
    assert status == 200
    if headers is JSON:
        partial = json.loads(answer)["partialSuccess"]
        told = partial["rejectedSpans"], partial["errorMessage"]
    else:
        partial = ExportTraceServiceResponse.FromString(answer).partial_success
        told = str(partial.rejected_spans), partial.error_message
    assert told[0] == "1"
    assert "without a start time" in told[1]
    assert (calls(path).height, len(rejected(path))) == (1, 1)


def test_very_many_calls_that_are_none(path: Path) -> None:
    """Nobody can fill the quarantine with one request."""
    with collecting(path) as collector:
        answer = collector.post(traces(*[timeless()] * 5000, span(1)))[2]
    assert json.loads(answer)["partialSuccess"]["rejectedSpans"] == "101"
    assert "4,900 more rejections" in "".join(rejected(path))
    assert calls(path).height == 1


def raw(collector: Any, data: bytes) -> bytes:
    with socket.create_connection(collector.receiver.server_address[:2], timeout=20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(1 << 16), b""))


HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
RAW: dict[str, tuple[bytes, bytes]] = {
    "no length": (HEAD + b"\r\n", b" 411 "),
    "a body that ends early": (HEAD + b"Content-Length: 9\r\n\r\n{}", b" 400 "),
    "two lengths": (HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", b" 400 "),
    "unknown framing": (HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n{}", b" 400 "),
    "no chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n{}\r\n", b" 400 "),
    "a chunk of nothing": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n\r\n", b" 400 "),
    "a negative chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n\r\n", b" 400 "),
    "a chunk too long": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n", b" 400 "),
    "a huge chunk": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n", b" 413 "),
    "a good chunk and a trailer": (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2;x\r\n{}\r\n0\r\nA: b\r\n\r\n",
        b" 200 ",
    ),
    "two requests": ((HEAD + b"Content-Length: 2\r\n\r\n{}") * 2, b" 200 "),
    "another method": (b"GET /v1/traces HTTP/1.1\r\nHost: x\r\n\r\n", b" 405 "),
}


@pytest.mark.parametrize(("data", "status"), RAW.values(), ids=RAW)
def test_hostile_framing(path: Path, data: bytes, status: bytes) -> None:
    """Each has its status, and what follows a refusal is not taken for a request."""
    with collecting(path) as collector:
        answer = raw(collector, data)
    assert status in answer.splitlines()[0]
    assert answer.count(b"HTTP/1.1 ") == data.count(b"POST") or b"POST" not in data


def test_what_is_no_http(path: Path) -> None:
    """Hurts nobody."""
    with collecting(path) as collector:
        assert b"Bad request" in raw(collector, b"\x16\x03\x01 hello\r\n\r\n")
        assert collector.post(traces(span()))[0] == 200
    assert collector.told == []


def test_a_slow_body(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Does not hold its place for ever."""
    monkeypatch.setattr(collect_body, "_PATIENCE", -1.0)
    with collecting(path) as collector:
        assert b" 408 " in raw(collector, HEAD + b"Content-Length: 2\r\n\r\n{}")


def held(path: Path) -> subprocess.Popen[str]:
    """Another process that has the store open for writing until it is spoken to."""
    script = f"import duckdb; c = duckdb.connect({str(path)!r}); print(1, flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def let_go(process: subprocess.Popen[str]) -> None:
    process.communicate("\n", timeout=20)


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_locked_store(path: Path) -> None:
    """Calls wait until it is free, which is told once, and none is lost."""
    holder = held(path)
    with collecting(path) as collector:
        for number in range(3):
            assert collector.post(traces(span(number)))[0] == 200
            wait_until(lambda: collector.told)
        let_go(holder)
        wait_until(lambda: collector.writer.written == 3)
    assert calls(path).height == 3
    assert len(collector.told) == 1
    assert "another process has it open" in collector.told[0]


def test_a_store_that_stays_locked(path: Path) -> None:
    """At the end its calls are set aside, and read back from there they are the same."""
    holder = held(path)
    with collecting(path) as collector:
        collector.post(traces(span(1), span(2)))
    let_go(holder)
    assert f"prefixscope ingest {arrivals.beside(path)} --db {path}" in collector.told[-1]
    assert (collector.writer.aside, collector.writer.lost) == (2, 0)
    again = path.with_name("again.duckdb")
    arrivals.append(again, list(read([arrivals.beside(path)], Fingerprinter(b"other"))))
    with collecting(path) as collector:
        collector.post(traces(span(1), span(2)))
    except_ = ("file", "line", "instrumentation", "usage_notes")
    assert calls(again).drop(except_).equals(calls(path).drop(except_))


def test_too_much_waits(path: Path) -> None:
    """Senders are asked to come back; when there is room again, they are served."""
    holder = held(path)
    with collecting(path, most=1) as collector:
        assert collector.post(traces(span(1)))[0] == 200
        status, headers, _ = collector.post(traces(span(2)))
        assert (status, headers["Retry-After"]) == (503, "5")
        let_go(holder)
        wait_until(lambda: collector.writer.written == 1)
        assert collector.post(traces(span(2)))[0] == 200
    assert calls(path).height == 2


def test_a_call_that_the_store_refuses(path: Path) -> None:
    """Is set aside; those that came with it, and after it, are written."""
    told: list[str] = []
    writer = Writer(path, told.append, gather=0.01)
    writer.start()
    good = CallRecord(started_ns=10**18, provider="openai", api="", model="m")
    writer.put([Observed(replace(good, started_ns=n, status=n), "f", n) for n in (1, 1 << 20, 3, 4)], 1)
    wait_until(lambda: writer.aside)
    writer.put([Observed(good, "f", 5)], 1)
    writer.close()
    assert (writer.written, writer.aside, calls(path).height) == (4, 1, 4)
    assert "the store does not take them" in told[0]


def test_no_place_left(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can be written nowhere is counted and told."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(arrivals, "append", full)
    monkeypatch.setattr(arrivals, "set_aside", full)
    with collecting(path) as collector:
        collector.post(traces(span(1)))
    assert collector.writer.lost == 1
    assert "1 calls are lost" in collector.told[-1]


@pytest.fixture
def started(path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts the command; gives the process and its URL."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-c", COMMAND, "collect", "--db", str(path), "--port", "0", *arguments]
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=os.environ | {"PREFIXSCOPE_KEY": "test"}
        )
        processes.append(process)
        assert process.stderr is not None
        line = process.stderr.readline()
        return process, line.rpartition("=")[2].strip()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_command_ends_when_all_is_written(
    path: Path, started: Callable[..., tuple[subprocess.Popen[str], str]], number: signal.Signals
) -> None:
    """Whichever signal ends it; between transactions others may open the store."""
    process, url = started()
    emit(OTLPSpanExporter(f"{url}/v1/traces"), 4)
    duckdb.connect(str(path), read_only=True).close()
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (0, "prefixscope: 4 new calls written\n")
    assert calls(path).height == 4


def test_a_connection_that_is_kept_open(path: Path, started: Callable[..., Any]) -> None:
    """Does not keep the command from ending."""
    process, url = started()
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    for _ in range(2):
        connection.request("POST", "/v1/traces", json.dumps(traces(span())), JSON)
        assert connection.getresponse().read() == b"{}"
    process.terminate()
    assert process.wait(60) == 0
    connection.close()
    assert calls(path).height == 1


WRONG: dict[str, tuple[list[str], str]] = {
    "open to all": (["--listen", "0.0.0.0"], "--allow-remote"),
    "open to all in IPv6": (["--listen", "::"], "--allow-remote"),
    "a name": (["--listen", "example.com"], "write an IP address"),
    "a port that is none": (["--port", "70000"], "cannot listen on port 70000"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage(path: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told before anything is listened on."""
    monkeypatch.setenv("PREFIXSCOPE_KEY", "test")
    parser = argparse.ArgumentParser()
    collect_command.add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["collect", "--db", str(path), *arguments])
    with pytest.raises(UsageError, match=message):
        parsed.run(parsed)
