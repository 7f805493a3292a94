"""The command: on loopback, with pinned hosts, and no wider unless somebody says so."""

import argparse
import http.client
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prefixscope.analyzer import store
from prefixscope.analyzer.errors import UsageError
from prefixscope.dashboard import command

ROOT = Path(__file__).parents[2]
HEAVY = ("streamlit", "altair", "duckdb", "polars")


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["dashboard", *arguments])


def test_it_listens_on_this_machine_alone() -> None:
    """Loopback, hosts pinned against rebinding, nothing sent home, no interface for agents, no static files."""
    options = command.server_options(parsed("--db", "x"))
    assert options["server_address"] == "127.0.0.1"
    assert set(options["server_allowedHosts"]) == {"localhost", "127.0.0.1", "[::1]", "::1"}
    assert options["server_enableXsrfProtection"]
    off = ("browser_gatherUsageStats", "server_enableAgentApi", "server_enableStaticServing")
    assert not any(options[name] for name in off)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.7"])
def test_it_refuses_to_listen_wider(address: str) -> None:
    """An address alone is not enough: the names it may have must be said."""
    with pytest.raises(UsageError, match="--allow-host"):
        command.server_options(parsed("--db", "x", "--listen", address))


def test_wider_with_names_shows_no_details() -> None:
    """Then errors tell their type only, and no browser is opened on the server."""
    options = command.server_options(parsed("--db", "x", "--listen", "10.0.0.1", "--allow-host", "costs.example"))
    assert "costs.example" in options["server_allowedHosts"]
    assert options["client_showErrorDetails"] == "type"
    assert options["server_headless"]


@pytest.mark.parametrize("address", ["costs.example", "http://127.0.0.1", ""])
def test_an_address_is_an_ip_address(address: str) -> None:
    """A name could mean anything."""
    with pytest.raises(UsageError, match="write an IP address"):
        command.server_options(parsed("--db", "x", "--listen", address))


def test_it_needs_a_store_or_the_demo() -> None:
    """Else it says which options there are."""
    with pytest.raises(UsageError, match="--demo"):
        command.run(parsed())


def test_the_demo_leaves_a_store_alone(tmp_path: Path) -> None:
    """Sample calls would be mixed with one's own."""
    path = tmp_path / "calls.duckdb"
    path.touch()
    with pytest.raises(UsageError, match="is there already"):
        command.run(parsed("--db", str(path), "--demo"))


def test_an_older_store_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the pages read it; they could not."""
    monkeypatch.setattr(store, "_SCHEMA", store._SCHEMA[:2])
    monkeypatch.setattr(store, "VERSION", 2)
    monkeypatch.setattr(store.Store, "sum_up", lambda _: None)  # version 2 had nothing to sum up into
    path = tmp_path / "old.duckdb"
    with store.opened(path) as opened:
        version = opened.frame("store/version").item()
    monkeypatch.undo()
    assert version == 2
    command._bring_up_to_date(path)
    with store.opened(path, read_only=True) as opened:
        assert opened.frame("pages/scopes").is_empty()


def test_options_exist_in_streamlit() -> None:
    """A misspelt one would be ignored, and the dashboard be less safe than it looks."""
    from streamlit import config  # noqa: PLC0415 - a second of imports, only here

    known = {name.replace(".", "_") for name in config.get_config_options()}
    assert set(command.server_options(parsed("--db", "x"))) <= known


def test_the_command_is_told_before_anything_heavy_is_imported() -> None:
    """``--help`` stays fast."""
    script = (
        f"import sys\nfrom prefixscope.dashboard import command\nprint(*sorted(set({HEAVY!r}) & sys.modules.keys()))\n"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "\n"


def test_the_demo_asks_strangers_away(tmp_path: Path) -> None:
    """Started for real: it answers localhost, and refuses the socket to another host's page."""
    pytest.importorskip("playwright.sync_api", reason="the helper below needs it")
    from browsing import served  # noqa: PLC0415

    with served("--demo", log=tmp_path / "log") as address:
        port = int(address.rpartition(":")[2])
        assert {host: handshake(port, host) for host in ("localhost", "evil.example")} == {
            "localhost": 101,
            "evil.example": 403,
        }
    assert not re.search(r"External|Network", (tmp_path / "log").read_text())


def handshake(port: int, host: str) -> int:
    """Status of a WebSocket handshake under a host name."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {
        "Host": host,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    connection.request("GET", "/_stcore/stream", headers=headers)
    try:
        return connection.getresponse().status
    finally:
        connection.close()
