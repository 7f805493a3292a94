"""``prefixscope doctor``: says whether capture works on this machine, and what to do where it does not."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prefixscope.analyzer.doctor import examination
from prefixscope.analyzer.report.wording import plain

_SIGNS: Final = {"ok": "ok     ", "warning": "warning", "failed": "FAILED "}


def add_parser(subparsers: Any) -> None:
    """Adds the command to argparse's subparsers."""
    parser = subparsers.add_parser(
        "doctor",
        help="check that capture works here: installation, spool, key, losses, exporters, clock, store",
        description="Looks at this machine as a service with the same environment would find it. Run it where the "
        "service runs, with its variables. Exits with 1 if something is wrong that needs a hand.",
    )
    parser.add_argument(
        "--db", type=Path, metavar="FILE", help="the store to look at (default: where the DuckDB exporter writes)"
    )
    parser.add_argument("--json", action="store_true", help="the checks as JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints what was found; gives 1 if something failed."""
    checks = examination.examine(os.environ, datetime.now(UTC), arguments.db)
    if arguments.json:
        sys.stdout.write(json.dumps(examination.as_json(checks), indent=2) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in _lines(checks))
    return int(not examination.is_well(checks))


def _lines(checks: list[examination.Check]) -> Iterator[str]:
    width = max(len(check.name) for check in checks)
    for check in checks:
        yield plain(f"{_SIGNS[check.state]}  {check.name:<{width}}  {check.message}")
        if check.advice:
            yield plain(f"{'':{len(_SIGNS['ok']) + width + 4}}{check.advice}")
