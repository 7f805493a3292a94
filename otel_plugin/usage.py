"""A provider's answer -> ``record.Usage``: billed tokens in disjoint buckets, whatever the provider calls them.

Nothing here raises on any JSON: a value that is no token count (a string, bool, negative, NaN, absurdly large) counts
as absent and is noted. Where the fields are is data (usage_fields.toml); this module does the arithmetic.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from prefixscope.otel_plugin.record import Usage, UsageState
from prefixscope.otel_plugin.usage_shapes import Carrier, Field, Json, Path, Shape, field_map

_MAX_TOKENS = 10**12  # no call has a trillion tokens; keeps every sum inside 64 bits
TTLS = ("5m", "30m", "1h", "12h", "unknown")  # of the write buckets
_MAX_NAME = 256  # characters of a model, tier or id; longer is no name


def from_body(body: Json, *, provider: str = "") -> Usage:
    """Read a whole response body, or a batch output line that wraps one.

    Args:
        body: decoded JSON of the response.
        provider: genai-prices' provider id if known; decides only what an absent cache count means (``zero_for``).
    """
    carrier = field_map().find(body)
    return _read(carrier, provider) if carrier else Usage(**_identity({}, body))


def from_usage(usage: Json, *, provider: str = "") -> Usage:
    """Read a bare usage object, as request logs keep it."""
    return from_body({"usage": usage}, provider=provider)


def from_events(events: Iterable[Json], *, provider: str = "") -> Usage:
    """Read the decoded events of a stream, in order.

    Counts are cumulative: the last non-null value of each field wins and nothing is added up. A stream that broke off
    before its own end is ``partial`` at best.
    """
    stream = _Stream()
    for event in events:
        if isinstance(event, Mapping):
            stream.take(event)
    if stream.shape is None:
        return Usage(**_identity({}, stream.body))
    complete = stream.ended or not stream.shape.usage_before_end
    return _read(Carrier(stream.shape, stream.usage, stream.body), provider, complete=complete)


@cache
def telling() -> re.Pattern[bytes]:
    """Matches the raw JSON of every stream event that can change the usage, the first event (id, model) aside."""
    paths = (*field_map().roots, *field_map().ends)
    keys = sorted({re.escape(path.steps[-1].key) for path in paths if path.steps})
    return re.compile(rf'"(?:{"|".join(keys)})"\s*:\s*[^\sn]'.encode())  # n: null


@dataclass(slots=True)
class _Stream:
    """What the events so far have told."""

    shape: Shape | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)
    ended: bool = False

    def take(self, event: Json) -> None:
        fields = field_map()
        for body in fields.opened(event):
            self.body |= {key: body[key] for key in fields.body_keys if body.get(key) is not None}
        carrier = fields.find(event)
        if carrier:
            self._merge(carrier)
        # OpenAI's last chunk has usage and no choices; Azure's first has neither
        self.ended |= bool(carrier and event.get("choices") == []) or any(path.values(event) for path in fields.ends)

    def _merge(self, carrier: Carrier) -> None:
        # Later events may hold a part only (message_delta: output_tokens), which fits a vaguer shape further down.
        if self.shape is None or carrier.shape.order < self.shape.order:
            self.shape = carrier.shape
        self.usage |= {key: value for key, value in carrier.usage.items() if value is not None}


@dataclass(slots=True)
class _Reader:
    """Token counts of one usage object; remembers what it refused."""

    usage: Json
    body: Json
    refused: list[str] = field(default_factory=list)

    def count(self, places: Field) -> int | None:
        for parts in places:
            numbers = [number for path in parts for number in self._numbers(path)]
            if numbers:
                return sum(numbers)
        return None

    def _numbers(self, path: Path) -> list[int]:
        values = path.values(self.body if path.of_body else self.usage)
        numbers = [number for value in values if (number := _token_count(value)) is not None]
        if len(numbers) < len(values):
            self.refused.append(path.text)
        return numbers


@dataclass(slots=True)
class _Counts:
    """What one usage object says, as said."""

    input: int | None
    read: int | None
    writes: dict[str, int]  # TTL -> tokens
    output: int | None
    reasoning: int
    total: int | None
    notes: list[str]

    @property
    def cached(self) -> int:
        return (self.read or 0) + sum(self.writes.values())

    @property
    def empty(self) -> bool:
        return self.input is None and self.read is None and self.output is None and not self.writes


def _read(carrier: Carrier, provider: str, *, complete: bool = True) -> Usage:
    shape, usage, body = carrier.shape, carrier.usage, carrier.body
    reader = _Reader(usage, body)
    counts = _counts(shape, reader)
    buckets = _buckets(shape, counts)
    notes = counts.notes
    for item in _items(shape.extra, usage):
        more = _counts(shape, _Reader(item, {}, reader.refused))
        buckets = {name: tokens + buckets[name] for name, tokens in _buckets(shape, more).items()}
        notes += ["iteration_added", *more.notes]
    if _items(shape.other_model, usage):
        notes.append("other_model_not_counted")
    notes += [f"refused:{path}" for path in reader.refused]
    clean = complete and not reader.refused
    state = "missing" if counts.empty and not any(buckets.values()) else _state(shape, provider, counts, clean=clean)
    return Usage(state=state, notes=tuple(dict.fromkeys(notes)), **{**buckets, **_identity(usage, body)})


def _counts(shape: Shape, reader: _Reader) -> _Counts:
    notes: list[str] = []
    return _Counts(
        input=reader.count(shape.input),
        read=reader.count(shape.read),
        writes=_writes(shape, reader, notes),
        output=reader.count(shape.output),
        reasoning=reader.count(shape.reasoning) or 0,
        total=reader.count(shape.total),
        notes=notes,
    )


def _writes(shape: Shape, reader: _Reader, notes: list[str]) -> dict[str, int]:
    """Written tokens by TTL. What the total has beyond the split goes to the shape's excess TTL."""
    found = {ttl: reader.count(places) for ttl, places in shape.writes.items()}
    split = {ttl: tokens for ttl, tokens in found.items() if tokens is not None}
    total = reader.count(shape.write)
    excess = (total or 0) - sum(split.values())
    if total is None or excess == 0:
        return split
    if excess < 0:
        notes.append("write_below_split")
        return split
    if not split:
        return {"unknown": total}
    notes.append("write_beyond_split")
    return split | {shape.excess_ttl: split.get(shape.excess_ttl, 0) + excess}


