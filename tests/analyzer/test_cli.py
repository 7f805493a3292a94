"""The command line: data on standard output, messages on standard error, and exit codes that a script can trust."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import leaky_log
from prefixscope.analyzer import store
from prefixscope.analyzer.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def report(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process under a fixed key."""
    monkeypatch.setenv("PREFIXSCOPE_KEY", "a key for tests")

    def run(*arguments: str | Path) -> Ran:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exited:  # argparse
            code = int(exited.code or 0)
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return leaky_log.write(tmp_path / "log.jsonl")


@pytest.fixture
def kept(run: Run, log: Path, tmp_path: Path) -> Path:
    """A store with two leaks in it: two services with the same fault."""
    path = tmp_path / "calls.duckdb"
    other = leaky_log.write(tmp_path / "other.jsonl", *leaky_log.entries(service="help", day=1))
    assert run("audit", log, other, "--db", path).code == 0
    return path


# --- Exit codes and streams -----------------------------------------------------------------------------------------


def test_an_audit_tells_spend_leak_and_fix(run: Run, log: Path) -> None:
    """The report is all on standard output, without trailing blanks, and nothing is on standard error."""
    ran = run("audit", log)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("40 calls in 1.0 days cost $")
    assert "1 leak" in ran.out
    assert "volatile_prefix  shop  gpt-4.1" in ran.out
    assert "Fix: Move the timestamp behind the static text" in ran.out
    assert not any(line != line.rstrip() for line in ran.out.splitlines())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["audit"], "name files or folders to audit, or a store with --db"),
        (["audit", "--json", "--md", "x"], "not allowed with"),
        (["audit", "--since", "yesterday", "x"], "'yesterday' is no ISO 8601 time"),
        (["audit", "--min-usd", "much", "x"], "invalid float value"),
        (["burn"], "invalid choice"),
        ([], "required"),
    ],
)
def test_wrong_usage_is_2(run: Run, arguments: list[str], says: str) -> None:
    """The message names what is wrong."""
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert says in ran.err


def test_what_is_not_there_is_3(run: Run, tmp_path: Path) -> None:
    """A missing file, a pattern that matches nothing, a missing store."""
    for arguments in (["audit", "gone.jsonl"], ["audit", "gone/*.jsonl"], ["show", "a", "--db", tmp_path / "gone"]):
        ran = run(*arguments)
        assert (ran.code, ran.out) == (3, "")
        assert "gone" in ran.err


def test_input_without_any_readable_call_is_3(run: Run, tmp_path: Path) -> None:
    """The message names each file and what is wrong with it."""
    bad = tmp_path / "bad.txt"
    bad.write_text("these are not the traces you are looking for\n")
    ran = run("audit", bad)
    assert (ran.code, ran.out) == (3, "")
    assert "no call could be read" in ran.err
    assert "bad.txt: unknown format" in ran.err


def test_a_readable_file_without_calls_is_no_error(run: Run, tmp_path: Path) -> None:
    """An export of an hour in which nothing happened is fine."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"resourceSpans": []}\n')
    assert run("audit", empty) == Ran(0, "No calls were found.\n", "")


def test_bad_lines_beside_good_ones_are_told(run: Run, log: Path) -> None:
    """They cost nothing but themselves."""
    with log.open("a") as file:
        file.write('{"timestamp": "2026-11-02T10:00:00Z", "request": {"model"\n')
    ran = run("audit", log)
    assert ran.code == 0
    assert "note: 1 rejection: lines or files that could not be read" in ran.out
    assert "log.jsonl:41:" in ran.out
    assert run("audit", log, "--json").report["calls"]["quarantined"] == 1


def test_an_interrupt_is_130_and_keeps_nothing(
    run: Run, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No traceback either."""

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prefixscope.analyzer.ingest.read", interrupted)
    assert run("audit", log, "--db", tmp_path / "calls.duckdb") == Ran(
        130, "", "prefixscope: interrupted; nothing was kept\n"
    )
    assert run("audit", "--db", tmp_path / "calls.duckdb").out == "No calls were found.\n"


MAIN = "from prefixscope.analyzer.cli import main; raise SystemExit(main())"


