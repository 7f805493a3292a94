"""Switching capture on and off: idempotent, undoable, light, and silent about its own mistakes."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

import prefixscope.otel_plugin
from prefixscope.otel_plugin import PrefixscopeInstrumentor, flush, instrument, mounts, uninstrument
from prefixscope.otel_plugin.mounts import Mounts

CLIENTS = [httpx.Client, httpx.AsyncClient, httpx2.Client, httpx2.AsyncClient]


def sends() -> list[Any]:
    return [vars(client)["send"] for client in CLIENTS]


ORIGINAL = sends()


@pytest.fixture(autouse=True)
def instrumentor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrefixscopeInstrumentor]:
    """Off before and after each test."""
    monkeypatch.setenv("PREFIXSCOPE_KEY", "test")
    monkeypatch.setenv("PREFIXSCOPE_SPOOL", str(tmp_path))
    yield PrefixscopeInstrumentor()
    uninstrument()
    assert sends() == ORIGINAL


def test_on_and_off(instrumentor: PrefixscopeInstrumentor) -> None:
    """Twice is once; off, everything is as it was."""
    instrument(http_spans=False)
    first, capture = sends(), instrumentor.capture
    instrument(http_spans=False)
    assert (sends(), instrumentor.capture) == (first, capture)
    assert all(now is not before for now, before in zip(first, ORIGINAL, strict=True))
    assert instrumentor.mounts is not None
    assert {"httpx", "httpx2"} <= set(instrumentor.mounts.mounted)
    uninstrument()
    uninstrument()
    assert sends() == ORIGINAL


def test_flush(instrumentor: PrefixscopeInstrumentor, tmp_path: Path) -> None:
    """What has ended is written when it returns; without capture there is nothing to wait for."""
    assert flush(0)
    instrument(http_spans=False, spans="off")
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json={}))) as client:
        client.post("https://api.openai.com/v1/responses", json={"model": "gpt-5.1", "input": "hi"})
    assert flush(10)
    (path,) = tmp_path.iterdir()
    assert path.read_bytes().count(b"\n") == 1


def test_settings_come_from_arguments(instrumentor: PrefixscopeInstrumentor) -> None:
    """An unknown one is a mistake in code."""
    with pytest.raises(TypeError, match="no such setting: servic; there are"):
        instrument(servic="shop")
    instrument(http_spans=False, service="shop")
    assert instrumentor.capture is not None
    assert instrumentor.capture.settings.service == "shop"


def test_a_mistake_in_the_environment_is_told(
    instrumentor: PrefixscopeInstrumentor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And does not stop anything."""
    monkeypatch.setenv("PREFIXSCOPE_QUEUE_CALLS", "many")
    monkeypatch.setenv("PREFIXSCOPE_ENDPOINTS", "llm.test/*=openai.chatt")
    instrumentor.instrument(skip_dep_check=True)
    assert instrumentor.capture is not None
    assert "PREFIXSCOPE_QUEUE_CALLS='many' is ignored" in caplog.text
    assert "openai.chatt" in caplog.text


def test_a_capture_that_cannot_start_stops_nobody(
    instrumentor: PrefixscopeInstrumentor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """``opentelemetry-instrument`` would give up all instrumentation on an exception."""
    monkeypatch.setattr("prefixscope.otel_plugin.instrumentor.Capture", None)
    instrumentor.instrument(skip_dep_check=True)
    assert "capture could not start (TypeError)" in caplog.text


def test_a_library_that_cannot_be_mounted_stops_nobody(
    monkeypatch: pytest.MonkeyPatch, instrumentor: PrefixscopeInstrumentor, caplog: pytest.LogCaptureFixture
) -> None:
    """An unknown version of it, for instance."""
    monkeypatch.setitem(mounts.LIBRARIES, "httpx", "prefixscope.otel_plugin.guard")
    instrument(http_spans=False)
    assert instrumentor.mounts is not None
    assert "httpx" not in instrumentor.mounts.mounted
    assert "httpx2" in instrumentor.mounts.mounted
    assert "mounting httpx failed (AttributeError" in caplog.text


def test_others_may_wrap_before_and_after(instrumentor: PrefixscopeInstrumentor) -> None:
    """What they put there stays when we go, and passes calls through."""
    instrument(http_spans=False)
    ours = httpx.Client.send

    def theirs(client: Any, request: Any, **kwargs: Any) -> Any:
        return ours(client, request, **kwargs)

    httpx.Client.send = theirs  # type: ignore[method-assign, assignment]
    try:
        uninstrument()
        assert vars(httpx.Client)["send"] is theirs
        with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(204))) as client:
            assert client.post("https://api.openai.com/v1/responses", json={}).status_code == 204
    finally:
        httpx.Client.send = ORIGINAL[0]  # type: ignore[method-assign]


def test_one_class_under_two_names_is_mounted_once(instrumentor: PrefixscopeInstrumentor) -> None:
    """``httpx2.alias_httpx`` makes httpx another name of httpx2."""
    instrument(http_spans=False)
    assert instrumentor.capture is not None
    before = sends()
    again = Mounts(instrumentor.capture.tap)
    assert sends() == before
    again.undo()
    assert sends() == before


def python(script: str) -> str:
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def test_importing_it_loads_nothing() -> None:
    """Neither OpenTelemetry nor an HTTP library; those are loaded with what is used."""
    script = "import sys, prefixscope.otel_plugin; print({'opentelemetry', 'httpx', 'httpx2'} & sys.modules.keys())"
    assert python(script) == "set()"


def test_instrumenting_imports_no_library() -> None:
    """A program that has no use for httpx does not load it; one that loads it later is captured all the same."""
    script = """
import sys
from prefixscope.otel_plugin import PrefixscopeInstrumentor
instrumentor = PrefixscopeInstrumentor()
instrumentor.instrument(skip_dep_check=True, spool="off")
print({"httpx", "httpx2", "aiohttp", "botocore", "requests"} & sys.modules.keys(), end=" ")
import httpx
print(instrumentor.mounts.mounted)
"""
    assert python(script) == "set() ['httpx']"


def test_public_names() -> None:
    """What the package offers is there, and nothing else is made up."""
    for name in prefixscope.otel_plugin.__all__:
        assert callable(getattr(prefixscope.otel_plugin, name))
    with pytest.raises(AttributeError, match="nothing"):
        getattr(prefixscope.otel_plugin, "nothing")  # noqa: B009 - mypy knows that it is not there


def test_http_spans_are_switched_on_as_well() -> None:
    """For programs that do not use auto-instrumentation; not twice, and not if they are not wanted."""
    script = """
from prefixscope.otel_plugin import instrument
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor, HTTPXClientInstrumentor
kinds = HTTPXClientInstrumentor(), HTTPX2ClientInstrumentor()
def on(): return [kind.is_instrumented_by_opentelemetry for kind in kinds]
instrument(spool="off", http_spans=False)
print(on())
HTTPXClientInstrumentor().instrument()
instrument()
print(on())
"""
    assert python(script) == "[False, False]\n[True, True]"
