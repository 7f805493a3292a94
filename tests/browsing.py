"""A dashboard that is served as users serve it, and a browser that looks at it and tells what went wrong."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import socket
from time import monotonic, sleep
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from dashboards import SIDEBAR

CHROMIUM = Path("/usr/bin/chromium")
_FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
SETTLING = 0.25  # seconds
_PATIENCE = 60_000  # ms
_OWN = ("localhost", "127.0.0.1")
_PROBE = "/_stcore/"  # Streamlit asks below the page's own path first and is told 404
_QUIET = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
    && !document.querySelector('[data-testid=stSkeleton]')
    && !document.querySelector('[data-stale=true]')
    && [...document.querySelectorAll('[data-testid=stVegaLiteChart]')].every(chart => chart.querySelector('svg'))"""
_RUNNING = "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'running'"
_FIRST = """title => [...document.querySelectorAll('h1')].some(heading => heading.innerText.trim() === title)
    && [...document.querySelectorAll('[data-testid=stMain] :is([data-testid=stMetric], [data-testid=stDataFrame],'
        + ' [data-testid=stVegaLiteChart], [data-testid=stSelectbox], [data-testid=stCheckbox],'
        + ' [data-testid=stFileUploader])')]
       .some(element => !element.closest('[data-stale=true]'))"""
_START = (
    "import argparse, sys\n"
    "from prefixscope.dashboard import command\n"
    "parser = argparse.ArgumentParser()\n"
    "command.add_parser(parser.add_subparsers())\n"
    "arguments = parser.parse_args(sys.argv[1:])\n"
    "sys.exit(arguments.run(arguments))\n"
)


@contextmanager
def served(*arguments: str, log: Path) -> Iterator[str]:
    """``prefixscope dashboard`` with these arguments; gives its address. What it prints goes to ``log``."""
    with socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", _START, "dashboard", "--no-browser", "--port", str(port), *arguments]
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ}) as process:
        try:
            _wait(f"http://127.0.0.1:{port}/_stcore/health", process, log)
            yield f"http://localhost:{port}"
        finally:
            process.terminate()


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = monotonic() + _PATIENCE / 1000
    while monotonic() < until and process.poll() is None:
        try:
            with urlopen(address, timeout=1):
                return
        except URLError:
            sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text()}")


@dataclass
class Watch:
    """A page, and everything that should not happen on it."""

    page: Page
    home: str
    strangers: list[str] = field(default_factory=list)  # requests that left this machine
    complaints: list[str] = field(default_factory=list)  # errors on the console, dialogs

    def open(self, path: str) -> None:
        """Goes to a path and waits until everything is drawn."""
        self.page.goto(f"{self.home}{path}")
        self.settle()

    def settle(self) -> None:
        """Waits until the app has finished its run and the charts are drawn."""
        self.page.wait_for_selector("h1", timeout=_PATIENCE)
        self.page.wait_for_timeout(1000 * SETTLING)  # a click takes a moment to reach the server
        self.page.wait_for_function(_QUIET, timeout=_PATIENCE)

    def click_on(self, title: str) -> None:
        """A page's link in the sidebar."""
        self.page.locator(SIDEBAR).get_by_role("link", name=title, exact=True).click()

    def turn_to(self, title: str) -> None:
        """Another page, by the sidebar."""
        self.click_on(title)
        self.page.get_by_role("heading", name=title, exact=True, level=1).wait_for(timeout=_PATIENCE)
        self.settle()

    def first_seen(self, title: str) -> None:
        """Waits until a page has shown its heading and the first of its figures, tables, charts or fields."""
        self.page.wait_for_function(_FIRST, arg=title, timeout=_PATIENCE)

    def choose(self, label: str, value: str) -> None:
        """Sets a select box of the sidebar."""
        self.page.get_by_role("combobox", name=re.compile(f"^{label}|{label}$")).first.click()
        self.page.get_by_role("option", name=value, exact=True).click()
        with suppress(PlaywrightTimeoutError):  # the run may have been over before we looked
            self.page.wait_for_function(_RUNNING, timeout=1_500)
        self.settle()

    def figures(self) -> dict[str, str]:
        """Metrics of the page: label -> value."""
        texts = self.page.locator("[data-testid=stMetric]").all_inner_texts()
        return {parts[0]: parts[1] for text in texts if len(parts := [line for line in text.split("\n") if line]) > 1}

    def chart_texts(self, name: str) -> list[str]:
        """Labels of the chart of that accessible name, axes and legend."""
        chart = self.page.locator(f"[data-testid=stVegaLiteChart][aria-label*='{name}']")
        return chart.locator("svg text").all_text_contents()

    def broken(self) -> list[str]:
        """What Streamlit shows as failed."""
        return self.page.locator("[data-testid=stException]").all_inner_texts()


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium: no other browser is downloaded."""
    with sync_playwright() as playwright:
        found = _launched(playwright)
        try:
            yield found
        finally:
            found.close()


def _launched(playwright: Playwright) -> Browser:
    return playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(_FLAGS))


@contextmanager
def watched(found: Browser, home: str, *, width: int = 1440, scheme: str = "light") -> Iterator[Watch]:
    """A fresh session of the dashboard."""
    context = found.new_context(
        viewport={"width": width, "height": 1000},
        color_scheme="dark" if scheme == "dark" else "light",
        accept_downloads=True,
    )
    watch = Watch(context.new_page(), home)

    def on_request(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.hostname not in _OWN:
            watch.strangers.append(request.url)

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error" and _PROBE not in message.location["url"]:
            watch.complaints.append(f"{message.text} {message.location['url']}")

    watch.page.on("request", on_request)
    watch.page.on("console", on_console)
    watch.page.on("pageerror", lambda error: watch.complaints.append(str(error)))
    watch.page.on("dialog", lambda dialog: watch.complaints.append(dialog.message))
    try:
        yield watch
    finally:
        context.close()
