"""The commands accept, fixed, dismiss and verify: data on standard output, messages beside it, every step kept."""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import fixed_log
from fixed_log import Log
from prefixscope.analyzer import audit, ingest, store
from prefixscope.analyzer.errors import PrefixscopeError
from prefixscope.analyzer.lifecycle import commands as lifecycle_commands
from prefixscope.analyzer.lifecycle import decisions
from prefixscope.otel_plugin.fingerprint import Fingerprinter

LOG = Log()
ON = LOG.fixed_on.date().isoformat()


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def found(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as the command line does."""
    parser = argparse.ArgumentParser()
    lifecycle_commands.add_parsers(parser.add_subparsers(required=True))

    def run(*arguments: str | Path) -> Ran:
        try:
            parsed = parser.parse_args([str(argument) for argument in arguments])
            code = int(parsed.run(parsed))
        except SystemExit as exited:  # argparse
            code = int(exited.code or 0)
        except PrefixscopeError as error:
            captured = capsys.readouterr()
            return Ran(error.exit_code, captured.out, str(error))
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the calls before and after a fix, audited before and after it."""
    path = tmp_path_factory.mktemp("kept") / "calls.duckdb"
    for number, entries in enumerate(fixed_log.before_and_after(LOG)):
        lines = path.with_name(f"{number}.jsonl")
        lines.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        with store.opened(path) as opened:
            at = LOG.fixed_on + timedelta(days=7 * number)
            ingested = opened.ingest(ingest.read([lines], Fingerprinter(b"test")), at=at)
            analysis = audit.analyse(opened, audit.Selection(), ingested)
            opened.keep(analysis.report, analysis.explained, at=at)
    return path


@pytest.fixture
def db(kept: Path, tmp_path: Path) -> Path:
    """A copy that nothing was decided on."""
    copied = tmp_path / "calls.duckdb"
    copied.write_bytes(kept.read_bytes())
    return copied


def finding(db: Path) -> str:
    """The id of the only finding, as the last report has it."""
    with store.opened(db, read_only=True) as opened:
        report = opened.last_report()
    assert report is not None
    (found,) = report["findings"]
    return str(found["id"])


def lines(db: Path) -> list[Any]:
    path = decisions.path_beside(db)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_a_life_from_accept_to_verify(run: Run, db: Path) -> None:
    """Each step is one line in the file, signed and dated; the check adds the last one with its measure."""
    id_ = finding(db)
    assert run("accept", id_[:6], "--owner", "search", "--due", "2099-01-31", "--by", "ana", "--db", db).code == 0
    ran = run("fixed", id_, "--on", ON, "--db", db, "--by", "ana")
    assert (ran.code, ran.err) == (0, "")
    assert "volatile_prefix  shop  gpt-4.1: fixed; kept in " in ran.out
    ran = run("verify", "--db", db)
    assert (ran.code, ran.err) == (0, "")
    made = lines(db)
    assert [line["status"] for line in made] == ["accepted", "fixed", "verified"]
    assert [line["by"] for line in made] == ["ana", "ana", "prefixscope"]
    assert {line["finding"] for line in made} != {id_}  # the first id, not the one of the report after the fix
    assert {*made[0]["also"]} == {id_}
    assert (made[0]["owner"], made[0]["due"], made[1]["on"]) == ("search", "2099-01-31", f"{ON}T00:00:00Z")
    worth = LOG.worth(LOG.fixed_on)
    assert made[2]["measure"]["saved_usd"]["estimate"] == pytest.approx(worth, rel=1e-6)
    assert f"saved ${worth:.2f} (95 % interval" in ran.out
    assert "nothing else changed that the calls tell of" in ran.out
    run("verify", "--db", db)
    assert len(lines(db)) == 3


def test_the_same_as_json(run: Run, db: Path) -> None:
    """A decision is its line; a check is the finding, its verdict and the measure."""
    id_ = finding(db)
    decided = run("fixed", id_, "--on", ON, "--db", db, "--json").found
    assert [decided] == lines(db)
    (found,) = run("verify", id_, "--db", db, "--json").found
    assert (found["status"], found["cause"], found["missing"]) == ("verified", "volatile_prefix", [])
    assert found["measure"] == lines(db)[1]["measure"]


def test_a_dismissal_names_its_reason(run: Run, db: Path) -> None:
    """And the day on which it runs out."""
    assert run("dismiss", finding(db), "--db", db, "--reason", "as\nit is", "--until", "2099-01-01").code == 0
    (line,) = lines(db)
    assert (line["status"], line["reason"], line["until"]) == ("dismissed", "as it is", "2099-01-01")
    ran = run("fixed", finding(db), "--db", db, "--on", ON)
    assert ran.code == 2
    assert "it is dismissed since" in ran.err
    assert "cannot become fixed. Possible now: accepted, dismissed" in ran.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["accept", "x"], "no finding begins with 'x'. Known are: "),
        (["accept", "ID", "--due", "soon"], "'soon' is no ISO 8601 date; write 2026-11-30"),
        (["fixed", "ID"], "--on"),
        (["fixed", "ID", "--on", "2099-01-01"], "a time that has passed, with --on"),
        (["fixed", "ID", "--on", "friday"], "'friday' is no ISO 8601 time"),
        (["dismiss", "ID"], "--reason"),
        (["dismiss", "ID", "--reason", ""], "say why it is dismissed"),
        (["dismiss", "ID", "--reason", "x", "--until", "2020-01-01"], "2020-01-01 has passed; name a day to come"),
        (["verify", "ID"], "is open; once it is fixed, say so with: prefixscope fixed "),
    ],
)
def test_wrong_usage_is_2_and_keeps_nothing(run: Run, db: Path, arguments: list[str], says: str) -> None:
    """The message says what to do."""
    ran = run(*(finding(db) if one == "ID" else one for one in arguments), "--db", db)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err
    assert lines(db) == []


