"""Broken on purpose: the application sees no difference, one line says what is wrong, counters tell what is lost."""

import ctypes
import errno
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest

from fake_provider.plan import Plan, Reply
from fake_provider.server import FakeProvider
from prefixscope.analyzer.ingest import Observed, read
from prefixscope.otel_plugin import spool
from prefixscope.otel_plugin.calls import Reader
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.metrics import ERRORS, LOST, Metrics
from prefixscope.otel_plugin.mounts import Mounts
from prefixscope.otel_plugin.settings import Settings

KEYED = {"PREFIXSCOPE_KEY": "test"}
SYSTEM = "You are a helpful assistant. " * 400


@contextmanager
def capturing(environment: dict[str, str] = KEYED, **settings: Any) -> Iterator[Capture]:
    """A capture as in production: nothing is raised."""
    capture = Capture(Settings(**{"spans": "off"} | settings), environment)
    mounts = Mounts(capture.tap)
    try:
        yield capture
    finally:
        mounts.undo()
        capture.close()


def ask(provider: FakeProvider, scope: str, *, stream: bool = False, calls: int = 1) -> list[list[Any]]:
    """What a program sees of ``calls`` calls: statuses and the pieces of the bodies."""
    body = {"model": "gpt-5.1", "messages": [{"role": "system", "content": SYSTEM}], "stream": stream}
    seen = []
    with httpx2.Client(headers=Plan(scope, (Reply(words=3),)).headers) as client:
        for _ in range(calls):
            with client.stream("POST", f"{provider.url}/v1/chat/completions", json=body) as response:
                pieces = list(response.iter_raw())
            seen.append([response.status_code, pieces])
    return seen


def recorded(folder: Path) -> int:
    """How many calls the audit finds in a spool; no line of it may be unreadable."""
    if not any(spool.files(folder)):
        return 0
    found = list(read([folder], Fingerprinter(b"test")))
    assert all(isinstance(one, Observed) for one in found), found
    return len(found)


def raising(*_: Any, **__: Any) -> Any:
    raise RuntimeError("marker")


