"""Stores that the pages are shown with, each made once and copied for the tests that write."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from playwright.sync_api import Browser
from streamlit.testing.v1 import AppTest

import browsing
import leaky_log
from browsing import Watch, watched
from caches_page import LINES
from dashboards import APP, HOSTILE, TIMEOUT, Run
from prefixscope.analyzer import store
from prefixscope.analyzer.semantic.analysis import Analysis, Options
from prefixscope.analyzer.semantic.bench import Bench
from prefixscope.dashboard import intake
from prefixscope.dashboard.command import STORE_VARIABLE
from semantic_traffic import write


@pytest.fixture(scope="session", autouse=True)
def _key() -> Iterator[None]:
    """Ids that are the same in every run, and no key file in the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREFIXSCOPE_KEY", "readme")
        yield


@pytest.fixture(scope="session")
def sample_once(_key: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample traffic, audited."""
    path = tmp_path_factory.mktemp("sample") / "sample.duckdb"
    intake.take_in(path, intake.SAMPLE_NAMES)
    return path


@pytest.fixture(scope="session")
def hostile_once(_key: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Leaks of services, sessions and models whose names are Markdown, HTML or formulas; one model has no price."""
    folder = tmp_path_factory.mktemp("hostile")
    entries = [
        {**entry, "session_id": name, "request": entry["request"] | {"model": model}}
        for name in HOSTILE
        for model in ("gpt-4.1", name)
        for entry in leaky_log.entries(service=name, model=model)
    ]
    for number, entry in enumerate(entries):
        entry["response"] = entry["response"] | {"id": f"{number} {HOSTILE[0]}"}
    log = leaky_log.write(folder / "log.jsonl", *entries)
    broken = folder / "broken.jsonl"
    broken.write_text("<script>alert(1)</script>\n", encoding="utf-8")
    path = folder / "hostile.duckdb"
    intake.take_in(path, {log: HOSTILE[0], broken: HOSTILE[1]})
    return path


@pytest.fixture
def sample(sample_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sample_once, tmp_path / "sample.duckdb"))


@pytest.fixture
def hostile(hostile_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(hostile_once, tmp_path / "hostile.duckdb"))


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A store without a call."""
    path = tmp_path / "empty.duckdb"
    with store.opened(path):
        return path


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs a page over a store, with parameters of the address."""
    st.cache_data.clear()
    st.cache_resource.clear()

    def run(path: Path, page: str = "weekly", **query: str) -> AppTest:
        monkeypatch.setenv(STORE_VARIABLE, str(path))
        app = AppTest.from_file(APP, default_timeout=TIMEOUT)
        for name, value in query.items():
            app.query_params[name] = value
        app.run()
        return app if page == "weekly" else app.switch_page(f"app_pages/{page}.py").run()

    yield run
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browsing.browser() as found:
        yield found


@pytest.fixture
def watch(chromium: Browser, home: str) -> Iterator[Watch]:
    """A session with the module's ``home`` in which nothing may go wrong."""
    with watched(chromium, home) as found:
        yield found
        assert found.strangers == []
        assert found.complaints == []
        assert found.broken() == []


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    """The calls of ``caches_page``, analysed as the page does it when nothing was set."""
    log = write(tmp_path_factory.mktemp("found") / "log.jsonl", LINES)
    return Bench({log: "log.jsonl"}, b"readme").analysed(Options())
