"""What prefixscope says of itself, and token counters by kind, through the OpenTelemetry metrics API."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter_provider

from prefixscope.otel_plugin import otlp
from prefixscope.otel_plugin.record import CallRecord
from prefixscope.otel_plugin.spans import own_version

KINDS: Final = {"uncached": "uncached", "cache_read": "read", "cache_write": "write", "output": "output"}
"""Value of the attribute ``prefixscope.token.kind`` -> bucket of ``Usage``."""

LOST: Final = "prefixscope.calls.lost"
ERRORS: Final = "prefixscope.errors"
_SUMS: Final = {
    LOST: ("{call}", "Calls of which something was not kept, by reason"),
    ERRORS: ("{error}", "Errors of prefixscope that were kept from the application, by place"),
    "prefixscope.worker.cpu_time": ("s", "Processor time of the worker thread"),
    "prefixscope.spool.written": ("By", "Bytes written into the spool"),
}
_GAUGES: Final = {
    "prefixscope.queue.length": ("{call}", "Calls that wait for the worker"),
    "prefixscope.queue.size": ("By", "Bytes that these hold"),
}


class Source(Protocol):
    """Keeps counts that are read when metrics are."""

    def sums(self) -> Mapping[str, Mapping[str, float]]:
        """Name of an instrument -> reason or place -> count since the start; "" where there is no such distinction."""

    def gauges(self) -> Mapping[str, float]:
        """Name of an instrument -> value now."""


class Metrics:
    """The instruments of one meter provider: made once, whatever is started and stopped meanwhile."""

    def __init__(self, meter: Meter) -> None:
        self.sources: list[Source] = []
        self._tokens = meter.create_counter("prefixscope.tokens", "{token}", "Billed tokens by kind")
        self._calls = meter.create_counter("prefixscope.calls", "{call}", "Calls to models")
        self._ttft = meter.create_histogram("prefixscope.time_to_first_byte", "s", "Until the body's first byte came")
        self._pace = meter.create_histogram("prefixscope.time_per_output_token", "s", "Between two output tokens")
        self._bytes = meter.create_counter("prefixscope.body.size", "By", "Bytes of bodies seen")
        for name, (unit, about) in _SUMS.items():
            meter.create_observable_counter(name, [self._observer(self._sums, name)], unit, about)
        for name, (unit, about) in _GAUGES.items():
            meter.create_observable_gauge(name, [self._observer(self._values, name)], unit, about)

    def count(self, record: CallRecord, *, request_bytes: int, response_bytes: int) -> None:
        """Adds one call."""
        who = {
            "gen_ai.provider.name": record.provider,
            "gen_ai.request.model": record.model,
            "prefixscope.service": record.service,
        }
        outcome = "aborted" if record.aborted else "error" if otlp.failed(record) else "ok"
        self._calls.add(1, who | {"prefixscope.outcome": outcome, "prefixscope.usage.state": record.usage.state})
        for kind, bucket in KINDS.items():
            if tokens := getattr(record.usage, bucket):
                self._tokens.add(tokens, who | {"prefixscope.token.kind": kind})
        if record.ttft_ms is not None:
            self._ttft.record(record.ttft_ms / 1000, who)
        if record.ms_per_output_token is not None:
            self._pace.record(record.ms_per_output_token / 1000, who)
        self._bytes.add(request_bytes, {"direction": "request"})
        self._bytes.add(response_bytes, {"direction": "response"})

    @staticmethod
    def _observer(
        read: Callable[[str], Iterable[Observation]], name: str
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        return lambda _: list(read(name))

    def _sums(self, name: str) -> Iterable[Observation]:
        for source in self.sources:
            for reason, value in source.sums().get(name, {}).items():
                yield Observation(value, {"reason": reason} if reason else {})

    def _values(self, name: str) -> Iterable[Observation]:
        return (Observation(source.gauges()[name]) for source in self.sources)


_made: dict[int, tuple[MeterProvider, Metrics]] = {}


def metrics(provider: Any = None) -> Metrics:
    """The instruments of ``provider``, or of the one that is or will be set up for the process."""
    provider = provider or get_meter_provider()
    if id(provider) not in _made:
        meter = provider.get_meter(otlp.SCOPE, own_version())
        _made[id(provider)] = provider, Metrics(meter)
    return _made[id(provider)][1]
