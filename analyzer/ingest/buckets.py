"""The token counts of a span -> ``record.Usage``: disjoint buckets, whatever the instrumentation's counts include."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from prefixscope.analyzer.ingest import dialects
from prefixscope.analyzer.ingest.dialects import Dialect
from prefixscope.analyzer.ingest.loose import count, embedded, text
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin import usage as wire
from prefixscope.otel_plugin.record import Usage

_IDENTITY = ("tier", "speed", "geo", "served_model", "response_id")
_PARTS = "usage_details."  # how dialects.toml spells Langfuse's parts


def usage(span: Span, found: Mapping[str, Any], provider: str, model: str) -> Usage:
    """The billed tokens of the call that ``span`` describes; ``found`` are its ``meanings``."""
    told = _as_answered(found, provider)
    if told is None:
        found = {**found, **_parts(found)}
        told = _counted(_Counts.of(found), dialects.dialect(span, provider), found, provider, model)
    identity: dict[str, Any] = {n: text(found[n]) for n in _IDENTITY if n in found and not getattr(told, n)}
    return replace(told, **identity) if identity else told


def _as_answered(found: Mapping[str, Any], provider: str) -> Usage | None:
    """The usage as the provider wrote it, where a span carries that and it agrees with the span's own input count."""
    given = count(found.get("input"))
    for body in _answers(found):
        told = wire.from_body(body, provider=provider)
        if told.state == "reported" and given in {None, told.input_total, told.uncached}:
            return told
    return None


def _answers(found: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    raw = embedded(found.get("raw_usage"))
    if isinstance(raw, dict) and "input" not in raw:
        yield {"usage": raw}
    metadata = embedded(found.get("provider_metadata"))
    for part in metadata.values() if isinstance(metadata, dict) else ():
        if isinstance(part, dict) and isinstance(part.get("usage"), dict):
            yield part
    body = found.get("response_body")
    if isinstance(body, str) and body.startswith("{") and isinstance(body := embedded(body), dict):
        yield body


def _parts(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Langfuse's usage_details, {"input": …, "input_cached_tokens": …}, by meaning."""
    raw = embedded(found.get("raw_usage"))
    if not isinstance(raw, dict):
        return {}
    return dialects.meanings({f"{_PARTS}{name}": value for name, value in raw.items()})


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a span says, as said; None is not said."""

    input: int | None
    output: int | None
    total: int | None
    reasoning: int
    read: int | None
    write: int | None  # the sum over all TTLs
    write_5m: int
    write_1h: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "_Counts":
        five, hour = count(found.get("write_5m")), count(found.get("write_1h"))
        split = None if five is None and hour is None else (five or 0) + (hour or 0)
        write = count(found.get("write"))
        return cls(
            input=count(found.get("input")),
            output=count(found.get("output")),
            total=count(found.get("total")),
            reasoning=count(found.get("reasoning")) or 0,
            read=count(found.get("read")),
            write=write if split is None else max(write or 0, split),
            write_5m=five or 0,
            write_1h=hour or 0,
        )

    @property
    def cached(self) -> int:
        return (self.read or 0) + (self.write or 0)

    @property
    def empty(self) -> bool:
        return self.input is None and self.output is None and self.read is None and self.write is None


_UNREAD = "cache_read_not_recorded"
_UNWRITTEN = "cache_write_not_recorded"
_ESTIMATED = "may_be_estimated"


def _counted(counts: _Counts, dialect: Dialect, found: Mapping[str, Any], provider: str, model: str) -> Usage:
    if counts.empty:
        return Usage()
    gaps = _gaps(counts, dialect, found, bills_writes=dialects.table().bills_writes(provider, model))
    exclusive, doubts = _exclusive(counts, dialect)
    given = counts.input or 0
    return Usage(
        state="partial" if gaps or counts.input is None else "reported",
        uncached=given if exclusive else max(given - counts.cached, 0),
        read=counts.read or 0,
        write_5m=counts.write_5m,
        write_1h=counts.write_1h,
        write_unknown=(counts.write or 0) - counts.write_5m - counts.write_1h,
        output=_output(counts),
        reasoning=counts.reasoning,
        notes=tuple(filter(None, (*gaps, doubts, dialect.note))),
    )


def _gaps(counts: _Counts, dialect: Dialect, found: Mapping[str, Any], *, bills_writes: bool) -> list[str]:
    """What the counts do not tell: missing is not zero."""
    gaps = []
    if counts.read is None and dialect.absent_read != "zero":
        gaps.append(_UNREAD)
    if counts.write is None and dialect.absent_write != "zero" and bills_writes:
        gaps.append(_UNWRITTEN)
    if dialect.estimates_streams and found.get("streamed") in {True, "true", "True"} and not counts.cached:
        gaps.append(_ESTIMATED)
    return gaps


def _exclusive(counts: _Counts, dialect: Dialect) -> tuple[bool, str]:
    """Whether cached tokens come on top of the input count, and what is doubtful about that.

    Certain if they outnumber it. Otherwise the instrumentation decides, and where that is not known the span's own
    total, and at last the convention, which asks for inclusive counts (semantic-conventions-genai, inference span).
    """
    given, cached = counts.input or 0, counts.cached
    if cached > given:
        return True, "exclusive_input"
    if dialect.input != "unknown" or not cached:
        return dialect.input == "exclusive", ""
    outputs = {counts.output or 0, (counts.output or 0) + counts.reasoning}
    if counts.total in {given + output for output in outputs}:
        return False, ""
    if counts.total in {given + cached + output for output in outputs}:
        return True, "exclusive_input"
    return False, "assumed_inclusive"


def _output(counts: _Counts) -> int:
    """Output with reasoning: Gemini's and Langfuse's output counts leave it out."""
    output, given = counts.output or 0, counts.input or 0
    outside = counts.reasoning > output or counts.total in {
        given + output + counts.reasoning,
        given + counts.cached + output + counts.reasoning,
    }
    return output + counts.reasoning if outside else output
