"""What capture writes and where: the spool, the key, losses, the clock, the store and who has it open."""

import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from prefixscope.analyzer import spool_losses
from prefixscope.analyzer.doctor.examination import Check, Look, Patient
from prefixscope.analyzer.errors import StoreError
from prefixscope.otel_plugin import keys, spool
from prefixscope.otel_plugin.fingerprint import Fingerprinter

_HOLDER: Final = re.compile(r"lock is held in (.+?) \(PID (\d+)\)")  # how DuckDB 2.0 names it
_AHEAD: Final = timedelta(minutes=5)  # what clocks of two machines may differ by
_LATEST: Final = datetime(2100, 1, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)  # time zones: the cards' dates are those of whoever wrote them


def _spool(patient: Patient) -> Iterator[Check]:
    """Whether the folder can be written, by writing into it; it is not made here."""
    folder = patient.settings.spool_folder(patient.environment)
    if folder is None:
        advice = "unset PREFIXSCOPE_SPOOL if calls should be kept when spans are sampled or the store is locked"
        yield Check("spool", "warning", "PREFIXSCOPE_SPOOL=off: calls are only in spans", advice)
        return
    facts: dict[str, Any] = {"folder": str(folder)}
    reason = _why_not_writable(folder)
    if reason:
        advice = "make it writable for the service's user, or set PREFIXSCOPE_SPOOL"
        yield Check("spool", "failed", f"{folder} cannot be written: {reason}", advice, facts)
        return
    paths = list(spool.files(folder))
    size = sum(path.stat().st_size for path in paths if path.exists())
    facts |= {"files": len(paths), "live": sum(path.name.endswith(spool.LIVE) for path in paths), "bytes": size}
    told = f"{len(paths)} files, {size:,} bytes" if folder.exists() else "not there yet: made with the first call"
    yield Check("spool", "ok", f"{folder} can be written; {told}", facts=facts)
    room = shutil.disk_usage(_existing(folder)).free + size
    if room < patient.settings.spool_quota:
        message = f"{room:,} bytes are free for the spool, its quota is {patient.settings.spool_quota:,}"
        yield Check("spool", "warning", message, "make room, or lower PREFIXSCOPE_SPOOL_QUOTA", {"free": room})


def _why_not_writable(folder: Path) -> str:
    place = _existing(folder)
    if not place.is_dir():
        return f"{place} is no folder"
    if place != folder:
        return "" if os.access(place, os.W_OK | os.X_OK) else f"no right to make it in {place}"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\n")
            file.flush()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _existing(path: Path) -> Path:
    """``path``, or the nearest part of it that is there."""
    return next(found for found in (path, *path.absolute().parents) if found.exists())


def _key(patient: Patient) -> Iterator[Check]:
    """Where the key comes from, and its id; never the key."""
    path = keys.key_file(patient.environment)
    if patient.environment.get("PREFIXSCOPE_KEY"):
        yield _known_key(patient, "PREFIXSCOPE_KEY", {})
    elif not path.exists():
        reason = _why_not_writable(path.parent)
        if reason:
            yield Check("key", "failed", f"{path} cannot be made: {reason}", "set PREFIXSCOPE_KEY")
        else:
            message = f"there is none yet; the first call makes {path}"
            yield Check("key", "ok", message, "set PREFIXSCOPE_KEY where several machines share a store")
    else:
        yield _known_key(patient, str(path), {"mode": f"{path.stat().st_mode & 0o777:04o}"})
        if path.stat().st_mode & 0o077:
            yield Check("key", "warning", f"others may read {path}", f"chmod 600 {path}")


def _known_key(patient: Patient, source: str, facts: Mapping[str, Any]) -> Check:
    try:
        id_ = Fingerprinter(keys.load_key(patient.environment)).key_id
    except OSError as error:
        reason = error.strerror or str(error)
        return Check("key", "failed", f"{source} cannot be read: {reason}", "set PREFIXSCOPE_KEY")
    return Check("key", "ok", f"key {id_} from {source}", facts={"key_id": id_, "source": source, **facts})


def _losses(patient: Patient) -> Iterator[Check]:
    """What capture told in the spool; a process that lost nothing tells nothing, so without files it is unknown."""
    folder = patient.settings.spool_folder(patient.environment)
    if folder is None or not any(spool.files(folder)):
        yield Check("losses", "ok", "unknown: no process has written into the spool yet", facts={"known": False})
        return
    found = spool_losses.in_spool(folder)
    facts = {"known": True, "calls": dict(found.calls), "errors": dict(found.errors)}
    if not found.calls and not found.errors:
        yield Check("losses", "ok", "nothing was lost as far as the spool goes back", facts=facts)
        return
    calls = ", ".join(f"{count:,} {reason}" for reason, count in sorted(found.calls.items())) or "none"
    errors = ", ".join(f"{count:,} {place}" for place, count in sorted(found.errors.items())) or "none"
    advice = "raise PREFIXSCOPE_QUEUE_CALLS, PREFIXSCOPE_QUEUE_BYTES or the caps" if found.calls else ""
    yield Check("losses", "warning", f"calls not kept as a whole: {calls}; errors of ours: {errors}", advice, facts)


