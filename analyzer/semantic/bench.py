"""Calls and their texts, read once and held in memory for as long as somebody looks at them: each option, another look.

``of_paths`` is for a command, which looks once.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from prefixscope.analyzer import store
from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.semantic import analysis
from prefixscope.analyzer.semantic.analysis import Analysis, Options
from prefixscope.analyzer.semantic.cacheable import Content
from prefixscope.analyzer.semantic.embedding import Remembering
from prefixscope.analyzer.semantic.reading import Item, Reader

_REASONS: Final = 5  # of what could not be read, told where nothing could


class Bench:
    """Holds calls with their texts in memory. Several threads may ask; they wait for each other."""

    def __init__(
        self, names: Mapping[Path, str], key: bytes, *, on_bytes: Callable[[int], None] = lambda _: None
    ) -> None:
        """Reads files; nothing of them is stored, and they are not needed afterwards.

        Args:
            names: files, each with the name that it is to be known by; no name twice.
            key: what ids are keyed with.
            on_bytes: told how many bytes were read since it was told last.

        Raises:
            InputError: a file does not exist, or no call was found in any.
        """
        self._key, self._reader, self._lock = key, Reader(key), Lock()
        self._names = {str(path): name for path, name in names.items()}
        self._paths = {name: path for path, name in self._names.items()}
        self._remembered: dict[str, Remembering] = {}  # vectors of one look for the next
        self._open = ExitStack()  # its connection ends with this object
        self._store = self._open.enter_context(store.opened(None))
        found = self._store.ingest(self._named(self._reader.read(list(names), on_bytes=on_bytes)), at=datetime.now(UTC))
        if not found.calls:
            raise InputError("\n  ".join(["no call was found, so there is nothing to replay", *self._rejected()]))
        self.calls = found.calls
        calls = self._store.frame("analysis/calls", service=None, since=None, until=None)
        self.services: list[str] = calls["service"].unique().sort().to_list()

    def analysed(self, options: Options) -> Analysis:
        """What response caches would have done with the calls.

        Raises:
            UsageError: a package of the extra "semantic" is missing.
        """
        with self._lock:
            return analysis.run(self._store, self._text_of, self._key, options, remembered=self._remembered)

    def _named(self, items: Iterator[Item]) -> Iterator[Item]:
        for item in items:
            yield replace(item, file=self._names.get(item.file, item.file))

    def _text_of(self, row: Mapping[str, Any]) -> Content | None:
        return self._reader.text_of({**row, "file": self._paths.get(row["file"], row["file"])})

    def _rejected(self) -> list[str]:
        rows = self._store.frame("analysis/quarantine").head(_REASONS)
        return [f"{row['file']}: {row['reason']}" for row in rows.iter_rows(named=True)]
