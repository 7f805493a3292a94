"""STORE: the DuckDB file. Opens and migrates it, writes call records in batches, merges observations of one call."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import duckdb
import polars as pl
import pyarrow as pa

from prefixscope import queries
from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.ingest.results import Observed, Rejected
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, SegmentPrint

VERSION: Final = 1
_BATCH: Final = 20_000  # calls held in memory between two writes
_CALLS = pa.schema(
    [(name, pa.string()) for name in ("call_id", "service", "provider", "api", "model", "served_model", "account")]
    + [(name, pa.string()) for name in ("region", "session_id", "trace_id", "span_id", "parent_span_id")]
    + [(name, pa.string()) for name in ("response_id", "request_id", "instrumentation", "error", "usage_state")]
    + [(name, pa.string()) for name in ("tier", "speed", "geo", "miss_reason", "usage_notes", "prompt_lost")]
    + [(name, pa.string()) for name in ("auto_marker", "cache_mode", "cache_ttl", "cache_key", "cached_content", "settings", "file")]
    + [(name, pa.int64()) for name in ("started_ns", "uncached", "read", "write_5m", "write_30m", "write_1h")]
    + [(name, pa.int64()) for name in ("write_12h", "write_unknown", "output", "reasoning", "missed_tokens", "line")]
    + [("status", pa.int16()), ("aborted", pa.bool_()), ("duration_ms", pa.float64()), ("ttft_ms", pa.float64())]
    + [("segments", pa.list_(pa.int32())), ("marker_at", pa.list_(pa.int32())), ("marker_ttl", pa.list_(pa.string()))]
)
_CONTENTS = pa.schema(
    [("content", pa.int32()), ("key", pa.uint64())]
    + [(name, pa.string()) for name in ("level", "kind", "role")]
    + [("bytes", pa.int64()), ("skeleton_id", pa.uint64()), ("canonical_id", pa.uint64())]
    + [("piece_ids", pa.list_(pa.uint64())), ("piece_bytes", pa.list_(pa.int32()))]
    + [("piece_kinds", pa.list_(pa.string())), ("piece_continues", pa.list_(pa.bool_()))]
)


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
            for item in items:
                writer.add(item)
            writer.finish(at)
        except BaseException:
            self._connection.rollback()
            raise
        self._connection.commit()
        added = self._count() - before
        return Ingested(calls=added, duplicates=writer.observed - added, rejected=writer.rejected)

    def keep_report(self, report: Mapping[str, Any], *, at: datetime) -> None:
        """Makes ``report`` the last one."""
        self._connection.execute(
            queries.load("store/insert_analysis"),
            {"made_at": at.astimezone(UTC).replace(tzinfo=None), "report": json.dumps(report)},
        )

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
    tables = store.frame("store/tables")["table_name"]
    if tables.is_empty() and not read_only:
        connection.begin()
        store.run("schema/001_store")
        connection.commit()
        return
    try:
        version = int(store.frame("store/version").item())
    except duckdb.Error as error:
        raise StoreError(f"{path}: a DuckDB file, but not a prefixscope store. Name another file with --db.") from error
    if version > VERSION:
        raise StoreError(f"{path}: written by a newer prefixscope (store version {version}); update prefixscope.")


class _Writer:
    """Collects rows and hands them over in batches; numbers contents densely."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers: dict[int, int] = dict(store.frame("store/content_numbers").iter_rows())
        self._calls: list[dict[str, Any]] = []
        self._contents: list[dict[str, Any]] = []
        self._rejected: list[Rejected] = []
        self._files: dict[str, list[int]] = {}
        self._salts: dict[tuple[str, str, str], int] = {}
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
        self._calls.append(self._row(item))
        if len(self._calls) >= _BATCH:
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
        self._store.insert("store/insert_contents", pa.Table.from_pylist(self._contents, schema=_CONTENTS))
        self._store.insert("store/insert_incoming", pa.Table.from_pylist(self._calls, schema=_CALLS))
        self._contents, self._calls = [], []

    def _row(self, item: Observed) -> dict[str, Any]:
        record, usage = item.record, item.record.usage
        row = {name: getattr(record, name) for name in _FROM_RECORD} | {name: getattr(usage, name) for name in _FROM_USAGE}
        row |= {"usage_state": usage.state, "usage_notes": ",".join(usage.notes)}
        row |= {"prompt_lost": item.prompt_lost, "file": item.file, "line": item.line}
        row |= self._prompt(record.fingerprint)
        row["call_id"] = call_id(record, row["segments"])
        return row

    def _prompt(self, print_: Fingerprint | None) -> dict[str, Any]:
        if print_ is None:
            return _NO_PROMPT
        marked = [(at, segment.marker) for at, segment in enumerate(print_.segments) if segment.marker]
        return {
            "segments": [self._number(segment) for segment in print_.segments],
            "marker_at": [at for at, _ in marked],
            "marker_ttl": [ttl for _, ttl in marked],
            "auto_marker": print_.auto_marker,
            "cache_mode": print_.cache_mode,
            "cache_ttl": print_.cache_ttl,
            "cache_key": print_.cache_key,
            "cached_content": print_.cached_content,
            "settings": settings_text(print_.settings),
        }

    def _number(self, segment: SegmentPrint) -> int:
        key = segment.content_id ^ self._salt(segment.level, segment.kind, segment.role)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._contents.append(_content_row(number, key, segment))
        return number

    def _salt(self, *header: str) -> int:
        known = self._salts.get(header)
        if known is None:
            known = self._salts[header] = int.from_bytes(blake2b("\0".join(header).encode(), digest_size=8).digest(), "big")
        return known


