"""The dated map of usage fields (usage_fields.toml), compiled: where which provider's shape holds which count."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Literal

Json = Mapping[str, Any]


_OBJECT = (dict, Mapping)  # dict first: the check against the abstract class alone costs five times as much


@dataclass(frozen=True, slots=True)
class Step:
    """One key of a path; ``many`` goes into each item of the list there, or into those where ``where`` holds."""

    key: str
    many: bool = False
    where: tuple[str, str] | None = None

    def into(self, node: Any) -> list[Any]:
        value = node.get(self.key) if isinstance(node, _OBJECT) else None
        if not self.many:
            return [] if value is None else [value]
        items = value if isinstance(value, list) else []
        return [item for item in items if self.where is None or _holds(item, *self.where)]


@dataclass(frozen=True, slots=True)
class Path:
    """A place in a usage object or, ``of_body``, in the body that carries it."""

    text: str
    steps: tuple[Step, ...]
    of_body: bool = False
    plain: tuple[str, ...] | None = None  # the keys alone, if no step goes into a list

    def values(self, node: Any) -> list[Any]:
        """Everything non-null at this path, in document order."""
        if self.plain is None:
            nodes = [node]
            for step in self.steps:
                nodes = [value for parent in nodes for value in step.into(parent)]
            return nodes
        for key in self.plain:  # most paths, and most of them lead nowhere
            node = node.get(key) if isinstance(node, _OBJECT) else None
            if node is None:
                return []
        return [node]


Alternative = tuple[Path, ...]
"""The parts of a sum; most have one."""

Field = tuple[Alternative, ...]
"""Where one count may be: the first alternative that is present counts."""

ABSENT: Field = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """One vocabulary of usage fields; the head of usage_fields.toml says what each entry means."""

    name: str
    order: int
    any: frozenset[str]
    none_of: frozenset[str]
    body_type: str
    cache_in_input: bool
    absent_cache: Literal["zero", "unknown"]
    zero_for: frozenset[str]
    input: Field
    read: Field
    write: Field
    writes: Mapping[str, Field]
    output: Field
    reasoning: Field
    total: Field
    excess_ttl: str
    usage_before_end: bool
    extra: Path | None
    other_model: Path | None
    bare: bool

    def fits(self, usage: Json, body: Json) -> bool:
        if not self.none_of.isdisjoint(usage):
            return False
        if not self.any.isdisjoint(usage):
            return True
        return bool(self.body_type) and body.get("type") == self.body_type and "input_tokens" in usage


@dataclass(frozen=True, slots=True)
class Carrier:
    """A usage object and the body around it."""

    shape: Shape
    usage: Json
    body: Json


@dataclass(frozen=True, slots=True)
class FieldMap:
    """The whole data file."""

    shapes: tuple[Shape, ...]
    roots: tuple[Path, ...]
    envelopes: tuple[str, ...]
    ends: tuple[Path, ...]
    identity: Mapping[str, Field]
    no_miss: frozenset[str]
    body_keys: frozenset[str] = field(default_factory=frozenset)  # first keys of all paths that start at the body

    def find(self, body: Json) -> Carrier | None:
        """The first usage object in ``body`` or its envelopes (two deep) that a shape fits."""
        for candidate in self.opened(body, depth=2):
            for root in self.roots:
                for usage in root.values(candidate):
                    shape = self.recognise(usage, candidate)
                    if shape:
                        return Carrier(shape, usage, candidate)
        return None

    def recognise(self, usage: Any, body: Json) -> Shape | None:
        if not isinstance(usage, _OBJECT):
            return None
        shapes = (shape for shape in self.shapes if shape.bare or usage is not body)
        return next((shape for shape in shapes if shape.fits(usage, body)), None)

    def opened(self, body: Json, depth: int = 1) -> Iterator[Json]:
        """The body, then what its envelopes hold, ``depth`` deep."""
        yield body
        if depth == 0:
            return
        for name in self.envelopes:
            inner = body.get(name)
            if isinstance(inner, _OBJECT):
                yield from self.opened(inner, depth - 1)


@cache
def field_map() -> FieldMap:
    """The compiled usage_fields.toml of this package."""
    raw = tomllib.loads(resources.files(__package__).joinpath("usage_fields.toml").read_text("utf-8"))
    identity = raw["identity"]
    shapes = tuple(_shape(order, entry) for order, entry in enumerate(raw["shape"]))
    names = {name: _field(texts) for name, texts in identity.items() if name != "no_miss"}
    every = [*names.values(), *(shape.read for shape in shapes)]
    return FieldMap(
        shapes=shapes,
        roots=tuple(_path(text) for text in raw["roots"]),
        envelopes=tuple(raw["envelopes"]),
        ends=tuple(_path(text) for text in raw["ends"]),
        identity=names,
        no_miss=frozenset(identity["no_miss"]),
        body_keys=frozenset(
            path.steps[0].key for places in every for parts in places for path in parts if path.of_body
        ),
    )


def _shape(order: int, entry: Mapping[str, Any]) -> Shape:
    def places(name: str) -> Field:
        return _field(entry.get(name, ()))

    def items(name: str) -> Path | None:
        return _path(entry[name]) if name in entry else None

    return Shape(
        name=entry["name"],
        order=order,
        any=frozenset(entry["any"]),
        none_of=frozenset(entry.get("not", ())),
        body_type=entry.get("body_type", ""),
        cache_in_input=entry["cache_in_input"],
        absent_cache=entry["absent_cache"],
        zero_for=frozenset(entry.get("zero_for", ())),
        input=places("input"),
        read=places("read"),
        write=places("write"),
        writes={ttl: _field(texts) for ttl, texts in entry.get("writes", {}).items()},
        output=places("output"),
        reasoning=places("reasoning"),
        total=places("total"),
        excess_ttl=entry.get("excess_ttl", "unknown"),
        usage_before_end=entry.get("usage_before_end", False),
        extra=items("extra"),
        other_model=items("other_model"),
        bare=entry.get("bare", False),
    )


def _field(texts: list[str] | tuple[str, ...]) -> Field:
    return tuple(tuple(_path(part) for part in text.split(" + ")) for text in texts)


def _path(text: str) -> Path:
    steps = tuple(_step(key) for key in text.removeprefix("$.").split(".") if key)
    plain = None if any(step.many for step in steps) else tuple(step.key for step in steps)
    return Path(text, steps, of_body=text.startswith("$."), plain=plain)


def _step(text: str) -> Step:
    key, bracket, rest = text.partition("[")
    name, equals, value = rest.rstrip("]").partition("=")
    return Step(key, bool(bracket), (name, value) if equals else None)


def _holds(item: Any, key: str, value: str) -> bool:
    return isinstance(item, _OBJECT) and item.get(key) == value
