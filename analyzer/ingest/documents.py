"""One document of any known shape -> the calls in it. The shape is told by the document's keys."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prefixscope.analyzer.ingest import calls, dumps, langfuse, otlp, request_log
from prefixscope.analyzer.ingest.loose import items, mapping
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin.fingerprint import Fingerprinter

Document = Mapping[str, Any]


def read(
    document: Any, data: bytes, printer: Fingerprinter, place: Place, strange: Callable[[str], None]
) -> Iterator[Observed | Rejected]:
    """The calls in ``document``, which was decoded from ``data``.

    ``strange`` is told what a document, or an element of one that is a list, looks like if it has no known shape.
    """
    if isinstance(document, list):
        for element in dumps.whole_numbers(document, data):
            yield from read(element, data, printer, place, strange)
        return
    spans = spans_in(document, data) if isinstance(document, dict) else None
    if spans is not None:
        yield from of_spans(spans, printer, place)
    elif isinstance(document, dict) and request_log.is_entry(document):
        call = request_log.observed(document, printer, place)
        if call is not None:
            yield call
    else:
        strange(_looks(document))


def of_spans(spans: Iterable[Span], printer: Fingerprinter, place: Place) -> Iterator[Observed | Rejected]:
    """The calls among ``spans``."""
    for span in spans:
        call = calls.observed(span, printer, place)
        if call is not None:
            yield call


def spans_in(document: Document, data: bytes) -> Iterable[Span] | None:
    """The spans of ``document``; None if it holds none by its shape."""
    return next((reader(document, data) for fits, reader in _SHAPES if fits(document)), None)


def _has(*names: str) -> Callable[[Document], bool]:
    return lambda document: any(isinstance(document.get(name), list) for name in names)


def _listed(document: Document, data: bytes) -> Iterator[Span]:
    """{"spans": […]}: spans of any single-span shape."""
    for span in items(dumps.whole_numbers(document, data)["spans"]):
        yield from spans_in(mapping(span), data) or ()


def _is_span_list(document: Document) -> bool:
    spans = items(document.get("spans"))
    return bool(spans) and any(
        fits(mapping(spans[0])) for fits in (dumps.is_python, dumps.is_javascript, dumps.is_jaeger)
    )


def _is_jaeger_export(document: Document) -> bool:
    traces = items(document.get("data"))
    return bool(traces) and {"spans", "processes"} <= mapping(traces[0]).keys()


_SHAPES: tuple[tuple[Callable[[Document], bool], Callable[[Document, bytes], Iterable[Span]]], ...] = (
    (_has("resourceSpans", "resource_spans"), lambda document, _: otlp.spans(document)),
    (_has("resourceLogs", "resource_logs"), lambda document, _: otlp.events(document)),
    (_has("resourceMetrics", "resource_metrics"), lambda *_: ()),  # counters: no calls in them, and nothing wrong
    (_has("observations"), lambda document, _: langfuse.export(document)),
    (_is_span_list, _listed),
    (_is_jaeger_export, lambda document, _: dumps.jaeger_export(document)),
    (dumps.is_python, lambda document, data: (dumps.python(dumps.whole_numbers(document, data)),)),
    (dumps.is_javascript, lambda document, _: (dumps.javascript(document),)),
    (dumps.is_jaeger, lambda document, _: (dumps.jaeger(document),)),
    (langfuse.is_observation, lambda document, _: (langfuse.span(document, {}),)),
)


_LACKING = (  # what agents keep that says too little of their calls
    (frozenset({"role", "message"}), "a message that has neither a time nor token counts, as Cursor keeps them"),
    (frozenset({"step_index", "source"}), "a step that has no token counts, as Antigravity keeps them"),
)


def _looks(document: Any) -> str:
    if not isinstance(document, dict):
        return f"a {type(document).__name__} instead of an object"
    if lacking := next((what for keys, what in _LACKING if keys <= document.keys()), ""):
        return lacking
    keys = ", ".join(str(key)[:40] for key in list(document)[:6])
    return f"an object with the keys {keys}" if keys else "an empty object"
