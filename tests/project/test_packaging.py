"""What a user installs: all packages, a light plugin, and a command that starts quickly."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PARTS = ("otel_plugin", "analyzer", "queries", "dashboard")
HEAVY = ("duckdb", "polars", "pyarrow", "pandas", "numpy", "orjson", "rich", "genai_prices", "zstandard")


def python(*arguments: str) -> str:
    """Standard output of a fresh interpreter, away from the sources."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=True).stdout


def test_every_package_is_listed() -> None:
    """A folder with an ``__init__.py`` that is not listed would be missing from the wheel."""
    found = [path.parent.relative_to(ROOT) for part in PARTS for path in (ROOT / part).rglob("__init__.py")]
    names = {".".join(("prefixscope", *path.parts)) for path in found}
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == names


def test_every_data_file_is_packaged() -> None:
    """TOML and SQL files and the typing marks are reached by a pattern of their package."""
    tables = PROJECT["tool"]["setuptools"]["package-data"]
    packaged = {
        path
        for name, patterns in tables.items()
        for pattern in patterns
        for path in (ROOT / Path(*name.split(".")[1:])).glob(pattern)
    }
    wanted = {
        path
        for part in PARTS
        for path in (ROOT / part).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert wanted - packaged == set()


def test_importing_the_plugin_loads_nothing_heavy() -> None:
    """With every module of it: it runs inside production services."""
    assert python(str(ROOT / "tests" / "project" / "import_guard.py")) == ""


def test_help_loads_nothing_heavy() -> None:
    """The command line says what it can before anything of the analysis is imported."""
    script = (
        "import sys\n"
        "from prefixscope.analyzer.cli import main\n"
        "try:\n    main(['audit', '--help'])\n"
        f"finally:\n    print('loaded:', *sorted(set({HEAVY!r}) & sys.modules.keys()))\n"
    )
    shown = python("-c", script)
    assert shown.startswith("usage: prefixscope audit")
    assert shown.splitlines()[-1] == "loaded:"


def test_the_plugin_imports_nothing_of_the_analysis() -> None:
    """Arrows point one way."""
    for path in (ROOT / "otel_plugin").rglob("*.py"):
        assert not re.search(r"prefixscope\.(analyzer|queries|dashboard)", path.read_text("utf-8")), path


def test_the_base_install_is_opentelemetry_alone() -> None:
    """Whatever the analysis needs is an extra."""
    assert all(name.startswith("opentelemetry-") for name in PROJECT["project"]["dependencies"])


def test_the_version_is_told() -> None:
    """By the command, and in the changelog."""
    version = PROJECT["project"]["version"]
    shown = python("-c", "from prefixscope.analyzer.cli import main; main(['--version'])")
    assert shown == f"prefixscope {version}\n"
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.parametrize("target", ["lint", "test"])
def test_ci_runs_what_people_run(target: str) -> None:
    """One task file for both."""
    assert f"\nmake {target}\n" in (ROOT / ".ci" / "run").read_text("utf-8")