def break_parsers(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    patch.setattr("prefixscope.otel_plugin.segments.parse", raising)
    patch.setattr("prefixscope.otel_plugin.usage.from_events", raising)


def break_keys(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    patch.setattr("prefixscope.otel_plugin.asked.canonical", raising)


def break_reader(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    patch.setattr(Reader, "read", raising)


def fill_disk(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    def write(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch.setattr(os, "write", write)


def use_up_quota(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    assert capture.sinks._spool
    capture.sinks._spool._quota = 0


def put_file_in_the_way(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    folder.rmdir()
    folder.write_text("not a folder")


def break_queue(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    patch.setattr(capture.worker, "_most", 0)


def break_delivery(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    patch.setattr(capture.tap, "_deliver", raising)


def break_telemetry(patch: pytest.MonkeyPatch, capture: Capture, folder: Path) -> None:
    patch.setattr("prefixscope.otel_plugin.spans._logger", raising)
    patch.setattr("prefixscope.otel_plugin.spans._tracer", raising)
    patch.setattr(Metrics, "count", raising)


class Case(NamedTuple):
    """What is broken, how many of three calls are kept, what the counters say of the others, and the log."""

    break_: Callable[[pytest.MonkeyPatch, Capture, Path], None]
    kept: int
    counted: dict[str, dict[str, int]]
    told: str


READING = {LOST: {"unreadable": 3}, ERRORS: {"reading a call": 3}}
PARSING = {ERRORS: {"reading a prompt": 3, "reading a response": 3}}
SINKS = ("making a span", "making a log event", "counting a call")
BROKEN = {
    "the parsers raise": Case(break_parsers, 3, PARSING, "reading a prompt failed"),
    "the keys cannot be made": Case(break_keys, 3, {ERRORS: {"making exact keys": 3}}, "making exact keys failed"),
    "the reader raises": Case(break_reader, 0, READING, "reading a call failed"),
    "the disk is full": Case(fill_disk, 0, {LOST: {"spool": 3}}, "No space left"),
    "the quota is used up": Case(use_up_quota, 0, {LOST: {"spool": 3}}, "quota is used up"),
    "the spool is no folder": Case(put_file_in_the_way, 0, {LOST: {"spool": 3}}, "cannot write to"),
    "the queue is full": Case(break_queue, 0, {LOST: {"queue_full": 3}}, ""),
    "the queue is broken": Case(break_delivery, 0, {ERRORS: {"handing over a call": 3}}, "handing over a call failed"),
    "OpenTelemetry raises": Case(break_telemetry, 3, {ERRORS: dict.fromkeys(SINKS, 3)}, "making a span failed"),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN)
def test_the_application_goes_on(
    case: Case,
    provider: FakeProvider,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever breaks: same bytes in the same pieces, one line in the log, every call counted as kept or lost."""
    folder = tmp_path / "spool"
    folder.mkdir()
    expected = ask(provider, f"{case} as it is", stream=True, calls=3)
    with capturing(spool=str(folder), log_events=True, spans="on") as capture:
        case.break_(monkeypatch, capture, folder)
        assert ask(provider, f"{case}", stream=True, calls=3) == expected
        assert capture.flush()
        sums = capture.sums()
    found = {name: {reason: n for reason, n in sums[name].items() if n} for name in (LOST, ERRORS)}
    assert found == {LOST: {}, ERRORS: {}} | case.counted
    monkeypatch.undo()
    assert recorded(folder) == case.kept
    lines = [record.message for record in caplog.records if record.name == "prefixscope"]
    assert len(lines) == len(set(lines)) == max(len(found[ERRORS]), int(bool(case.told)))
    assert case.told in "".join(lines)
    assert "marker" not in caplog.text


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no file system here that is read-only for all")
def test_a_spool_that_is_read_only(provider: FakeProvider, caplog: pytest.LogCaptureFixture) -> None:
    """For root as well: calls are counted as lost, and the log says where."""
    with capturing(spool="/proc/spool") as capture:
        (answered,) = ask(provider, "read-only spool")
        assert capture.flush()
        assert (answered[0], capture.sums()[LOST]["spool"]) == (200, 1)
    assert [record.message.partition(" (")[0] for record in caplog.records] == [
        "prefixscope: cannot write to /proc/spool"
    ]


def test_without_a_key(provider: FakeProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Usage is captured, and one line says what to do."""
    (tmp_path / "home").write_text("no folder")
    with capturing({"HOME": str(tmp_path / "home")}, spool=str(tmp_path / "spool")):
        ask(provider, "no key", calls=2)
    (first, second) = [
        one.record for one in read([tmp_path / "spool"], Fingerprinter(b"x")) if isinstance(one, Observed)
    ]
    assert first.usage.state == second.usage.state == "reported"
    assert (first.fingerprint, first.account) == (None, "")
    assert [record.message.partition(":")[2].split("(")[0] for record in caplog.records] == [" no fingerprint key "]
    assert "set PREFIXSCOPE_KEY" in caplog.text


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_worker_that_is_killed(provider: FakeProvider, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Comes back with the next call."""
    with capturing(spool=str(tmp_path)) as capture:
        ask(provider, "killed worker")
        assert capture.flush()
        (thread,) = [one for one in threading.enumerate() if one is capture.worker._thread]
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))
        thread.join(10)
        ask(provider, "killed worker")
    assert recorded(tmp_path) == 2
    assert "had died and was started again" in caplog.text


def test_losses_are_told_in_the_spool(provider: FakeProvider, tmp_path: Path) -> None:
    """Whoever reads it later cannot ask the process."""
    with capturing(spool=str(tmp_path)) as capture:
        ask(provider, "losses")
        assert capture.flush()
        capture.worker._most = 0
        ask(provider, "losses", calls=2)
    (path,) = spool.files(tmp_path)
    *_, last = map(json.loads, path.read_bytes().splitlines())
    (metric,) = last["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    (point,) = metric["sum"]["dataPoints"]
    assert (metric["name"], point["asDouble"]) == (LOST, 2)
    assert point["attributes"] == [{"key": "reason", "value": {"stringValue": "queue_full"}}]
    assert recorded(tmp_path) == 1
