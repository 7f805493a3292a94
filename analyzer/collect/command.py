"""``prefixscope collect``: receives OTLP over HTTP and keeps the calls in a store. Heavy imports come late."""

import argparse
import ipaddress
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prefixscope.analyzer.errors import StoreError, UsageError
from prefixscope.analyzer.report.wording import plain

if TYPE_CHECKING:
    from prefixscope.analyzer.collect.receiver import Receiver
    from prefixscope.analyzer.collect.writer import Writer

_PORT: Final = 4318  # OTLP over HTTP
_ENDINGS: Final = (signal.SIGTERM, signal.SIGINT)


def add_parser(subparsers: Any) -> None:
    """Adds the command to argparse's subparsers."""
    parser = subparsers.add_parser(
        "collect",
        help="receive traces and logs by OTLP over HTTP and keep the calls in a store",
        description="Listens for OTLP over HTTP (JSON and protobuf, also gzip) on /v1/traces and /v1/logs, and writes "
        "the calls into a store in short transactions, so that it can be audited meanwhile. Ends on SIGTERM or Ctrl-C, "
        "when everything is written.",
    )
    parser.add_argument("--db", type=Path, required=True, metavar="FILE", help="the store (a DuckDB file)")
    parser.add_argument("--port", type=int, default=_PORT, help=f"port to listen on (default {_PORT}; 0: a free one)")
    parser.add_argument(
        "--listen",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="IP address to listen on (default 127.0.0.1); one that others can reach needs --allow-remote as well",
    )
    parser.add_argument(
        "--allow-remote",
        action="store_true",
        help="let other machines write into the store: there is neither a password nor encryption",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT; gives 1 if calls were lost.

    Raises:
        UsageError: an address that others can reach without --allow-remote, or that cannot be listened on.
        StoreError: the store cannot be opened.
    """
    _check_address(arguments)
    from prefixscope.analyzer import store  # noqa: PLC0415 - DuckDB and Polars, only for this command
    from prefixscope.analyzer.collect.writer import Writer  # noqa: PLC0415

    with store.opened(arguments.db):
        pass  # made or migrated now, or refused while somebody is looking
    writer = Writer(arguments.db, _tell)
    with _told_to_end() as ending, _listening(arguments, writer) as receiver:
        writer.start()
        serving = threading.Thread(target=receiver.serve_forever, name="prefixscope-receiver")
        serving.start()
        _tell(f"listening on {receiver.url}, writing {arguments.db}. Set OTEL_EXPORTER_OTLP_ENDPOINT={receiver.url}")
        ending.wait()
        receiver.shutdown()
        serving.join()
        writer.close()
    _tell(f"{writer.written:,} new calls written" + (f", {writer.aside:,} set aside" if writer.aside else ""))
    if writer.lost:
        raise StoreError(f"{writer.lost:,} calls are lost")
    return 0


def _check_address(arguments: argparse.Namespace) -> None:
    listen = arguments.listen = "127.0.0.1" if arguments.listen == "localhost" else arguments.listen
    try:
        wide = not ipaddress.ip_address(listen).is_loopback
    except ValueError as error:
        raise UsageError(f"--listen {listen}: write an IP address, such as 127.0.0.1") from error
    if wide and not arguments.allow_remote:
        raise UsageError(
            f"--listen {listen} lets other machines write into the store, without a password and unencrypted: add "
            "--allow-remote if only those that should can reach this address"
        )


def _listening(arguments: argparse.Namespace, writer: "Writer") -> "Receiver":
    from prefixscope.analyzer.collect.receiver import Receiver  # noqa: PLC0415
    from prefixscope.otel_plugin.fingerprint import Fingerprinter  # noqa: PLC0415
    from prefixscope.otel_plugin.keys import load_key  # noqa: PLC0415

    printer = Fingerprinter(load_key())
    try:
        return Receiver((arguments.listen, arguments.port), writer, printer, _tell)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot listen on port {arguments.port} of {arguments.listen} ({error}): is another collector running? "
            "Choose another port with --port"
        ) from error


@contextmanager
def _told_to_end() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set; the second of them ends the process at once, as it would without this."""
    ending = threading.Event()
    before: dict[signal.Signals, Any] = {}

    def end(*_: object) -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        ending.set()

    before |= {number: signal.signal(number, end) for number in _ENDINGS}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(message: str) -> None:
    print("prefixscope:", plain(message), file=sys.stderr, flush=True)  # noqa: T201 - a message
