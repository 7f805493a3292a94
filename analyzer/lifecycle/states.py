"""The life of a finding: open -> accepted -> fixed -> verified or not confirmed; dismissed; regressed opens it again.

Pure: what reports told, what was decided, and the time make the state. People say what they will do and did; whether it
helped is for a check of the calls to say (``verify``), so ``fixed`` by itself is worth nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from typing import Any, Final

from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.lifecycle.decisions import BY_CHECK, Decision
from prefixscope.analyzer.times import in_utc, iso

OPEN: Final = "open"
ORDER: Final = ("open", "accepted", "fixed", "verified", "not_confirmed", "regressed", "dismissed")
"""Every status, as tables list them."""
FOLLOWS: Final[Mapping[str, frozenset[str]]] = {
    "open": frozenset({"accepted", "fixed", "dismissed"}),
    "accepted": frozenset({"accepted", "fixed", "dismissed"}),
    "fixed": frozenset({"accepted", "fixed", "dismissed", "verified", "not_confirmed", "regressed"}),
    "verified": frozenset({"fixed", "verified", "not_confirmed", "regressed"}),
    "not_confirmed": frozenset({"accepted", "fixed", "dismissed", "verified", "not_confirmed", "regressed"}),
    "regressed": frozenset({"accepted", "fixed", "dismissed", "verified", "not_confirmed", "regressed"}),
    "dismissed": frozenset({"accepted", "dismissed"}),
}
"""Status -> what may be decided next. The same again is a correction: another owner, another day, newer figures."""
TO_DO: Final = frozenset({"open", "accepted", "not_confirmed", "regressed"})
"""Statuses of findings whose saving is still to be had."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a finding stands. Times are UTC."""

    status: str = OPEN
    since: datetime | None = None  # when it came there; None = it has never been elsewhere
    first_seen: datetime | None = None  # the first report that told it; None = no report did
    owner: str = ""
    due: date | None = None
    overdue: bool = False  # accepted, and its day has passed without a fix
    reason: str = ""
    until: date | None = None  # dismissed: open again from this day on
    fixed_on: datetime | None = None  # since when the last fix is live
    returned_on: datetime | None = None  # regressed: since when the leak is back
    measure: Mapping[str, Any] | None = None  # what the last check of this fix found (``verify.Verdict.as_json``)
    past: tuple[Mapping[str, Any], ...] = ()  # what earlier fixes had saved when the leak came back


@dataclass(frozen=True, slots=True)
class Lives:
    """The states of findings by id, and decisions that could not follow what was decided before them."""

    states: Mapping[str, State]
    notes: tuple[str, ...] = ()


def states(first_seen: Mapping[str, datetime], decisions: Iterable[Decision], now: datetime) -> Lives:
    """The state of every finding that a report told or that something was decided of.

    Args:
        first_seen: finding -> when a report told it first (``known.first_seen``).
        decisions: in the order of their times (``decisions.read``). One that may not follow the one before it, as after
            a merge of two files, changes nothing and is told.
        now: a dismissal that has run out by then is over, and what should have been done by then is overdue.
    """
    found = {id_: State(first_seen=seen) for id_, seen in first_seen.items()}
    notes = []
    for decision in decisions:
        before = _at(found.get(decision.finding, State()), decision.at)
        if decision.status in FOLLOWS[before.status]:
            found[decision.finding] = _after(before, decision)
        else:
            notes.append(f"{decision.finding}: {iso(decision.at)}: {_refusal(before, decision.status)}; not counted")
    return Lives({id_: _overdue(_at(state, now), now) for id_, state in found.items()}, tuple(notes))


def require_allowed(state: State, decision: Decision) -> None:
    """Checks a decision before it is kept.

    Raises:
        UsageError: it may not follow the finding's state, or its own fields contradict each other.
    """
    if decision.status not in FOLLOWS[state.status]:
        allowed = ", ".join(sorted(FOLLOWS[state.status] - BY_CHECK)) or "nothing"
        raise UsageError(f"{decision.finding}: {_refusal(state, decision.status)}. Possible now: {allowed}")
    if decision.status == "fixed" and (decision.on is None or decision.on > decision.at):
        raise UsageError(f"{decision.finding}: say since when it is fixed, a time that has passed, with --on")
    if decision.status == "dismissed" and not decision.reason.strip():
        raise UsageError(f"{decision.finding}: say why it is dismissed, with --reason")
    if decision.until is not None and decision.until <= decision.at.astimezone(UTC).date():
        raise UsageError(f"{decision.finding}: --until {decision.until} has passed; name a day to come")


def returned_on(measure: Mapping[str, Any]) -> datetime | None:
    """Since when a measure has the leak back; None = it has not. Texts are as good as the file they came from."""
    text = measure.get("returned_on")
    try:
        return in_utc(datetime.fromisoformat(text)) if isinstance(text, str) else None
    except (ValueError, OverflowError):
        return None


def _at(state: State, now: datetime) -> State:
    """The state by then: a dismissal may have run out."""
    if state.status != "dismissed" or state.until is None or now.astimezone(UTC).date() < state.until:
        return state
    return replace(state, status=OPEN, since=datetime.combine(state.until, time(), UTC), reason="", until=None)


def _overdue(state: State, now: datetime) -> State:
    late = state.status == "accepted" and state.due is not None and state.due < now.astimezone(UTC).date()
    return replace(state, overdue=late)


def _after(before: State, decision: Decision) -> State:
    """The state once a decision is made. What it does not say stays; what it ends is forgotten."""
    since = before.since if decision.status == before.status else decision.at
    state = replace(before, status=decision.status, since=since)
    if decision.status in BY_CHECK:
        measure = decision.measure or {}
        return replace(state, measure=measure, returned_on=returned_on(measure))
    state = _without_fix(state, before)
    if decision.status == "accepted":
        return replace(state, owner=decision.owner or state.owner, due=decision.due or state.due, reason="", until=None)
    if decision.status == "dismissed":
        return replace(state, reason=decision.reason, until=decision.until, owner="", due=None)
    return replace(state, fixed_on=decision.on or decision.at)


def _without_fix(state: State, before: State) -> State:
    """The last fix is over: what it had saved until the leak came back stays saved, anything else was not verified."""
    over = (before.measure,) if before.status == "regressed" and before.measure else ()
    return replace(state, fixed_on=None, returned_on=None, measure=None, past=before.past + over)


def _refusal(state: State, status: str) -> str:
    since = f" since {iso(state.since)}" if state.since else ""
    return f"it is {state.status.replace('_', ' ')}{since} and cannot become {status.replace('_', ' ')}"
