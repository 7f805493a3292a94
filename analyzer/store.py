"""STORE: the DuckDB file. Opens and migrates it, takes calls in by batches, merges observations of one call."""

import gc
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa

from prefixscope import queries
from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.ingest.results import Observed, Rejected
from prefixscope.analyzer.observations import Batch

# numbered: store version n has the first n
_SCHEMA: Final = ("schema/001_store", "schema/002_explained_calls", "schema/003_daily", "schema/004_reuse")
VERSION: Final = len(_SCHEMA)
_BATCH: Final = 20_000  # calls held in memory between two writes


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one ingest did to the store."""

    calls: int  # new calls
    duplicates: int  # observations of a call that was there already
    rejected: int


class Store:
    """An open store. Frames come back as Polars; statements are those of ``queries/``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def frame(self, query: str, **params: Any) -> pl.DataFrame:
        """Result of ``queries/<query>.sql``."""
        with self._connection.cursor() as cursor:
            return cursor.sql(queries.load(query), params=params).pl()

    def arrow(self, query: str, **params: Any) -> pa.Table:
        """The same as an Arrow table, which keeps list columns flat."""
        with self._connection.cursor() as cursor:
            return cursor.sql(queries.load(query), params=params).to_arrow_table()

    def run(self, query: str, **params: Any) -> None:
        """Executes ``queries/<query>.sql``, which may hold several statements when there are no parameters."""
        self._connection.execute(queries.load(query), params or None)

    def insert(self, query: str, table: pa.Table) -> None:
        """Executes ``queries/<query>.sql`` with ``table`` visible in it as ``incoming_rows``."""
        self._connection.register("incoming_rows", table)
        self._connection.execute(queries.load(query))
        self._connection.unregister("incoming_rows")

    def ingest(self, items: Iterable[Observed | Rejected], *, at: datetime) -> Ingested:
        """Writes what a reader found, all or nothing: an interrupted ingest leaves the store as it was."""
        before = self._count()
        self._connection.begin()
        try:
            writer = _Writer(self)
            with _rare_collections():
                for item in items:
                    writer.add(item)
            writer.finish(at)
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        added = self._count() - before
        return Ingested(calls=added, duplicates=writer.observed - added, rejected=writer.rejected)

    def keep(self, report: Mapping[str, Any], explained: pl.DataFrame, *, at: datetime) -> None:
        """Makes ``report`` the last one, and ``explained`` (columns of explained_calls) what is known of its calls."""
        self._connection.begin()
        try:
            self.run(
                "store/insert_analysis", made_at=at.astimezone(UTC).replace(tzinfo=None), report=json.dumps(report)
            )
            self.run("store/clear_explained")
            self.insert("store/insert_explained", explained.to_arrow())
            self.sum_up()
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()

    def sum_up(self) -> None:
        """Sums up by day what is known of the calls: what pages draw."""
        self.run("store/clear_daily")
        self.run("store/fill_daily")

    def last_report(self) -> Mapping[str, Any] | None:
        """The report of the last analysis, None before the first."""
        found = self.frame("store/last_analysis")
        return json.loads(found["report"][0]) if found.height else None

    def _count(self) -> int:
        return int(self.frame("store/count_calls").item())


@contextmanager
def opened(path: Path | None, *, read_only: bool = False) -> Iterator[Store]:
    """The store in ``path``, created and migrated as needed; without a path one that is gone afterwards.

    Raises:
        StoreError: locked by another process, not a DuckDB file, or written by a newer version.
    """
    connection = _connect(path, read_only=read_only)
    try:
        store = Store(connection)
        _migrate(store, connection, path, read_only=read_only)
        yield store
    finally:
        connection.close()


