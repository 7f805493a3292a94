"""Calls held in memory, looked at again and again: each look is the analysis of the command."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import response_caches
from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.semantic import of_paths, report
from prefixscope.analyzer.semantic.analysis import Analysis, Options, review_rows
from prefixscope.analyzer.semantic.bench import Bench
from prefixscope.analyzer.semantic.embedding import MiniLM, Vectors
from prefixscope.analyzer.semantic.relabelled import relabelled
from prefixscope.analyzer.semantic.tiers import Policy
from semantic_traffic import KEY, line, write


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the help desk's traffic."""
    some = [entry for n, entry in enumerate(response_caches.lines()) if n % 5 == 0]
    return write(tmp_path_factory.mktemp("bench") / "log.jsonl", some)


@pytest.fixture(scope="module")
def bench(log: Path) -> Bench:
    return Bench({log: str(log)}, KEY)


def steady(found: Analysis) -> Any:
    """A report without the time that looking questions up took."""
    told = dict(report.build(found))
    tiers = [{name: value for name, value in row.items() if name != "saved_seconds"} for row in told["tiers"]]
    return told | {"tiers": tiers, "embedder": found.embedded_by}


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(budget=0.05, policy=Policy(ttl_s=3600.0, capacity=50)),
        Options(threshold_given=True, policy=Policy(threshold=0.9, guarded=False)),
    ],
)
def test_a_look_is_the_analysis_of_the_command(bench: Bench, log: Path, options: Options) -> None:
    """Whatever was looked at before."""
    assert steady(bench.analysed(options)) == steady(of_paths.analysed([log], options, KEY))


def test_no_vector_is_made_twice(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another lifetime, another scope, another budget: the questions are those of the first look."""
    made: list[str] = []
    embed = MiniLM.embed

    def counted(self: MiniLM, texts: Sequence[str]) -> Vectors:
        made.extend(texts)
        return embed(self, texts)

    monkeypatch.setattr(MiniLM, "embed", counted)
    bench = Bench({log: "log"}, KEY)
    bench.analysed(Options())
    for options in (
        Options(budget=0.2),
        Options(policy=Policy(ttl_s=60.0)),
        Options(scope=("user",), scope_given=True),
    ):
        bench.analysed(options)
    assert made
    assert len(made) == len(set(made))


def test_labels_without_a_look_choose_as_with_one(bench: Bench) -> None:
    """The threshold, its bound and the queue; what was replayed stays."""
    options = Options(budget=0.05, scope_given=True)
    before = bench.analysed(options)
    rows = review_rows(before)
    labels = {str(row["pair"]): n % 3 > 0 for n, row in enumerate(rows[:40])}
    quick, full = relabelled(before, labels), bench.analysed(replace(options, labels=labels))
    assert quick.choice != before.choice
    assert quick.choice == full.choice
    assert {row["pair"]: row["same_answer"] for row in review_rows(quick)} == {
        row["pair"]: row["same_answer"] for row in review_rows(full)
    }
    assert quick.policy == before.policy
    assert relabelled(quick, {}).choice == before.choice


def test_calls_are_known_by_the_names_that_were_given(tmp_path: Path) -> None:
    """With and without an id that the provider gave."""
    entry = line("What is the height of the tower?", "80 m.")
    del entry["response"]["id"]
    log = write(tmp_path / "secret-folder-name.jsonl", [entry, line("And its age?", "90 years.", 60)])
    bench = Bench({log: "mine.jsonl"}, KEY)
    found = bench.analysed(Options())
    assert bench.services == ["help"]
    assert bench.calls == 2
    assert set(found.questions.calls["file"]) == {"mine.jsonl"}
    assert [found.questions.question(call) for call in range(2)] == ["What is the height of the tower?", "And its age?"]


def test_the_files_are_not_needed_afterwards(tmp_path: Path) -> None:
    """All is in memory."""
    log = write(tmp_path / "log.jsonl", [line("What is the height of the tower?", "80 m.")])
    bench = Bench({log: "log"}, KEY)
    log.unlink()
    assert bench.analysed(Options()).questions.question(0) == "What is the height of the tower?"


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Before anything is read."""
    with pytest.raises(InputError, match="no such file"):
        Bench({tmp_path / "none": "none"}, KEY)
