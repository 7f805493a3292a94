"""The body of one OTLP/HTTP request -> the calls in it. Its signal is told by the path, its encoding by a header.

Source: opentelemetry.io/docs/specs/otlp/#otlphttp, checked 2026-11-30.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from prefixscope.analyzer.ingest import calls, otlp, otlp_proto
from prefixscope.analyzer.ingest.loose import NotJsonError, loads
from prefixscope.analyzer.ingest.reading import BUG
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin.fingerprint import Fingerprinter

Signal = Literal["traces", "logs"]
Encoding = Literal["json", "protobuf"]

MAX_REJECTED = 100  # of one request are told one by one; the rest are counted


class NotExportError(ValueError):
    """The body is no export request of that signal; the message says why, for a person."""


def read(
    body: bytes, signal: Signal, encoding: Encoding, printer: Fingerprinter, place: Place
) -> list[Observed | Rejected]:
    """The calls in ``body``, and what looks like a call and is none. Bodies without calls are fine.

    Raises:
        NotExportError: it cannot be read as what it says it is.
    """
    try:
        spans = _PROTO[signal](body) if encoding == "protobuf" else list(_of_json(body, signal))
    except (otlp_proto.NotOtlpError, NotJsonError) as error:
        raise NotExportError(str(error)) from error
    except RecursionError:
        raise NotExportError("nested too deeply to be an export request") from None
    return _bounded([one for span in spans if (one := _call(span, printer, place)) is not None], place)


def _of_json(body: bytes, signal: Signal) -> Iterator[Span]:
    document = loads(body)
    if not isinstance(document, dict):
        raise NotExportError(f"an export request is a JSON object, not a {type(document).__name__}")
    names = _KEYS[signal]
    if document and not any(isinstance(document.get(name), list) for name in names):
        raise NotExportError(f'an export request of {signal} has a list "{names[0]}"')
    return _JSON[signal](document)


def _call(span: Span, printer: Fingerprinter, place: Place) -> Observed | Rejected | None:
    try:
        return calls.observed(span, printer, place)
    except Exception as error:  # noqa: BLE001 - a bug of ours with one span must not cost the others
        return place.rejected(f"{BUG} ({type(error).__name__}): please report it")


def _bounded(found: Sequence[Observed | Rejected], place: Place) -> list[Observed | Rejected]:
    """Rejections come from outside, as many as somebody likes to send."""
    rejected = [one for one in found if isinstance(one, Rejected)]
    excess = len(rejected) - MAX_REJECTED
    if excess <= 0:
        return list(found)
    more = place.rejected(f"{excess:,} more rejections like those before")
    return [*(one for one in found if isinstance(one, Observed)), *rejected[:MAX_REJECTED], more]


_KEYS: Mapping[Signal, tuple[str, str]] = {
    "traces": ("resourceSpans", "resource_spans"),
    "logs": ("resourceLogs", "resource_logs"),
}
_JSON: Mapping[Signal, Callable[[Mapping[str, Any]], Iterator[Span]]] = {"traces": otlp.spans, "logs": otlp.events}
_PROTO: Mapping[Signal, Callable[[bytes], list[Span]]] = {"traces": otlp_proto.of_traces, "logs": otlp_proto.of_logs}
