"""A span, whatever format it was exported in. A log event that describes a call is a span of its own kind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Span:
    """Attributes are plain values: strings, numbers, booleans, lists, mappings."""

    attributes: Mapping[str, Any]
    resource: Mapping[str, Any] = field(default_factory=dict)
    scope: str = ""
    scope_version: str = ""
    trace_id: str = ""  # 32 lower-case hex digits or ""
    span_id: str = ""  # 16 lower-case hex digits or ""
    parent_span_id: str = ""
    start_ns: int | None = None
    end_ns: int | None = None
    failed: bool = False  # the span's status is error
    dropped_attributes: int = 0  # how many the exporter left out because of its limits
    events: Sequence[tuple[str, int | None, Mapping[str, Any]]] = ()  # name, time in ns, attributes

    def event(self, name: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
        """Time and attributes of every event of that name."""
        return ((at, attributes) for found, at, attributes in self.events if found == name)
