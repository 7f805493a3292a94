"""The commands that say what becomes of a finding: accept, fixed, dismiss, verify. Heavy imports come late."""

import argparse
import getpass
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.report.wording import plain
from prefixscope.analyzer.times import day, moment

if TYPE_CHECKING:
    from prefixscope.analyzer.lifecycle.checks import Board
    from prefixscope.analyzer.lifecycle.known import Told


def add_parsers(commands: Any) -> None:
    """Adds the four commands to argparse's subparsers."""
    accept = _add(commands, "accept", "say that a finding will be fixed, by whom and until when")
    accept.add_argument("--owner", default="", metavar="NAME", help="who will do it")
    accept.add_argument("--due", type=day, metavar="DAY", help="until when (2026-11-30)")
    accept.set_defaults(run=_decide, status="accepted")
    fixed = _add(commands, "fixed", "say since when a fix is live; it counts for nothing until it is verified")
    fixed.add_argument("--on", type=moment, required=True, metavar="TIME", help="since when (ISO 8601, UTC)")
    fixed.set_defaults(run=_decide, status="fixed")
    dismiss = _add(commands, "dismiss", "say that a finding will not be fixed, and why")
    dismiss.add_argument("--reason", required=True, metavar="TEXT", help="why not")
    dismiss.add_argument("--until", type=day, metavar="DAY", help="open again from this day on; none: for good")
    dismiss.set_defaults(run=_decide, status="dismissed")
    for parser in (accept, fixed, dismiss):
        parser.add_argument("id", metavar="ID", help="a finding's id, or its first characters")
        parser.add_argument("--by", default="", metavar="NAME", help="who decides (default: your login name)")
    verify = _add(commands, "verify", "measure what fixes have saved, on the calls before and after them")
    verify.add_argument("id", nargs="?", metavar="ID", help="a finding's id, or its first characters; none: every fix")
    verify.set_defaults(run=_verify)


def _add(commands: Any, name: str, purpose: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    assert isinstance(parser, argparse.ArgumentParser)
    parser.add_argument("--db", type=Path, required=True, metavar="FILE", help="the store; decisions stand beside it")
    parser.add_argument("--json", action="store_true", help="what was decided or found as JSON")
    return parser


def _decide(arguments: argparse.Namespace) -> int:
    """Accept, fixed, dismiss: checks the decision against what was decided before, and keeps it."""
    from prefixscope.analyzer.lifecycle import decisions, states  # noqa: PLC0415 - DuckDB and Polars, only for these commands

    now = _now()
    found = _board(arguments.db, now)
    told = found.known.one(arguments.id)
    optional: dict[str, Any] = {name: getattr(arguments, name, None) for name in ("due", "until", "on")}
    decision = decisions.Decision(
        finding=told.id,
        status=arguments.status,
        at=now,
        by=arguments.by or _login_name(),
        also=told.ids[1:],
        owner=getattr(arguments, "owner", ""),
        reason=getattr(arguments, "reason", ""),
        **optional,
    )
    states.require_allowed(found.state(told), decision)
    path = decisions.path_beside(arguments.db)
    decisions.append(path, decision)
    _tell(found.notes)
    if arguments.json:
        sys.stdout.write(json.dumps(decisions.as_json(decision), indent=2) + "\n")
    else:
        sys.stdout.write(f"{plain(_name(told))}: {decision.status}; kept in {plain(str(path))}\n")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    """Checks one fix or all, keeps what is new, and prints what was found."""
    from prefixscope.analyzer import store  # noqa: PLC0415
    from prefixscope.analyzer.lifecycle import checks, decisions  # noqa: PLC0415
    from prefixscope.analyzer.report import verdicts  # noqa: PLC0415

    now = _now()
    with store.opened(arguments.db, read_only=True) as opened:
        found = checks.board(opened, arguments.db, now)
        checked = list(checks.checked(opened, found, _chosen(found, arguments.id)))
    for told, verdict in checked:
        decision = checks.decision_of(verdict, told, found.state(told), now)
        if decision is not None:
            decisions.append(decisions.path_beside(arguments.db), decision)
    _tell(found.notes)
    if arguments.json:
        sys.stdout.write(json.dumps([verdicts.as_json(*one) for one in checked], indent=2) + "\n")
    else:
        texts = ["\n".join(verdicts.lines(*one)) for one in checked] or ["No finding is said to be fixed yet."]
        sys.stdout.write("\n\n".join(texts) + "\n")
    return 0


def _board(path: Path, now: datetime) -> "Board":
    from prefixscope.analyzer import store  # noqa: PLC0415
    from prefixscope.analyzer.lifecycle import checks  # noqa: PLC0415

    with store.opened(path, read_only=True) as opened:
        found = checks.board(opened, path, now)
    if not found.known.told:
        raise UsageError(f"{path} holds no finding yet. Run: prefixscope audit --db {path}")
    return found


def _chosen(found: "Board", id_: str | None) -> "list[Told]":
    """The finding that was named, which must have been fixed, or all of them, those that promised most first."""
    if id_ is None:
        return sorted(found.known.told.values(), key=lambda told: (-told.promised(), told.id))
    told = found.known.one(id_)
    if found.state(told).fixed_on is None:
        status = found.state(told).status
        raise UsageError(f"{told.id} is {status}; once it is fixed, say so with: prefixscope fixed {told.id} --on TIME")
    return [told]


def _name(told: "Told") -> str:
    return f"{told.id}  {told.finding['cause']}  {told.finding['service']}  {told.finding['model']}"


def _tell(notes: tuple[str, ...]) -> None:
    for note in notes:
        print("prefixscope: note:", plain(note), file=sys.stderr)  # noqa: T201 - a message, beside the data


def _login_name() -> str:
    """Who is logged in; containers may have a user without a name."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def _now() -> datetime:
    return datetime.now(UTC)
