"""One daemon thread that does everything the request thread must not: it takes finished exchanges from a bounded queue.

Producers never wait: what does not fit is dropped and counted. The thread is started with the first exchange, again
when it has died, and in a child process after a fork.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from queue import Empty, SimpleQueue

from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.guard import Guard

_BATCH = 64  # exchanges that are processed, and written, together
_TICK = 1.0  # seconds of idleness after which an empty batch is processed
_GATHER = 0.1  # seconds from the first exchange of a batch to its processing: the application goes on first
_SHARE = 0.2  # of one processor that the thread takes while nothing presses it
_SLICE = 0.002  # seconds of work after which it rests: a rest costs something too
_LONGEST_REST = 0.1  # seconds
_FULL = 0.75  # of the queue's bytes, from which on prompts are left out, so that usage is not
_POLL = 0.005  # seconds between two looks of a flush


class Worker:
    """Hands batches of exchanges to ``process``, and an empty one after each second in which nothing came.

    The thread holds the interpreter's lock while it works, and the application needs it. So it begins a moment after a
    call has ended, and rests from time to time for several times as long as it worked, unless the queue fills up or
    somebody waits for it.

    Args:
        process: takes a batch.
        guard: takes our own errors.
        calls: how many exchanges may wait.
        weight: how many bytes those that wait, or are in work, may hold; one that is heavier goes in alone.
        started: told, on the new thread, that it has started.
    """

    def __init__(
        self,
        process: Callable[[Iterable[Exchange]], None],
        guard: Guard,
        *,
        calls: int,
        weight: int,
        started: Callable[[], None] = lambda: None,
    ) -> None:
        self._process = process
        self._started = started
        self._guard = guard
        self._most = calls
        self._most_weight = weight
        self.reset()

    def reset(self) -> None:
        """A queue, locks and counts of its own for a child process: those of the parent may be held by its threads."""
        # SimpleQueue.put may be interrupted by a finaliser that puts as well; queue.Queue would lock up
        self._queue: SimpleQueue[Exchange | None] = SimpleQueue()
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._weight = self._pending = 0
        self._closed = False
        self._pressed = threading.Event()  # somebody waits in flush
        self.dropped = 0  # for want of room, or because they came too late
        self.shed = 0  # that were taken without their prompt
        self.failed = 0  # in batches that came to grief
        self.cpu_ns = 0  # processor time of the thread

    @property
    def pending(self) -> int:
        """Exchanges that wait or are in work."""
        return self._pending

    @property
    def weight(self) -> int:
        """The bytes they hold."""
        return self._weight

    def put(self, exchange: Exchange) -> None:
        """Takes ``exchange``, without its prompt if there is little room, or drops it."""
        with self._lock:
            if self._weight and self._weight + exchange.weight > self._most_weight * _FULL:
                exchange.shed()
                self.shed += 1
            too_heavy = self._weight and self._weight + exchange.weight > self._most_weight
            if self._closed or too_heavy or self._pending >= self._most:
                self.dropped += 1
                return
            self._pending += 1
            self._weight += exchange.weight
        self._queue.put(exchange)
        if not self._runs():
            self._start()

    def flush(self, timeout: float) -> bool:
        """Waits until all that was put before is processed; False if that took longer than ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        self._pressed.set()
        try:
            while self._pending and time.monotonic() < deadline:
                if not self._runs() and not self._start():
                    self._work_off()
                time.sleep(_POLL)
        finally:
            self._pressed.clear()
        return not self._pending

    def close(self, timeout: float) -> bool:
        """Takes nothing more, and ends the thread when the queue is empty; False if that took too long."""
        self._closed = True
        done = self.flush(timeout)
        self._queue.put(None)
        thread = self._thread
        if done and thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        return done

    def _runs(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _start(self) -> bool:
        """False if no thread can be started, as from Python 3.12 on while the interpreter shuts down."""
        with self._lock:
            if self._runs():
                return True
            if self._thread is not None:
                self._guard.tell("worker", "prefixscope: its worker thread had died and was started again")
            thread = threading.Thread(target=self._run, args=(self._queue,), name="prefixscope", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
            return True

    def _run(self, queue: "SimpleQueue[Exchange | None]") -> None:
        self._guard.runs("start of the worker", self._started)()
        while self._turn(queue, wait=_TICK):
            pass

    def _work_off(self) -> None:
        """On the caller's thread, as there is no other."""
        while self._pending and self._turn(self._queue, wait=0):
            pass

    def _turn(self, queue: "SimpleQueue[Exchange | None]", *, wait: float) -> bool:
        """Processes one batch; False if it was the last."""
        batch: list[Exchange] = []
        processed = False
        before = time.thread_time_ns()
        try:
            more = self._gather(queue, batch, wait)
            self._process(self._paced(batch))
            processed = True
        except Exception as error:  # noqa: BLE001 - see guard
            more = True
            self._guard.caught("processing of calls", error)
        finally:  # also where the thread is killed
            self._done(batch, processed=processed)
            self.cpu_ns += time.thread_time_ns() - before
        return more

    def _gather(self, queue: "SimpleQueue[Exchange | None]", batch: list[Exchange], wait: float) -> bool:
        """Fills ``batch``, waiting ``wait`` seconds for the first; False if nothing more may come."""
        while len(batch) < _BATCH:
            try:
                exchange = queue.get_nowait() if batch or not wait else queue.get(timeout=wait)
            except Empty:
                break
            if exchange is None:
                return False
            batch.append(exchange)
            if len(batch) == 1:
                self._pressed.wait(_GATHER * self._ease())
        return True

    def _paced(self, batch: Sequence[Exchange]) -> Iterator[Exchange]:
        since = time.thread_time()
        for exchange in batch:
            worked = time.thread_time() - since
            if worked >= _SLICE:
                self._pressed.wait(min(worked * (1 / _SHARE - 1) * self._ease(), _LONGEST_REST))
                since = time.thread_time()
            yield exchange

    def _ease(self) -> float:
        """1 while there is all the time in the world, 0 when a quarter of the queue is full."""
        fill = max(self._pending / max(self._most, 1), self._weight / max(self._most_weight, 1))
        return max(0.0, 1 - 4 * fill)

    def _done(self, batch: Sequence[Exchange], *, processed: bool) -> None:
        with self._lock:
            self._pending -= len(batch)
            self._weight -= sum(exchange.weight for exchange in batch)
            self.failed += 0 if processed else len(batch)
