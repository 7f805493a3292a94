"""The command line. Parses, does the IO, and turns errors into one line and an exit code; heavy imports come late."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixscope.analyzer import ingest_command
from prefixscope.analyzer.errors import InputError, PrefixscopeError, UsageError
from prefixscope.analyzer.lifecycle import commands as lifecycle_commands
from prefixscope.analyzer.report.wording import plain

if TYPE_CHECKING:
    from prefixscope.analyzer.store import Store

_EXIT_CODES = (
    "exit codes: 0 ok, 1 the gate of --fail-over, 2 wrong usage, 3 input that cannot be read or has no such calls"
)
_EXTRAS = {
    **dict.fromkeys(("streamlit", "altair"), "dashboard"),
    **dict.fromkeys(("onnxruntime", "tokenizers", "usearch"), "semantic"),
}
_COMMANDS = (  # light modules; what they need is imported when they run
    "prefixscope.analyzer.collect.command",
    "prefixscope.analyzer.doctor.command",
    "prefixscope.dashboard.command",
    "prefixscope.analyzer.semantic.command",
    "prefixscope.analyzer.export.command",
)
_PIPE_WIDTH = 140  # a pipe has no width of its own: tables keep theirs instead of being squeezed into 80 columns


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # names that the terminal's encoding lacks
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except PrefixscopeError as error:
        _complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        _complain("interrupted; nothing was kept")
        return 130
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "prefixscope":
            raise
        extra = _EXTRAS.get(error.name.partition(".")[0], "audit")
        _complain(f"{error.name} is not installed. For this command: pip install 'prefixscope[{extra}]'")
        return UsageError.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader went away: nothing more to say
        return 0


def _complain(message: str) -> None:
    """One message on standard error; what it quotes from files is printable."""
    lines = message.splitlines() or [""]
    print("prefixscope:", "\n".join(map(plain, lines)), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="prefixscope",
        description="Why LLM prompts are not served from the provider's prompt cache, what it costs, what to change.",
        epilog=_EXIT_CODES,
    )
    parser.add_argument("--version", action="version", version=f"prefixscope {version('prefixscope')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_audit(commands)
    _add_show(commands)
    lifecycle_commands.add_parsers(commands)
    ingest_command.add_parser(commands)
    for command in _COMMANDS:
        import_module(command).add_parser(commands)
    return parser


def _add_audit(commands: Any) -> None:
    audit = commands.add_parser(
        "audit",
        help="read exported traces or request logs and report what the cache should have saved",
        description="Reads exported traces and request logs (OTLP JSON or protobuf, JSON lines; also .gz and .zst; "
        "files, folders, globs) and reports spend, cache hit rate and leaks, dearest first.",
        epilog=_EXIT_CODES,
    )
    audit.add_argument("paths", nargs="*", metavar="PATH", help="files, folders or globs; none: analyse --db as it is")
    audit.add_argument(
        "--db", type=Path, metavar="FILE", help="keep the calls in this DuckDB file (added to what is there)"
    )
    audit.add_argument("--service", help="only calls of this service")
    audit.add_argument("--since", type=_time, metavar="TIME", help="only calls from this time on (ISO 8601, UTC)")
    audit.add_argument("--until", type=_time, metavar="TIME", help="only calls before this time (ISO 8601, UTC)")
    audit.add_argument("--min-usd", type=float, default=0.0, metavar="USD", help="leave out findings worth less")
    audit.add_argument(
        "--fail-over",
        type=float,
        metavar="USD",
        help="exit with 1 if more than this could be saved over the data's window",
    )
    form = audit.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_const", dest="form", const="json", help="the report as JSON")
    form.add_argument("--md", action="store_const", dest="form", const="md", help="the report as Markdown")
    form.add_argument("--csv", action="store_const", dest="form", const="csv", help="the findings as CSV")
    audit.set_defaults(run=_audit, form="text")


def _add_show(commands: Any) -> None:
    show = commands.add_parser(
        "show",
        help="one finding of a kept store: evidence, the formula with its numbers, calls to look at",
        description="Shows one finding of the last audit on a store that was kept with --db.",
        epilog=_EXIT_CODES,
    )
    show.add_argument("id", metavar="ID", help="a finding's id, or its first characters")
    show.add_argument("--db", type=Path, required=True, metavar="FILE", help="the store")
    show.add_argument("--json", action="store_const", dest="form", const="json", help="the finding as JSON")
    show.set_defaults(run=_show, form="text")


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no ISO 8601 time; write 2026-11-30 or 2026-11-30T12:00"
        ) from error
    return found.astimezone(UTC).replace(tzinfo=None) if found.tzinfo else found


def _audit(arguments: argparse.Namespace) -> int:
    from prefixscope.analyzer import audit, store  # noqa: PLC0415 - DuckDB and Polars, only for this command
    from prefixscope.analyzer.report import data  # noqa: PLC0415

    if not arguments.paths and not arguments.db:
        raise UsageError("name files or folders to audit, or a store with --db")
    selection = audit.Selection(arguments.service, arguments.since, arguments.until)
    with store.opened(arguments.db) as opened:
        paths = [Path(name) for name in arguments.paths]
        ingested = ingest_command.ingested(opened, paths, []) if paths else None
        analysis = audit.analyse(opened, selection, ingested)
        _refuse_empty(analysis.report, arguments)
        if arguments.db:
            opened.keep(analysis.report, analysis.explained, at=_now())
        report = _with_lives(analysis.report, opened, arguments.db)
    report = data.without_small(report, arguments.min_usd)
    _print_report(report, arguments.form)
    return int(arguments.fail_over is not None and report["recoverable_usd"]["high"] > arguments.fail_over)


def _with_lives(report: Any, opened: "Store", db: Path | None) -> Any:
    """The report with what was decided on its findings; without a store that is kept, nothing was."""
    from prefixscope.analyzer.lifecycle import checks, ledger  # noqa: PLC0415
    from prefixscope.analyzer.lifecycle.known import Known  # noqa: PLC0415

    if db is None:
        return ledger.annotated(report, Known({}), {})
    board = checks.board(opened, db, _now())
    for note in board.notes:
        _complain(note)
    return ledger.annotated(report, board.known, board.states)


def _refuse_empty(report: Any, arguments: argparse.Namespace) -> None:
    """Nothing read although something was wrong is an error, and so is nothing to judge; no calls is none."""
    if report["calls"]["total"]:
        return
    if arguments.paths and report["quarantine"]:
        reasons = [f"{row['file']}: {row['reason']}" for row in report["quarantine"][:5]]
        raise InputError("no call could be read.\n  " + "\n  ".join(reasons))
    if arguments.service or arguments.fail_over is not None:
        of_service = f" of service {arguments.service!r}" if arguments.service else ""
        raise InputError(f"no call{of_service} was found, so there is nothing to judge")


def _show(arguments: argparse.Namespace) -> int:
    from prefixscope.analyzer import store  # noqa: PLC0415
    from prefixscope.analyzer.report import terminal  # noqa: PLC0415

    with store.opened(arguments.db, read_only=True) as opened:
        report = opened.last_report()
        if report is None:
            raise UsageError(f"{arguments.db} holds no audit yet. Run: prefixscope audit --db {arguments.db}")
        report = _with_lives(report, opened, arguments.db)
    everything = [*report["findings"], *report.get("not_claimed", ())]
    found = [finding for finding in everything if finding["id"].startswith(arguments.id)]
    if len(found) != 1:
        known = ", ".join(finding["id"] for finding in everything) or "none"
        many = f"{len(found)} findings begin" if found else "no finding begins"
        raise UsageError(f"{many} with {arguments.id!r}. The last audit found: {known}")
    if arguments.form == "json":
        print(json.dumps(found[0], indent=2))
    else:
        _print_text(lambda console: terminal.detail(found[0], report, console))
    return 0


def _print_report(report: Any, form: str) -> None:
    from prefixscope.analyzer.report import csv_table, markdown, terminal  # noqa: PLC0415

    texts: dict[str, Callable[[Any], str]] = {
        "json": lambda found: json.dumps(found, indent=2) + "\n",
        "md": markdown.render,
        "csv": csv_table.render,
    }
    if form in texts:
        sys.stdout.write(texts[form](report))
    else:
        _print_text(lambda console: terminal.render(report, console))


def _print_text(draw: Callable[[Any], None]) -> None:
    from rich.console import Console  # noqa: PLC0415

    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(file=sys.stdout, highlight=False, emoji=False, width=width)
    with console.capture() as drawn:
        draw(console)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.get().split("\n")[:-1])  # cells are padded


def _now() -> datetime:
    return datetime.now(UTC)
