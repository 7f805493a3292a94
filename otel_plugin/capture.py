"""One running capture: settings -> tap, worker and sinks. Everything that lives as long as instrumentation is on."""

import atexit
import os
import sys
import time
import weakref
from collections.abc import Iterable, Mapping

from prefixscope.otel_plugin.amend import Amender
from prefixscope.otel_plugin.endpoints import Endpoints
from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.metrics import ERRORS, LOST, metrics
from prefixscope.otel_plugin.settings import Settings
from prefixscope.otel_plugin.sinks import Sinks
from prefixscope.otel_plugin.tap import Tap
from prefixscope.otel_plugin.worker import Worker

_TELL_EVERY = 60.0  # seconds between two words in the spool on what was lost


class Capture:
    """Takes what the mounts report through ``tap`` and hands it to the sinks, by way of the worker.

    Args:
        settings: how.
        environment: where the fingerprint key and folders are looked up.
    """

    def __init__(self, settings: Settings, environment: Mapping[str, str] = os.environ) -> None:
        self.settings = settings
        self.guard = Guard(reraise=settings.reraise)
        self._started_ns = time.time_ns()
        self._told: Mapping[str, Mapping[str, float]] = {}
        self._told_at = time.monotonic()
        amender = Amender(include_usage=settings.include_usage, diagnostics=settings.cache_diagnostics)
        self._metrics = metrics()
        self._metrics.sources.append(self)
        self.sinks = Sinks(settings, environment, self.guard, self._metrics, amender.learn)
        self.worker = Worker(
            self._process,
            self.guard,
            calls=settings.queue_calls,
            weight=settings.queue_bytes,
            started=self._worker_started,
        )
        self.tap = Tap(
            self._endpoints(),
            self.worker.put,
            self.guard,
            request_cap=settings.request_cap,
            response_cap=settings.response_cap,
            amend=amender if settings.include_usage or settings.cache_diagnostics else None,
        )
        atexit.register(self.close)
        _RUNNING.add(self)

    def flush(self, timeout: float | None = None) -> bool:
        """Waits until all finished calls are written; False if that took longer than ``timeout`` seconds."""
        return self.worker.flush(self.settings.exit_timeout if timeout is None else timeout)

    def close(self) -> None:
        """Ends the capture: open calls are reported as they stand, the queue is emptied, the spool file finished."""
        if not self.tap.active:
            return
        self.tap.active = False
        self.tap.exit()
        if self.worker.close(self.settings.exit_timeout):
            self._tell_losses()
            self.sinks.finish()
        else:
            self.guard.tell("exit", f"prefixscope: {self.worker.pending} calls were not written in time")
        atexit.unregister(self.close)
        self._metrics.sources.remove(self)
        _RUNNING.discard(self)

    def after_fork(self) -> None:
        """In a child process: threads, locks, open files and unfinished calls are the parent's."""
        self.worker.reset()
        self.tap.forget()
        self.sinks.forget()
        self.guard.errors.clear()

    def sums(self) -> Mapping[str, Mapping[str, float]]:
        """See ``metrics.Source``."""
        worker = self.worker
        lost = {"queue_full": worker.dropped, "prompt": worker.shed, "worker": worker.failed}
        return {
            LOST: {**self.sinks.lost, **lost},
            ERRORS: dict(self.guard.errors),
            "prefixscope.worker.cpu_time": {"": self.worker.cpu_ns / 1e9},
            "prefixscope.spool.written": {"": self.sinks.written},
        }

    def gauges(self) -> Mapping[str, float]:
        """See ``metrics.Source``."""
        return {"prefixscope.queue.length": self.worker.pending, "prefixscope.queue.size": self.worker.weight}

    def _process(self, batch: Iterable[Exchange]) -> None:
        self.sinks.take(batch)
        if time.monotonic() - self._told_at >= _TELL_EVERY:
            self._tell_losses()

    def _tell_losses(self) -> None:
        """If there is news."""
        counts = self.sums()
        found = {name: {reason: n for reason, n in counts[name].items() if n} for name in (LOST, ERRORS)}
        news = {name: losses for name, losses in found.items() if losses}
        if news != self._told:
            self._told, self._told_at = news, time.monotonic()
            self.sinks.tell(news, self._started_ns)

    def _endpoints(self) -> Endpoints:
        try:
            return Endpoints(self.settings.endpoints)
        except ValueError as error:
            self.guard.tell("endpoints", f"prefixscope: {error}; PREFIXSCOPE_ENDPOINTS is ignored")
            return Endpoints()

    def _worker_started(self) -> None:
        """Registers for the end of the process anew, later than tracer providers did: what comes last runs first."""
        atexit.unregister(self.close)
        atexit.register(self.close)
        if multiprocessing := sys.modules.get("multiprocessing.util"):  # its processes end without atexit
            multiprocessing.Finalize(None, self.flush, exitpriority=10)


_RUNNING: "weakref.WeakSet[Capture]" = weakref.WeakSet()


def _after_fork() -> None:
    for capture in list(_RUNNING):
        capture.guard.runs("restart after a fork", capture.after_fork)()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
