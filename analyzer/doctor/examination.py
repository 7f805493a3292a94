"""Whether capture works on this machine: a list of checks, each with what was found and what to do.

Needs the base install alone, since services have no more.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from prefixscope.otel_plugin.settings import Settings

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True, slots=True)
class Check:
    """What one look has found. ``facts`` are the same for programs; there is no secret in them."""

    name: str
    state: State
    message: str
    advice: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


class Patient(NamedTuple):
    """What is examined."""

    environment: Mapping[str, str]
    settings: Settings
    store: Path
    now: datetime  # with a time zone


Look = Callable[[Patient], Iterator[Check]]


def examine(environment: Mapping[str, str], now: datetime, store: Path | None = None) -> list[Check]:
    """Every check, in the order of the data's way: installation, capture, spool, store.

    Args:
        environment: the variables that the service has.
        now: the time, with a time zone.
        store: the DuckDB file; None = the one that the exporter would write.
    """
    from prefixscope.analyzer.doctor import files, install  # noqa: PLC0415 - they need Check

    settings, problems = Settings.read(environment)
    patient = Patient(environment, settings, store or settings.db_file(environment), now)
    return [
        *install.settings(patient, problems),
        *(check for look in (*install.LOOKS, *files.LOOKS) for check in _looked(look, patient)),
    ]


def is_well(checks: list[Check]) -> bool:
    """Whether nothing failed; warnings are for people."""
    return all(check.state != "failed" for check in checks)


def as_json(checks: list[Check]) -> Mapping[str, Any]:
    """The checks for programs."""
    shown = [
        {"name": c.name, "state": c.state, "message": c.message, "advice": c.advice, "facts": dict(c.facts)}
        for c in checks
    ]
    return {"schema_version": 1, "well": is_well(checks), "checks": shown}


def _looked(look: Look, patient: Patient) -> Iterator[Check]:
    """One broken part of a machine must not hide the others."""
    try:
        yield from look(patient)
    except Exception as error:  # noqa: BLE001 - anything may be broken here: that is what it is for
        yield Check(
            look.__name__.strip("_"), "failed", f"this check could not be made: {type(error).__name__}: {error}"
        )
