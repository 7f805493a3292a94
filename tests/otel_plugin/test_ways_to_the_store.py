"""One program, three ways: the spool, the DuckDB exporter, and the stock OTLP exporter to ``collect`` say the same."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import exchanges
from collecting import calls, collecting
from fake_provider.server import FakeProvider
from prefixscope.analyzer import audit, store
from prefixscope.analyzer.collect import arrivals
from prefixscope.analyzer.ingest import read
from prefixscope.otel_plugin.fingerprint import Fingerprinter

EXAMPLE = Path(__file__).parents[2] / "examples" / "support_bot.py"
BIN = Path(sys.executable).parent
SAME = ("response_id", "service", "provider", "model", "uncached", "read", "output", "usage_state", "prompt_known")
KEYED = ("exact_key", "answer_key", "answer_kind", "temperature", "choices", "streamed", "live_tools")


@pytest.fixture(scope="module")
def stores(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """Way -> store, after one run of the example under auto-instrumentation."""
    folder = tmp_path_factory.mktemp("ways")
    found = {way: folder / f"{way}.duckdb" for way in ("spool", "exporter", "collect")}
    with collecting(found["collect"]) as collector:
        settings = {
            "OPENAI_BASE_URL": f"{provider.url}/v1",
            "ANTHROPIC_BASE_URL": provider.url,
            "OPENAI_API_KEY": "sk-ways",
            "ANTHROPIC_API_KEY": "sk-ant-ways",
            "OTEL_SERVICE_NAME": "help-desk",
            "OTEL_TRACES_EXPORTER": "prefixscope_duckdb,otlp_proto_http",
            "OTEL_METRICS_EXPORTER": "none",
            "OTEL_LOGS_EXPORTER": "none",
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.receiver.url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "PREFIXSCOPE_SPOOL": str(folder / "spool"),
            "PREFIXSCOPE_DB": str(found["exporter"]),
            "PREFIXSCOPE_KEY": "test",
            "PREFIXSCOPE_EMBED": "exchanges:lengths",
            "PYTHONPATH": str(Path(exchanges.__file__).parent),
        }
        command = [str(BIN / "opentelemetry-instrument"), sys.executable, str(EXAMPLE)]
        done = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, collector.told) == (0, "", [])
    arrivals.append(found["spool"], list(read([folder / "spool"], Fingerprinter(b"test"))))
    return found


def vectors(path: Path) -> pl.DataFrame:
    with store.opened(path) as opened:
        return opened.frame("analysis/vectors", service=None, since=None, until=None)


def report(path: Path) -> Mapping[str, Any]:
    with store.opened(path) as opened:
        return audit.analyse(opened, audit.Selection(None, None, None), None).report


def findings(report: Mapping[str, Any]) -> list[Any]:
    return [(one["cause"], one["service"], one["model"], one["calls"], one["saving_usd"]) for one in report["findings"]]


@pytest.mark.parametrize("way", ["exporter", "collect"])
def test_the_calls_are_the_same(way: str, stores: Mapping[str, Path]) -> None:
    """Each once, though the SDK's own spans and others describe some of them as well."""
    expected = calls(stores["spool"]).select(SAME + KEYED)
    assert expected.height > 20
    assert expected["exact_key"].str.len_chars().to_list() == [32] * expected.height
    assert calls(stores[way]).select(SAME + KEYED).equals(expected)


@pytest.mark.parametrize("way", ["exporter", "collect"])
def test_the_vectors_are_the_same(way: str, stores: Mapping[str, Path]) -> None:
    """As the function made them that was named."""
    expected = vectors(stores["spool"])
    assert set(expected["embedded_by"]) >= {"exchanges:lengths"}
    assert vectors(stores[way]).equals(expected)


@pytest.mark.parametrize("way", ["exporter", "collect"])
def test_the_audit_is_the_same(way: str, stores: Mapping[str, Path]) -> None:
    """The same leaks for the same dollars."""
    names = ("calls", "tokens", "spend_usd", "recoverable_usd")
    expected, found = report(stores["spool"]), report(stores[way])
    assert {name: found[name] for name in names} == {name: expected[name] for name in names}
    assert findings(found) == findings(expected)
    assert {cause for cause, *_ in findings(found)} == {"tools_reordered", "volatile_prefix"}


def test_the_three_ways_together(stores: Mapping[str, Path], tmp_path: Path) -> None:
    """Whoever reads the spool into the exporter's store counts nothing twice."""
    together = tmp_path / "together.duckdb"
    together.write_bytes(stores["exporter"].read_bytes())
    before = calls(together).height
    folder = stores["spool"].with_name("spool")
    assert arrivals.append(together, list(read([folder], Fingerprinter(b"test")))).calls == 0
    assert calls(together).height == before
