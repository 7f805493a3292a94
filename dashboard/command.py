"""``prefixscope dashboard``: starts Streamlit on this machine alone. What keeps it private is set here, as flags."""

import argparse
import ipaddress
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from prefixscope.analyzer.errors import InputError, StoreError, UsageError

STORE_VARIABLE: Final = "PREFIXSCOPE_STORE"  # how the command tells the app its store
SIGN_IN_VARIABLE: Final = "PREFIXSCOPE_SIGN_IN"
LOGS_VARIABLE: Final = "PREFIXSCOPE_LOGS"  # … and logs with texts, a path a line
DEMO_STORE: Final = "prefixscope-demo.duckdb"
SAMPLE: Final = Path(str(files("prefixscope.dashboard"))).parent / "sample_traces" / "request_log.jsonl.gz"
SAMPLE_OF_CACHES: Final = SAMPLE.with_name("response_caches.jsonl.gz")
_PORT: Final = 8517
_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]", "::1")
UPLOAD_LIMIT_MB: Final = 200


def add_parser(subparsers: Any) -> None:
    """Adds the command to the command line."""
    parser = subparsers.add_parser(
        "dashboard",
        help="pages over a store: weekly review, findings with evidence, decisions, upload",
        description="Opens the dashboard in a browser. It listens on this machine alone, unless told otherwise.",
    )
    parser.add_argument("--db", type=Path, metavar="FILE", help="the store that `prefixscope audit --db FILE` made")
    parser.add_argument(
        "--demo", action="store_true", help="audit the sample traffic into a store of its own and show it"
    )
    parser.add_argument(
        "--logs",
        type=Path,
        nargs="+",
        default=[],
        metavar="PATH",
        help="logs or traces with texts for the page on response caches; everybody who is let in sees the texts",
    )
    parser.add_argument("--port", type=int, default=_PORT, help=f"port to listen on (default {_PORT})")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on; one that others can reach needs --allow-host as well, and a proxy that signs in",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name under which the dashboard may be asked for, beside localhost (may be repeated)",
    )
    parser.add_argument(
        "--sign-in",
        action="store_true",
        help="show nothing to people who have not signed in (OpenID Connect as in .streamlit/secrets.toml)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serves until interrupted.

    Raises:
        InputError: logs that are not there.
        UsageError: neither --db nor --demo, an address that others can reach without the names it may have, or
            Streamlit is not installed.
    """
    options = server_options(arguments)
    try:
        from streamlit import config  # noqa: PLC0415 - a second of imports, only for this command
        from streamlit.web import bootstrap  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise UsageError("the dashboard is not installed: pip install 'prefixscope[dashboard]'") from error
    if arguments.sign_in:
        os.environ[SIGN_IN_VARIABLE] = "1"
    with tempfile.TemporaryDirectory(prefix="prefixscope-") as scratch:
        os.environ[STORE_VARIABLE] = str(_store(arguments, Path(scratch)))
        os.environ[LOGS_VARIABLE] = _logs(arguments)
        app = str(files("prefixscope.dashboard").joinpath("app.py"))
        config._main_script_path = app  # noqa: SLF001 - how `streamlit run` makes it read the theme beside the script
        _import_pages()
        bootstrap.load_config_options(flag_options=dict(options))
        bootstrap.run(app, is_hello=False, args=[], flag_options=dict(options))
    return 0


def _import_pages() -> None:
    """What pages import takes seconds: paid here, and not by the first one who opens a page."""
    from prefixscope.analyzer.cards import books  # noqa: PLC0415
    from prefixscope.dashboard import charts, claim, family, lifecycle, prices, worklist  # noqa: F401, PLC0415
    from prefixscope.dashboard.caches import given, settings, tables  # noqa: F401, PLC0415

    books()


def server_options(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Streamlit's options: loopback, pinned hosts, no statistics sent, no agent interface, no source in errors."""
    wide = not _is_loopback(arguments.listen)
    if wide and not arguments.allow_host:
        raise UsageError(
            f"--listen {arguments.listen} lets others in: name the host they may ask for with --allow-host NAME, "
            "and put a proxy that signs people in before it"
        )
    return {
        "server_address": arguments.listen,
        "server_port": arguments.port,
        "server_allowedHosts": [*_LOOPBACK_NAMES, *arguments.allow_host],
        "server_headless": arguments.no_browser or wide,
        "server_fileWatcherType": "none",
        "server_maxUploadSize": UPLOAD_LIMIT_MB,
        "server_enableStaticServing": False,
        "server_enableAgentApi": False,
        "server_enableXsrfProtection": True,
        "server_enableCORS": True,
        "browser_gatherUsageStats": False,
        "client_showErrorDetails": "type" if wide else "full",
        "client_toolbarMode": "viewer",
        "logger_hideWelcomeMessage": True,
    }


def _is_loopback(address: str) -> bool:
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError as error:
        raise UsageError(f"--listen {address}: write an IP address, such as 127.0.0.1") from error


def _store(arguments: argparse.Namespace, scratch: Path) -> Path:
    """The store to show; with --demo one made of the sample traffic, which is gone afterwards unless --db names it."""
    if not arguments.demo and not arguments.db:
        raise UsageError("name a store with --db, or look around with --demo")
    path = Path(arguments.db or scratch / DEMO_STORE).resolve()
    if arguments.demo:
        _fill_with_sample(path)
    elif path.exists():
        _bring_up_to_date(path)
    return path


def _logs(arguments: argparse.Namespace) -> str:
    """The logs with texts, a path a line; an error now, and not on the page, where one is not there."""
    if arguments.logs:
        from prefixscope.analyzer.ingest import expand  # noqa: PLC0415 - Polars

        expand(arguments.logs)
    sample = [SAMPLE_OF_CACHES] if arguments.demo and SAMPLE_OF_CACHES.exists() else []
    return "\n".join(str(path.resolve()) for path in arguments.logs or sample)


def _fill_with_sample(path: Path) -> None:
    from prefixscope.dashboard import intake  # noqa: PLC0415 - DuckDB and Polars

    if path.exists():
        raise UsageError(f"{path} is there already: --demo would mix the sample with it. Leave out --db, or --demo")
    if not SAMPLE.exists():
        raise InputError(f"{SAMPLE}: no sample traffic here; it comes with the sources of prefixscope")
    intake.take_in(path, intake.SAMPLE_NAMES)


def _bring_up_to_date(path: Path) -> None:
    """Pages only read, so a store of an older version gets its tables here."""
    from prefixscope.analyzer import store  # noqa: PLC0415 - DuckDB and Polars

    with suppress(StoreError), store.opened(path):  # locked, or no store: the pages say so, and it may pass
        pass
