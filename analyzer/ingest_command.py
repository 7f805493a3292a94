"""``prefixscope ingest``: takes traces and logs into a store, without analysing them. Heavy imports come late."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prefixscope.analyzer.errors import InputError, UsageError
from prefixscope.analyzer.report.wording import plain

if TYPE_CHECKING:
    from prefixscope.analyzer.ingest import Observed, Rejected
    from prefixscope.analyzer.store import Ingested, Store

_SHOWN: Final = 5  # reasons of rejections that are printed; all are in the store


def add_parser(subparsers: Any) -> None:
    """Adds the command to argparse's subparsers."""
    parser = subparsers.add_parser(
        "ingest",
        help="take traces, logs or a spool into a store, without analysing them",
        description="Reads what `prefixscope audit` reads, and keeps the calls in a store. A call that is there is not "
        "taken twice, so the same files may be read again.",
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATH", help="files, folders or globs; none: the spool of this user's services"
    )
    parser.add_argument("--db", type=Path, required=True, metavar="FILE", help="the store (a DuckDB file)")
    parser.add_argument("--json", action="store_true", help="the counts as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Reads and keeps.

    Raises:
        InputError: there is nothing to read, or nothing of it could be read.
        StoreError: the store cannot be opened.
    """
    from prefixscope.analyzer import store  # noqa: PLC0415 - DuckDB and Polars, only for this command

    paths = [Path(name) for name in arguments.paths] or [_spool()]
    rejected: list[Rejected] = []
    with store.opened(arguments.db) as opened:
        found = ingested(opened, paths, rejected)
    _complain(rejected, arguments.db)
    if rejected and not found.calls + found.duplicates:
        raise InputError("no call could be read")
    if arguments.json:
        sys.stdout.write(json.dumps(asdict(found), indent=2) + "\n")
    else:
        sys.stdout.write(
            f"{found.calls:,} new calls in {plain(str(arguments.db))}, {found.duplicates:,} that were known, "
            f"{found.rejected:,} rejected\n"
        )
    return 0


def ingested(opened: "Store", paths: Sequence[Path], rejected: "list[Rejected]") -> "Ingested":
    """Takes what ``paths`` name into the store, with a progress bar; what was rejected is added to ``rejected``.

    Raises:
        InputError: a path does not exist.
    """
    from prefixscope.analyzer import ingest  # noqa: PLC0415
    from prefixscope.analyzer.progress import reading  # noqa: PLC0415
    from prefixscope.otel_plugin.fingerprint import Fingerprinter  # noqa: PLC0415
    from prefixscope.otel_plugin.keys import load_key  # noqa: PLC0415

    def noted(items: "Iterator[Observed | Rejected]") -> "Iterator[Observed | Rejected]":
        for item in items:
            if isinstance(item, ingest.Rejected):
                rejected.append(item)
            yield item

    files = ingest.expand(paths)
    with reading(files) as advance:
        return opened.ingest(
            noted(ingest.read(files, Fingerprinter(load_key()), on_bytes=advance)), at=datetime.now(UTC)
        )


def _spool() -> Path:
    from prefixscope.otel_plugin.settings import Settings  # noqa: PLC0415

    folder = Settings.read()[0].spool_folder()
    if folder is None:
        raise UsageError("PREFIXSCOPE_SPOOL is off, so there is no spool: name files or folders")
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no spool yet; name files or folders, or set PREFIXSCOPE_SPOOL")
    return folder


def _complain(rejected: "Sequence[Rejected]", store: Path) -> None:
    for one in rejected[:_SHOWN]:
        line = "" if one.line is None else f":{one.line}"
        print("prefixscope:", plain(f"{one.file}{line}: {one.reason}"), file=sys.stderr)  # noqa: T201 - a message
    if len(rejected) > _SHOWN:
        more = f"{len(rejected) - _SHOWN:,} more rejections are in the table quarantine of {store}"
        print("prefixscope:", plain(more), file=sys.stderr)  # noqa: T201 - as above