_FROM_RECORD = (
    *("started_ns", "service", "provider", "api", "model", "account", "region", "session_id", "trace_id", "span_id"),
    *("parent_span_id", "request_id", "instrumentation", "status", "error", "aborted", "duration_ms", "ttft_ms"),
)
_FROM_USAGE = (
    *("served_model", "response_id", "uncached", "read", "write_5m", "write_30m", "write_1h", "write_12h"),
    *("write_unknown", "output", "reasoning", "tier", "speed", "geo", "miss_reason", "missed_tokens"),
)
_NO_PROMPT: Final[Mapping[str, Any]] = {"segments": None, "marker_at": None, "marker_ttl": None, "settings": ""} | {
    name: "" for name in ("auto_marker", "cache_mode", "cache_ttl", "cache_key", "cached_content")
}
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


def call_id(record: CallRecord, segments: list[int] | None) -> str:
    """16 hex digits that are equal for two observations of one call.

    The provider's response id names a call; where it is not known the span does, and where there is none either,
    everything that was seen of it.
    """
    if record.usage.response_id:
        name = record.usage.response_id
    elif record.span_id:
        name = f"{record.trace_id}:{record.span_id}"
    else:
        seen = (record.started_ns, record.service, record.model, record.session_id, record.usage, segments)
        name = repr(seen)
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def settings_text(settings: Mapping[str, str]) -> str:
    """Settings as one comparable text: ``name=hash`` joined by commas, sorted by name."""
    return ",".join(f"{name}={value}" for name, value in sorted(settings.items()))


def _content_row(number: int, key: int, segment: SegmentPrint) -> dict[str, Any]:
    return {
        "content": number,
        "key": key,
        "level": segment.level,
        "kind": segment.kind,
        "role": segment.role,
        "bytes": segment.size,
        "skeleton_id": segment.skeleton_id,
        "canonical_id": segment.canonical_id,
        "piece_ids": [piece.content_id for piece in segment.pieces],
        "piece_bytes": [piece.size for piece in segment.pieces],
        "piece_kinds": [piece.volatile for piece in segment.pieces],
        "piece_continues": [piece.continues for piece in segment.pieces],
    }
