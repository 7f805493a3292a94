"""Calls that arrive a batch at a time, for a store that others want to use too: opened, appended to, closed at once.

DuckDB locks every other process out of a file that one has open for writing. So whoever writes often, `collect` and the
exporter inside of services, holds the store for a moment only, and sets aside what cannot be written.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prefixscope.analyzer import store
from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.ingest import Observed, Rejected
from prefixscope.analyzer.ingest.documents import of_spans
from prefixscope.analyzer.ingest.otlp import spans as otlp_spans
from prefixscope.analyzer.ingest.results import Place
from prefixscope.otel_plugin import call_attributes, otlp
from prefixscope.otel_plugin.calls import Call
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.spans import own_version
from prefixscope.otel_plugin.spool import Spool

Items = Sequence[Observed | Rejected]

__all__ = ["Items", "StoreError", "append", "beside", "lines", "of_documents", "set_aside"]

EXPORTED: Final = "exported"  # stands for the file name of calls that a program wrote into the store by itself
_ROTATE: Final = 64 << 20  # bytes
_QUOTA: Final = 4 << 30  # bytes
_AGE: Final = 3600.0  # seconds


def of_documents(documents: Iterable[Mapping[str, Any]], printer: Fingerprinter) -> list[Observed | Rejected]:
    """The calls in OTLP/JSON documents of spans."""
    spans = (span for document in documents for span in otlp_spans(document))
    return list(of_spans(spans, printer, Place(EXPORTED, 1)))


def append(path: Path, items: Items) -> store.Ingested:
    """Writes ``items`` into the store at ``path`` in one transaction, and lets go of it.

    Raises:
        StoreError: it cannot be opened: locked, no store, too new.
        duckdb.Error: it cannot be written: the disk is full…
    """
    with store.opened(path) as opened:
        return opened.ingest(items, at=datetime.now(UTC))


def lines(items: Iterable[Observed | Rejected]) -> list[bytes]:
    """The calls as lines of a spool. They have no text in them, and read back they are the same calls."""
    return [
        otlp.line(Call(one.record), call_attributes.encode(one.record), own_version())
        for one in items
        if isinstance(one, Observed)
    ]


def beside(path: Path) -> Path:
    """The folder for calls that the store at ``path`` would not take."""
    return path.with_name(f"{path.name}.spool")


def set_aside(path: Path, items: Items) -> Path:
    """Writes calls into the folder ``beside`` the store, for `prefixscope ingest`.

    Raises:
        OSError: that cannot be written either.
    """
    folder = beside(path)
    spool = Spool(folder, rotate=_ROTATE, age=_AGE, quota=_QUOTA)
    spool.write(lines(items))
    spool.finish()
    return folder
