"""The FOCUS export: every dollar of the report once, nothing that is not known, and nothing that a spreadsheet runs."""

import argparse
import csv
import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import leaky_log
from auditing import AT
from prefixscope.analyzer import audit, ingest, store
from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.export import command as export_focus
from prefixscope.analyzer.export import focus
from prefixscope.otel_plugin.fingerprint import Fingerprinter

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "request_log.jsonl.gz"
ALL = audit.Selection()


def kept(path: Path, *files: Path) -> Path:
    """A store with the calls of some files."""
    with store.opened(path) as opened:
        opened.ingest(ingest.read(files, Fingerprinter(b"test")), at=AT)
    return path


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept(tmp_path_factory.mktemp("focus") / "calls.duckdb", SAMPLE)


def exported(path: Path, selection: audit.Selection = ALL) -> list[dict[str, str]]:
    with store.opened(path, read_only=True) as opened:
        return list(csv.DictReader(io.StringIO(focus.csv(opened, selection))))


def test_costs_sum_to_the_spend(sample: Path) -> None:
    """Billed is what the report says was spent; input at the uncached price is what it says without a cache."""
    with store.opened(sample) as opened:
        spend = audit.analyse(opened, ALL).report["spend_usd"]
    rows = exported(sample)
    assert float(sum(Decimal(row["BilledCost"]) for row in rows)) == pytest.approx(spend["total"], abs=1e-9)
    inputs = [Decimal(row["x_CostIfUncached"]) for row in rows if row["x_CacheAction"] != "output"]
    assert float(sum(inputs)) == pytest.approx(spend["input_without_cache"], abs=1e-9)


def test_a_cost_is_price_times_quantity(sample: Path) -> None:
    """On every row and to the last digit, as the specification asks; so do the periods."""
    for row in exported(sample):
        assert Decimal(row["ListCost"]) == Decimal(row["ListUnitPrice"]) * Decimal(row["PricingQuantity"])
        assert row["BilledCost"] == row["EffectiveCost"] == row["ContractedCost"] == row["ListCost"]
        assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]


def test_required_columns_are_never_empty(sample: Path) -> None:
    """Columns that FOCUS 1.2 lets be null are listed here; all columns beside it begin with x_."""
    rows = exported(sample)
    may_be_null = {"ChargeClass", "RegionId", "RegionName", "x_CacheTtl"}
    assert {name for row in rows for name, value in row.items() if not value} <= may_be_null
    assert {row["ChargeCategory"] for row in rows} == {"Usage"}
    assert {row["ServiceCategory"] for row in rows} == {"AI and Machine Learning"}
    assert [name for name in rows[0] if not name[0].isupper() and not name.startswith("x_")] == []


def test_cache_actions_are_told_apart(sample: Path) -> None:
    """Reads are cheaper than uncached input, writes of Anthropic dearer."""
    rows = [row for row in exported(sample) if row["x_Service"] == "claude-healthy"]
    price = {row["x_CacheAction"]: Decimal(row["ListUnitPrice"]) for row in rows}
    assert price["read"] < price["write"]
    assert {row["x_CacheTtl"] for row in rows if row["x_CacheAction"] == "write"} == {"5m"}


def test_what_is_not_known_is_left_out_and_told(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Calls without usage or price are no free calls."""
    arguments = parsed("--db", str(sample))
    assert export_focus.run(arguments) == 0
    told = capsys.readouterr()
    assert told.err == "prefixscope: note: 47 calls without usage are not in the export\n"
    assert told.out.startswith("BilledCost,")


def test_a_selection_is_exported_alone(sample: Path) -> None:
    """By service, as in the audit."""
    assert {row["x_Service"] for row in exported(sample, audit.Selection("support-bot"))} == {"support-bot"}


def test_hostile_names_and_unknown_models(tmp_path: Path) -> None:
    """No cell is a formula, and a model without a price has no row."""
    entries = [
        entry
        for service, model in (("=cmd|' /C calc'!A0", "gpt-4.1"), ("@x", "no-such-model"))
        for entry in leaky_log.entries(service=service, model=model)
    ]
    path = kept(tmp_path / "calls.duckdb", leaky_log.write(tmp_path / "log.jsonl", *entries))
    rows = exported(path)
    assert {row["x_Service"] for row in rows} == {"'=cmd|' /C calc'!A0"}
    assert not [value for row in rows for value in row.values() if value.startswith(("=", "+", "-", "@"))]


def test_an_empty_store_exports_a_header(tmp_path: Path) -> None:
    """And no row."""
    path = tmp_path / "empty.duckdb"
    with store.opened(path) as opened:
        found, left_out = focus.rows(opened, ALL)
    assert found.columns == list(focus.COLUMNS)
    assert found.height == sum(left_out.values()) == 0
    assert isinstance(found.schema["BilledCost"], pl.Decimal)


def test_it_writes_a_file_or_says_why_not(sample: Path, tmp_path: Path) -> None:
    """A folder that is not there is told in a sentence."""
    target = tmp_path / "focus.csv"
    assert export_focus.run(parsed("--db", str(sample), "--out", str(target), "--since", "2026-11-20")) == 0
    days = {row["ChargePeriodStart"] for row in csv.DictReader(io.StringIO(target.read_text("utf-8")))}
    assert min(days) == "2026-11-20T00:00:00Z"
    with pytest.raises(InputError, match="cannot be written"):
        export_focus.run(parsed("--db", str(sample), "--out", str(tmp_path / "none" / "x.csv")))


def parsed(*arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    export_focus.add_parser(parser.add_subparsers())
    return parser.parse_args(["export", "focus", *arguments])
