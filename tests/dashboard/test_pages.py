"""Every page over every kind of store: no exception, and what it says is what the store holds."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboards import APP, HOSTILE, PAGES, TIMEOUT, Run
from prefixscope.dashboard.command import SIGN_IN_VARIABLE, STORE_VARIABLE

NEEDS_STORE = tuple(page for page in PAGES if page not in {"simulator", "caches", "upload"})
HOLD = "import duckdb, sys; con = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"


def told(app: AppTest) -> str:
    """All Markdown and plain text of a page."""
    return "\n".join(
        str(element.value) for kind in (app.markdown, app.text, app.caption, app.title) for element in kind
    )


def formulas(app: AppTest) -> list[str]:
    """Cells that a spreadsheet would run: tables can be downloaded as CSV."""
    texts = [table.value.select_dtypes(include=["object", "string"]) for table in app.dataframe]
    cells = [value for table in texts for column in table for value in table[column] if isinstance(value, str)]
    return [value for value in cells if value.lstrip().startswith(("=", "+", "-", "@"))]


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Another process has the store open for writing."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        assert process.stdin is not None
        process.stdin.close()


@pytest.mark.parametrize("page", PAGES)
def test_the_sample_is_drawn(sample: Path, show: Run, page: str) -> None:
    """Without an exception or an error message."""
    app = show(sample, page)
    assert not app.exception
    assert not app.error
    assert app.title[0].value


@pytest.mark.parametrize("page", PAGES)
def test_hostile_names_are_text(hostile: Path, show: Run, page: str) -> None:
    """No Markdown of a page holds an image, a link or HTML that came with a name, and no table a formula."""
    app = show(hostile, page)
    assert not app.exception
    assert not app.error
    shown = "\n".join(str(element.value) for element in (*app.markdown, *app.caption))
    shown += "\n".join(str(metric.label) + str(metric.value) for metric in app.metric)
    for active in (r"(?<!\\)!\[", r"(?<!\\)\]\(http", r"(?<!\\)<img", r"(?<!\\):material/home", r"(?<!\\)\$x"):
        assert not re.search(active, shown), active
    assert "\x1b" not in shown + told(app)
    assert "\u202e" not in shown + told(app)
    assert not formulas(app)


@pytest.mark.parametrize("page", NEEDS_STORE)
def test_an_empty_store_shows_the_way(empty: Path, show: Run, page: str) -> None:
    """The next command, with the store's path in it, and the sample data in one click."""
    app = show(empty, page)
    assert not app.exception
    assert app.code[0].value == f"prefixscope audit traces/ --db {empty}"
    assert "sample data" in app.button[0].label


def test_the_sample_is_one_click_away(empty: Path, show: Run) -> None:
    """It goes into a store of this session; the empty one stays as it is."""
    app = show(empty)
    app.button[0].click().run()
    assert not app.exception
    assert "recoverable" in app.markdown[0].value
    assert not show(empty).metric


@pytest.mark.parametrize("page", ["weekly", "explore", "simulator"])
def test_a_locked_store_is_told(sample: Path, show: Run, page: str) -> None:
    """With the reason, and a way to try again; pages that need no store work."""
    with held(sample):
        app = show(sample, page)
        assert not app.exception
        assert app.error[0].value == "The store cannot be read right now."
        assert any("another process has it open" in text.value for text in app.text)
    app.button[0].click().run()
    assert not app.error


@pytest.mark.parametrize("content", [b"", b"not a database at all", b'{"json": 1}'])
def test_another_file_is_told(tmp_path: Path, show: Run, content: bytes) -> None:
    """A path that is no store gives a sentence, not a traceback."""
    path = tmp_path / "other.duckdb"
    path.write_bytes(content)
    app = show(path)
    assert not app.exception
    assert app.error[0].value == "The store cannot be read right now."


def test_a_missing_store_leaves_what_needs_none(tmp_path: Path, show: Run) -> None:
    """Without a file there are still the upload, the simulator of one session, and response caches of other logs."""
    for page in ("upload", "simulator", "caches"):
        app = show(tmp_path / "none.duckdb", page, simulate="session")
        assert not app.exception
        assert not app.error


def test_filters_come_from_the_address(sample: Path, show: Run) -> None:
    """A view is a link; what the store does not know is as if it were not there."""
    app = show(sample, service="support-bot", week="all", min_usd="0.5")
    assert app.selectbox(key="service").value == "support-bot"
    assert app.selectbox(key="week").value == "all"
    assert app.number_input(key="min_usd").value == 0.5
    assert list(app.dataframe[-1].value["service"]) == ["support-bot"]
    assert show(sample, service="nobody").selectbox(key="service").value is None


def test_a_linked_finding_wins_over_filters(sample: Path, show: Run) -> None:
    """Its link opens it whatever else the address says."""
    findings = show(sample, "findings").dataframe[0].value
    wanted = findings["id"].iloc[-1]
    app = show(sample, "finding", finding=wanted, min_usd="1000")
    assert wanted in told(app)


def test_hostile_stores_have_findings(hostile: Path, show: Run) -> None:
    """So the tests above look at something."""
    app = show(hostile, "findings")
    assert len(app.dataframe[0].value) == len(HOSTILE)


def test_nobody_sees_anything_without_signing_in(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --sign-in; who has signed in sees the page."""
    monkeypatch.setenv(STORE_VARIABLE, str(sample))
    monkeypatch.setenv(SIGN_IN_VARIABLE, "1")
    app = AppTest.from_file(APP, default_timeout=TIMEOUT)
    app.user = {"is_logged_in": False}
    app.run()
    assert not app.exception
    assert [button.label for button in app.button] == ["Sign in"]
    assert not app.metric
    assert not app.selectbox
    app.user = {"is_logged_in": True, "email": "ana@example.com"}
    app.run()
    assert app.metric
    app.switch_page("app_pages/finding.py").run()
    assert app.text_input(key="decision_by").value == "ana@example.com"
