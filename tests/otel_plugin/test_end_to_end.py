"""``opentelemetry-instrument python program.py`` → spool → audit: leaks are named, dollars are the simulator's."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import auditing
import leaky_program
from answers import cost
from fake_provider import prompts
from fake_provider.cache import Cache
from fake_provider.journal import Entry
from fake_provider.server import FakeProvider
from recording import KEY, records
from simulator import Outcome

TESTS = Path(__file__).resolve().parents[1]
SCOPES = ("clock", "tools", "healthy")
NOW_MS = int(datetime(2026, 11, 30, tzinfo=UTC).timestamp() * 1000)  # the day of the prices


def environment(provider: FakeProvider, spool: Path, **more: str) -> dict[str, str]:
    """Of a program under auto-instrumentation that exports nothing but the spool."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "sample_traces")]),
        "PROVIDER_URL": provider.url,
        "PREFIXSCOPE_SPOOL": str(spool),
        "PREFIXSCOPE_KEY": KEY,
        "PREFIXSCOPE_RERAISE": "1",
        "OTEL_SERVICE_NAME": "program",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "openai,anthropic",
        "ANTHROPIC_OPEN_TELEMETRY": "false",
        **more,
    }


@dataclass(frozen=True)
class Run:
    """What the program left behind, and what the provider knows."""

    spool: Path
    journal: dict[str, list[Entry]]
    report: Any


@pytest.fixture(scope="module")
def run(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Run:
    spool = tmp_path_factory.mktemp("end_to_end")
    instrument = Path(sys.executable).with_name("opentelemetry-instrument")
    command = [str(instrument), sys.executable, str(TESTS / "leaky_program.py")]
    done = subprocess.run(
        command, env=environment(provider, spool), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    journal = {scope: provider.journal(scope) for scope in SCOPES}
    return Run(spool, journal, auditing.report([spool]))


def usd(entries: Iterable[Entry]) -> Decimal:
    """What the provider's own counts cost."""
    return sum((_cost(e.model, e.read, e.uncached, e.writes, e.output) for e in entries), Decimal(0))


def _cost(model: str, read: int, uncached: int, writes: dict[str, int], output: int) -> Decimal:
    written = {f"write_{ttl}": tokens for ttl, tokens in writes.items()}
    vendor = "anthropic" if model.startswith("claude") else "openai"
    return cost({"read": read, "uncached": uncached, **written, "output": output}, vendor, model, NOW_MS)


def saving(entries: list[Entry], fix: Callable[[dict[str, Any]], None]) -> Decimal:
    """What ``fix`` saves, by serving the fixed requests anew."""
    cache, fixed = Cache(), Decimal(0)
    for entry in entries:
        body = json.loads(entry.body)
        fix(body)
        request = prompts.parse(entry.path, body)
        assert request is not None
        outcome: Outcome = cache.serve(request)
        fixed += _cost(entry.model, outcome.read, outcome.uncached, {}, entry.output)
    return usd(entries) - fixed


def _clock_to_the_end(body: dict[str, Any]) -> None:
    system = body["messages"][0]
    size = len(leaky_program.CLOCK.format(minute=0, second=0))
    clock, system["content"] = system["content"][:size], system["content"][size:]
    body["messages"][-1]["content"] += clock


def _tools_in_order(body: dict[str, Any]) -> None:
    body["tools"].sort(key=lambda tool: tool["function"]["name"])


def test_every_call_is_recorded(run: Run) -> None:
    """All three services, streaming and not, with the conversation that the program put into the baggage."""
    found = records(run.spool)
    assert len(found) == 3 * leaky_program.CALLS
    assert {record.service for record in found} == {"program"}
    assert {record.session_id for record in found} == set(SCOPES)
    assert all(record.usage.state == "reported" for record in found)


def test_spend_is_what_the_simulators_counts_cost(run: Run) -> None:
    """To the sixth place."""
    expected = usd(entry for entries in run.journal.values() for entry in entries)
    assert run.report["spend_usd"]["total"] == pytest.approx(float(expected), abs=1e-6)
    assert run.report["calls"]["total"] == 3 * leaky_program.CALLS
    assert run.report["calls"]["usage_missing"] == 0


@pytest.mark.parametrize(
    ("scope", "cause", "fix"),
    [("clock", "volatile_prefix", _clock_to_the_end), ("tools", "tools_reordered", _tools_in_order)],
)
def test_leaks_are_named_and_priced(run: Run, scope: str, cause: str, fix: Callable[[dict[str, Any]], None]) -> None:
    """The saving is what the simulator makes of the same requests with the fix, within 2 %."""
    (finding,) = [finding for finding in run.report["findings"] if finding["cause"] == cause]
    expected = float(saving(run.journal[scope], fix))
    assert expected > 0
    off = min(abs(finding["saving_usd"][end] - expected) for end in ("low", "high"))
    assert off <= 0.02 * expected, (finding["saving_usd"], expected)


def test_nothing_else_is_claimed(run: Run) -> None:
    """The healthy service has no finding."""
    assert {finding["cause"] for finding in run.report["findings"]} == {"volatile_prefix", "tools_reordered"}
    assert all(finding["provider"] == "openai" for finding in run.report["findings"])
