"""Where calls go: the spool, OpenTelemetry spans, log events, metrics. Runs on the worker's thread.

Every sink stands by itself: a span processor that raises must not cost the line in the spool.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from opentelemetry import trace
from opentelemetry.sdk.resources import OTELResourceDetector

from prefixscope.otel_plugin import call_attributes, keys, otlp, spans
from prefixscope.otel_plugin.asked import Keys
from prefixscope.otel_plugin.call_attributes import Encoded
from prefixscope.otel_plugin.calls import Call, Reader
from prefixscope.otel_plugin.covering import is_covered
from prefixscope.otel_plugin.exchange import Exchange, plain
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.metrics import LOST, Metrics
from prefixscope.otel_plugin.record import CallRecord
from prefixscope.otel_plugin.settings import Settings
from prefixscope.otel_plugin.spool import Spool
from prefixscope.otel_plugin.vectors import Vectors

_T = TypeVar("_T")


class Sinks:
    """Reads exchanges and hands each call on.

    Args:
        settings: which sinks there are.
        environment: where the fingerprint key and folders are looked up.
        guard: takes our own errors.
        metrics: the instruments to count with.
        learn: told of each call.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str],
        guard: Guard,
        metrics: Metrics,
        learn: Callable[[Exchange, CallRecord], None],
    ) -> None:
        self.lost: Counter[str] = Counter()  # calls of which something was not kept, by reason
        self.written = 0  # bytes of the spool
        self._settings = settings
        self._environment = environment
        self._guard = guard
        self._metrics = metrics
        self._learn = learn
        self._reader: Reader | None = None
        self._vectors: Vectors | None = None
        self._span = guard.runs("making a span", self._emitted_span)
        self._event = guard.runs("making a log event", spans.emit_event)
        self._count = guard.runs("counting a call", self._counted)
        self._spool = self._opened_spool()

    def take(self, batch: Iterable[Exchange]) -> None:
        """Everything that is to be done with finished exchanges."""
        lines: list[bytes] = []
        for exchange, call in self._with_vectors(self._calls(batch)):
            lines += self._kept(self._lines, exchange, call) or ()
        self._write(lines, calls=len(lines))

    def tell(self, counts: Mapping[str, Mapping[str, float]], since_ns: int) -> None:
        """Writes counts into the spool: whoever reads it later cannot ask this process."""
        service = self._reader.service if self._reader else self._settings.service
        self._write([otlp.sums(counts, since_ns, time.time_ns(), service, spans.own_version())], calls=0)

    def finish(self) -> None:
        """Nothing more comes."""
        if self._spool:
            self._guard.runs("finishing the spool", self._spool.finish)()

    def forget(self) -> None:
        """After a fork: counts and the open file are the parent's."""
        self.lost.clear()
        self.written = 0
        if self._spool:
            self._spool.forget()

    def _calls(self, batch: Iterable[Exchange]) -> Iterator[tuple[Exchange, Call]]:
        for exchange in batch:
            if (call := self._kept(self._read, exchange)) is not None:
                yield exchange, call

    def _read(self, exchange: Exchange) -> Call | None:
        if self._reader is None:  # here, not earlier: by now the application has set up its tracer provider
            self._reader = self._made_reader()
        return self._reader.read(exchange)

    def _kept(self, function: Callable[..., _T | None], *args: Any) -> _T | None:
        """What ``function`` gives; None where it raises, which costs the call."""
        try:
            return function(*args)
        except Exception as error:  # noqa: BLE001 - see guard
            self.lost["unreadable"] += 1
            self._guard.caught("reading a call", error)
            return None

    def _with_vectors(self, found: Iterable[tuple[Exchange, Call]]) -> Iterable[tuple[Exchange, Call]]:
        """The calls, with vectors of their questions where that is switched on."""
        if not self._settings.embed:
            return found
        pairs = list(found)
        calls = [call for _, call in pairs]
        if self._vectors is not None:
            calls = self._vectors.added(calls)
        return zip([exchange for exchange, _ in pairs], calls, strict=True)

    def _lines(self, exchange: Exchange, call: Call) -> Sequence[bytes]:
        """The lines for the spool; the other sinks get theirs here."""
        encoded = call_attributes.encode(call.record)
        trace_id, span_id = self._emit(exchange, call.record, encoded)
        self._learn(exchange, call.record)
        self._count(exchange, call.record)
        if not self._spool:
            return ()
        named = replace(call.record, trace_id=trace_id, span_id=span_id)
        return (otlp.line(call._replace(record=named), encoded, spans.own_version()),)

    def _emit(self, exchange: Exchange, record: CallRecord, encoded: Encoded) -> tuple[str, str]:
        """Span and event, where they are wanted; gives the ids that the call goes by."""
        ids = None
        if self._settings.spans != "off" and not spans.is_suppressed(exchange.context):
            ids = self._span(exchange, record, encoded)
        if self._settings.log_events:
            self._event(record, encoded, exchange.context)
        return ids or (record.trace_id or secrets.token_hex(16), secrets.token_hex(8))

    def _emitted_span(self, exchange: Exchange, record: CallRecord, encoded: Encoded) -> tuple[str, str] | None:
        agent = plain(exchange.request_headers).get("user-agent", "")
        covered = self._settings.spans == "auto" and is_covered(exchange.context, agent)
        return spans.emit_span(record, encoded, exchange.context, covered=covered)

    def _counted(self, exchange: Exchange, record: CallRecord) -> None:
        if exchange.cut:
            self.lost["response_over_cap"] += 1
        self._metrics.count(record, request_bytes=len(exchange.request_body or b""), response_bytes=exchange.size)

    def _write(self, lines: Sequence[bytes], *, calls: int) -> None:
        """Appends ``lines``, which hold so many ``calls``, to the spool."""
        if not self._spool:
            return
        try:
            self._spool.write(lines)
            self._spool.tick()
            self.written += sum(map(len, lines))
        except OSError as error:
            self.lost["spool"] += calls
            self._guard.tell(
                "spool",
                f"prefixscope: cannot write to {self._spool.folder} ({error.strerror or error}): calls are counted in "
                f"{LOST} and lost until that works",
            )

    def _opened_spool(self) -> Spool | None:
        folder, set_ = self._settings.spool_folder(self._environment), self._settings
        if folder is None:
            return None
        return Spool(folder, rotate=set_.spool_rotate, age=set_.spool_age, quota=set_.spool_quota)

    def _made_reader(self) -> Reader:
        set_, key = self._settings, self._key()
        if set_.embed:
            self._vectors = self._guard.runs("finding the function that makes vectors", Vectors)(
                set_.embed, self._guard
            )
        return Reader(
            Fingerprinter(key, set_.memory // 2) if key is not None else None,
            self._guard,
            service=set_.service or self._guard.runs("finding the service's name", _service)() or "",
            content=set_.content,
            fingerprint_share=set_.fingerprint_share,
            memory=set_.memory // 4,
            keys=Keys(key, set_.memory // 8) if key is not None and (set_.exact_keys or set_.embed) else None,
        )

    def _key(self) -> bytes | None:
        try:
            return keys.load_key(self._environment)
        except OSError as error:
            self._guard.tell(
                "key",
                f"prefixscope: no fingerprint key ({type(error).__name__} at {keys.key_file(self._environment)}): "
                "set PREFIXSCOPE_KEY. Usage is captured, prompts are not",
            )
            return None


def _service() -> str:
    """The service's name in the resource of the tracer provider, or of one that would be made; "" if nobody set it."""
    resource = getattr(trace.get_tracer_provider(), "resource", None) or OTELResourceDetector().detect()
    name = str(resource.attributes.get("service.name", ""))
    return "" if name.startswith("unknown_service") else name
