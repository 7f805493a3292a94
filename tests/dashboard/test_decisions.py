"""Decisions made on pages, and the ledger that follows from them."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import fixed_log
import leaky_log
from auditing import AT
from dashboards import Run, choice
from prefixscope.analyzer import store
from prefixscope.analyzer.lifecycle import checks, decisions
from prefixscope.dashboard import intake


def made(path: Path) -> list[tuple[str, str]]:
    return [(one.status, one.owner or one.reason) for one in decisions.read(decisions.path_beside(path)).made]


def keep(app: AppTest) -> AppTest:
    next(button for button in app.button if button.label == "Keep the decision").click().run()
    return app


def test_a_finding_is_accepted(sample: Path, show: Run) -> None:
    """With its owner; the page shows it at once, and the first page counts it still as to be had."""
    app = show(sample, "finding")
    app.text_input(key="decision_owner").set_value("ana")
    keep(app)
    assert not app.exception
    assert made(sample) == [("accepted", "ana")]
    assert any("ana" in text.value for text in app.markdown)
    assert choice(app, "segmented_control", -1).value == "accepted"


def test_a_dismissed_finding_is_no_more_to_be_had(sample: Path, show: Run) -> None:
    """It needs a reason, and leaves what is recoverable."""
    before = {metric.label: metric.value for metric in show(sample).metric}
    app = show(sample, "finding")
    choice(app, "segmented_control", -1).set_value("dismissed").run()
    keep(app)
    assert app.error[0].value == "Not kept."
    assert made(sample) == []
    app.text_input(key="decision_reason").set_value("not worth it")
    keep(app)
    assert made(sample) == [("dismissed", "not worth it")]
    after = {metric.label: metric.value for metric in show(sample).metric}
    [name] = [label for label in after if label.startswith("Recoverable")]
    assert after[name] != before[name]


def test_statuses_are_links(sample: Path, show: Run) -> None:
    """A tab of the findings is part of the address, with its own total."""
    app = show(sample, "finding")
    keep(app)
    app = show(sample, "findings", status="accepted")
    table = app.dataframe[0].value
    assert list(table["status"]) == ["accepted"]


def test_the_ledger_counts_what_was_decided(sample: Path, show: Run) -> None:
    """Potential stays, accepted is part of it, nothing is verified by saying so."""
    keep(show(sample, "finding"))
    shown = {metric.label: metric.value for metric in show(sample, "savings").metric}
    assert shown["Accepted a week"] != "\\$0\\.00"
    assert shown["Verified so far"] == "\\$0\\.00"


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A store whose leak was mended in the middle of its time, as somebody has said."""
    log, path = fixed_log.Log(), tmp_path / "fixed.duckdb"
    entries = log.entries()
    before = [entry for entry in entries if entry["timestamp"] < log.fixed_on.isoformat()]
    intake.take_in(path, [leaky_log.write(tmp_path / "before.jsonl", *before)])
    report = intake.take_in(path, [leaky_log.write(tmp_path / "all.jsonl", *entries)]).report
    with store.opened(path, read_only=True) as opened:
        [told] = checks.board(opened, path, AT).known.told
    decisions.append(decisions.path_beside(path), decisions.Decision(told, "fixed", AT, "ana", on=log.fixed_on))
    assert report["calls"]["total"] == len(entries)
    return path


def test_a_fix_is_measured_on_the_page(fixed: Path, show: Run) -> None:
    """The button compares the calls before and after; what it finds is verified and has an interval."""
    app = show(fixed, "savings")
    next(button for button in app.button if button.label.startswith("Measure")).click().run()
    assert not app.exception
    [row] = app.dataframe[0].value.to_dict("records")
    assert row["status"] == "verified"
    assert 0 < row["low"] <= row["estimate"] <= row["high"]
    shown = {metric.label: metric.value for metric in app.metric}
    assert shown["Verified so far"] != "\\$0\\.00"
