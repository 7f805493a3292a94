"""Capture that tests switch on around single calls, and the records that it wrote into its spool."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prefixscope.otel_plugin import call_attributes, spool
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.mounts import Mounts
from prefixscope.otel_plugin.record import CallRecord
from prefixscope.otel_plugin.settings import Settings

KEY = "test"


class Recorder:
    """One capture for many tests; errors of its own are raised."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        given: dict[str, Any] = {"spool": str(folder), "spans": "off", "reraise": True} | settings
        self.capture = Capture(Settings(**given), {"PREFIXSCOPE_KEY": KEY})
        self._read = 0  # bytes of the spool

    @contextmanager
    def on(self) -> Iterator[None]:
        """Calls in the block are captured."""
        mounts = Mounts(self.capture.tap)
        try:
            yield
        finally:
            mounts.undo()

    def new(self) -> list[CallRecord]:
        """The records of the calls that ended since this was asked last, in the order of their ends."""
        assert self.capture.flush(20)
        data = _data(self.folder)[self._read :]
        self._read += len(data)
        return _records_in(data)


def records(folder: Path) -> list[CallRecord]:
    """All records in a spool."""
    return _records_in(_data(folder))


def fingerprinter() -> Fingerprinter:
    """One with the key that ``Recorder`` uses."""
    return Fingerprinter(KEY.encode())


def _data(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(spool.files(folder)))


def _records_in(data: bytes) -> list[CallRecord]:
    return [record for line in data.splitlines() for record in _records(json.loads(line))]


def _records(document: Any) -> Iterator[CallRecord]:
    for resource in document.get("resourceSpans", ()):
        service = _values(resource["resource"]["attributes"])["service.name"]
        for span in (span for scope in resource["scopeSpans"] for span in scope["spans"]):
            start, end = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
            yield CallRecord(
                started_ns=start,
                duration_ms=(end - start) / 1e6,
                service=service,
                trace_id=span["traceId"],
                span_id=span["spanId"],
                parent_span_id=span.get("parentSpanId", ""),
                **call_attributes.decode(_values(span["attributes"])),
            )


def _values(pairs: Any) -> dict[str, Any]:
    """OTLP's key-value pairs as a plain mapping."""
    read = {"stringValue": str, "intValue": int, "doubleValue": float, "boolValue": bool}
    return {pair["key"]: read[kind](value) for pair in pairs for kind, value in pair["value"].items()}
