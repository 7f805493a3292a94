"""The audit against traffic with one leak per cause: every call's cause, what each fix is worth, and their sum.

Run with ``-rP`` to see the tables.
"""

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console

import auditing
import causes
from prefixscope.analyzer import audit, ingest, store
from prefixscope.analyzer.lifecycle import ledger
from prefixscope.analyzer.lifecycle.known import Known
from prefixscope.analyzer.report import terminal
from prefixscope.otel_plugin.fingerprint import Fingerprinter


@dataclass(frozen=True)
class Audited:
    """The answers, the report, and the calls with service, cause (found) and truth (planted)."""

    answers: Any
    report: Any
    calls: pl.DataFrame


@pytest.fixture(scope="module", params=[causes.SEED, 1])
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Audited:
    """Two seeds: texts, times and ids of the second are those that nobody has looked at."""
    folder = tmp_path_factory.mktemp("causes")
    causes.write(folder, seed=request.param)
    return analysed(folder)


def analysed(folder: Path) -> Audited:
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))
    with store.opened(None) as opened:
        ingested = opened.ingest(ingest.read([folder / "request_log.jsonl.gz"], Fingerprinter(b"test")), at=auditing.AT)
        analysis = audit.analyse(opened, audit.Selection(), ingested)
        known = opened.frame("analysis/calls", service=None, since=None, until=None)
    truth = pl.DataFrame({"response": list(answers["causes"]), "truth": list(answers["causes"].values())})
    name = pl.when(pl.col("response_id") != "").then("response_id").otherwise("request_id").alias("response")
    named = known.select("call_id", "service", "started_at", name)
    found = analysis.explained.select("call_id", "cause", "claimed", "finding", "missed_tokens")
    calls = named.join(found, on="call_id", validate="1:1").join(truth, on="response", validate="1:1")
    assert calls.height == answers["calls"]
    return Audited(answers, analysis.report, calls)


def test_each_cause_is_told_in_full(audited: Audited) -> None:
    """Claim, place or reason, formula and options, and what could make it a false alarm, for each planted cause."""
    report = ledger.annotated(audited.report, Known({}), {})
    told: dict[str, str] = {}
    for entry in [*report["findings"], *report["not_claimed"]]:
        if entry["cause"] not in told:
            console = Console(file=io.StringIO(), width=140)
            with console.capture() as drawn:
                terminal.detail(entry, report, console)
            told[entry["cause"]] = drawn.get()
            claimed = ("formula: ", "options, ", "could be a false alarm if ", "risk of the fix: ", "saved at least")
            quiet = ("not claimed", "verdict: ", "none of it is claimed")
            for words in (*(claimed if "saving_usd" in entry else quiet), "evidence", "calls to look at:", entry["id"]):
                assert words in told[entry["cause"]], (entry["cause"], words)
    print("\n".join(told.values()))
    assert told.keys() >= {cause for cause in audited.answers["causes"].values() if cause}


def test_every_call_has_its_planted_cause(audited: Audited) -> None:
    """Of all calls, at least 98 % get the cause that was planted."""
    print(_table_of_causes(audited.calls))
    print(_table_of_confusions(audited.calls))
    right = audited.calls.filter(pl.col("cause") == pl.col("truth")).height
    print(f"{right} of {audited.calls.height} calls: {right / audited.calls.height:.2%}")
    assert right >= 0.98 * audited.calls.height


@pytest.mark.parametrize("measure", ["precision", "recall"])
def test_causes_are_precise_and_complete(audited: Audited, measure: str) -> None:
    """Over all calls that miss something: what is found is planted, and what is planted is found, in 98 of 100."""
    hits = audited.calls.filter((pl.col("cause") == pl.col("truth")) & (pl.col("truth") != "")).height
    column = "cause" if measure == "precision" else "truth"
    named = audited.calls.filter(pl.col(column) != "").height
    assert hits >= 0.98 * named, f"{measure} {hits / named:.2%}"


def _rates(calls: pl.DataFrame, cause: str) -> tuple[int, int, float | None, float | None]:
    """Planted, found, precision and recall; None where there is nothing to divide by."""
    planted, found = (calls.filter(pl.col(name) == cause).height for name in ("truth", "cause"))
    both = calls.filter((pl.col("truth") == cause) & (pl.col("cause") == cause)).height
    return planted, found, both / found if found else None, both / planted if planted else None


