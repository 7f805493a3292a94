"""``prefixscope ingest``: calls are kept and counted; nothing is analysed, nothing taken twice."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from collecting import calls, rejected, span, traces
from prefixscope.analyzer import ingest_command, store
from prefixscope.analyzer.errors import InputError, PrefixscopeError, UsageError

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command; gives exit code, output and messages."""
    monkeypatch.setenv("PREFIXSCOPE_KEY", "test")
    parser = argparse.ArgumentParser()
    ingest_command.add_parser(parser.add_subparsers(required=True))

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        parsed = parser.parse_args(["ingest", *map(str, arguments)])
        code = int(parsed.run(parsed))
        return (code, *capsys.readouterr())

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A spool with three calls, one of which is told twice, and a line that is torn."""
    folder = tmp_path / "spool"
    folder.mkdir()
    lines = [json.dumps(traces(span(n))) for n in (1, 2, 3, 3)]
    (folder / "a.jsonl").write_text("\n".join([*lines, lines[0][:50]]))
    return folder


def test_calls_are_kept(run: Run, folder: Path, tmp_path: Path) -> None:
    """Each once, however often it is read; what is wrong is told and kept as well."""
    db = tmp_path / "calls.duckdb"
    code, out, err = run(folder, "--db", db)
    assert (code, out) == (0, f"3 new calls in {db}, 1 that were known, 1 rejected\n")
    assert err.startswith(f"prefixscope: {folder}/a.jsonl:5: not JSON")
    assert json.loads(run(folder, "--db", db, "--json")[1]) == {"calls": 0, "duplicates": 4, "rejected": 1}
    assert (calls(db).height, len(rejected(db))) == (3, 1)
    with store.opened(db, read_only=True) as opened:
        assert opened.last_report() is None


def test_many_rejections(run: Run, folder: Path, tmp_path: Path) -> None:
    """A few are printed, and how many more there are."""
    with (folder / "a.jsonl").open("a") as file:
        file.write("\n{" * 20)
    _, _, err = run(folder, "--db", tmp_path / "calls.duckdb")
    assert len(err.splitlines()) == 6
    assert "16 more rejections" in err


def test_the_spool_of_this_user(run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is read when nothing is named."""
    monkeypatch.setenv("PREFIXSCOPE_SPOOL", str(folder))
    assert run("--db", tmp_path / "calls.duckdb")[1].startswith("3 new calls")


WRONG: dict[str, tuple[str, list[str], type[PrefixscopeError], str]] = {
    "no spool": ("off", [], UsageError, "PREFIXSCOPE_SPOOL is off"),
    "no spool yet": ("nowhere", [], InputError, "there is no spool yet"),
    "no such file": ("", ["nothing.jsonl"], InputError, "nothing.jsonl: no such file or folder"),
    "nothing that can be read": ("", ["bad.jsonl"], InputError, "no call could be read"),
}


@pytest.mark.parametrize(("spool", "names", "error", "message"), WRONG.values(), ids=WRONG)
def test_wrong_usage(  # noqa: PLR0917 - a row of the table and three fixtures
    spool: str,
    names: list[str],
    error: type[PrefixscopeError],
    message: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Is told, with what to do."""
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text("{\n{\n")
    monkeypatch.setenv("PREFIXSCOPE_SPOOL", spool)
    with pytest.raises(error, match=message):
        run(*names, "--db", tmp_path / "calls.duckdb")


def test_an_empty_spool(run: Run, tmp_path: Path) -> None:
    """Is no mistake: nobody has called yet."""
    (tmp_path / "spool").mkdir()
    assert run(tmp_path / "spool", "--db", tmp_path / "calls.duckdb")[:1] == (0,)
