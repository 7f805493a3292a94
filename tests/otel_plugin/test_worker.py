"""The worker: bounded, never in the way, and hard to kill."""

import ctypes
import gc
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from exchanges import CHAT, tap
from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.worker import Worker


class Sink:
    """Remembers what it is given; stands still while ``gate`` is closed."""

    def __init__(self) -> None:
        self.seen: list[Exchange] = []
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, batch: Iterable[Exchange]) -> None:
        assert self.gate.wait(10)
        self.seen += batch


def finished(body: bytes = b"{}") -> Exchange:
    found = tap([]).begin("POST", *CHAT, {}, body)
    assert found is not None
    found.finish("ended")
    return found


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def worker(sink: Sink) -> Iterator[Worker]:
    found = Worker(sink, Guard(reraise=True), calls=10, weight=1000)
    yield found
    sink.gate.set()
    found.close(10)


def test_everything_is_processed_in_order(worker: Worker, sink: Sink) -> None:
    """And counted off."""
    exchanges = [finished() for _ in range(8)]
    for exchange in exchanges:
        worker.put(exchange)
    assert worker.flush(10)
    assert sink.seen == exchanges
    assert (worker.pending, worker.weight, worker.dropped) == (0, 0, 0)
    assert worker.cpu_ns > 0


@pytest.mark.parametrize(("bodies", "kept"), [([b"{}"] * 15, 10), ([b"x" * 5000, b"x"], 1)], ids=str)
def test_what_does_not_fit_is_dropped_and_counted(worker: Worker, sink: Sink, bodies: list[bytes], kept: int) -> None:
    """By number and by bytes; a single one that is too heavy still goes through. Nobody waits."""
    sink.gate.clear()
    before = time.monotonic()
    for body in bodies:
        worker.put(finished(body))
    assert time.monotonic() - before < 5
    assert (worker.pending, worker.dropped) == (kept, len(bodies) - kept)
    assert not worker.flush(0.01)
    sink.gate.set()
    assert worker.flush(10)
    assert (len(sink.seen), worker.weight) == (kept, 0)


def test_a_full_queue_is_not_eased(worker: Worker, sink: Sink) -> None:
    """The thread rests less the more waits for it, by number or by bytes."""
    sink.gate.clear()
    assert worker._ease() == 1
    worker.put(finished(b"x"))
    assert worker._ease() == pytest.approx(1 - 4 / 10)
    worker.put(finished(b"x" * 240))
    assert worker._ease() == pytest.approx(1 - 4 * 241 / 1000)
    worker.put(finished(b"x" * 100))
    assert worker._ease() == 0


def test_prompts_are_left_out_before_calls_are(worker: Worker, sink: Sink) -> None:
    """What a call cost is worth more than what it said."""
    sink.gate.clear()
    for _ in range(5):
        worker.put(finished(b"x" * 300))
    assert (worker.pending, worker.weight, worker.shed, worker.dropped) == (5, 600, 3, 0)
    sink.gate.set()
    assert worker.flush(10)
    assert [exchange.request_body is None for exchange in sink.seen] == [False, False, True, True, True]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_killed_thread_is_started_again(caplog: pytest.LogCaptureFixture, sink: Sink) -> None:
    """With the next exchange; it is told once."""
    worker = Worker(sink, Guard(), calls=10, weight=1000)
    worker.put(finished())
    assert worker.flush(10)
    thread = worker._thread
    assert thread is not None
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))
    thread.join(10)
    assert not thread.is_alive()
    worker.put(finished())
    assert worker.close(10)
    assert len(sink.seen) == 2
    assert [record.message for record in caplog.records] == [
        "prefixscope: its worker thread had died and was started again"
    ]


def test_an_error_costs_a_batch_and_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    """The next batch is processed."""
    seen: list[Exchange] = []

    def process(batch: Iterable[Exchange]) -> None:
        seen.extend(batch)
        if len(seen) == 1:
            raise RuntimeError("a bug")

    guard = Guard()
    worker = Worker(process, guard, calls=10, weight=1000)
    for _ in range(2):
        worker.put(finished())
        assert worker.flush(10)
    worker.close(10)
    assert (len(seen), worker.pending, worker.weight, worker.failed) == (2, 0, 0, 1)
    assert guard.errors == {"processing of calls": 1}
    assert len(caplog.records) == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_a_killed_thread_had_in_hand_is_counted() -> None:
    """Nobody waits for it."""

    def process(batch: Iterable[Exchange]) -> None:
        raise SystemExit

    worker = Worker(process, Guard(), calls=10, weight=1000)
    worker.put(finished())
    assert worker.flush(10)
    assert (worker.pending, worker.weight, worker.failed) == (0, 0, 1)


def test_without_a_thread_the_flush_does_the_work(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the interpreter shuts down, Python 3.12 starts no thread any more."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", start)
    worker = Worker(sink, Guard(reraise=True), calls=100, weight=10_000)
    for _ in range(70):
        worker.put(finished())
    assert worker.close(10)
    assert (len(sink.seen), worker.pending) == (70, 0)


def test_a_closed_worker_takes_nothing(worker: Worker, sink: Sink) -> None:
    """What comes too late is counted as dropped."""
    worker.put(finished())
    assert worker.close(10)
    worker.put(finished())
    assert (len(sink.seen), worker.dropped) == (1, 1)
    assert worker._thread is not None
    assert not worker._thread.is_alive()


def test_a_close_does_not_wait_longer_than_told(worker: Worker, sink: Sink) -> None:
    """A stuck sink must not keep a process from ending."""
    sink.gate.clear()
    worker.put(finished())
    before = time.monotonic()
    assert not worker.close(0.05)
    assert time.monotonic() - before < 5


def test_finalisers_may_put(worker: Worker, sink: Sink) -> None:
    """Garbage is collected at any moment, in the middle of another put as well."""

    class Dropped:
        def __init__(self) -> None:
            self.me = self  # a cycle: only the collector ends it

        def __del__(self) -> None:
            worker.put(finished())

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(200):
            Dropped()
            worker.put(finished())
    finally:
        gc.set_threshold(*threshold)
        gc.collect()
    assert worker.flush(10)
    assert len(sink.seen) + worker.dropped == 400


def in_child(check: Callable[[], bool]) -> int:
    """The exit code of a forked child: 0 if ``check`` holds there."""
    child = os.fork()
    if not child:
        code = 1
        try:
            code = int(not check())
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_process_has_a_worker_of_its_own(worker: Worker, sink: Sink) -> None:
    """Although the parent's locks may have been held; what waits in the parent is the parent's."""
    sink.gate.clear()
    worker.put(finished())

    def check() -> bool:
        worker.reset()
        sink.gate.set()
        worker.put(finished())
        return worker.flush(10) and len(sink.seen) == 1

    assert in_child(check) == 0
    assert worker.pending == 1
