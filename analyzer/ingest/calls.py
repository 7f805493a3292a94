"""A span that describes a call to a model -> ``CallRecord``."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import orjson

from prefixscope.analyzer.ingest import buckets, content, dialects
from prefixscope.analyzer.ingest.loose import count, moment, number, text, url
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin import call_attributes as ours
from prefixscope.otel_plugin import providers, segments
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, Usage

_FIRST_TOKEN_EVENT = "First Token Stream Event"  # noqa: S105 - OpenInference's name of a span event
_REBUILT_API = "openai.chat"
_OURS = (ours.FINGERPRINT, "prefixscope.usage.state")


def observed(span: Span, printer: Fingerprinter, place: Place) -> Observed | Rejected | None:
    """The call that ``span`` describes; None if it is an agent, a tool, an embedding, an HTTP request."""
    if any(name in span.attributes for name in _OURS):
        return _own(span, place)
    found = dialects.meanings(span.attributes)
    if not dialects.is_call(span, found):
        return None
    if span.start_ns is None:
        return place.rejected("a call without a start time: export startTimeUnixNano (nanoseconds since 1970, UTC)")
    return _foreign(span, found, printer, place, span.start_ns)


def _own(span: Span, place: Place) -> Observed | Rejected:
    """A span that prefixscope wrote: nothing has to be guessed."""
    if span.start_ns is None:
        return place.rejected("a prefixscope span without a start time: export it as the plugin wrote it")
    try:
        own = ours.decode(span.attributes, orjson.loads)
    except (ValueError, TypeError) as error:
        return place.rejected(f"a damaged prefixscope span: {error}")
    record = CallRecord(**(_of_span(span, span.start_ns) | own))
    return (
        place.observed(record) if _is_sound(record) else place.rejected("a damaged prefixscope span: a count is none")
    )


def _is_sound(record: CallRecord) -> bool:
    """Whether every number is one: attributes come from outside."""
    counts = [getattr(record.usage, f.name) for f in fields(Usage) if isinstance(f.default, int)]
    optional = (record.usage.missed_tokens, record.ttft_ms, record.status, record.reuse.temperature)
    is_status = record.status is None or 100 <= record.status <= 599
    counted = all(count(n) == n for n in (*counts, record.retries, record.reuse.choices))
    return is_status and counted and all(n is None or number(n) == n for n in optional)


def _foreign(
    span: Span, found: Mapping[str, Any], printer: Fingerprinter, place: Place, start_ns: int
) -> Observed | Rejected:
    served = text(found.get("served_model"))
    model = _model(text(found.get("model")) or served)
    provider = _provider(found, model)
    of_span = _of_span(span, start_ns)
    api, print_, lost = _print(span, found, printer)
    record = CallRecord(
        **of_span,
        provider=provider,
        api=api,
        model=model,
        usage=buckets.usage(span, found, provider, model),
        fingerprint=print_,
        ttft_ms=_ttft_ms(span, found, start_ns),
        status=_status(found),
        error=text(found.get("error")) or _exception(span),
        account=printer.keyed(text(found.get("account"))),
        region=text(found.get("region")),
        session_id=text(found.get("session")) or text(dialects.meanings(span.resource).get("session")),
        request_id=text(found.get("request_id")),
        instrumentation=span.scope,
    )
    return place.observed(record, lost)


def _model(name: str) -> str:
    """Vertex AI's SDKs name models by resource: projects/…/publishers/google/models/gemini-2.5-flash."""
    return name.rpartition("/models/")[2] if name.startswith("projects/") else name


def _of_span(span: Span, start_ns: int) -> dict[str, Any]:
    """What every record takes from the span itself."""
    ended = span.end_ns is not None and span.end_ns >= start_ns
    return {
        "started_ns": start_ns,
        "service": text(span.resource.get("service.name")),
        "duration_ms": (span.end_ns - start_ns) / 1e6 if ended and span.end_ns is not None else None,
        "trace_id": span.trace_id,
        "span_id": span.span_id,
        "parent_span_id": span.parent_span_id,
    }


def _provider(found: Mapping[str, Any], model: str) -> str:
    """The host that was called tells who billed it: SDKs are pointed at other vendors' servers under their own name."""
    host = text(found.get("host"))
    host = (url(host).hostname or "") if "://" in host else host
    by_host = providers.identify(host=host) if host else ""
    return by_host or providers.canonical(text(found.get("provider"))) or providers.identify(model=model)


def _print(span: Span, found: Mapping[str, Any], printer: Fingerprinter) -> tuple[str, Fingerprint | None, str]:
    """(api, fingerprint, why there is none although there was a prompt)."""
    try:
        request = content.request(span, found)
    except content.LostError as lost:
        return "", None, str(lost)
    prompt = segments.parse(request.body, api=_REBUILT_API if request.rebuilt else "") if request else None
    if request is None or prompt is None or not prompt.segments:
        return "", None, ""
    return "" if request.rebuilt else prompt.api, printer.fingerprint(prompt), ""


def _ttft_ms(span: Span, found: Mapping[str, Any], start_ns: int) -> float | None:
    if (milliseconds := number(found.get("ttft_ms"))) is not None:
        return milliseconds
    if (seconds := number(found.get("ttft_s"))) is not None:
        return seconds * 1000
    at = moment(text(found.get("first_token_at")).strip('"')) or next(
        (at for at, _ in span.event(_FIRST_TOKEN_EVENT)), None
    )
    return (at - start_ns) / 1e6 if at is not None and at >= start_ns else None


def _status(found: Mapping[str, Any]) -> int | None:
    status = number(found.get("status"))
    return int(status) if status is not None and 100 <= status < 600 else None


def _exception(span: Span) -> str:
    """The class of the error that ended the call; never its message, which may quote the prompt."""
    raised = next((text(a.get("exception.type")) for _, a in span.event("exception")), "")
    return (raised or "error") if span.failed else ""
