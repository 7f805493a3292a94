"""The guide to response caches: its commands run, and what it shows is what they print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prefixscope.analyzer.semantic.bound import needed, upper_bound
from prefixscope.analyzer.semantic.guards import REASONS
from prefixscope.dashboard.caches import told

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "semantic.md").read_text("utf-8")
DRIFT = 0.05  # of a figure: times and prices move
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def sessions() -> list[tuple[str, list[str]]]:
    """Each ``prefixscope semantic`` or ``head`` of the guide with the lines shown for it."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return [(command, lines) for command, lines in found if command.startswith(("prefixscope semantic", "head"))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("guide")
    (made / "sample_traces").symlink_to(ROOT / "sample_traces")
    return made


def run(command: str, folder: Path) -> str:
    """What a command of the guide prints, errors too."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PREFIXSCOPE_KEY": "readme"}
    done = subprocess.run(
        ["bash", "-euc", command], cwd=folder, env=environment, check=True, text=True, stdout=-1, stderr=-2
    )
    return str(done.stdout)


def alike(shown: str, printed: str) -> bool:
    """The same words around what is elided, and figures that differ by no more than ``DRIFT``."""
    words = ".*".join(re.escape(_NUMBER.sub("0", part)) for part in shown.split("…"))
    if not re.fullmatch(words, _NUMBER.sub("0", printed).rstrip()):
        return False
    if "…" in shown:
        return True
    figures = [[float(number.replace(",", "")) for number in _NUMBER.findall(line)] for line in (shown, printed)]
    return all(abs(a - b) <= DRIFT * max(a, b) + 1e-9 for a, b in zip(*figures, strict=True))


def test_the_commands_print_what_is_shown(folder: Path) -> None:
    """In the order of the guide, in a folder with nothing but the sample."""
    assert len(sessions()) == 4
    for command, lines in sessions():
        printed = run(command, folder).splitlines()
        for line in lines:
            assert line == "…" or any(alike(line, real) for real in printed), f"{command}: {line}"


def test_its_arithmetic_is_right() -> None:
    """What it says of bounds is what the bound says."""
    assert round(upper_bound(0, 100), 2) == 0.03
    assert needed(0.01) == 299


def test_what_it_names_is_there() -> None:
    """Reasons, and how the page calls its parts."""
    for part in ("Who answers", "What a call costs", "Over the threshold", "False matches", "Stale matches"):
        assert f"**{part}" in GUIDE
        assert part in (ROOT / "dashboard" / "app_pages" / "caches.py").read_text("utf-8") + (
            ROOT / "dashboard" / "caches" / "meaning.py"
        ).read_text("utf-8")
    assert {"number", "unit", "date", "negation", "direction", "conversation"} <= set(REASONS)
    assert set(told.TIERS) == {"exact", "semantic", "model"}