def _table_of_causes(calls: pl.DataFrame) -> str:
    lines = [f"{'cause':22} {'planted':>8} {'found':>8} {'precision':>10} {'recall':>8}"]
    for cause in sorted({*calls["truth"], *calls["cause"]}):
        planted, found, precision, recall = _rates(calls, cause)
        rates = ("–" if rate is None else f"{rate:.1%}" for rate in (precision, recall))
        lines.append(f"{cause or '(nothing missed)':22} {planted:8} {found:8} {next(rates):>10} {next(rates):>8}")
    return "\n".join(lines)


def _table_of_confusions(calls: pl.DataFrame) -> str:
    wrong = calls.filter(pl.col("cause") != pl.col("truth")).select("service", "truth", "cause", "response")
    lines = [f"\n{'service':26} {'planted':22} {'found':22} {'calls':>6}  first"]
    for (service, truth, cause), rows in sorted(wrong.group_by("service", "truth", "cause"), key=lambda g: str(g[0])):
        lines.append(f"{service:26} {truth or '–':22} {cause or '–':22} {rows.height:6}  {rows['response'][0]}")
    return "\n".join(lines)


def test_savings_are_those_of_the_simulator(audited: Audited) -> None:
    """What findings of the planted cause claim is what mending the fault is worth, within 2 %.

    Of a service with two faults, what the findings of both claim together.
    """
    found = _found(audited.report)
    off = []
    print(f"{'service':26} {'cause':22} {'true':>9} {'low':>9} {'high':>9}")
    for service, saving in audited.answers["savings"].items():
        cause, also = (audited.answers["services"][service][key] for key in ("cause", "also"))
        claims = [found.pop((service, name), (0.0, 0.0)) for name in (cause, also)]
        low, high = (sum(ends) for ends in zip(*claims, strict=True))
        print(f"{service:26} {cause:22} {float(saving):9.4f} {low:9.4f} {high:9.4f}")
        if min(abs(end - float(saving)) for end in (low, high)) > 0.02 * float(saving):
            off.append(service)
    print(
        "\n".join(
            f"{service:26} {cause:22} {'none':>9} {low:9.4f} {high:9.4f}"
            for (service, cause), (low, high) in found.items()
        )
    )
    assert not off


def _found(report: Any) -> dict[tuple[str, str], tuple[float, float]]:
    """(service, cause) -> low and high end of what all findings of it claim, USD."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for finding in report["findings"]:
        key, saving = (finding["service"], finding["cause"]), finding["saving_usd"]
        low, high = found.get(key, (0.0, 0.0))
        found[key] = low + saving["low"], high + saving["high"]
    return found


def test_savings_add_up_to_all_fixes_at_once(audited: Audited) -> None:
    """What is recoverable in all is what the simulator saves with all fixes on, within 1 %."""
    total, recoverable = float(audited.answers["saving_usd"]), audited.report["recoverable_usd"]
    print(f"true {total:.4f}, found {recoverable['low']:.4f} to {recoverable['high']:.4f}")
    assert min(abs(recoverable[end] - total) for end in ("low", "high")) <= 0.01 * total


def test_nothing_is_claimed_where_nothing_leaks(audited: Audited) -> None:
    """Services without a fix that pays yield no finding above one per cent of their spend."""
    services = audited.answers["services"]
    claims = {
        (finding["service"], finding["cause"]): finding["saving_usd"]["high"]
        for finding in audited.report["findings"]
        if not services[finding["service"]]["saving_usd"]
    }
    print("\n".join(f"{service:26} {cause:22} {usd:9.4f}" for (service, cause), usd in claims.items()))
    assert [key for key, usd in claims.items() if usd > 0.01 * float(services[key[0]]["spend_usd"])] == []


def test_spend_is_exact(audited: Audited) -> None:
    """Every call is read and priced, whatever its API: spend equals the answers far below a cent."""
    spent: dict[str, float] = {}
    for row in audited.report["by"]:
        spent[row["service"]] = spent.get(row["service"], 0.0) + (row["usd"] or 0.0)
    known = {name: float(service["spend_usd"]) for name, service in audited.answers["services"].items()}
    assert spent == pytest.approx(known, abs=1e-6)
    assert audited.report["calls"]["unpriced"] == 0
