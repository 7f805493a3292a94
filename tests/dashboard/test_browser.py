"""A real browser walks the dashboard: what is drawn, what is kept, what is asked of whom."""

import csv
import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

import browsing
from browsing import Watch, served, watched
from dashboards import HOSTILE, MAIN, SIDEBAR, TITLES
from prefixscope.analyzer import store
from prefixscope.analyzer.lifecycle import decisions
from prefixscope.dashboard import intake
from prefixscope.dashboard.command import SAMPLE

pytestmark = pytest.mark.skipif(not browsing.CHROMIUM.exists(), reason="apt-get install chromium")
SAMPLES = SAMPLE.parent


@pytest.fixture(scope="module")
def shared(sample_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store of the dashboard below; tests of this module share it."""
    return Path(shutil.copy(sample_once, tmp_path_factory.mktemp("shared") / "sample.duckdb"))


@pytest.fixture(scope="module")
def home(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served("--db", str(shared), log=tmp_path_factory.mktemp("log") / "server.log") as address:
        yield address


def command_line(*arguments: str) -> str:
    """Standard output of ``prefixscope``."""
    command = [
        sys.executable,
        "-c",
        "import sys; from prefixscope.analyzer.cli import main; sys.exit(main())",
        *arguments,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ}).stdout


def downloaded(watch: Watch, label: str) -> str:
    with watch.page.expect_download() as waiting:
        watch.page.locator("[data-testid=stDownloadButton]").filter(has_text=label).get_by_role("button").click()
    return Path(waiting.value.path()).read_text("utf-8")


def test_every_page_is_walked(watch: Watch) -> None:
    """By the sidebar, from the first to the last; each draws without an error."""
    watch.open("/")
    for title in TITLES[1:]:
        watch.turn_to(title)
        assert watch.broken() == []
        assert title in watch.page.title()


def test_axes_tell_what_the_store_holds(watch: Watch, shared: Path) -> None:
    """Decimals drawn a million times too large would show here."""
    with store.opened(shared, read_only=True) as opened:
        chosen = {"since": None, "until": None, "service": None, "provider": None, "model": None}
        days = opened.frame("pages/days", **chosen)
        missed = opened.frame("pages/cause_days", **chosen).group_by("day").agg(usd=("usd_missed"))
        dearest = max(sum(row) for row in missed["usd"].to_list())
        busiest = max(days.select("read", "write", "uncached").sum_horizontal())
    watch.open("/?week=all")
    dollars = [float(text[1:]) for text in watch.chart_texts("Missed dollars") if text.startswith("$")]
    assert 0.6 * dearest < max(dollars) < 1.5 * dearest
    tokens = [
        float(text[:-1]) * 1000 for text in watch.chart_texts("Prompt tokens over") if re.fullmatch(r"\d+k", text)
    ]
    assert 0.6 * busiest < max(tokens) < 1.5 * busiest
    assert {"13 Nov", "22 Nov"} <= set(watch.chart_texts("Prompt tokens over"))


def test_filters_are_in_the_address(watch: Watch) -> None:
    """They survive a reload, and the next page keeps them."""
    watch.open("/")
    everything = watch.figures()["Spend"]
    watch.choose("Service", "support-bot")
    assert "service=support-bot" in watch.page.url
    one = watch.figures()["Spend"]
    assert one != everything
    watch.page.reload()
    watch.settle()
    assert watch.figures()["Spend"] == one
    watch.turn_to("Findings")
    assert "service=support-bot" in watch.page.url


@pytest.mark.parametrize("name", ["request_log.jsonl.gz", "otlp.jsonl.gz"])
def test_an_upload_ends_in_the_findings_of_the_command_line(watch: Watch, name: str) -> None:
    """The same findings, to the last digit, in a store that other sessions do not see."""
    watch.open("/upload")
    watch.page.locator("input[type=file]").set_input_files(SAMPLES / name)
    watch.page.get_by_role("button", name="Audit").click()
    watch.page.get_by_text("See the weekly review").wait_for(timeout=120_000)
    watch.settle()
    watch.page.get_by_role("button", name="See the weekly review").click()
    watch.page.get_by_role("heading", name="Weekly review", level=1).wait_for()
    watch.settle()
    told = command_line("audit", str(SAMPLES / name), "--csv")
    assert len(told.splitlines()) > 1
    assert downloaded(watch, "CSV") == told
    assert "a private store of this browser session" in watch.page.locator(MAIN).inner_text()


def test_a_decision_outlives_an_analysis(watch: Watch, shared: Path) -> None:
    """It stands beside the store; the next audit changes nothing about it."""
    watch.open("/finding")
    watch.page.get_by_label("Owner").fill("team ops")
    watch.page.get_by_role("button", name="Keep the decision").click()
    watch.page.locator(MAIN).get_by_text("accepted", exact=True).first.wait_for()
    [made] = decisions.read(decisions.path_beside(shared)).made
    assert (made.status, made.owner) == ("accepted", "team ops")
    intake.take_in(shared, [])
    watch.page.reload()
    watch.settle()
    shown = watch.page.locator(MAIN).inner_text()
    assert "accepted" in shown
    assert "team ops" in shown
    watch.turn_to("Savings")
    assert watch.figures()["Accepted a week"] != "$0.00"


def test_rows_are_selected_and_opened(watch: Watch) -> None:
    """The table is a canvas: a click on a row's box selects it, one on its button opens the finding."""
    watch.open("/findings")
    table = watch.page.locator("[data-testid=stDataFrame]").first
    table.click(position={"x": 16, "y": 52})
    watch.page.get_by_text("1 selected").wait_for()
    watch.page.get_by_text("Dismiss", exact=True).click()
    watch.settle()
    assert watch.page.get_by_label("Reason").is_visible()
    table.click(position={"x": 75, "y": 52})
    watch.page.get_by_role("heading", name="Finding", exact=True, level=1).wait_for()
    watch.settle()
    assert "finding=" in watch.page.url


def test_downloads_open(watch: Watch, chromium: Browser, tmp_path: Path) -> None:
    """Markdown, CSV and FOCUS hold the findings and the spend; the HTML report opens and fetches nothing."""
    watch.open("/?week=all")
    spent = watch.figures()["Spend"]
    assert downloaded(watch, "Markdown").startswith("# Prompt cache review")
    assert len(list(csv.DictReader(io.StringIO(downloaded(watch, "CSV"))))) == 5
    focus = list(csv.DictReader(io.StringIO(downloaded(watch, "FOCUS"))))
    assert f"${sum(float(row['BilledCost']) for row in focus):.2f}" == spent
    report = tmp_path / "report.html"
    report.write_text(downloaded(watch, "HTML"), encoding="utf-8")
    page = chromium.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    assert spent in page.inner_text("body")
    assert asked == [report.as_uri()]
    page.close()


def test_hostile_names_do_nothing(chromium: Browser, hostile: Path, tmp_path: Path) -> None:
    """On every page: nothing is fetched, no dialog opens, no picture and no link of theirs is there."""
    with (
        served("--db", str(hostile), log=tmp_path / "log") as home,
        watched(chromium, home) as watch,
    ):
        watch.open("/?week=all")
        for title in (*TITLES[1:], TITLES[0]):
            watch.turn_to(title)
            main = watch.page.locator(MAIN)
            assert main.locator("img[src*='127.0.0.1:9'], a[href*='127.0.0.1:9'], a[href^='javascript']").count() == 0
            assert watch.broken() == []
        watch.page.locator(SIDEBAR).get_by_label("Service").click()
        assert watch.page.get_by_role("option").count() == len(HOSTILE)
        assert watch.page.locator("[role=option] img, [role=option] a").count() == 0
        watch.page.wait_for_timeout(300)
        assert watch.strangers == []
        assert [told for told in watch.complaints if "alert" in told or ":9/" in told] == []


def test_a_narrow_window_needs_no_sideways_scrolling(chromium: Browser, home: str) -> None:
    """At 900 pixels and in the dark theme nothing stands out of the page."""
    over = "main => main.scrollWidth - main.clientWidth"
    with watched(chromium, home, width=900, scheme="dark") as watch:
        watch.open("/")
        for title in TITLES:
            watch.turn_to(title)
            assert watch.page.locator(MAIN).evaluate(over) <= 1, title
