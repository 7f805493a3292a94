"""The example as a user runs it: auto-instrumentation, the spool, the audit, and what tidying up really saves."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fake_provider.server import FakeProvider

EXAMPLE = Path(__file__).parents[2] / "examples" / "support_bot.py"
BIN = Path(sys.executable).parent
QUIET = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}


def run(provider: FakeProvider, folder: Path, *arguments: str) -> str:
    """What the example prints."""
    settings = {
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "ANTHROPIC_BASE_URL": provider.url,
        "OPENAI_API_KEY": f"sk-{folder.name}",
        "ANTHROPIC_API_KEY": f"sk-ant-{folder.name}",
        "OTEL_SERVICE_NAME": "help-desk",
        "PREFIXSCOPE_SPOOL": str(folder),
        "PREFIXSCOPE_KEY": "test",
    }
    command = [str(BIN / "opentelemetry-instrument"), sys.executable, str(EXAMPLE), *arguments]
    done = subprocess.run(command, env=os.environ | QUIET | settings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def audit(folder: Path) -> Mapping[str, Any]:
    """The report on a spool."""
    command = [str(BIN / "prefixscope"), "audit", str(folder), "--json"]
    environment = os.environ | {"PREFIXSCOPE_KEY": "test"}
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    report: Mapping[str, Any] = json.loads(found.stdout)
    return report


def spent(report: Mapping[str, Any], model: str) -> float:
    return sum(float(row["usd"]) for row in report["by"] if model in row["model"])


@pytest.fixture(scope="module")
def reports(provider: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Mapping[str, Any]]:
    """As it is, and tidied up."""
    folders = [tmp_path_factory.mktemp("untidy"), tmp_path_factory.mktemp("tidy")]
    for folder, arguments in zip(folders, ((), ("--tidy",)), strict=True):
        run(provider, folder, *arguments)
    return [audit(folder) for folder in folders]


def test_every_call_is_captured(reports: Sequence[Mapping[str, Any]]) -> None:
    """With its usage, under the service's name."""
    for report in reports:
        assert report["calls"]["total"] == 40
        assert {row["service"] for row in report["by"]} == {"help-desk"}
        assert report["calls"]["quarantined"] == 0


@pytest.mark.parametrize(("cause", "model"), [("volatile_prefix", "gpt-5.1"), ("tools_reordered", "claude-sonnet-4-5")])
def test_a_planted_leak_is_found_at_its_price(reports: Sequence[Mapping[str, Any]], cause: str, model: str) -> None:
    """Both are; what tidying up saved on the provider's bill lies in the range that was promised."""
    untidy, tidy = reports
    (finding,) = [one for one in untidy["findings"] if one["cause"] == cause]
    assert model in finding["model"]
    saved = spent(untidy, model) - spent(tidy, model)
    low, high = (float(finding["saving_usd"][end]) for end in ("low", "high"))
    assert low * 0.98 <= saved <= high * 1.02
    assert tidy["findings"] == []