def test_a_store_is_needed_and_an_audit(run: Run, tmp_path: Path) -> None:
    """A file that is not there is not made."""
    ran = run("accept", "a", "--db", tmp_path / "gone.duckdb")
    assert ran.code == 3
    assert "there is no such store" in ran.err
    assert not (tmp_path / "gone.duckdb").exists()
    with store.opened(tmp_path / "new.duckdb"):
        pass
    ran = run("accept", "a", "--db", tmp_path / "new.duckdb")
    assert ran.code == 2
    assert "holds no finding yet. Run: prefixscope audit --db" in ran.err


def test_nothing_fixed_is_nothing_to_verify(run: Run, db: Path) -> None:
    """Which is no error."""
    assert run("verify", "--db", db) == Ran(0, "No finding is said to be fixed yet.\n", "")
    assert run("verify", "--db", db, "--json").found == []


def test_too_little_data_is_told_and_not_kept(run: Run, db: Path) -> None:
    """With what is missing."""
    on = (LOG.start + timedelta(days=2)).date().isoformat()
    run("fixed", finding(db), "--on", on, "--db", db)
    ran = run("verify", "--db", db)
    assert ran.code == 0
    assert "not enough data yet (live since 2026-11-04T00:00:00Z)" in ran.out
    assert "needs calls on 5 days before the fix, there are 2" in ran.out
    assert len(lines(db)) == 1


def test_a_broken_line_is_told_on_the_side(run: Run, db: Path) -> None:
    """The command goes on with what can be read."""
    decisions.path_beside(db).write_text('{"v": 1, "fin\x1b')
    ran = run("accept", finding(db), "--db", db)
    assert ran.code == 0
    assert "calls.duckdb.decisions.jsonl:1: not a decision (torn: it has no end), ignored: no JSON" in ran.err
    ran = run("verify", "--db", db, "--json")
    assert ran.found == []
    assert "ignored: no JSON" in ran.err


def test_who_decides_is_known_without_asking(run: Run, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The login name; a user without one is told as unknown."""
    monkeypatch.setattr("getpass.getuser", lambda: "ana")
    run("accept", finding(db), "--db", db)

    def nobody() -> str:
        raise OSError("no user name")

    monkeypatch.setattr("getpass.getuser", nobody)
    run("accept", finding(db), "--db", db)
    assert [line["by"] for line in lines(db)] == ["ana", "unknown"]
