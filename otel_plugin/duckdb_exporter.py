"""``OTEL_TRACES_EXPORTER=prefixscope_duckdb``: calls go straight into a DuckDB store, from all instrumentations.

The store is opened for a moment, once a batch: DuckDB locks other processes out meanwhile. While somebody else holds
it, or the extra ``audit`` is not installed, calls go to the spool instead. Prompts in spans of other instrumentations
are fingerprinted; their text is kept nowhere.
"""

import atexit
import os
import random
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import get_tracer_provider

from prefixscope.otel_plugin import exported_spans, flush, keys
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard, logger
from prefixscope.otel_plugin.settings import Settings
from prefixscope.otel_plugin.spool import Spool

_ATTEMPTS: Final = 8  # to open the store, which other workers of a service hold for moments as well
_PAUSE: Final = 0.2  # seconds between two of them, at most
_STORE: Final = "prefixscope_store"  # the entry point of the module that writes stores; arrows point to this folder


class DuckDBSpanExporter(SpanExporter):
    """Writes the calls among spans into a store; nothing is ever raised out of it.

    Args:
        path: the store; "" = ``PREFIXSCOPE_DB``, or a file in the user's state folder.
        environment: where settings and the fingerprint key are looked up.
    """

    def __init__(self, path: str = "", environment: Mapping[str, str] = os.environ) -> None:
        settings, problems = Settings.read(environment)
        for problem in problems:
            logger.warning("prefixscope: %s", problem)
        self.lost = 0  # spans that could be written nowhere
        self.path = Path(path) if path else settings.db_file(environment)
        self._environment = environment
        self._settings = settings
        self._guard = Guard(reraise=settings.reraise)
        self._lock = threading.Lock()  # DuckDB, the fingerprinter and the spool are used by one thread at a time
        self._printer: Fingerprinter | None = None
        self._store: Any = None
        self._closed = ""  # why the store is not to be touched any more
        folder = settings.spool_folder(environment)
        self._spool = folder and Spool(
            folder, rotate=settings.spool_rotate, age=settings.spool_age, quota=settings.spool_quota
        )
        _RUNNING.add(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Writes the calls among ``spans``: into the store, else into the spool."""
        try:
            with self._lock:
                done = self._export(spans)
        except Exception as error:  # noqa: BLE001 - see guard
            self._guard.caught("exporting spans", error)
            done = False
        if not done:
            self.lost += len(spans)
        return SpanExportResult.SUCCESS if done else SpanExportResult.FAILURE

    def shutdown(self) -> None:
        """Finishes what was written into the spool."""
        atexit.unregister(self._before_exit)
        with self._lock:
            if self._spool:
                self._guard.runs("finishing the spool", self._spool.finish)()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Nothing is kept back here."""
        del timeout_millis
        return True

    def after_fork(self) -> None:
        """In a child process: lock and open file are the parent's, and so may be an open store, which has threads."""
        if self._lock.locked():
            self._closed = "this process was forked while the store was open"
        self._lock = threading.Lock()
        if self._spool:
            self._spool.forget()

    def _export(self, spans: Sequence[ReadableSpan]) -> bool:
        try:
            items = self._loaded().of_documents(map(exported_spans.document, spans), self._fingerprinter())
        except Exception as error:  # noqa: BLE001 - usage at least is kept, whatever is missing or wrong
            self._tell_unread(error)
            return self._spooled([exported_spans.line(exported_spans.withheld(span)) for span in spans])
        if not items or self._appended(items):
            return True
        return self._spooled(self._store.lines(items))

    def _loaded(self) -> Any:
        """The module that writes stores; it loads DuckDB, so it comes with the first span of a call.

        DuckDB refuses Python's data once its own exit handler has run, which would come before that of the tracer
        provider, as it was registered later. Ours is registered still later, so it runs in time.
        """
        if self._store is None:
            (found,) = entry_points(group=_STORE)
            self._store = found.load()
            atexit.register(self._before_exit)
        return self._store

    def _before_exit(self) -> None:
        """Writes what waits: calls in prefixscope's queue, then spans in the tracer provider's."""
        timeout = self._settings.exit_timeout
        self._guard.runs("flushing calls", flush)(timeout)
        provider = get_tracer_provider()
        if isinstance(provider, TracerProvider):
            self._guard.runs("flushing spans", provider.force_flush)(int(timeout * 1000))
        self._closed = "these calls ended with the process, too late for DuckDB"

    def _appended(self, items: Any) -> bool:
        if self._closed:
            self._guard.tell("closed", f"prefixscope: {self._closed}. {self._instead()}")
            return False
        problem = ""
        for attempt in range(_ATTEMPTS):
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._store.append(self.path, items)
            except self._store.StoreError as error:  # locked, most of the time: worth another attempt
                problem = str(error)
                time.sleep(random.uniform(0, _PAUSE) * (attempt < _ATTEMPTS - 1))  # noqa: S311 - no secret
            except Exception as error:  # noqa: BLE001 - disk full, a value that the store refuses…
                problem = f"{self.path}: {type(error).__name__}"
                break
            else:
                return True
        self._guard.tell("store", f"prefixscope: {problem}. {self._instead()}")
        return False

    def _instead(self) -> str:
        if not self._spool:
            return "There is no spool (PREFIXSCOPE_SPOOL is off), so these calls are lost"
        folder = self._spool.folder
        return f"Calls go to {folder} meanwhile; add them with: prefixscope ingest {folder} --db {self.path}"

    def _tell_unread(self, error: Exception) -> None:
        if isinstance(error, ModuleNotFoundError):
            what = f"{error.name} is not installed: pip install 'prefixscope[audit]'"
        elif isinstance(error, OSError):
            what = f"no fingerprint key ({keys.key_file(self._environment)}): set PREFIXSCOPE_KEY"
        else:
            what = f"spans could not be read ({type(error).__name__})"
        self._guard.tell("unread", f"prefixscope: {what}. {self._instead()}. Prompts in spans of others are left out")

    def _fingerprinter(self) -> Fingerprinter:
        if self._printer is None:
            self._printer = Fingerprinter(keys.load_key(self._environment))
        return self._printer

    def _spooled(self, lines: Sequence[bytes]) -> bool:
        """Writes ``lines`` into the spool; False if that cannot be."""
        if not self._spool:
            return False
        try:
            self._spool.write(lines)
            self._spool.tick()
        except OSError as error:
            self._guard.tell(
                "spool",
                f"prefixscope: cannot write to {self._spool.folder} ({error.strerror or error}): spans are lost until "
                "that works",
            )
            return False
        return True


_RUNNING: "weakref.WeakSet[DuckDBSpanExporter]" = weakref.WeakSet()


def _after_fork() -> None:
    for exporter in list(_RUNNING):
        exporter.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