def start(code: str, log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """An audit of ``log`` in a process of its own."""
    every = {**os.environ, "PREFIXSCOPE_KEY": "a key for tests", **environment}
    command = [sys.executable, "-c", code, "audit", str(log)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=every)


def test_a_missing_extra_is_named(log: Path) -> None:
    """The bare install has the command, and the command says what to install."""
    with start(f"import sys; sys.modules['duckdb'] = None; {MAIN}", log) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert err == b"prefixscope: duckdb is not installed. For this command: pip install 'prefixscope[audit]'\n"


def test_a_reader_that_goes_away_is_no_error(log: Path) -> None:
    """As in ``prefixscope audit x --json | head -1``."""
    with start(MAIN, log) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_narrow_encoding_does_not_break_the_report(tmp_path: Path) -> None:
    """Names that the terminal's encoding lacks are escaped."""
    path = leaky_log.write(tmp_path / "log.jsonl", *leaky_log.entries(service="販売"))
    with start(MAIN, path, PYTHONIOENCODING="ascii") as process:
        out, err = process.communicate()
    assert (process.returncode, err) == (0, b"")
    assert b"volatile_prefix  \\u8ca9\\u58f2  gpt-4.1" in out


# --- The gate -------------------------------------------------------------------------------------------------------


def test_the_gate_fails_over_and_passes_under(run: Run, log: Path) -> None:
    """The limit is on the upper end of what could be saved; the report is printed either way."""
    high = run("audit", log, "--json").report["recoverable_usd"]["high"]
    assert high > 0.1
    over, under = run("audit", log, "--fail-over", str(high - 0.01)), run("audit", log, "--fail-over", str(high + 0.01))
    assert (over.code, under.code) == (1, 0)
    assert over.out == under.out != ""


def test_a_gate_over_nothing_does_not_pass(run: Run, log: Path, tmp_path: Path) -> None:
    """A typo in a service's name or an empty export would otherwise stay green for ever."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"resourceSpans": []}\n')
    for arguments in (
        [empty, "--fail-over", "1"],
        [log, "--service", "shpo"],
        [log, "--service", "shpo", "--fail-over", "1"],
    ):
        ran = run("audit", *arguments)
        assert (ran.code, ran.out) == (3, "")
        assert "nothing to judge" in ran.err


def test_small_findings_can_be_left_out(run: Run, kept: Path) -> None:
    """What is recoverable, and what the gate looks at, is the sum of those that stay."""
    savings = [finding["saving_usd"]["high"] for finding in run("audit", "--db", kept, "--json").report["findings"]]
    assert len(savings) == 2
    ran = run("audit", "--db", kept, "--json", "--min-usd", str(max(savings) + 0.01), "--fail-over", "0")
    assert ran.code == 0
    assert ran.report["findings"] == []
    assert ran.report["recoverable_usd"] == {"low": 0, "high": 0}


# --- The selection --------------------------------------------------------------------------------------------------


def test_the_selection_is_by_service_and_time(run: Run, kept: Path) -> None:
    """``--since`` is included, ``--until`` is not, and a zone is honoured."""

    def total(*arguments: str) -> int:
        return int(run("audit", "--db", kept, "--json", *arguments).report["calls"]["total"])

    assert total() == 80
    assert total("--service", "help") == 40
    assert total("--since", "2026-11-03") == 40
    assert total("--since", "2026-11-02T09:02:00", "--until", "2026-11-02T09:06") == 2
    assert total("--since", "2026-11-02T10:02:00+01:00", "--until", "2026-11-02T09:06:00Z") == 2
    assert total("--until", "2026-11-02T09:00") == 0


def test_a_store_is_added_to_and_counts_nothing_twice(run: Run, log: Path, kept: Path) -> None:
    """Reading a file again is free, and an audit of the store alone gives the same report but for the count."""
    again = run("audit", log, "--db", kept, "--json").report
    assert (again["calls"]["total"], again["calls"]["duplicates"]) == (80, 40)
    alone = run("audit", "--db", kept, "--json").report
    assert alone["calls"].pop("duplicates") == 0
    del again["calls"]["duplicates"]
    assert alone == again


def test_the_same_input_gives_the_same_bytes(run: Run, log: Path) -> None:
    """In every format; a report can be compared with the last one."""
    for form in ("--json", "--md", "--csv"):
        assert run("audit", log, form).out == run("audit", log, form).out


# --- Formats --------------------------------------------------------------------------------------------------------

COUNTS = (
    "total",
    "priced",
    "unpriced",
    "usage_missing",
    "usage_partial",
    "with_prompt",
    "markers_inferred",
    "fingerprint_keys",
)
RANGE = {"low": float, "high": float}
OPTION = {
    **dict.fromkeys(("action", "effort", "risk"), str),
    **dict.fromkeys(("saving_usd", "saving_usd_per_week", "write_premium_usd"), float),
}
EXAMPLES = [dict.fromkeys(("call_id", "response_id", "trace_id", "file"), str) | {"line": int}]
FINDING = {
    **dict.fromkeys(("id", "cause", "verdict", "service", "provider", "model", "confidence", "headline"), str),
    **dict.fromkeys(("calls", "family_calls", "missed_tokens"), int),
    "saving_usd": RANGE,
    "saving_usd_per_week": RANGE,
    "fix": dict.fromkeys(("action", "text", "effort", "risk"), str),
    "options": [OPTION],
    "evidence": dict,
    "formula": [{"bucket": str, "tokens": float, "usd": float}],
    "examples": EXAMPLES,
    "status": str,
    "overdue": bool,
    "verified_usd": (float, dict, type(None)),
    **dict.fromkeys(("first_seen", "owner", "due", "until", "fixed_on"), (str, type(None))),
}
UNCLAIMED = {
    **dict.fromkeys(("id", "cause", "verdict", "service", "provider", "model", "headline"), str),
    **dict.fromkeys(("calls", "family_calls", "missed_tokens"), int),
    "usd_at_stake": float,
    "evidence": dict,
    "tried": [OPTION],
    "examples": EXAMPLES,
}
CONTRACT = {
    "schema_version": int,
    "window": {"from": str, "to": str, "days": float},
    "calls": dict.fromkeys((*COUNTS, "duplicates", "quarantined"), int),
    "tokens": dict.fromkeys(("input", "uncached", "read", "write", "output"), int),
    "hit_rate": float,
    "spend_usd": dict.fromkeys(("total", "input", "output", "input_without_cache", "net_cache_savings"), float),
    "by": [
        dict.fromkeys(("service", "provider", "model"), str)
        | dict.fromkeys(("calls", "input", "read", "write", "output"), int)
        | {"usd": (float, type(None))}
    ],
    "findings": [FINDING],
    "recoverable_usd": RANGE,
    "not_claimed": [UNCLAIMED],
    "causes": [
        {"cause": str, "claimed": bool, "calls": int, "missed_tokens": float, "usd_at_stake": float, "verdict": str}
    ],
    "model_check": list,
    "provider_diagnosis": [{"provider": str, "reason": str, "cause": str, "calls": int, "agree": bool}],
    "ledger": dict.fromkeys(
        ("potential", "accepted", "dismissed", "fixed", "verified", "not_confirmed", "regressed"), dict
    ),
    "stored_prefixes": list,
    "unpriced_models": [{"provider": str, "model": str, "calls": int}],
    "quarantine": [{"file": str, "line": int, "reason": str}],
}
"""Keys and types of the JSON report, schema version 2."""


def assert_shape(value: Any, shape: Any, where: str = "report") -> None:
    if isinstance(shape, dict):
        assert value.keys() == shape.keys(), where
        for key, inner in shape.items():
            assert_shape(value[key], inner, f"{where}.{key}")
    elif isinstance(shape, list):
        for number, item in enumerate(value):
            assert_shape(item, shape[0], f"{where}[{number}]")
    else:
        assert type(value) in (shape if isinstance(shape, tuple) else (shape,)), f"{where}: {value!r}"


def test_the_json_report_keeps_its_contract(run: Run, log: Path) -> None:
    """Keys and types are those of schema version 2, also of lists that are mostly empty."""
    unpriced = next(leaky_log.entries(service="lab", model="model-of-nobody"))
    with log.open("a") as file:
        file.write(json.dumps(unpriced) + '\n{"timestamp": "2026-11-02T10:00:00Z", "request": {"model"\n')
    report = run("audit", log, "--json").report
    assert_shape(report, CONTRACT)
    assert (report["schema_version"], len(report["findings"]), report["calls"]["unpriced"]) == (2, 1, 1)
    assert report["unpriced_models"][0]["model"] == "model-of-nobody"


def test_the_figures_of_a_report_agree_with_each_other(run: Run, kept: Path) -> None:
    """Parts add up to their totals, a formula to its saving, and nothing saves more than was spent."""
    report = run("audit", "--db", kept, "--json").report
    tokens, spend = report["tokens"], report["spend_usd"]
    assert tokens["input"] == tokens["uncached"] + tokens["read"] + tokens["write"]
    assert tokens["input"] == sum(row["input"] for row in report["by"])
    assert spend["total"] == pytest.approx(sum(row["usd"] for row in report["by"]))
    assert spend["total"] == pytest.approx(spend["input"] + spend["output"])
    assert report["hit_rate"] == pytest.approx(tokens["read"] / tokens["input"])
    for finding in report["findings"]:
        assert -sum(row["usd"] for row in finding["formula"]) == pytest.approx(finding["saving_usd"]["high"])
    for end in ("low", "high"):
        assert report["recoverable_usd"][end] == pytest.approx(sum(f["saving_usd"][end] for f in report["findings"]))
    assert 0 <= report["recoverable_usd"]["low"] <= report["recoverable_usd"]["high"] <= spend["input"]


def test_an_empty_report_keeps_the_keys(run: Run, tmp_path: Path) -> None:
    """Times and rates of nothing are null."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text('{"resourceSpans": []}\n')
    report = run("audit", empty, "--json").report
    assert report.keys() == CONTRACT.keys()
    assert report["window"] == {"from": None, "to": None, "days": 0}
    assert report["hit_rate"] is None
    assert run("audit", empty, "--md").out == "# Prompt cache audit\n\nNo calls were found.\n"
    assert len(run("audit", empty, "--csv").out.splitlines()) == 1


def test_the_csv_has_a_row_for_each_finding(run: Run, kept: Path) -> None:
    """With the same figures as the JSON report."""
    findings = run("audit", "--db", kept, "--json").report["findings"]
    rows = list(csv.DictReader(io.StringIO(run("audit", "--db", kept, "--csv").out)))
    assert [row["id"] for row in rows] == [finding["id"] for finding in findings]
    assert [float(row["saving_usd_high"]) for row in rows] == [finding["saving_usd"]["high"] for finding in findings]


def test_the_markdown_tells_each_finding(run: Run, kept: Path) -> None:
    """A heading each, and the table of services."""
    told = run("audit", "--db", kept, "--md").out
    assert told.count("\n## $") == 2
    assert "| `help` | `openai/gpt-4.1` | 40 |" in told


# --- show -----------------------------------------------------------------------------------------------------------


def test_show_tells_evidence_and_formula(run: Run, kept: Path) -> None:
    """The first characters of an id are enough, and the JSON is the finding of the report."""
    first = run("audit", "--db", kept, "--json").report["findings"][0]
    told = run("show", first["id"][:6], "--db", kept)
    assert (told.code, told.err) == (0, "")
    for text in (
        "kinds: timestamp",
        "formula",
        "saved at most",
        f"{first['saving_usd']['high']:,.4f}",
        *(example["call_id"] for example in first["examples"]),
    ):
        assert text in told.out
    assert run("show", first["id"], "--db", kept, "--json").report == first


def test_show_refuses_what_it_cannot_tell_apart(run: Run, kept: Path) -> None:
    """Unknown and ambiguous ids name those that there are."""
    report = run("audit", "--db", kept, "--json").report
    ids = [finding["id"] for finding in [*report["findings"], *report["not_claimed"]]]
    for asked, says in (("xyz", "no finding begins with 'xyz'"), ("", f"{len(ids)} findings begin with ''")):
        ran = run("show", asked, "--db", kept)
        assert (ran.code, ran.out) == (2, "")
        assert says in ran.err
        assert all(id_ in ran.err for id_ in ids)


def test_show_needs_an_audit_first(run: Run, tmp_path: Path) -> None:
    """A store without a report says how to make one."""
    with store.opened(tmp_path / "new.duckdb"):
        pass
    ran = run("show", "a", "--db", tmp_path / "new.duckdb")
    assert ran.code == 2
    assert "holds no audit yet. Run: prefixscope audit --db" in ran.err
