"""What the README shows is what happens: its session is run, its figures may drift a little, its words may not."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prefixscope.analyzer.report import wording
from prefixscope.otel_plugin import settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
ELIDED = "…"
DRIFT = 0.03  # of a figure
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_FINDING = re.compile(r"\d+\. \S+  (\w+)  (\S+)  .*  id (\w{12})")


def session() -> str:
    found = re.search(r"## A session\n.*?```console\n(.*?)```", README, re.DOTALL)
    assert found is not None
    return found[1]


def commands(text: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block with the output shown for it."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run(script: str, folder: Path) -> str:
    """Standard output of a shell script in ``folder``, with the commands of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PREFIXSCOPE_KEY": "readme"}
    return subprocess.run(
        ["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with nothing but the sample traffic."""
    made = tmp_path_factory.mktemp("readme")
    (made / "sample_traces").symlink_to(ROOT / "sample_traces")
    return made


def alike(shown: str, real: str) -> bool:
    """The same words, and figures that differ by no more than ``DRIFT``."""
    words = [" ".join(_NUMBER.sub("0", line).split()) for line in (shown, real)]
    figures = [[float(n.replace(",", "")) for n in _NUMBER.findall(line)] for line in (shown, real)]
    return words[0] == words[1] and all(
        a == pytest.approx(b, rel=DRIFT, abs=0.011) for a, b in zip(*figures, strict=True)
    )


def first_difference(shown: list[str], real: list[str]) -> str:
    """The first line of ``shown`` that ``real`` does not have in its place; "" = none. An elision skips lines."""
    at, elided = 0, False
    for line in shown:
        if line.strip() == ELIDED:
            elided = True
            continue
        skips = range(at, len(real)) if elided else range(at, min(at + 1, len(real)))
        place = next((n for n in skips if alike(line, real[n])), None)
        if place is None:
            return f"shown: {line!r}\nreal:  {real[at] if at < len(real) else 'the end'!r}"
        at, elided = place + 1, False
    return "" if elided or at == len(real) else f"not shown: {real[at]!r}"


def test_the_session_is_true(folder: Path) -> None:
    """Every command gives the output shown. Ids of findings may change with the sample traffic; the README keeps up."""
    text = session()
    report = json.loads(run("prefixscope audit sample_traces/request_log.jsonl.gz --json", folder))
    real_ids = {(finding["cause"], finding["service"]): finding["id"] for finding in report["findings"]}
    for cause, service, id_ in _FINDING.findall(text):
        real = real_ids[cause, service]
        text = text.replace(id_, real).replace(f"show {id_[:4]} ", f"show {real} ")
    for command, shown in commands(text):
        assert first_difference(shown, run(command, folder).splitlines()) == "", command


def test_the_gate_is_true(folder: Path) -> None:
    """The command of the CI section is one that the command line takes, and it fails on the sample traffic."""
    found = re.search(r"\$ (prefixscope audit traces.jsonl --fail-over .*?)  ", README)
    assert found is not None
    command = found[1].replace("traces.jsonl", "sample_traces/request_log.jsonl.gz")
    assert run(f"{command} || echo $?", folder) == "1\n"
    assert (folder / "cache.md").read_text("utf-8").startswith("# Prompt cache audit")


def test_the_request_log_is_true(folder: Path) -> None:
    """The entry shown is read as a call."""
    found = re.search(r"```json\n(.*?)```", README, re.DOTALL)
    assert found is not None
    (folder / "log.jsonl").write_text(json.dumps(json.loads(found[1])))
    calls = json.loads(run("prefixscope audit log.jsonl --json", folder))["calls"]
    assert (calls["total"], calls["with_prompt"], calls["quarantined"]) == (1, 1, 0)


def test_every_cause_is_explained() -> None:
    """Those that a report can show, and no others."""
    assert set(re.findall(r"^\| (`\w+`.*?) \|", README.split("| cause |")[1], re.MULTILINE)) >= {"`volatile_prefix`"}
    table = README.split("| cause |")[1].split("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == set(wording.CAUSES)


def test_every_key_of_the_report_is_named(folder: Path) -> None:
    """The JSON section names the keys of a report and of a finding."""
    section = README.split("**JSON**")[1].split("**Exit codes**")[0]
    named = set(re.findall(r"`(\w+)`", section))
    report = json.loads(run("prefixscope audit sample_traces/request_log.jsonl.gz --json", folder))
    assert report.keys() | report["findings"][0].keys() <= named


def test_every_dependency_has_a_reason() -> None:
    """In the table, or in the sentence above it."""
    section = README.split("## Dependencies")[1].split("## Architecture")[0]
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    audit = pyproject.split("audit = [")[1].split("]")[0]
    assert all(f"`{name}`" in section for name in re.findall(r'"([\w-]+)', audit))


def test_paths_and_targets_exist() -> None:
    """Files and folders that the README names are there, and so are the make targets."""
    for name in re.findall(r"`((?:analyzer|tests|otel_plugin|queries|sample_traces|\.ci)/[\w./]*)`", README):
        assert (ROOT / name).exists(), name
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{target}:" in makefile for target in re.findall(r"make (\w+)`", README))


def test_every_setting_of_the_capture_is_documented() -> None:
    """The table is the one that the settings make of themselves."""
    assert settings.table() in (ROOT / "docs" / "capture.md").read_text("utf-8")
