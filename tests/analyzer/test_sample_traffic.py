"""The audit against traffic with known answers: what was planted is found and priced, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest

import auditing
import generate

FOLDER = Path(generate.__file__).parent
SEEDS = [3, 4]  # beside the committed sample, traffic that nobody has looked at


@pytest.fixture(scope="module", params=["committed", *SEEDS])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a request log, the same traffic as OTLP, and the answers."""
    if request.param == "committed":
        return FOLDER
    made = tmp_path_factory.mktemp(f"seed{request.param}")
    generate.write(made, seed=request.param, scale=1.0)
    return made


@pytest.fixture(scope="module")
def answers(folder: Path) -> Any:
    return json.loads((folder / "answers.json").read_text())


@pytest.fixture(scope="module")
def log_report(folder: Path) -> Any:
    return auditing.report([folder / "request_log.jsonl.gz"])


@pytest.fixture(scope="module")
def otlp_report(folder: Path) -> Any:
    return auditing.report([folder / "otlp.jsonl.gz"])


@pytest.fixture(params=["request log", "otlp"])
def report(request: pytest.FixtureRequest, log_report: Any, otlp_report: Any) -> Any:
    return log_report if request.param == "request log" else otlp_report


def _spend_by_service(report: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in report["by"]:
        found[row["service"]] = found.get(row["service"], 0.0) + (row["usd"] or 0.0)
    return found


def test_spend_is_exact(report: Any, answers: Any) -> None:
    """Total and per-service spend equal the answers far below a cent, from both formats."""
    assert report["spend_usd"]["total"] == pytest.approx(float(answers["total"]["spend_usd"]), abs=1e-6)
    spent = _spend_by_service(report)
    for name, service in answers["services"].items():
        assert spent[name] == pytest.approx(float(service["spend_usd"]), abs=1e-6), name


def test_calls_and_tokens_are_counted_once(report: Any, answers: Any) -> None:
    """Calls, missing usage and tokens by bucket equal the answers, although some spans tell of one call twice."""
    total = answers["total"]
    assert report["calls"]["total"] == total["calls"]
    assert report["calls"]["usage_missing"] == total["calls_without_usage"]
    assert report["calls"]["unpriced"] == 0
    tokens = total["tokens"]
    assert report["tokens"]["read"] == tokens["read"]
    assert report["tokens"]["write"] == tokens["write_5m"] + tokens["write_1h"]
    assert report["tokens"]["uncached"] == tokens["uncached"]
    assert report["tokens"]["output"] == tokens["output"]


def test_each_planted_leak_is_named_and_priced(log_report: Any, answers: Any) -> None:
    """One finding a leak, with its cause; the saving is within 2 % of the sequential model's difference."""
    found = {(f["service"], f["cause"]): f for f in log_report["findings"]}
    assert len(found) == len(log_report["findings"])
    for leak in answers["leaks"]:
        finding = found[leak["service"], leak["cause"]]
        expected = float(leak["saving_usd"])
        # a range says that a rounded read hangs on a token estimate; then either end may be the true one
        off = min(abs(finding["saving_usd"][end] - expected) for end in ("low", "high"))
        assert off <= 0.02 * expected, (leak, finding["saving_usd"])
        assert finding["calls"] == pytest.approx(leak["affected_calls"], rel=0.02)


def test_otlp_names_the_same_leaks(otlp_report: Any, answers: Any) -> None:
    """Spans without breakpoints give the same causes, and no saving above the true one."""
    found = {(f["service"], f["cause"]): f for f in otlp_report["findings"]}
    assert set(found) == {(leak["service"], leak["cause"]) for leak in answers["leaks"]}
    for leak in answers["leaks"]:
        assert found[leak["service"], leak["cause"]]["saving_usd"]["high"] <= 1.05 * float(leak["saving_usd"])


def test_healthy_services_are_left_alone(report: Any, answers: Any) -> None:
    """No finding above one per cent of a healthy service's spend."""
    spent = _spend_by_service(report)
    for finding in report["findings"]:
        if finding["service"] in answers["healthy"]:
            assert finding["saving_usd"]["high"] <= 0.01 * spent[finding["service"]], finding["headline"]


def test_savings_add_up(report: Any) -> None:
    """Findings sum to what is recoverable, each equals its formula, and none exceeds its service's spend."""
    spent = _spend_by_service(report)
    for end in ("low", "high"):
        total = sum(finding["saving_usd"][end] for finding in report["findings"])
        assert total == pytest.approx(report["recoverable_usd"][end])
    for finding in report["findings"]:
        saving = finding["saving_usd"]
        assert 0 < saving["low"] <= saving["high"] <= spent[finding["service"]]
        assert -sum(row["usd"] for row in finding["formula"]) == pytest.approx(saving["high"])
    assert report["recoverable_usd"]["high"] <= report["spend_usd"]["input"]


def test_both_formats_together_count_every_call_once(folder: Path, answers: Any) -> None:
    """Auditing the log and the spans of the same calls gives the figures of either."""
    report = auditing.report([folder / "request_log.jsonl.gz", folder / "otlp.jsonl.gz"])
    assert report["calls"]["total"] == answers["total"]["calls"]
    assert report["spend_usd"]["total"] == pytest.approx(float(answers["total"]["spend_usd"]), abs=1e-6)