def _clock(patient: Patient) -> Iterator[Check]:
    """Prices, lifetimes and pauses hang on time: it cannot be before this version was written, nor far ahead."""
    written = datetime.combine(_newest_card(), datetime.min.time(), UTC)
    facts = {"now": patient.now.isoformat()}
    if not written - _DAY <= patient.now < _LATEST:
        message = f"the clock says {patient.now:%Y-%m-%d %H:%M} UTC; this version is of {written:%Y-%m-%d}"
        yield Check("clock", "failed", message, "set the clock: switch on NTP", facts)
        return
    yield Check("clock", "ok", f"{patient.now:%Y-%m-%d %H:%M:%S} UTC", facts=facts)
    folder = patient.settings.spool_folder(patient.environment)
    ahead = [path.name for path in spool.files(folder) if _is_ahead(path, patient.now)] if folder else []
    if ahead:
        message = f"{len(ahead)} spool files are of the future, as {ahead[0]}: the clock was set back"
        yield Check("clock", "warning", message, "pauses between calls of that time are wrong", {"files": ahead})


def _is_ahead(path: Path, now: datetime) -> bool:
    return path.exists() and datetime.fromtimestamp(path.stat().st_mtime, UTC) > now + _AHEAD


def _newest_card() -> date:
    """The day on which a rule card was checked last."""
    found = []
    for entry in files("prefixscope.analyzer.rules").iterdir():
        if entry.name.endswith(".toml"):
            found += list(_dates(tomllib.loads(entry.read_text("utf-8"))))
    return max(found)


def _dates(raw: Any) -> Iterator[date]:
    """Every ``checked`` in a file of cards."""
    if isinstance(raw, dict):
        if isinstance(checked := raw.get("checked"), date):
            yield checked
        raw = list(raw.values())
    if isinstance(raw, list):
        for value in raw:
            yield from _dates(value)


def _store(patient: Patient) -> Iterator[Check]:
    """Whether the store can be opened, and who has it open."""
    if find_spec("duckdb") is None:
        message = "DuckDB is not installed; capture does not need it"
        yield Check("store", "ok", message, "pip install 'prefixscope[audit]' to audit here", {"installed": False})
        return
    facts: dict[str, Any] = {"file": str(patient.store)}
    if not patient.store.exists():
        yield Check("store", "ok", f"{patient.store}: not there yet", facts=facts | {"exists": False})
        return
    from prefixscope.analyzer import store  # noqa: PLC0415 - the base install has no DuckDB

    try:
        with store.opened(patient.store, read_only=True) as opened:
            found = opened.frame("store/extent").row(0, named=True)
    except StoreError as error:
        yield _not_opened(error, facts)
        return
    last = found["last_at"]
    message = (
        f"{patient.store}: {found['calls']:,} calls, the last one {last or 'never'}; nobody has it open for writing"
    )
    yield Check("store", "ok", message, facts=facts | {"calls": found["calls"], "last_at": last and last.isoformat()})
    if last and last.replace(tzinfo=UTC) > patient.now + _AHEAD:
        advice = "look at the clocks of the machines that wrote it"
        yield Check("clock", "warning", f"the last call in {patient.store} is of the future: {last}", advice)


def _not_opened(error: StoreError, facts: Mapping[str, Any]) -> Check:
    """A lock is a warning, since what cannot be written meanwhile is kept; anything else needs a hand."""
    holder = _HOLDER.search(str(error.__cause__))
    if holder is None:
        locked = "Could not set lock" in str(error.__cause__)
        return Check("store", "warning" if locked else "failed", str(error), facts=facts)
    program, process = holder[1], int(holder[2])
    command = _command(process) or program
    message = f"{facts['file']}: process {process} has it open for writing: {command}"
    return Check(
        "store",
        "warning",
        message,
        "wait, or end that process; calls go to the spool meanwhile",
        {**facts, "holder": {"process": process, "command": command}},
    )


def _command(process: int) -> str:
    """The program of a process, and its first argument if that is no option: more may hold secrets."""
    try:
        words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    shown = words[:1] if words[1:2] and words[1].startswith(b"-") else words[:2]
    return b" ".join(shown).decode("utf-8", "replace")[:200]


LOOKS: Sequence[Look] = (_spool, _key, _losses, _clock, _store)
