"""Times as people write them and as files keep them: ISO 8601, UTC where no zone is given."""

from argparse import ArgumentTypeError
from datetime import UTC, date, datetime


def moment(text: str) -> datetime:
    """``2026-11-30``, ``2026-11-30T12:00`` or ``2026-11-30T12:00+01:00`` as a UTC time.

    Raises:
        ArgumentTypeError: it is no ISO 8601 time (argparse tells the option).
    """
    try:
        return in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        raise ArgumentTypeError(f"{text!r} is no ISO 8601 time; write 2026-11-30 or 2026-11-30T12:00") from error


def day(text: str) -> date:
    """``2026-11-30`` as a date.

    Raises:
        ArgumentTypeError: it is no ISO 8601 date (argparse tells the option).
    """
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is no ISO 8601 date; write 2026-11-30") from error


def in_utc(time: datetime) -> datetime:
    """The same moment with the zone UTC; without a zone it is one already, as in the store."""
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def naive(time: datetime) -> datetime:
    """A UTC time as the store keeps it: without a zone."""
    return in_utc(time).replace(tzinfo=None)


def iso(time: datetime) -> str:
    """``2026-11-30T12:00:00Z``, with a fraction only where there is one."""
    return f"{naive(time).isoformat()}Z"
