"""The dated overlay on genai-prices: ``prices_overlay.toml`` as objects."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from typing import Any

from prefixscope.analyzer.model_names import bare_name

SATURDAY = 5


@dataclass(frozen=True, slots=True)
class Span:
    """Where and when a row holds: genai-prices ids, globs on bare model names, ``until`` exclusive."""

    providers: tuple[str, ...]
    models: tuple[str, ...]
    since: date | None
    until: date | None

    def covers(self, provider: str, model: str, on: date) -> bool:
        """Whether the row holds for this price list, model and UTC day."""
        in_force = (self.since is None or self.since <= on) and (self.until is None or on < self.until)
        return in_force and self.concerns(provider, model)

    def concerns(self, provider: str, model: str) -> bool:
        """Whether the row holds for this price list and model on some day."""
        return provider in self.providers and any(fnmatchcase(bare_name(model), glob) for glob in self.models)


@dataclass(frozen=True, slots=True)
class RateRow:
    """One bucket's rate as a multiple of the uncached rate."""

    name: str
    span: Span
    bucket: str
    factor: Decimal
    unless_listed: bool


@dataclass(frozen=True, slots=True)
class Surcharge:
    """A multiple of every rate for calls served under a condition: ``field`` is tier, speed or geo."""

    name: str
    span: Span
    field: str
    value: str
    factor: Decimal


@dataclass(frozen=True, slots=True)
class Peak:
    """A multiple of every rate within hours of the day, UTC; the list is asked for the off-peak price."""

    name: str
    span: Span
    weekdays_only_since: date
    hours: tuple[tuple[int, int], ...]
    off_peak_hour: int
    factor: Decimal

    def is_peak(self, at: datetime) -> bool:
        """Whether the higher price holds at this UTC moment."""
        begun = self.span.since is None or self.span.since <= at.date()
        weekend = at.weekday() >= SATURDAY and at.date() >= self.weekdays_only_since
        return begun and not weekend and any(start <= at.hour < end for start, end in self.hours)


@dataclass(frozen=True, slots=True)
class Storage:
    """What it costs to keep a stored prefix."""

    span: Span
    usd: Decimal  # for a million tokens and hour


@dataclass(frozen=True, slots=True)
class Overlay:
    """The whole file."""

    compared: Mapping[str, date]
    self_hosted: frozenset[str]
    aliases: Mapping[tuple[str, str], str]
    rates: tuple[RateRow, ...]
    surcharges: tuple[Surcharge, ...]
    peaks: tuple[Peak, ...]
    storages: tuple[Storage, ...]

    def alias(self, provider: str, model: str) -> str:
        """The listed model whose price this one has, or ""."""
        return self.aliases.get((provider, bare_name(model)), "")

    def surcharge(self, provider: str, model: str, on: date, field: str, value: str) -> Surcharge | None:
        """The row for a call served with ``field`` = ``value``, if there is one."""
        rows = (row for row in self.surcharges if (row.field, row.value) == (field, value))
        return next((row for row in rows if row.span.covers(provider, model, on)), None)

    def peak(self, provider: str, model: str) -> Peak | None:
        """The model's pricing by the clock, if it has any, on whatever day."""
        return next((row for row in self.peaks if row.span.concerns(provider, model)), None)

    def storage(self, provider: str, model: str, on: date) -> Storage | None:
        """What keeping a stored prefix costs, if that is known."""
        return next((row for row in self.storages if row.span.covers(provider, model, on)), None)

    def compared_on(self, version: str) -> date:
        """The day this genai-prices version was last compared; of an unknown version, of the newest known one."""
        return self.compared.get(version, max(self.compared.values()))

    def days(self) -> set[date]:
        """Every day some row of the overlay begins or ends to hold."""
        spans: list[Span] = [
            *(row.span for row in self.rates),
            *(row.span for row in self.surcharges),
            *(row.span for row in self.peaks),
        ]
        return {day for span in spans for day in (span.since, span.until) if day} | {
            peak.weekdays_only_since for peak in self.peaks
        }


@cache
def overlay() -> Overlay:
    """The packaged overlay."""
    text = resources.files(__package__).joinpath("prices_overlay.toml").read_text(encoding="utf-8")
    return parse(tomllib.loads(text))


def parse(data: Mapping[str, Any]) -> Overlay:
    """An overlay from its TOML.

    Raises:
        KeyError: a row lacks a field, its source and day of checking included.
    """
    for row in (row for table in ("alias", "rate", "surcharge", "peak", "storage") for row in data[table]):
        _ = row["source"], row["checked"]
    return Overlay(
        compared=data["compared"],
        self_hosted=frozenset(data["self_hosted"]["providers"]),
        aliases={(row["provider"], row["model"]): row["priced_as"] for row in data["alias"]},
        rates=tuple(_rate(row) for row in data["rate"]),
        surcharges=tuple(_surcharge(row) for row in data["surcharge"]),
        peaks=tuple(_peak(row) for row in data["peak"]),
        storages=tuple(Storage(_span(row), Decimal(row["usd"])) for row in data["storage"]),
    )


def _rate(row: Mapping[str, Any]) -> RateRow:
    return RateRow(row["name"], _span(row), row["bucket"], Decimal(row["factor"]), row.get("unless_listed", False))


def _surcharge(row: Mapping[str, Any]) -> Surcharge:
    return Surcharge(row["name"], _span(row), row["field"], row["value"], Decimal(row["factor"]))


def _peak(row: Mapping[str, Any]) -> Peak:
    hours = tuple((start, end) for start, end in row["hours"])
    weekdays_only_since, off_peak_hour = row["weekdays_only_since"], row["off_peak_hour"]
    return Peak(row["name"], _span(row), weekdays_only_since, hours, off_peak_hour, Decimal(row["factor"]))


def _span(row: Mapping[str, Any]) -> Span:
    models: Sequence[str] = row.get("models", ["*"])
    return Span(tuple(row["providers"]), tuple(models), row.get("since"), row.get("until"))
