"""Response caches in a real browser: logs are given, pairs judged, and the command line says the same."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

import browsing
import response_caches
from browsing import Watch, served, watched
from dashboards import HOSTILE, MAIN
from prefixscope.analyzer.report.wording import usd
from prefixscope.analyzer.semantic import labels
from prefixscope.dashboard.caches import told
from semantic_traffic import line, write

pytestmark = pytest.mark.skipif(not browsing.CHROMIUM.exists(), reason="apt-get install chromium")
PATIENCE = 120_000  # ms


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some of the help desk's traffic, both services."""
    some = [entry for n, entry in enumerate(response_caches.lines()) if n % 4 == 0]
    return write(tmp_path_factory.mktemp("log") / "log.jsonl", some)


@pytest.fixture(scope="module")
def home(sample_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served("--db", str(sample_once), log=tmp_path_factory.mktemp("server") / "log") as address:
        yield address


def semantic(*arguments: str) -> Any:
    """What ``prefixscope semantic`` reports."""
    code = "import sys; from prefixscope.analyzer.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "semantic", *arguments, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ}).stdout)


def give(watch: Watch, log: Path) -> None:
    """Opens the page and uploads a log."""
    watch.open("/caches")
    watch.page.locator("input[type=file]").first.set_input_files(log)
    watch.page.get_by_role("button", name="Replay these").click()
    watch.page.get_by_text("Judge pairs").wait_for(timeout=PATIENCE)
    watch.settle()


def downloaded(watch: Watch, label: str) -> str:
    with watch.page.expect_download() as waiting:
        watch.page.locator("[data-testid=stDownloadButton]").filter(has_text=label).get_by_role("button").click()
    return Path(waiting.value.path()).read_text("utf-8")


def words(watch: Watch) -> str:
    return watch.page.locator(MAIN).inner_text()


def steady(report: Any) -> Any:
    """A report without the time that looking questions up took."""
    tiers = [{name: value for name, value in row.items() if name != "saved_seconds"} for row in report["tiers"]]
    return {name: value for name, value in report.items() if name != "embedder"} | {"tiers": tiers}


def test_an_upload_says_what_the_command_line_says(watch: Watch, log: Path) -> None:
    """Verdict, figures, and the whole report that can be downloaded."""
    expected = semantic(str(log))
    give(watch, log)
    seen = words(watch)
    assert told.verdict(expected) in seen
    assert told.why_wrong(expected) in seen
    assert told.instead(expected) in seen
    assert told.age(expected) in seen
    both = [row for row in expected["tiers"] if row["tier"] != "model"]
    assert watch.figures()["Saved"] == usd(sum(row["saved_usd"] for row in both))
    text = json.dumps(expected).replace(f"{log.parent}/", "")
    assert steady(json.loads(downloaded(watch, "The report as JSON"))) == steady(json.loads(text))


def test_judgements_go_from_the_page_to_the_command_line_and_back(watch: Watch, log: Path, tmp_path: Path) -> None:
    """Keys judge; the count follows; the downloaded file is what --labels reads, and the page reads it again."""
    give(watch, log)
    before = semantic(str(log))["budget"]["labels"]
    watch.page.keyboard.press("n")
    watch.page.get_by_text("1 pair judged by hand").wait_for()
    watch.page.keyboard.press("y")
    watch.page.get_by_text("2 pairs judged by hand").wait_for()
    watch.page.get_by_role("button", name="Work 2 judgements into the page").click()
    watch.page.get_by_role("button", name="Work 2 judgements into the page").wait_for(
        state="detached", timeout=PATIENCE
    )
    watch.settle()
    watch.turn_to("Upload")
    watch.turn_to("Response caches")
    assert "2 pairs judged by hand" in words(watch)
    queue = tmp_path / "queue.csv"
    queue.write_text(downloaded(watch, "Download the queue"), "utf-8")
    assert sorted(labels.read(queue).values()) == [False, True]
    after = semantic(str(log), "--labels", str(queue))
    assert after["budget"]["labels"] == before + 2
    assert told.instead(after) in words(watch)
    watch.page.reload()
    give(watch, log)
    assert "0 pairs judged by hand" in words(watch)
    watch.page.get_by_role("button", name="Load an earlier queue").click()
    watch.page.locator("input[type=file]").last.set_input_files(queue)
    watch.page.get_by_text("2 pairs judged by hand").wait_for()


def test_controls_replay_anew(watch: Watch, log: Path) -> None:
    """One's own threshold without guards: the figures of the same options on the command line, in the same scope."""
    scope = ",".join(semantic(str(log))["scope"]["fields"])
    expected = semantic(str(log), "--threshold", "0.92", "--no-guards", "--scope", scope)
    give(watch, log)
    watch.page.get_by_text("My own", exact=True).click()
    watch.page.get_by_role("paragraph").filter(has_text=re.compile("^Guards$")).click()
    watch.page.get_by_text("without guards").first.wait_for(timeout=PATIENCE)
    watch.settle()
    assert told.instead(expected) in words(watch)


def test_hostile_texts_do_nothing(chromium: Browser, sample_once: Path, tmp_path: Path) -> None:
    """Nothing is fetched, nothing drawn, no dialog opens; what was written is what is read."""
    lines = [
        line(f"How do I get {n} of {name}?", f"{n} {name}", 100 * at + n, service=name)
        for at, name in enumerate(HOSTILE)
        for n in (5, 6, 5)
    ]
    path = write(tmp_path / "log.jsonl", lines)
    with (
        served("--db", str(sample_once), "--logs", str(path), log=tmp_path / "server.log") as home,
        watched(chromium, home) as watch,
    ):
        watch.open("/caches")
        watch.page.get_by_text("Judge pairs").wait_for(timeout=PATIENCE)
        watch.settle()
        main = watch.page.locator(MAIN)
        assert main.locator("img[src*='127.0.0.1:9'], a[href*='127.0.0.1:9'], a[href^='javascript']").count() == 0
        seen = words(watch).replace("\u2060", "")
        assert ":material/home: $x^2$ :red[no]" in seen
        assert "<img src=http://127.0.0.1:9/y.png onerror=alert(1)>" in seen
        assert watch.broken() == []
        assert watch.strangers == []
        assert [text for text in watch.complaints if "alert" in text or ":9/" in text] == []


def left_edges(watch: Watch, name: str) -> list[int]:
    """Where the labels of the lower axis stand, in pixels from the left."""
    chart = watch.page.locator(f"[data-testid=stVegaLiteChart][aria-label*='{name}']")
    texts = chart.locator("svg .role-axis-label text").filter(has_text=re.compile(r"^[01]\.\d\d$"))
    found = texts.evaluate_all("all => all.map(text => Math.round(text.getBoundingClientRect().x))")
    assert len(found) > 2
    return [int(edge) for edge in found]


def aligned(watch: Watch) -> bool:
    """Whether the two charts have the same thresholds under each other, to the pixel."""
    upper, lower = left_edges(watch, "Calls answered over"), left_edges(watch, "Wrong answers over")
    return all(abs(one - other) <= 1 for one, other in zip(upper, lower, strict=True))


def test_the_sample_is_one_click_away(watch: Watch) -> None:
    """Whoever has no log with texts at hand sees what the page does."""
    watch.open("/caches")
    watch.page.get_by_role("button", name="Try it with sample traffic").click()
    watch.page.get_by_text("A false match in this traffic").wait_for(timeout=PATIENCE)
    watch.settle()
    assert set(watch.chart_texts("Wrong answers over")) >= {"budget 1.0%", "0.60", "1.00"}
    assert aligned(watch)
    assert watch.page.get_by_text("A false match in this traffic").is_visible()
    watch.page.get_by_text("My own", exact=True).click()
    watch.page.get_by_text("not in use: you set your own").wait_for(timeout=PATIENCE)
    watch.settle()
    assert aligned(watch)
    assert watch.page.get_by_text("A false match in this traffic").is_hidden()
    assert watch.page.locator(MAIN).evaluate("main => main.scrollWidth - main.clientWidth") <= 1
