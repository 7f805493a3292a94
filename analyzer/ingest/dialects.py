"""The dated table of what instrumentations call things (dialects.toml), compiled for one look-up an attribute."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from typing import Any, Literal

from prefixscope.analyzer.ingest.loose import text
from prefixscope.analyzer.ingest.span import Span

Inclusion = Literal["inclusive", "exclusive", "unknown"]
Absence = Literal["zero", "unknown"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """What the token counts of an instrumentation mean; dialects.toml explains the fields."""

    input: Inclusion
    absent_read: Absence
    absent_write: Absence
    source: str
    scope: str = ""
    since: str = ""
    provider: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    estimates_streams: bool = False

    def fits(self, scope: str, version: str, provider: str) -> bool:
        return (
            (not self.scope or scope == self.scope or scope.startswith(f"{self.scope}."))
            and (not self.provider or provider == self.provider)
            and (not self.since or _numbers(version) >= _numbers(self.since))
        )


@dataclass(frozen=True)
class Table:
    """dialects.toml as loaded."""

    spellings: Mapping[str, tuple[tuple[str, int], ...]]  # attribute -> (meaning, rank) pairs; rank 0 is the best
    numbered: Mapping[str, tuple[str, ...]]  # meaning -> attribute prefixes
    kinds: tuple[tuple[str, frozenset[str]], ...]  # attribute -> its values that mean a call
    never: frozenset[str]
    dialects: tuple[Dialect, ...]
    writing_providers: frozenset[str]
    writing_models: re.Pattern[str]

    def bills_writes(self, provider: str, model: str) -> bool:
        return provider in self.writing_providers or bool(self.writing_models.match(model))


@cache
def table() -> Table:
    raw = tomllib.loads((resources.files(__package__) / "dialects.toml").read_text("utf-8"))
    return Table(
        spellings=_by_attribute(raw["spellings"]),
        numbered={meaning: tuple(f"{prefix}." for prefix in found) for meaning, found in raw["numbered"].items()},
        kinds=tuple((kind["attribute"], frozenset(kind["call"])) for kind in raw["kind"]),
        never=frozenset(raw["never"]["attributes"]),
        dialects=tuple(Dialect(**row) for row in raw["dialect"]),
        writing_providers=frozenset(raw["writes_billed"]["providers"]),
        writing_models=re.compile(raw["writes_billed"]["models"]),
    )


def meanings(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that mean something here, by meaning; of several spellings the most trustworthy one."""
    spellings = table().spellings
    found: dict[str, tuple[int, Any]] = {}
    for name, value in attributes.items():
        for meaning, rank in spellings.get(name, ()):
            if value is not None and (meaning not in found or rank < found[meaning][0]):
                found[meaning] = rank, value
    return {meaning: value for meaning, (_, value) in found.items()}


def is_call(span: Span, found: Mapping[str, Any]) -> bool:
    """Whether ``span``, whose ``meanings`` are given, is one call to a model."""
    attributes = span.attributes
    if not table().never.isdisjoint(attributes):
        return False
    for attribute, calls in table().kinds:
        if attribute in attributes:
            return text(attributes[attribute]) in calls
    return ("input" in found or "raw_usage" in found) and "model" in found


def dialect(span: Span, provider: str) -> Dialect:
    """What the counts of ``span`` mean."""
    for row in _rows(span.scope, span.scope_version, provider):
        if all(span.attributes.get(name) == value for name, value in row.where.items()):
            return row
    raise AssertionError("the last row of dialects.toml fits everything")


@lru_cache(maxsize=1024)
def _rows(scope: str, version: str, provider: str) -> tuple[Dialect, ...]:
    return tuple(row for row in table().dialects if row.fits(scope, version, provider))


def _by_attribute(spellings: Mapping[str, Iterable[str]]) -> dict[str, tuple[tuple[str, int], ...]]:
    found: dict[str, tuple[tuple[str, int], ...]] = {}
    for meaning, names in spellings.items():
        for rank, name in enumerate(names):
            found[name] = (*found.get(name, ()), (meaning, rank))
    return found


def _numbers(version: str) -> tuple[int, ...]:
    """(0, 62, 4) of 0.62.4; what is no number, as in 1.3b0, ends it: (1, 3)."""
    return tuple(int(part) for part in re.findall(r"(?:^|\.)(\d{1,9})", version))
