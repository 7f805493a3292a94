"""The DuckDB exporter: calls are in the store, or else in the spool; the application notices nothing of either."""

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from collecting import calls
from fake_provider.server import FakeProvider
from prefixscope.analyzer.collect import arrivals
from prefixscope.analyzer.ingest import Observed, read
from prefixscope.otel_plugin import duckdb_exporter, exported_spans, spool
from prefixscope.otel_plugin.duckdb_exporter import DuckDBSpanExporter
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import logger

SECRET = "the-marker-that-must-stay-inside"
MESSAGES = json.dumps([{"role": "user", "parts": [{"type": "text", "content": f"{SECRET} and a question"}]}])
FOREIGN: Mapping[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-5.1",
    "gen_ai.usage.input_tokens": 3000,
    "gen_ai.usage.cache_read.input_tokens": 1024,
    "gen_ai.usage.output_tokens": 7,
    "gen_ai.input.messages": MESSAGES,
    "gen_ai.output.messages": MESSAGES,
    "note": SECRET,
}
BIN = Path(sys.executable).parent


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Everything in a folder of the test's own; errors of ours are raised."""
    return {
        "PREFIXSCOPE_DB": str(tmp_path / "calls.duckdb"),
        "PREFIXSCOPE_SPOOL": str(tmp_path / "spool"),
        "PREFIXSCOPE_KEY": "test",
        "PREFIXSCOPE_RERAISE": "1",
    }


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between two attempts."""
    monkeypatch.setattr(duckdb_exporter, "_PAUSE", 0.0)


def emit(exporter: SpanExporter, attributes: Mapping[str, Any] = FOREIGN, count: int = 1) -> None:
    """Ends ``count`` spans of calls and one that is none."""
    provider = TracerProvider(resource=Resource({"service.name": "shop", "secret": SECRET}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("some.instrumentation", "1.2")
    for _ in range(count):
        span = tracer.start_span(f"chat {SECRET}", attributes=attributes, kind=SpanKind.CLIENT)
        span.add_event("prompt", {"text": SECRET})
        span.set_status(StatusCode.ERROR, SECRET)
        span.end()
    tracer.start_span("GET /", attributes={"http.request.method": "GET"}).end()
    provider.shutdown()


def spooled(environment: Mapping[str, str]) -> list[Path]:
    return sorted(spool.files(Path(environment["PREFIXSCOPE_SPOOL"])))


def written(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_calls_are_in_the_store(environment: dict[str, str], tmp_path: Path) -> None:
    """With their usage and fingerprint; no text of them, and nothing in the spool."""
    exporter = DuckDBSpanExporter(environment=environment)
    emit(exporter, count=2)
    found = calls(exporter.path)
    assert found.select("service", "model", "uncached", "read", "output", "prompt_known", "error").unique().rows() == [
        ("shop", "gpt-5.1", 3000 - 1024, 1024, 7, True, "error")
    ]
    assert spooled(environment) == []
    assert SECRET.encode() not in written(tmp_path)


def test_nothing_is_made_without_calls(environment: dict[str, str], tmp_path: Path) -> None:
    """Neither by starting nor by spans that are none."""
    exporter = DuckDBSpanExporter(environment=environment)
    emit(exporter, count=0)
    assert exporter.export([]) is SpanExportResult.SUCCESS
    assert exporter.force_flush()
    assert list(tmp_path.iterdir()) == []


def test_a_locked_store(environment: dict[str, str], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Calls go to the spool, which is told once; read from there they are the calls that would have been written."""
    path = Path(environment["PREFIXSCOPE_DB"])
    script = f"import duckdb; c = duckdb.connect({str(path)!r}); print(1, flush=True); input()"
    holder = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline()
    exporter = DuckDBSpanExporter(environment=environment)
    emit(exporter, count=3)
    holder.communicate("\n", timeout=20)
    (told,) = [record.message for record in caplog.records if record.name == logger.name]
    assert "another process has it open" in told
    assert f"add them with: prefixscope ingest {tmp_path}/spool --db {path}" in told
    assert SECRET.encode() not in written(tmp_path / "spool")
    arrivals.append(path, list(read([tmp_path / "spool"], Fingerprinter(b"test"))))
    found = calls(path)
    assert found.select("service", "model", "uncached", "read", "output", "prompt_known", "error").unique().rows() == [
        ("shop", "gpt-5.1", 3000 - 1024, 1024, 7, True, "error")
    ]
    assert found.height == 3


def no_duckdb(**_: str) -> Any:
    raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")


def broken(*_: Any) -> Any:
    raise RuntimeError(SECRET)


