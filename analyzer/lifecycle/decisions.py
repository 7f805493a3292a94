"""DECIDE: what people and checks said of findings, in an append-only file beside the store.

One JSON object a line, format version 1, UTF-8; ``calls.duckdb`` has ``calls.duckdb.decisions.jsonl``. The file can be
read, searched and merged as text; nothing ever rewrites it, so fields that this version does not know stay in it.

    {"v": 1, "finding": "c1b8cf45c4a0", "status": "accepted", "at": "2026-11-30T09:00:00Z", "by": "ana",
     "owner": "team search", "due": "2026-12-15"}

Further fields: ``also`` (other ids that the finding has had), and by status ``on`` (fixed: since when), ``reason`` and
``until`` (dismissed), ``measure`` (what a check found: ``verify.Verdict.as_json``).
"""

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from io import FileIO
from math import isfinite
from pathlib import Path
from typing import Any, Final

from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.report.wording import plain
from prefixscope.analyzer.times import in_utc, iso

FORMAT_VERSION: Final = 1
BY_PEOPLE: Final = frozenset({"accepted", "fixed", "dismissed"})
BY_CHECK: Final = frozenset({"verified", "not_confirmed", "regressed"})
STATUSES: Final = BY_PEOPLE | BY_CHECK
_SUFFIX: Final = ".decisions.jsonl"
_LONGEST: Final = 1 << 16  # bytes of a line; a measure takes about two thousand


@dataclass(frozen=True, slots=True)
class Decision:
    """One line. Times are UTC; texts are printable and of bounded length."""

    finding: str  # a finding's id
    status: str  # one of STATUSES
    at: datetime  # when it was decided
    by: str  # who decided; a check signs as "prefixscope"
    also: tuple[str, ...] = ()  # further ids that the finding has had (``known``)
    owner: str = ""  # accepted: who will do it
    due: date | None = None  # accepted: until when
    reason: str = ""
    until: date | None = None  # dismissed: open again from this day on; None = for good
    on: datetime | None = None  # fixed: since when the fix is live
    measure: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # fields that this version does not know


@dataclass(frozen=True, slots=True)
class Decisions:
    """A file's decisions, and what a reader must be told about lines that hold none."""

    made: tuple[Decision, ...] = ()  # in the order of their times; at the same time in the order of lines
    notes: tuple[str, ...] = ()


def path_beside(store: Path) -> Path:
    """Where the decisions on a store's findings are kept."""
    return store.with_name(store.name + _SUFFIX)


def read(path: Path) -> Decisions:
    """Every decision in ``path``; none where there is no such file.

    A line that cannot be read costs only itself and is told. The usual one is the last, torn by a crash or a full disk.

    Raises:
        StoreError: the file cannot be read, or a newer prefixscope wrote it.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Decisions()
    except OSError as error:
        raise StoreError(f"{path}: cannot read the decisions: {error.strerror}") from error
    made, notes = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            made.append(_parsed(line))
        except _NewerError as error:
            raise StoreError(f"{path}:{number}: {error}; update prefixscope") from error
        except ValueError as error:
            torn = " (torn: it has no end)" if number == len(lines) else ""
            notes.append(f"{path}:{number}: not a decision{torn}, ignored: {error}")
    return Decisions(tuple(sorted(made, key=lambda decision: decision.at)), tuple(notes))


def append(path: Path, decision: Decision) -> None:
    """Adds one line, in one write, and waits until it is on disk.

    Behind a torn line it begins a new one, so that a crash costs one decision and never the next.

    Raises:
        StoreError: the file cannot be written.
    """
    line = json.dumps(as_json(decision), ensure_ascii=False, allow_nan=False).encode() + b"\n"
    try:
        with path.open("a+b", buffering=0) as file:
            _write(file, line)
    except OSError as error:
        raise StoreError(f"{path}: cannot keep the decision: {error.strerror}") from error


def as_json(decision: Decision) -> dict[str, Any]:
    """The decision as it stands in the file: without what is empty, unknown fields last."""
    fields: dict[str, Any] = {
        "v": FORMAT_VERSION,
        "finding": decision.finding,
        "status": decision.status,
        "at": iso(decision.at),
        "by": plain(decision.by),
        "also": list(decision.also),
        "owner": plain(decision.owner),
        "due": decision.due.isoformat() if decision.due else "",
        "reason": plain(decision.reason),
        "until": decision.until.isoformat() if decision.until else "",
        "on": iso(decision.on) if decision.on else "",
        "measure": decision.measure,
    }
    return {**{name: value for name, value in fields.items() if value}, **decision.extra}


def _write(file: FileIO, line: bytes) -> None:
    """Appended by the system in one piece: two writers at a time do not mix their lines."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        line = line if file.read(1) == b"\n" else b"\n" + line
    written = file.write(line)
    if written < len(line):
        raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes were written")
    os.fsync(file.fileno())


class _NewerError(ValueError):
    pass


def _parsed(line: bytes) -> Decision:
    if len(line) > _LONGEST:
        raise ValueError(f"longer than {_LONGEST} bytes")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if not isinstance(fields, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - all that is wrong with a line is a ValueError
    version = fields.pop("v", None)
    if type(version) is not int or version < 1:
        raise ValueError("no format version")
    if version > FORMAT_VERSION:
        raise _NewerError(f"written in format version {version}")
    return _decision(fields)


def _decision(fields: dict[str, Any]) -> Decision:
    """Takes the known fields out of ``fields``; what is left is kept as ``extra``."""
    status, finding = _text(fields, "status"), _text(fields, "finding")
    if status not in STATUSES:
        raise ValueError(f"unknown status {status!r}")
    if not finding:
        raise ValueError("it names no finding")
    at = _time(fields, "at")
    if at is None:
        raise ValueError("it has no time")
    measure = fields.pop("measure", None)
    if (status in BY_CHECK) != _has_money(measure):
        raise ValueError(f"{status} {'without' if status in BY_CHECK else 'with'} a measure")
    return Decision(
        finding=finding,
        status=status,
        at=at,
        by=_text(fields, "by"),
        also=_texts(fields, "also"),
        owner=_text(fields, "owner"),
        due=_day(fields, "due"),
        reason=_text(fields, "reason"),
        until=_day(fields, "until"),
        on=_time(fields, "on"),
        measure=measure,
        extra=fields,
    )


def _has_money(measure: object) -> bool:
    """Whether a measure says what was saved, in all and a week, each as an estimate with its interval."""
    if not isinstance(measure, dict):
        return False
    sums = [measure.get("saved_usd"), measure.get("saved_usd_per_week")]
    ends = [one.get(end) for one in sums if isinstance(one, dict) for end in ("estimate", "low", "high")]
    return len(ends) == 6 and all(isinstance(end, float | int) and isfinite(end) for end in ends)


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.pop(name, "")
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 - see above
    return plain(value)


def _texts(fields: dict[str, Any], name: str) -> tuple[str, ...]:
    values = fields.pop(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} is no list of texts")
    return tuple(map(plain, values))


def _time(fields: dict[str, Any], name: str) -> datetime | None:
    text = _text(fields, name)
    try:
        return in_utc(datetime.fromisoformat(text)) if text else None
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} is no time: {text!r}") from error


def _day(fields: dict[str, Any], name: str) -> date | None:
    text = _text(fields, name)
    try:
        return date.fromisoformat(text) if text else None
    except ValueError as error:
        raise ValueError(f"{name} is no date: {text!r}") from error
