"""Marks of a response cache that is in use already: which one served a call, and how it found the answer. Pure.

The marks are data: hits.toml.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from prefixscope.analyzer.ingest.loose import embedded, number

_HEADER: Final = "http.response.header."  # how OpenTelemetry names a captured header
_ANYTHING: Final = "*"

Path = tuple[str | int, ...]
Place = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Hit:
    """A call that a response cache served."""

    cache: str
    semantic: bool | None  # matched by similarity, not word for word; None: the mark does not say
    similarity: float | None


@dataclass(frozen=True, slots=True)
class _Marks:
    """One row of hits.toml. Words are in lower case."""

    cache: str
    marks: tuple[Path, ...]
    hit: frozenset[str]
    kind: tuple[Path, ...]
    semantic: frozenset[str]
    exact: frozenset[str]
    always: str
    similarity: tuple[Path, ...]

    def read(self, places: Sequence[Place]) -> Hit | None:
        said = next((word for word in map(_word, _values(places, self.marks)) if self._means_hit(word)), None)
        if said is None:
            return None
        near = next(filter(lambda value: value is not None, map(number, _values(places, self.similarity))), None)
        kinds = [*map(_word, _values(places, self.kind)), said, self.always]
        return Hit(self.cache, self._semantic(kinds, near), near)

    def _means_hit(self, word: str) -> bool:
        return word in self.hit or (_ANYTHING in self.hit and bool(word))

    def _semantic(self, kinds: Sequence[str], near: float | None) -> bool | None:
        if any(kind in self.semantic or kind == "semantic" for kind in kinds):
            return True
        if any(kind in self.exact or kind == "exact" for kind in kinds):
            return False
        return None if near is None else near < 1.0


def hit_in(places: Sequence[Place]) -> Hit | None:
    """The mark of a cache in one of the places: a line, its response, headers, the attributes of a span."""
    known = _names()
    lowered = [
        {name: value for key, value in place.items() if (name := _plain(key)) in known and value is not None}
        for place in places
    ]
    if not any(lowered):
        return None
    return next(filter(None, (row.read(lowered) for row in _rows())), None)


def _plain(name: str) -> str:
    return name.lower().removeprefix(_HEADER)


def _word(value: Any) -> str:
    return str(value).strip().lower() if isinstance(value, str | int | float) else ""


def _values(places: Sequence[Place], paths: Sequence[Path]) -> list[Any]:
    found = (_at(place, path) for path in paths for place in places)
    return [value for value in found if value is not None]


def _at(place: Any, path: Path) -> Any:
    """The value at the end of a path, None if it is not there."""
    value = place
    for step in path:
        value = _opened(value, path[-1])
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and len(value) > step else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _opened(value: Any, sought: str | int) -> Any:
    """JSON text is decoded, but only where what is sought can be in it."""
    return embedded(value) if isinstance(value, str) and value[:1] in {"{", "["} and str(sought) in value else value


@cache
def _rows() -> tuple[_Marks, ...]:
    table = tomllib.loads((resources.files(__package__) / "hits.toml").read_text("utf-8"))
    return tuple(
        _Marks(
            cache=row["name"],
            marks=_paths(row["marks"]),
            hit=frozenset(row["hit"]),
            kind=_paths(row.get("kind", ())),
            semantic=frozenset(row.get("semantic", ())),
            exact=frozenset(row.get("exact", ())),
            always=row.get("always", ""),
            similarity=_paths(row.get("similarity", ())),
        )
        for row in table["cache"]
    )


def _paths(marks: Sequence[Any]) -> tuple[Path, ...]:
    return tuple((mark,) if isinstance(mark, str) else tuple(mark) for mark in marks)


@cache
def _names() -> frozenset[str]:
    """Where any path begins."""
    return frozenset(
        str(path[0]) for row in _rows() for paths in (row.marks, row.kind, row.similarity) for path in paths
    )
