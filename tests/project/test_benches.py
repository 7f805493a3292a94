"""The benchmarks still run. They are no tests: nothing here looks at a time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[1] / "bench"


@pytest.mark.parametrize(
    ("command", "figures"),
    [
        (("ingest.py", "--log-mb", "1", "--calls", "50"), ("request log with text", "fingerprinted spans", "analysis")),
        (("replay.py", "--calls", "1000"), ("1,000",)),
    ],
    ids=["ingest", "replay"],
)
def test_a_bench_prints_its_figures(command: tuple[str, ...], figures: tuple[str, ...]) -> None:
    """At its smallest size, as it would be called by hand."""
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, BENCHES / command[0], *command[1:]],
        capture_output=True, text=True, check=False, timeout=300, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for words in figures:
        assert words in done.stdout
