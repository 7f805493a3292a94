"""Exports that others recorded: how many calls are in them is known by counting, and no reader fails on any of them."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from prefixscope.analyzer.ingest import Observed, Rejected, read, reading
from prefixscope.otel_plugin.fingerprint import Fingerprinter

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data is not part of the project")

# calls, of them with reported usage, of them with a fingerprint, rejections
COUNTS = {
    "otel/any-agent": (25, 0, 7, 0),
    "otel/jaeger": (0, 0, 0, 0),
    "otel/langwatch": (3, 0, 0, 0),
    "otel/openinference/all-spans.json": (4, 1, 4, 0),
    "otel/otlp-proto": (0, 0, 0, 0),
    "otel/langfuse/openai-agents-2025-09-30.trace.json": (2, 2, 2, 0),
    "otel/langfuse/crewai-2025-07-11.trace.json": (1, 1, 1, 0),
    "otel/langfuse/google-adk-2025-08-28.trace.json": (2, 2, 2, 0),
}


@pytest.mark.parametrize("folder", COUNTS)
def test_recorded_exports_hold_as_many_calls_as_they_do(folder: str) -> None:
    """Agents, tools, embeddings and parents that repeat a sum are not among them."""
    found = list(read([DATA / folder], Fingerprinter(b"key")))
    calls = [f for f in found if isinstance(f, Observed)]
    reported = sum(c.record.usage.state == "reported" for c in calls)
    printed = sum(c.record.fingerprint is not None for c in calls)
    assert (len(calls), reported, printed, len(found) - len(calls)) == COUNTS[folder]


def test_a_log_of_bare_texts_shares_its_prefixes() -> None:
    """The agent runs of LMCache: each turn repeats the text before it, which must show in the pieces."""
    [path, *_] = sorted((DATA / "traces/lmcache_agent/miniswe").iterdir())
    calls = [c for c in read([path], Fingerprinter(b"key")) if isinstance(c, Observed)]
    prints = [c.record.fingerprint for c in calls]
    assert len(calls) == path.read_bytes().count(b"\n")
    pieces = [[p.content_id for s in f.segments for p in s.pieces] for f in prints if f is not None]
    assert len(pieces) == len(calls)
    halves = ((earlier[: len(earlier) // 2], later) for earlier, later in pairwise(pieces))
    assert all(later[: len(half)] == half for half, later in halves)


def test_no_recorded_file_makes_a_reader_fail() -> None:
    """Formats that are not read are said once a file; nothing is a bug."""
    by_file: dict[str, list[Rejected]] = {}
    for found in everything():
        if isinstance(found, Rejected):
            by_file.setdefault(found.file, []).append(found)
    assert all(len(rejected) == 1 for rejected in by_file.values())
    reasons = {rejected[0].reason for rejected in by_file.values()}
    assert not any(reading.BUG in reason for reason in reasons)
    assert all("unknown format" in reason or "is empty" in reason for reason in reasons)


def everything() -> Iterator[Observed | Rejected]:
    return read([DATA / "otel", DATA / "traces/azure", DATA / "traces/lmcache_agent"], Fingerprinter(b"key"))
