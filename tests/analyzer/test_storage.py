"""Stored prefixes: what they saved, and what it cost at least to keep them."""

import io
import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import auditing
from prefixscope.analyzer.lifecycle import ledger
from prefixscope.analyzer.lifecycle.known import Known
from prefixscope.analyzer.prices import overlay
from prefixscope.analyzer.report import markdown, terminal

TOKENS = 40_000


def _report(folder: Path, model: str, *, hours: int, calls: int) -> Any:
    log = folder / "calls.jsonl"
    with log.open("w", encoding="utf-8") as file:
        for number in range(calls):
            at = datetime(2026, 11, 10, tzinfo=UTC) + timedelta(hours=hours * number / (calls - 1))
            usage = {"promptTokenCount": TOKENS + 10, "cachedContentTokenCount": TOKENS, "candidatesTokenCount": 5}
            line = {
                "timestamp": at.timestamp(),
                "service": "manuals",
                "url": f"https://generativelanguage.googleapis.com/v1beta/models/{model}:generateContent",
                "request": {
                    "cachedContent": "cachedContents/manual-7",
                    "contents": [{"role": "user", "parts": [{"text": f"What is on page {number}?"}]}],
                },
                "response": {"responseId": f"r{number}", "modelVersion": model, "usageMetadata": usage},
            }
            file.write(json.dumps(line) + "\n")
    return auditing.report([log])


def test_what_keeping_a_prefix_costs_stands_against_what_it_saved(tmp_path: Path) -> None:
    """24 hours of 40,000 tokens at $4.50 a million and hour are $4.32; five reads save less than that."""
    report = _report(tmp_path, "gemini-2.5-pro", hours=24, calls=5)
    [stored] = report["stored_prefixes"]
    assert (stored["calls"], stored["tokens"], stored["hours"]) == (5, TOKENS, pytest.approx(24))
    assert stored["storage_usd"] == pytest.approx(TOKENS * 24 * 4.5 / 1e6)
    assert stored["creation_usd"] == pytest.approx(TOKENS * 1.25 / 1e6)
    assert stored["saved_usd"] == pytest.approx(5 * TOKENS * (1.25 - 0.125) / 1e6)
    assert stored["net_usd"] == pytest.approx(stored["saved_usd"] - stored["storage_usd"] - stored["creation_usd"])
    assert stored["net_usd"] < 0
    assert "manual-7" not in json.dumps(report)
    for text in (markdown.render(report), _drawn(report)):
        assert "-$4.15" in text


def test_a_prefix_that_two_services_name_is_stored_once(tmp_path: Path) -> None:
    """Its storage is paid once, whoever reads it."""
    _report(tmp_path, "gemini-2.5-pro", hours=24, calls=5)
    log = tmp_path / "calls.jsonl"
    lines = log.read_text("utf-8").splitlines()
    log.write_text(
        "\n".join(line.replace("manuals", "desk") if n % 2 else line for n, line in enumerate(lines)), "utf-8"
    )
    [stored] = auditing.report([log])["stored_prefixes"]
    assert (stored["services"], stored["calls"]) == ("desk, manuals", 5)


def _drawn(report: Any) -> str:
    console = Console(file=io.StringIO(), width=160)
    with console.capture() as drawn:
        terminal.render(ledger.annotated(report, Known({}), {}), console)
    return drawn.get()


def test_storage_without_a_known_price_is_unpriced(tmp_path: Path) -> None:
    """A model whose page lists no storage is not stored for free."""
    [stored] = _report(tmp_path, "gemini-3.1-pro", hours=2, calls=3)["stored_prefixes"]
    assert stored["storage_usd"] is None
    assert stored["net_usd"] is None


@pytest.mark.parametrize(("on", "usd"), [(date(2026, 12, 31), "0.50"), (date(2027, 1, 1), "1.00")])
def test_storage_is_priced_by_the_day(on: date, usd: str) -> None:
    """A price that is announced to change does so on its day."""
    found = overlay.overlay().storage("google", "gemini-3.8-flash", on)
    assert found is not None
    assert found.usd == Decimal(usd)
