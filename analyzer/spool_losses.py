"""What capture says in its spool of its own losses: counts by reason, which each process adds up from its start."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from prefixscope.otel_plugin.metrics import ERRORS, LOST
from prefixscope.otel_plugin.spool import files

_START: Final = b'{"resourceMetrics"'  # how otel_plugin/otlp.py begins such a line


class Losses(Counter[tuple[str, str]]):
    """(name of the count, reason) -> how many, over all processes whose spool is still there."""

    @property
    def calls(self) -> Mapping[str, int]:
        """Calls of which something was not kept, by reason."""
        return {reason: count for (name, reason), count in self.items() if name == LOST and count}

    @property
    def errors(self) -> Mapping[str, int]:
        """Errors of ours, by place."""
        return {reason: count for (name, reason), count in self.items() if name == ERRORS and count}


def in_spool(folder: Path) -> Losses:
    """The losses that are told in ``folder``.

    Raises:
        OSError: a file cannot be read.
    """
    last: dict[tuple[str, str, str, str], int] = {}
    for path in files(folder):
        process = path.name.split("-")[2]
        for name, reason, start, count in _counts(path):
            key = process, start, name, reason
            last[key] = max(last.get(key, 0), count)  # counts grow, in one file or over several
    losses = Losses()
    for (_, _, name, reason), count in last.items():
        losses[name, reason] += count
    return losses


def _counts(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """(name, reason, start of the process, count) of every such line."""
    with suppress(FileNotFoundError), path.open("rb") as file:  # finished or removed meanwhile
        for line in file:
            if line.startswith(_START):
                with suppress(ValueError, KeyError, TypeError, IndexError, AttributeError):  # a torn last line
                    yield from _points(json.loads(line))


def _points(document: Any) -> list[tuple[str, str, str, int]]:
    metrics = document["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    return [
        (metric["name"], _reason(point), point["startTimeUnixNano"], int(point["asDouble"]))
        for metric in metrics
        for point in metric["sum"]["dataPoints"]
    ]


def _reason(point: Any) -> str:
    return next((str(pair["value"]["stringValue"]) for pair in point["attributes"] if pair["key"] == "reason"), "")
