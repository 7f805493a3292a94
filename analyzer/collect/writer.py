"""The one thread that writes what `collect` receives: short transactions, a bounded queue, and nothing thrown away."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import duckdb

from prefixscope.analyzer.collect import arrivals
from prefixscope.analyzer.collect.arrivals import Items
from prefixscope.analyzer.errors import StoreError

GATHER: Final = 5.0  # seconds from one transaction to the next
_LONGEST_PAUSE: Final = 10.0  # seconds between two attempts
_MOST: Final = 64 << 20  # bytes of request bodies whose calls may wait
_PATIENCE: Final = 5.0  # seconds of further attempts at the end
_BLOCKED: Final = (StoreError, duckdb.IOException, OSError)  # locked, disk full…: the calls are not to blame


class _Waiting(NamedTuple):
    items: Items
    weight: int  # bytes of the body they came in


class Writer:
    """Takes calls from many threads and writes them into a store.

    While the store is locked by another process, calls wait; what it would never take is set aside beside it.

    Args:
        path: the store.
        tell: takes a message for the user.
        gather: seconds from one transaction to the next.
        most: bytes of request bodies whose calls may wait.
        patience: seconds of further attempts at the end, before what is left is set aside.
    """

    def __init__(
        self,
        path: Path,
        tell: Callable[[str], None],
        *,
        gather: float = GATHER,
        most: int = _MOST,
        patience: float = _PATIENCE,
    ) -> None:
        self.written = 0  # new calls in the store
        self.aside = 0  # items that had to be set aside
        self.lost = 0  # items that could not even be set aside
        self._path = path
        self._tell = tell
        self._gather = gather
        self._most = most
        self._patience = patience
        self._waiting: list[_Waiting] = []
        self._weight = 0
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._blocked = False
        self._thread = threading.Thread(target=self._run, name="prefixscope-writer")

    def start(self) -> None:
        """Begins to write."""
        self._thread.start()

    def put(self, items: Items, weight: int) -> bool:
        """Takes ``items``, which came in ``weight`` bytes; False if too much waits already."""
        with self._lock:
            if self._ending.is_set() or (self._weight and self._weight + weight > self._most):
                return False
            if items:
                self._waiting.append(_Waiting(items, weight))
                self._weight += weight
        return True

    def close(self) -> None:
        """Takes nothing more, and returns when all is written or set aside."""
        with self._lock:
            self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        pause = self._gather
        while not self._ending.wait(pause):
            pause = self._gather if self._write() else min(pause * 2, _LONGEST_PAUSE)
        deadline = time.monotonic() + self._patience
        while not self._write() and time.monotonic() < deadline:
            time.sleep(min(0.2, self._patience))
        if self._waiting:
            self._set_aside(self._taken(), "the store could not be written until the end")

    def _write(self) -> bool:
        """One transaction with everything that waits; False if it has to wait on."""
        batch = list(self._waiting)
        try:
            self._append([item for waiting in batch for item in waiting.items])
        except _BLOCKED as error:
            self._told_once(f"{error}. Calls wait until that works")
            return False
        self._done(batch)
        self._blocked = False
        return True

    def _append(self, items: Items) -> None:
        """Writes ``items``; what the store refuses is found by halves and set aside, so that it keeps back nothing."""
        if not items:
            return
        try:
            self.written += arrivals.append(self._path, items).calls
        except _BLOCKED:
            raise
        except Exception as error:  # noqa: BLE001 - a value that DuckDB or Arrow refuses, or a bug of ours
            if len(items) == 1:
                self._set_aside(items, f"the store does not take them ({type(error).__name__}: {error})")
                return
            middle = len(items) // 2
            self._append(items[:middle])
            self._append(items[middle:])

    def _told_once(self, message: str) -> None:
        if not self._blocked:
            self._tell(message)
        self._blocked = True

    def _done(self, batch: Sequence[_Waiting]) -> None:
        with self._lock:
            del self._waiting[: len(batch)]
            self._weight -= sum(one.weight for one in batch)

    def _taken(self) -> Items:
        with self._lock:
            batch, self._waiting, self._weight = self._waiting, [], 0
        return [item for waiting in batch for item in waiting.items]

    def _set_aside(self, items: Items, reason: str) -> None:
        try:
            folder = arrivals.set_aside(self._path, items)
        except Exception as error:  # noqa: BLE001 - the thread must go on, whatever these are
            self.lost += len(items)
            self._tell(f"{len(items):,} calls are lost: {reason}, and they cannot be set aside: {error}")
            return
        self.aside += len(items)
        self._tell(
            f"{len(items):,} calls are in {folder}: {reason}. Add them with: "
            f"prefixscope ingest {folder} --db {self._path}"
        )
