"""What people decided about findings, as pages show it and write it. All rules are the analyzer's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import streamlit as st

from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.lifecycle import checks, decisions, ledger, states
from prefixscope.analyzer.lifecycle.checks import Board
from prefixscope.analyzer.lifecycle.decisions import Decision
from prefixscope.analyzer.lifecycle.known import Told
from prefixscope.analyzer.lifecycle.states import State
from prefixscope.analyzer.report.wording import clean, usd
from prefixscope.dashboard import data, text
from prefixscope.dashboard.data import Source

Report = Mapping[str, Any]


def report() -> Report:
    """The last report with the life of its findings (``ledger.annotated``).

    Ends the run where there is none yet; ``frame.begin`` has said so then.
    """
    found = data.report()
    if found is None:
        st.stop()
    current = board()
    annotated = clean(ledger.annotated(found, current.known, current.states))
    assert isinstance(annotated, dict)
    return annotated


def board() -> Board:
    """All findings that reports on the store told, and where each stands."""
    source = data.current()
    return _board(source, _stamp(decisions.path_beside(source.path)), datetime.now(UTC).date())


@st.cache_resource(max_entries=8, show_spinner=False)
def _board(source: Source, changed: tuple[int, int], today: date) -> Board:  # noqa: ARG001 - decisions change as well
    now = datetime.combine(today, datetime.min.time(), UTC)
    with data.reading(source.path) as opened:
        return checks.board(opened, source.path, now)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (state.st_mtime_ns, state.st_size)


def told(id_: str) -> Told:
    """What reports said of a finding, by any of its ids."""
    known = board().known
    return known.told[known.first_id.get(id_, id_)]


def summary(found: Report) -> str:
    """What was verified, what is new, what came back: ``$1.20 verified so far; 3 new, 1 regressed``."""
    verified = found["ledger"]["verified"]["usd"]["estimate"]
    returned = found["ledger"]["regressed"]["findings"]
    return f"{usd(verified)} verified so far; {len(new(found))} new, {returned} regressed"


def new(found: Report) -> list[str]:
    """Ids of findings that no analysis before the last one told."""
    times = data.frame("pages/analyses")["made_at"].to_list()
    before = times[-2].replace(tzinfo=UTC) if len(times) > 1 else None
    seen = (
        (finding["id"], datetime.fromisoformat(finding["first_seen"]))
        for finding in found["findings"]
        if finding["first_seen"]
    )
    return [id_ for id_, at in seen if before is None or at > before]


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision as a form has it, for one finding or several."""

    status: str
    by: str
    owner: str = ""
    due: date | None = None
    reason: str = ""
    until: date | None = None
    on: date | None = None


def decide(ids: Sequence[str], wish: Wish) -> list[str]:
    """Keeps the decision for each finding that it may be made of; returns why not for the others."""
    path = decisions.path_beside(data.current().path)
    now = datetime.now(UTC)
    current, refused = board(), []
    for id_ in ids:
        one = told(id_)
        decision = _decision(one, wish, now)
        try:
            states.require_allowed(current.states.get(one.id, State()), decision)
        except UsageError as error:
            refused.append(_in_words(error))
        else:
            decisions.append(path, decision)
    return refused


def _decision(one: Told, wish: Wish, now: datetime) -> Decision:
    live = datetime.combine(wish.on, datetime.min.time(), UTC) if wish.on else None
    return Decision(
        finding=one.id,
        status=wish.status,
        at=now,
        by=wish.by,
        also=one.ids[1:],
        owner=wish.owner,
        due=wish.due,
        reason=wish.reason,
        until=wish.until,
        on=live,
    )


def _in_words(error: UsageError) -> str:
    """The refusal without options of the command line, which a form does not have."""
    return str(error).replace(", with --on", "").replace(", with --reason", "").replace("--until ", "")


def verify_all() -> int:
    """Measures every fix on the calls before and after it and keeps what is new; returns how many were judged."""
    source, now = data.current(), datetime.now(UTC)
    current = board()
    with data.reading(source.path) as opened:
        judged = list(checks.checked(opened, current, list(current.known.told.values())))
    for one, verdict in judged:
        decision = checks.decision_of(verdict, one, current.state(one), now)
        if decision is not None:
            decisions.append(decisions.path_beside(source.path), decision)
    return len(judged)


_FIXES = {
    "finding": pl.String,
    "status": pl.String,
    "cause": pl.String,
    "service": pl.String,
    "fixed_on": pl.Date,
    "promised": pl.Float64,
    "estimate": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "total": pl.Float64,
    "provider": pl.Float64,
    "confounders": pl.String,
}


def fixes() -> pl.DataFrame:
    """A row a finding that was fixed, with what its last check found: USD a week; ``total`` and ``provider`` so far."""
    current = board()
    lived = ((one, current.state(one)) for one in current.known.told.values())
    return pl.DataFrame([_fix(one, state) for one, state in lived if state.fixed_on], schema=_FIXES)


def _fix(one: Told, state: State) -> dict[str, Any]:
    measure = clean(state.measure or {})
    weekly = measure.get("saved_usd_per_week") or {}
    return {
        "finding": one.id,
        "status": state.status.replace("_", " "),
        "cause": text.cause(one.finding["cause"]),
        "service": text.cell(str(clean(one.finding["service"]))),
        "fixed_on": state.fixed_on.date() if state.fixed_on else None,
        "promised": one.promised(),
        **{end: weekly.get(end) for end in ("estimate", "low", "high")},
        "total": (measure.get("saved_usd") or {}).get("estimate"),
        "provider": measure.get("provider_usd"),
        "confounders": "; ".join(str(row.get("what", "")) for row in measure.get("confounders", ())),
    }
