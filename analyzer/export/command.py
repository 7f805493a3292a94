"""``prefixscope export focus``: the calls of a store as FOCUS rows. Heavy imports come late."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.times import moment, naive


def add_parser(subparsers: Any) -> None:
    """Adds ``export focus`` to argparse's subparsers."""
    export = subparsers.add_parser("export", help="costs for other tools", description="Writes costs for other tools.")
    forms = export.add_subparsers(title="forms", required=True, metavar="FORM")
    focus = forms.add_parser(
        "focus",
        help="FOCUS 1.2 as CSV",
        description="Writes the calls of a store as FOCUS 1.2 rows, one a day, service, model and cache action.",
    )
    focus.add_argument("--db", type=Path, required=True, metavar="FILE", help="the store")
    focus.add_argument("--out", type=Path, metavar="FILE", help="where to (default: standard output)")
    focus.add_argument("--service", help="only calls of this service")
    focus.add_argument("--since", type=moment, metavar="TIME", help="only calls from this time on (ISO 8601, UTC)")
    focus.add_argument("--until", type=moment, metavar="TIME", help="only calls before this time (ISO 8601, UTC)")
    focus.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the export.

    Raises:
        StoreError: the store cannot be read.
        InputError: the file cannot be written.
    """
    from prefixscope.analyzer import store  # noqa: PLC0415 - DuckDB and Polars, only for this command
    from prefixscope.analyzer.audit import Selection  # noqa: PLC0415
    from prefixscope.analyzer.export import focus  # noqa: PLC0415 - DuckDB and Polars, only for this command

    since, until = (naive(time) if time else None for time in (arguments.since, arguments.until))
    with store.opened(arguments.db, read_only=True) as opened:
        exported, left_out = focus.rows(opened, Selection(arguments.service, since, until))
    if arguments.out is None:
        focus.write(exported, sys.stdout)
    else:
        try:
            with arguments.out.open("w", encoding="utf-8", newline="") as file:
                focus.write(exported, file)
        except OSError as error:
            raise InputError(f"{arguments.out}: cannot be written: {error.strerror}") from error
    for note in _notes(left_out):
        sys.stderr.write(f"prefixscope: note: {note}\n")
    return 0


def _notes(left_out: Mapping[str, int]) -> list[str]:
    return [f"{count:,} calls {reason} are not in the export" for reason, count in left_out.items() if count]