def _buckets(shape: Shape, counts: _Counts) -> dict[str, int]:
    """The disjoint buckets of ``Usage``, by name."""
    uncached = counts.input or 0
    if shape.cache_in_input and counts.input is not None:
        uncached = _without_cache(counts)
    output, reasoning = _output(counts, uncached + counts.cached)
    return {
        "uncached": uncached,
        "read": counts.read or 0,
        **{f"write_{ttl}": counts.writes.get(ttl, 0) for ttl in TTLS},
        "output": output,
        "reasoning": reasoning,
    }


def _output(counts: _Counts, input_total: int) -> tuple[int, int]:
    """Billed output tokens, and how many of them were reasoning.

    xAI and Gemini's compatible endpoint count reasoning beside the completion: their total says so. Where the total has
    no room for it, more reasoning than output is an upstream's estimate, and the bill has the output (OpenRouter).
    """
    output, reasoning = counts.output or 0, counts.reasoning
    if counts.total == input_total + output and reasoning > output:
        counts.notes.append("reasoning_capped")
        return output, output
    if reasoning > output or (reasoning and counts.total == input_total + output + reasoning):
        counts.notes.append("reasoning_outside_output")
        return output + reasoning, reasoning
    return output, reasoning


def _without_cache(counts: _Counts) -> int:
    """Input tokens that were neither read nor written, where the input count should contain both.

    The provider's own total decides in doubt. Cached tokens that only fit on top of the input count are on top of it
    (litellm#42093, Vertex). Tokens both written and read by one call are reads: OpenRouter stores a Gemini prompt and
    reads it at once, and the bill has one prompt.
    """
    given, cached, read = counts.input or 0, counts.cached, counts.read or 0
    outputs = {counts.output or 0, (counts.output or 0) + counts.reasoning}
    total_is_inclusive = counts.total in {given + output for output in outputs}
    total_is_exclusive = not total_is_inclusive and counts.total in {given + cached + output for output in outputs}
    if total_is_inclusive and given < cached and max(read, cached - read) <= given:
        counts.notes.append("write_within_read")
        counts.writes = _trimmed(counts.writes, read)
    elif cached > given or (cached and total_is_exclusive):
        counts.notes.append("exclusive_input")
        return given
    return given - counts.cached


def _trimmed(writes: Mapping[str, int], surplus: int) -> dict[str, int]:
    """``writes`` with ``surplus`` tokens less."""
    kept: dict[str, int] = {}
    for ttl, tokens in writes.items():
        taken = min(tokens, surplus)
        kept[ttl], surplus = tokens - taken, surplus - taken
    return kept


def _state(shape: Shape, provider: str, counts: _Counts, *, clean: bool) -> UsageState:
    cache_known = counts.read is not None or shape.absent_cache == "zero" or provider in shape.zero_for
    return "reported" if clean and cache_known and counts.input is not None else "partial"


def _identity(usage: Json, body: Json) -> dict[str, Any]:
    """Who answered, how, and what the provider itself says about the miss: the text fields of ``Usage``."""
    fields = field_map()
    found: dict[str, Any] = {
        name: _name(places, usage, body) for name, places in fields.identity.items() if name != "missed_tokens"
    }
    if found["miss_reason"] in fields.no_miss:
        found["miss_reason"] = ""
    return found | {"missed_tokens": _Reader(usage, body).count(fields.identity["missed_tokens"])}


def _name(places: Field, usage: Json, body: Json) -> str:
    for (path,) in places:
        for value in path.values(body if path.of_body else usage):
            if isinstance(value, str) and 0 < len(value) <= _MAX_NAME:
                return value
    return ""


def _items(path: Path | None, usage: Json) -> list[Json]:
    return [item for item in path.values(usage) if isinstance(item, Mapping)] if path else []


def _token_count(value: Any) -> int | None:
    """``value`` if it is a number of tokens; 12.0 is 12, everything else that is no natural number is refused."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS:
        return value
    return None
