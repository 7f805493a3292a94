"""The ledger: what could be saved, what was taken on, what is said to be fixed, and what was verified. Pure.

Only a check of the calls puts dollars behind a fix: one that is said to be live and was not checked yet has saved $0.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prefixscope.analyzer.lifecycle.known import Known
from prefixscope.analyzer.lifecycle.states import ORDER, TO_DO, State
from prefixscope.analyzer.report.wording import counted, usd, usd_range
from prefixscope.analyzer.times import iso

Money = Mapping[str, float]
_ENDS = ("low", "high")
_MEASURED = ("estimate", "low", "high")


def annotated(report: Mapping[str, Any], known: Known, states: Mapping[str, State]) -> dict[str, Any]:
    """The report with the life of its findings.

    Each finding gets ``status``, ``first_seen``, ``owner``, ``due``, ``until``, ``fixed_on`` (text or null),
    ``overdue`` (bool) and ``verified_usd`` (estimate, low, high; null before a check says so); the report gets
    ``ledger``. Statuses are those of ``lifecycle``; a finding that nobody knows of yet is open.
    """
    lived = [(finding, _state(finding, known, states)) for finding in report["findings"]]
    return {
        **report,
        "findings": [{**finding, **_life(state)} for finding, state in lived],
        "ledger": ledger(lived, states.values()),
    }


def ledger(lived: Iterable[tuple[Mapping[str, Any], State]], states: Iterable[State]) -> dict[str, Any]:
    """Dollars by stage.

    Args:
        lived: the findings of one report with their states: what is still to be had is at this report's rate.
        states: of all findings that were ever told: what was saved stays so when its finding is gone.

    Returns:
        potential, accepted and dismissed: findings and usd_per_week (low, high) as the report promises; accepted is
        part of potential. fixed: findings, and ``promised_usd_per_week``; it has no dollars of its own. verified:
        findings, usd_per_week and usd (estimate, low, high) so far, of fixes that last and of those that have
        regressed since. not_confirmed and regressed: findings, part of potential.
    """
    lived, states = list(lived), list(states)
    saved = [measure for state in states for measure in (*_standing(state), *state.past)]
    return {
        "potential": _promised(lived, TO_DO),
        "accepted": _promised(lived, {"accepted"}),
        "dismissed": _promised(lived, {"dismissed"}),
        "fixed": {
            "findings": _count(states, "fixed"),
            "promised_usd_per_week": _promised(lived, {"fixed"})["usd_per_week"],
        },
        "verified": {
            "findings": _count(states, "verified"),
            "usd": _sum(measure["saved_usd"] for measure in saved),
            "usd_per_week": _sum(
                state.measure["saved_usd_per_week"] for state in states if state.measure and state.status == "verified"
            ),
        },
        "not_confirmed": {"findings": _count(states, "not_confirmed")},
        "regressed": {"findings": _count(states, "regressed")},
    }


def lines(ledger: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The ledger as rows for a terminal: what, the figure, a note. Rows about nothing are left out."""
    potential, accepted, fixed, verified = (ledger[name] for name in ("potential", "accepted", "fixed", "verified"))
    yield (
        "potential",
        usd_range(potential["usd_per_week"]),
        f"a week in {counted(potential['findings'], 'finding')}",
    )
    if accepted["findings"]:
        note = f"a week of that, {counted(accepted['findings'], 'finding')} with an owner"
        yield "accepted", usd_range(accepted["usd_per_week"]), note
    if fixed["findings"]:
        promised = usd_range(fixed["promised_usd_per_week"])
        yield "fixed", usd(0), f"{counted(fixed['findings'], 'finding')}, not verified yet; promised {promised} a week"
    if verified["findings"] or verified["usd"]["estimate"]:
        yield "verified", usd(verified["usd"]["estimate"]), f"so far, {_interval(verified['usd'])}; {_weekly(verified)}"
    for name in ("not_confirmed", "regressed"):
        if ledger[name]["findings"]:
            yield name.replace("_", " "), counted(ledger[name]["findings"], "finding"), _MEANING[name]
    if ledger["dismissed"]["findings"]:
        note = f"a week in {counted(ledger['dismissed']['findings'], 'dismissed finding')}"
        yield "dismissed", usd_range(ledger["dismissed"]["usd_per_week"]), note


def life(finding: Mapping[str, Any]) -> str:
    """One line on where an annotated finding stands: ``accepted by search, due 2026-12-15; first seen 2026-11-02``."""
    taken_on, verified = finding["status"] == "accepted", finding["verified_usd"]
    late = ", overdue" if finding["overdue"] else ""
    parts = (
        finding["status"].replace("_", " "),
        f" by {finding['owner']}" if taken_on and finding["owner"] else "",
        f", due {finding['due']}{late}" if taken_on and finding["due"] else "",
        f" until {finding['until']}" if finding["until"] else "",
        f", live since {finding['fixed_on'][:10]}" if finding["fixed_on"] else "",
        f": {usd(verified['estimate'])}, {_interval(verified)}" if verified else "",
        f"; first seen {finding['first_seen'][:10]}" if finding["first_seen"] else "",
    )
    return "".join(parts)


_MEANING = {
    "not_confirmed": "fixed, but no saving can be told from nothing; to do again",
    "regressed": "the leak is back; to do again",
}


def _interval(measured: Money) -> str:
    return f"95 % interval {usd(measured['low'])} to {usd(measured['high'])}"


def _weekly(verified: Mapping[str, Any]) -> str:
    if not verified["findings"]:
        return "none of these fixes lasts"
    weekly = verified["usd_per_week"]
    return f"{usd(weekly['estimate'])} a week in {counted(verified['findings'], 'finding')}"


def _state(finding: Mapping[str, Any], known: Known, states: Mapping[str, State]) -> State:
    return states.get(known.first_id.get(finding["id"], finding["id"]), State())


def _life(state: State) -> dict[str, Any]:
    verified = state.measure["saved_usd"] if state.measure and state.status in {"verified", "regressed"} else None
    return {
        "status": state.status,
        "first_seen": iso(state.first_seen) if state.first_seen else None,
        "owner": state.owner or None,
        "due": state.due.isoformat() if state.due else None,
        "overdue": state.overdue,
        "until": state.until.isoformat() if state.until else None,
        "fixed_on": iso(state.fixed_on) if state.fixed_on else None,
        "verified_usd": verified,
    }


def _standing(state: State) -> tuple[Mapping[str, Any], ...]:
    """The measure of the last fix, if it counts as money: a return ends a saving but does not undo it."""
    counts = state.measure is not None and state.status in {"verified", "regressed"}
    return (state.measure,) if counts and state.measure else ()


def _promised(lived: Iterable[tuple[Mapping[str, Any], State]], statuses: Iterable[str]) -> dict[str, Any]:
    chosen = [finding["saving_usd_per_week"] for finding, state in lived if state.status in statuses]
    return {"findings": len(chosen), "usd_per_week": {e: round(sum(one[e] for one in chosen), 10) for e in _ENDS}}


def _count(states: Iterable[State], status: str) -> int:
    assert status in ORDER
    return sum(state.status == status for state in states)


def _sum(measured: Iterable[Money]) -> dict[str, float]:
    """Sums end by end: the interval of a sum is no wider than that, whatever the parts have to do with each other."""
    found = list(measured)
    return {end: round(sum(one[end] for one in found), 10) for end in _MEASURED}