def _connect(path: Path | None, *, read_only: bool) -> duckdb.DuckDBPyConnection:
    if path is None:
        return duckdb.connect(":memory:")
    if read_only and not path.exists():
        raise StoreError(f"{path}: there is no such store. Make one with: prefixscope audit PATH... --db {path}")
    if not _may_be_database(path):
        raise StoreError(f"{path}: not a DuckDB file. Name another file with --db.")
    try:
        return duckdb.connect(str(path), read_only=read_only)
    except duckdb.IOException as error:
        locked = "Could not set lock" in str(error)
        hint = "another process has it open; close that or work on a copy" if locked else str(error)
        raise StoreError(f"{path}: cannot open the store: {hint}") from error
    except duckdb.Error as error:
        raise StoreError(f"{path}: not a prefixscope store ({error})") from error


def _may_be_database(path: Path) -> bool:
    """Whether ``path`` can become or is a DuckDB file. DuckDB itself would open a JSON or CSV file as a view of it."""
    try:
        with path.open("rb") as file:
            head = file.read(12)
    except OSError:
        return True  # DuckDB tells what is wrong with it
    return not head or head[8:] == b"DUCK"


def _migrate(store: Store, connection: duckdb.DuckDBPyConnection, path: Path | None, *, read_only: bool) -> None:
    """Brings the store to ``VERSION``, all or nothing; one opened for reading must be there already."""
    version = 0 if store.frame("store/tables").is_empty() and not read_only else _version(store, path)
    if version > VERSION:
        raise StoreError(f"{path}: written by a newer prefixscope (store version {version}); update prefixscope.")
    if version < VERSION and read_only:
        raise StoreError(
            f"{path}: written by an older prefixscope (store version {version}). "
            f"Bring it up to date with: prefixscope audit --db {path}"
        )
    if version < VERSION:
        connection.begin()
        for script in _SCHEMA[version:]:
            store.run(script)
        store.sum_up()
        connection.commit()


def _version(store: Store, path: Path | None) -> int:
    try:
        return int(store.frame("store/version").item())
    except duckdb.Error as error:
        raise StoreError(f"{path}: a DuckDB file, but not a prefixscope store. Name another file with --db.") from error


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Lets the garbage collector look seldom: millions of records without a cycle took it a quarter of the time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class _Writer:
    """Hands observations over in batches, and counts."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batch = Batch(dict(store.frame("store/content_numbers").iter_rows()))
        self._rejected: list[Rejected] = []
        self._files: dict[str, list[int]] = {}
        self.observed = 0
        self.rejected = 0
        store.run("store/create_incoming")

    def add(self, item: Observed | Rejected) -> None:
        counts = self._files.setdefault(item.file, [0, 0])
        if isinstance(item, Rejected):
            counts[1] += 1
            self.rejected += 1
            self._rejected.append(item)
            return
        counts[0] += 1
        self.observed += 1
        self._batch.add(item)
        if len(self._batch) >= _BATCH:
            self._flush()

    def finish(self, at: datetime) -> None:
        self._flush()
        for step in _MERGE:
            self._store.run(step)
        rejected = [{"file": r.file, "line": r.line, "reason": r.reason} for r in self._rejected]
        self._store.insert("store/insert_quarantine", pa.Table.from_pylist(rejected, schema=_QUARANTINE))
        files = [
            {"file": file, "read_at": at.astimezone(UTC).replace(tzinfo=None), "calls": calls, "rejected": bad}
            for file, (calls, bad) in self._files.items()
        ]
        self._store.insert("store/insert_ingests", pa.Table.from_pylist(files, schema=_INGESTS))

    def _flush(self) -> None:
        contents, calls = self._batch.taken()
        self._store.insert("store/insert_contents", contents)
        self._store.insert("store/insert_incoming", calls)


_MERGE: Final = (
    "store/alias_wrappers",
    "store/add_known",
    "store/remove_known",
    "store/insert_single",
    "store/insert_merged",
)
_QUARANTINE = pa.schema([("file", pa.string()), ("line", pa.int64()), ("reason", pa.string())])
_INGESTS = pa.schema(
    [("file", pa.string()), ("read_at", pa.timestamp("us")), ("calls", pa.int64()), ("rejected", pa.int64())]
)
