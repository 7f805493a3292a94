"""What prefixscope says of itself, and the token counters that dashboards draw."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from prefixscope.otel_plugin.metrics import LOST, Metrics
from prefixscope.otel_plugin.record import CallRecord, Usage


class Source:
    """Counts kept elsewhere."""

    def sums(self) -> Mapping[str, Mapping[str, float]]:
        return {LOST: {"queue_full": 3, "spool": 2}, "prefixscope.worker.cpu_time": {"": 0.5}}

    def gauges(self) -> Mapping[str, float]:
        return {"prefixscope.queue.length": 7, "prefixscope.queue.size": 900}


@pytest.fixture
def reader() -> InMemoryMetricReader:
    return InMemoryMetricReader()


@pytest.fixture
def metrics(reader: InMemoryMetricReader) -> Metrics:
    return Metrics(MeterProvider([reader]).get_meter("prefixscope"))


def collected(reader: InMemoryMetricReader) -> dict[str, dict[tuple[Any, ...], Any]]:
    """Name -> sorted attribute values -> value, or (count, sum) of a histogram."""
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, dict[tuple[Any, ...], Any]] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        points = found.setdefault(metric.name, {})
        for point in metric.data.data_points:
            key = tuple(value for _, value in sorted((point.attributes or {}).items()))
            points[key] = getattr(point, "value", None) if hasattr(point, "value") else (point.count, point.sum)
    return found


USAGE = Usage(state="reported", uncached=36, read=64, write_5m=10, write_1h=5, output=11, reasoning=4)
CALL = CallRecord(
    1, service="shop", provider="openai", model="gpt-5.1", usage=USAGE, status=200, ttft_ms=250.0, duration_ms=1250.0
)


def test_tokens_are_counted_by_kind(metrics: Metrics, reader: InMemoryMetricReader) -> None:
    """So that reads over all input is the hit rate."""
    for _ in range(2):
        metrics.count(CALL, request_bytes=100, response_bytes=50)
    found = collected(reader)
    who = ("openai", "gpt-5.1", "shop")
    assert found["prefixscope.tokens"] == {
        (*who, "uncached"): 72,
        (*who, "cache_read"): 128,
        (*who, "cache_write"): 30,
        (*who, "output"): 22,
    }
    assert found["prefixscope.calls"] == {("openai", "gpt-5.1", "ok", "shop", "reported"): 2}
    assert found["prefixscope.time_to_first_byte"] == {who: (2, 0.5)}
    assert found["prefixscope.time_per_output_token"] == {who: (2, pytest.approx(0.2))}
    assert found["prefixscope.body.size"] == {("request",): 200, ("response",): 100}


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (CallRecord(1, status=429), "error"),
        (CallRecord(1, error="ConnectError"), "error"),
        (CallRecord(1, status=200, aborted=True), "aborted"),
    ],
)
def test_calls_are_counted_by_outcome(
    metrics: Metrics, reader: InMemoryMetricReader, call: CallRecord, outcome: str
) -> None:
    """Those without usage as well; they have no tokens and no times."""
    metrics.count(call, request_bytes=0, response_bytes=0)
    found = collected(reader)
    assert [key[2] for key in found["prefixscope.calls"]] == [outcome]
    assert "prefixscope.tokens" not in found
    assert "prefixscope.time_to_first_byte" not in found


def test_counts_kept_elsewhere_are_observed(metrics: Metrics, reader: InMemoryMetricReader) -> None:
    """As long as their source is there."""
    source = Source()
    metrics.sources.append(source)
    found = collected(reader)
    assert found[LOST] == {("queue_full",): 3, ("spool",): 2}
    assert found["prefixscope.worker.cpu_time"] == {(): 0.5}
    assert (found["prefixscope.queue.length"], found["prefixscope.queue.size"]) == ({(): 7}, {(): 900})
    metrics.sources.remove(source)
    assert reader.get_metrics_data() is None


DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana_dashboard.json"
_UNITS = {"s": "_seconds", "By": "_bytes"}


def prometheus_series() -> dict[str, set[str]]:
    """Names of series, as Prometheus spells them, and their labels."""
    reader = InMemoryMetricReader()
    metrics = Metrics(MeterProvider([reader]).get_meter("prefixscope"))
    metrics.sources.append(Source())
    metrics.count(CALL, request_bytes=1, response_bytes=1)
    data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, set[str]] = {}
    for metric in data.resource_metrics[0].scope_metrics[0].metrics:
        end = {"Sum": "_total", "Histogram": "_bucket"}.get(type(metric.data).__name__, "")
        name = metric.name.replace(".", "_") + _UNITS.get(metric.unit or "", "") + end
        keys = {key for point in metric.data.data_points for key in point.attributes or ()}
        found[name] = {key.replace(".", "_") for key in keys} | ({"le"} if end == "_bucket" else set())
    return found


def test_the_dashboard_draws_what_there_is() -> None:
    """Every series and label in it is one that is counted."""
    panels = json.loads(DASHBOARD.read_text("utf-8"))["panels"]
    expressions = "\n".join(target["expr"] for panel in panels for target in panel["targets"])
    grouped = set(re.findall(r"by \(([a-z_]+)\)", expressions))
    chosen = set(re.findall(r'([a-z_]+)[=!]~?"', expressions))
    used = set(re.findall(r"prefixscope_[a-z_]+(?=[{\[)])", re.sub(r"by \([a-z_]+\)", "", expressions)))
    series = prometheus_series() | {"prefixscope_errors_total": {"reason"}}
    assert len(used) == 7
    assert used <= series.keys()
    assert grouped | chosen <= set().union(*series.values())
