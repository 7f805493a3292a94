"""Runs the audit in process, for tests that look at its report."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from prefixscope.analyzer import audit, ingest, store
from prefixscope.otel_plugin.fingerprint import Fingerprinter

AT = datetime(2026, 11, 30, tzinfo=UTC)


def report(paths: Sequence[Path], selection: audit.Selection | None = None) -> Any:
    """The report on ``paths``, through a store that is gone afterwards."""
    with store.opened(None) as opened:
        ingested = opened.ingest(ingest.read(paths, Fingerprinter(b"test")), at=AT)
        return audit.analyse(opened, selection or audit.Selection(), ingested).report
