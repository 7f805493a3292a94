"""Files into a store and its analysis: the same stages as the audit on the command line."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prefixscope.analyzer import audit, ingest, store
from prefixscope.analyzer.ingest import Observed, Rejected
from prefixscope.analyzer.store import Ingested
from prefixscope.dashboard.command import SAMPLE
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.keys import load_key

SAMPLE_NAMES: Final[Mapping[Path, str]] = {SAMPLE: "sample_traces/request_log.jsonl.gz"}  # whatever folder it is in


@dataclass(frozen=True, slots=True)
class TakenIn:
    """What became of the files."""

    ingested: Ingested
    report: Mapping[str, Any]


def take_in(
    path: Path,
    sources: Mapping[Path, str] | Sequence[Path],
    *,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> TakenIn:
    """Reads files into the store at ``path``, analyses all that it holds and keeps the report.

    Args:
        path: the store, made as needed.
        sources: files; as a mapping, each with the name that it is to be known by.
        on_bytes: told how many bytes were read since it was told last.

    Raises:
        StoreError: the store cannot be written.
    """
    now = datetime.now(UTC)
    names = {str(file): name for file, name in sources.items()} if isinstance(sources, Mapping) else {}
    with store.opened(path) as opened:
        found = ingest.read(list(sources), Fingerprinter(load_key()), on_bytes=on_bytes)
        ingested = opened.ingest(_named(found, names), at=now)
        analysis = audit.analyse(opened, audit.Selection(), ingested)
        opened.keep(analysis.report, analysis.explained, at=now)
    return TakenIn(ingested, analysis.report)


def _named(found: Iterable[Observed | Rejected], names: Mapping[str, str]) -> Iterator[Observed | Rejected]:
    """Under the names that people know: those of uploaded files, not of the folder that they were put into."""
    for item in found:
        name = names.get(item.file)
        yield item if name is None else replace(item, file=name)