def no_key(_: Any) -> Any:
    raise PermissionError(13, "Permission denied")


UNREAD: dict[str, tuple[str, Callable[..., Any], str]] = {
    "no extra": (
        "prefixscope.otel_plugin.duckdb_exporter.entry_points",
        no_duckdb,
        "pip install 'prefixscope[audit]'",
    ),
    "no key": ("prefixscope.otel_plugin.keys.load_key", no_key, "set PREFIXSCOPE_KEY"),
    "a bug": ("prefixscope.analyzer.collect.arrivals.of_documents", broken, "spans could not be read (RuntimeError)"),
}


@pytest.mark.parametrize(("what", "instead", "message"), UNREAD.values(), ids=UNREAD)
def test_spans_that_cannot_be_read(  # noqa: PLR0917 - a row of the table and three fixtures
    what: str,
    instead: Any,
    message: str,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Usage is kept in the spool, text is not; the reason is told once."""
    exporter = DuckDBSpanExporter(environment=environment)
    with monkeypatch.context() as patched:
        patched.setattr(what, instead)
        emit(exporter, count=2)
    (told,) = [record.message for record in caplog.records if record.name == logger.name]
    assert message in told
    assert SECRET.encode() not in written(tmp_path)
    assert SECRET not in caplog.text
    found = [one.record for one in read([tmp_path / "spool"], Fingerprinter(b"test")) if isinstance(one, Observed)]
    assert [(r.service, r.model, r.usage.uncached, r.usage.read, r.usage.output, r.fingerprint) for r in found] == [
        ("shop", "gpt-5.1", 3000 - 1024, 1024, 7, None)
    ] * 2


def test_a_store_that_takes_nothing(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it raises: the spool gets the calls with their fingerprints, the log no message of an error."""
    monkeypatch.setattr(arrivals, "append", broken)
    emit(DuckDBSpanExporter(environment=environment))
    found = list(read([Path(environment["PREFIXSCOPE_SPOOL"])], Fingerprinter(b"test")))
    assert [isinstance(one, Observed) and one.record.fingerprint is not None for one in found] == [True]
    assert "RuntimeError" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("why", ["no spool", "a spool that cannot be written"])
def test_nowhere_to_write(
    why: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spans are counted as lost, and the exporter says so."""
    if why == "no spool":
        environment["PREFIXSCOPE_SPOOL"] = "off"
    else:
        Path(environment["PREFIXSCOPE_SPOOL"]).write_text("a file")
    monkeypatch.setattr(arrivals, "append", broken)
    exporter = DuckDBSpanExporter(environment=environment)
    emit(exporter, count=2)
    assert exporter.lost == 2
    assert "lost" in caplog.text


@pytest.mark.parametrize("place", ["_export", "_spooled"])
def test_nothing_is_raised(
    place: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug of ours is logged once, without its message."""
    del environment["PREFIXSCOPE_RERAISE"]
    monkeypatch.setattr(DuckDBSpanExporter, place, broken)
    monkeypatch.setattr(arrivals, "append", broken)
    exporter = DuckDBSpanExporter(environment=environment)
    emit(exporter, count=2)
    assert exporter.lost >= 2
    assert SECRET not in caplog.text
    assert caplog.text.count("exporting spans failed (RuntimeError") == 1


def test_a_mistake_in_the_environment_is_told(environment: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """And the default stands."""
    with caplog.at_level(logging.WARNING):
        DuckDBSpanExporter(environment=environment | {"PREFIXSCOPE_SPOOL_QUOTA": "much"})
    assert "PREFIXSCOPE_SPOOL_QUOTA='much' is ignored" in caplog.text


FORKING = """
import os
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from prefixscope.otel_plugin.duckdb_exporter import DuckDBSpanExporter
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(DuckDBSpanExporter()))
def ask():
    provider.get_tracer("t").start_span("chat", attributes={"gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-5.1", "gen_ai.usage.input_tokens": 9}).end()
ask()
child = os.fork()
ask()
if child:
    assert os.waitpid(child, 0)[1] == 0
    ask()
"""


def test_a_fork(environment: dict[str, str]) -> None:
    """Parent and child write one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", FORKING], env=os.environ | environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert calls(Path(environment["PREFIXSCOPE_DB"])).height == 4
    assert spooled(environment) == []


def test_a_fork_in_the_middle_of_a_write(environment: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    """The child leaves the store alone, whose threads it has not, and does not wait for the parent's lock."""
    exporter = DuckDBSpanExporter(environment=environment)
    exporter._lock.acquire()
    exporter.after_fork()
    emit(exporter)
    assert "forked while the store was open" in caplog.text
    assert len(spooled(environment)) == 1
    assert not exporter.path.exists()


def test_every_kind_of_value() -> None:
    """An attribute may be a list, a mapping, bytes or nothing."""
    spans = InMemorySpanExporter()
    emit(spans, {"a": [1, 2], "b": True, "c": 1.5, "d": "x", "e": ["y"]})
    (raw,) = exported_spans.document(spans.get_finished_spans()[0])["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert {pair["key"]: pair["value"] for pair in raw["attributes"]} == {
        "a": {"arrayValue": {"values": [{"intValue": "1"}, {"intValue": "2"}]}},
        "b": {"boolValue": True},
        "c": {"doubleValue": 1.5},
        "d": {"stringValue": "x"},
        "e": {"arrayValue": {"values": [{"stringValue": "y"}]}},
    }
    assert (raw["kind"], raw["status"], len(raw["events"])) == (3, {"code": 2}, 1)


def test_the_entry_point() -> None:
    """``OTEL_TRACES_EXPORTER=prefixscope_duckdb`` finds the class."""
    (found,) = entry_points(group="opentelemetry_traces_exporter", name="prefixscope_duckdb")
    assert found.load() is DuckDBSpanExporter


SCRIPT = """
import httpx, sys
from opentelemetry import trace
with httpx.Client() as client:
    for n in range(3):
        body = {"model": "gpt-5.1", "messages": [{"role": "user", "content": f"hi {n}"}]}
        client.post(sys.argv[1] + "/v1/chat/completions", json=body).raise_for_status()
tracer = trace.get_tracer("other")
tracer.start_span("chat", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-opus-4-5",
    "gen_ai.provider.name": "anthropic", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 1}).end()
"""


def instrumented(script: str, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that knows nothing of OpenTelemetry."""
    quiet = {"OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", "OTEL_SERVICE_NAME": "shop"}
    return subprocess.run(
        [str(BIN / "opentelemetry-instrument"), sys.executable, "-c", script, *arguments],
        env=os.environ | quiet | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_auto_instrumentation(environment: dict[str, str], provider: FakeProvider, tmp_path: Path) -> None:
    """A program that knows nothing of it: its calls, and those of other instrumentations, are in the store, once."""
    done = instrumented(SCRIPT, environment | {"OTEL_TRACES_EXPORTER": "prefixscope_duckdb"}, provider.url)
    assert (done.returncode, done.stderr) == (0, "")
    path = Path(environment["PREFIXSCOPE_DB"])
    before = calls(path)
    assert sorted(before["model"]) == ["claude-opus-4-5", "gpt-5.1", "gpt-5.1", "gpt-5.1"]
    assert set(before["service"]) == {"shop"}
    arrivals.append(path, list(read([tmp_path / "spool"], Fingerprinter(b"test"))))
    assert calls(path).height == 4


LATE = """
import os, sys, time
import httpx
from opentelemetry import trace
client = httpx.Client()
def ask(stream=False):
    body = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    return client.send(client.build_request("POST", sys.argv[1] + "/v1/chat/completions", json=body), stream=stream)
ask()
while not os.path.exists(os.environ["PREFIXSCOPE_DB"]):
    time.sleep(0.01)
ask()
ask()
if "stream" in sys.argv:
    response = ask(stream=True)
"""


@pytest.mark.parametrize("stream", [False, True])
def test_calls_at_the_end_of_a_process(
    stream: bool, environment: dict[str, str], provider: FakeProvider, tmp_path: Path
) -> None:
    """Are written before DuckDB ends; one that is still open then is in the spool, which is told."""
    settings = {"OTEL_TRACES_EXPORTER": "prefixscope_duckdb", "OTEL_BSP_SCHEDULE_DELAY": "20"}
    done = instrumented(LATE, environment | settings, provider.url, *(["stream"] if stream else []))
    path = Path(environment["PREFIXSCOPE_DB"])
    assert done.returncode == 0
    assert ("too late for DuckDB" in done.stderr) if stream else done.stderr == ""
    assert calls(path).height == 3
    arrivals.append(path, list(read([tmp_path / "spool"], Fingerprinter(b"test"))))
    assert calls(path).height == 3 + stream


def test_a_batch_processor_at_the_end_of_a_process(environment: dict[str, str]) -> None:
    """What waits is written by its shutdown."""
    exporter = DuckDBSpanExporter(environment=environment)
    provider = TracerProvider(resource=Resource({"service.name": "shop"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    for _ in range(5):
        provider.get_tracer("t").start_span("chat", attributes=FOREIGN).end()
    provider.shutdown()
    assert calls(exporter.path).height == 5
