"""The life of a finding: what may follow what, and what each step does to the ledger."""

from datetime import UTC, date, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.lifecycle import ledger
from prefixscope.analyzer.lifecycle import states as lifecycle
from prefixscope.analyzer.lifecycle.decisions import BY_CHECK, BY_PEOPLE, STATUSES, Decision
from prefixscope.analyzer.lifecycle.known import known
from prefixscope.analyzer.lifecycle.states import FOLLOWS, ORDER, State, require_allowed, states

DAY_ONE = datetime(2026, 11, 2, 9, tzinfo=UTC)
SAVED = {"estimate": 2.0, "low": 1.0, "high": 3.0}
MEASURE = {"saved_usd": SAVED, "saved_usd_per_week": SAVED, "returned_on": None}


def day(number: int) -> datetime:
    return DAY_ONE + timedelta(days=number - 1)


def decided(status: str, on_day: int = 1, **fields: Any) -> Decision:
    """A decision on finding "a" that is complete for its status."""
    complete: dict[str, Any] = {
        "fixed": {"on": day(on_day) - timedelta(hours=1)},
        "dismissed": {"reason": "it must stand there"},
        **{name: {"measure": MEASURE} for name in BY_CHECK},
    }
    return Decision("a", status, day(on_day), "ana", **{**complete.get(status, {}), **fields})


def lived(*decisions: Decision, now: int = 100) -> State:
    found = states({"a": day(1)}, decisions, day(now))
    assert found.notes == ()
    return found.states["a"]


def steps(*names: str) -> list[Decision]:
    return [decided(name, number) for number, name in enumerate(names, 1)]


# --- What may follow what -------------------------------------------------------------------------------------------


def test_every_status_has_a_place() -> None:
    """The table of what may follow is whole, and people and checks share no status."""
    assert set(ORDER) == set(FOLLOWS) == STATUSES | {"open"}
    assert not BY_PEOPLE & BY_CHECK
    assert all(following <= STATUSES for following in FOLLOWS.values())


def test_a_check_speaks_only_of_what_was_fixed() -> None:
    """Nothing is verified that nobody says to have fixed."""
    assert {status for status, following in FOLLOWS.items() if following & BY_CHECK} == {"fixed"} | BY_CHECK


PATHS: dict[str, tuple[str, ...]] = {
    "open": (),
    "accepted": ("accepted",),
    "fixed": ("accepted", "fixed"),
    "verified": ("fixed", "verified"),
    "not_confirmed": ("fixed", "not_confirmed"),
    "regressed": ("fixed", "verified", "regressed"),
    "dismissed": ("dismissed",),
}


@pytest.mark.parametrize(("before", "after"), list(product(PATHS, sorted(STATUSES))))
def test_what_may_follow_what(before: str, after: str) -> None:
    """A decision that may not follow is refused with what may, and changes nothing where it stands in the file."""
    path = steps(*PATHS[before])
    state = lived(*path)
    assert state.status == before
    decision = decided(after, 50)
    if after in FOLLOWS[before]:
        require_allowed(state, decision)
        assert lived(*path, decision).status == after
        return
    with pytest.raises(UsageError, match=rf"a: it is {before.replace('_', ' ')}.* cannot become .*\. Possible now: \w"):
        require_allowed(state, decision)
    found = states({"a": day(1)}, [*path, decision], day(100))
    assert found.states["a"] == state
    assert found.notes[0].endswith("not counted")


@pytest.mark.parametrize(
    ("decision", "says"),
    [
        (decided("fixed", 5, on=None), "a time that has passed, with --on"),
        (decided("fixed", 5, on=day(6)), "a time that has passed, with --on"),
        (decided("dismissed", 5, reason=" "), "say why it is dismissed, with --reason"),
        (decided("dismissed", 5, until=day(5).date()), "--until 2026-11-06 has passed; name a day to come"),
    ],
)
def test_a_decision_must_make_sense(decision: Decision, says: str) -> None:
    """A fix to come, a dismissal without a reason or into the past."""
    with pytest.raises(UsageError, match=says):
        require_allowed(State(), decision)


# --- What a state holds ---------------------------------------------------------------------------------------------


def test_nothing_decided_is_open() -> None:
    """Since it was first seen, which a report tells."""
    assert lived() == State(first_seen=day(1))


def test_a_finding_that_no_report_told_has_decisions_all_the_same() -> None:
    """A store may have been made anew beside the decisions."""
    assert states({}, [decided("accepted")], day(2)).states["a"].status == "accepted"


def test_accepted_keeps_owner_and_day_until_said_otherwise() -> None:
    """A second acceptance changes what it names."""
    twice = decided("accepted", 1, owner="ana", due=date(2026, 11, 10)), decided("accepted", 2, due=date(2026, 11, 20))
    state = lived(*twice, now=19)
    assert (state.owner, state.due, state.since, state.overdue) == ("ana", date(2026, 11, 20), day(1), False)
    assert lived(*twice, now=20).overdue
    assert not lived(*twice, decided("fixed", 3), now=20).overdue


def test_a_dismissal_runs_out() -> None:
    """On its day the finding is open again, and may be decided anew; without a day it lasts."""
    dismissed = decided("dismissed", 1, until=day(10).date())
    assert lived(dismissed, now=9).status == "dismissed"
    state = lived(dismissed, now=10)
    assert (state.status, state.reason, state.since) == ("open", "", datetime(2026, 11, 11, tzinfo=UTC))
    assert lived(dismissed, decided("fixed", 11)).status == "fixed"
    assert lived(decided("dismissed"), now=10_000).status == "dismissed"


def test_regressed_opens_it_again() -> None:
    """Since when the leak is back is told, and another round of fix and check follows."""
    returned = {**MEASURE, "returned_on": "2026-11-04T00:00:00Z"}
    state = lived(*steps("fixed", "verified"), decided("regressed", 3, measure=returned))
    assert state.returned_on == datetime(2026, 11, 4, tzinfo=UTC)
    assert state.status in lifecycle.TO_DO
    again = lived(*steps("fixed", "verified"), decided("regressed", 3, measure=returned), decided("fixed", 5))
    assert (again.measure, again.returned_on, again.past) == (None, None, (returned,))


@pytest.mark.parametrize("text", [None, 7, "soon", "0001-01-01T00:00:00+23:00"])
def test_a_return_without_a_time_is_one_all_the_same(text: object) -> None:
    """Somebody may have edited the file."""
    state = lived(*steps("fixed"), decided("regressed", 2, measure={**MEASURE, "returned_on": text}))
    assert (state.status, state.returned_on) == ("regressed", None)


def test_another_time_of_the_fix_must_be_verified_anew() -> None:
    """A correction takes back what was verified with the wrong time."""
    state = lived(*steps("fixed", "verified", "fixed"))
    assert (state.measure, state.past) == (None, ())
    assert state.fixed_on == day(3) - timedelta(hours=1)


def test_a_fix_that_was_taken_back_is_none() -> None:
    """Accepted again after fixed: there is nothing to check."""
    assert lived(*steps("fixed", "accepted")).fixed_on is None


@given(st.lists(st.sampled_from(sorted(STATUSES)), max_size=12))
def test_any_history_leaves_a_sound_state(names: list[str]) -> None:
    """A measure only where a check gave one, money only behind a check, and each refused step is told."""
    found = states({"a": day(1)}, steps(*names), day(100))
    state = found.states["a"]
    assert (state.fixed_on is not None) == (state.status in {"fixed"} | BY_CHECK)
    assert (state.measure is not None) == (state.status in BY_CHECK)
    assert (state.status == "dismissed") == bool(state.reason)
    assert len(found.notes) <= len(names)
    book = ledger.ledger([], [state])
    assert bool(book["verified"]["usd"]["estimate"]) == (state.status in {"verified", "regressed"} or bool(state.past))


# --- One finding, several ids ---------------------------------------------------------------------------------------


FIX = {"ttl_lapse": "extend_ttl", "ttl_class_switched": "extend_ttl", "volatile_prefix": "move_volatile", "x": "gone"}


def told(id_: str, seen: int, cause: str = "ttl_lapse", usd: float = 1.0) -> dict[str, Any]:
    finding = {
        "id": id_,
        "cause": cause,
        "service": "shop",
        "provider": "openai",
        "model": "gpt-4.1",
        "fix": {"action": FIX[cause], "text": ""},
        "saving_usd_per_week": {"low": usd / 2, "high": usd},
    }
    row = {"id": id_, "first_seen": day(seen), "last_seen": day(seen + 1)}
    return row | {"finding": finding}


def test_ids_of_the_same_calls_are_one_finding() -> None:
    """By its first id; another cause or another family is another finding."""
    rows = [told("a", 1), told("b", 2), told("c", 2, "volatile_prefix"), told("d", 3)]
    found = known(rows, {"a": "f", "b": "f", "c": "f", "d": "g"}, {})
    assert {id_: one.ids for id_, one in found.told.items()} == {"a": ("a", "b"), "c": ("c",), "d": ("d",)}
    assert found.told["a"].first_seen == day(1)
    assert found.told["a"].last_seen == day(3)
    assert [d.finding for d in found.renamed([Decision("b", "accepted", day(1), "x")])] == ["a"]


def test_a_fault_may_show_another_sign() -> None:
    """Causes that one fix is for are one finding; a fix that is no longer known joins nothing."""
    rows = [told("a", 1), told("b", 2, "ttl_class_switched"), told("c", 3, "x")]
    found = known(rows, dict.fromkeys("abc", "f"), {})
    assert {id_: one.ids for id_, one in found.told.items()} == {"a": ("a", "b"), "c": ("c",)}


@pytest.mark.parametrize("families", [{}, {"a": "f"}, {"b": "f"}, {"a": "f", "b": "f"}])
def test_ids_that_were_one_finding_stay_so(families: dict[str, str]) -> None:
    """What a decision says of them holds also when an audit has not seen their calls."""
    found = known([told("a", 1), told("b", 2)], families, {"b": "a"})
    assert {id_: one.ids for id_, one in found.told.items()} == {"a": ("a", "b")}
    assert found.told["a"].family == ("f" if families else "")


def test_ids_chain_over_decisions_and_circles_end() -> None:
    """The newest decision need not name every id that a finding has had."""
    rows = [told("a", 1), told("b", 2), told("c", 3)]
    assert list(known(rows, {}, {"c": "b", "b": "a"}).told) == ["a"]
    assert set(known(rows, {}, {"c": "b", "b": "c"}).first_id) == {"a", "b", "c"}


def test_ids_without_calls_stand_for_themselves() -> None:
    """Nothing is known to join them."""
    assert list(known([told("a", 1), told("b", 2)], {}, {}).told) == ["a", "b"]


@pytest.mark.parametrize(("begins", "says"), [("x", "no finding begins with 'x'"), ("", "2 findings begin with ''")])
def test_an_id_must_be_one(begins: str, says: str) -> None:
    """Unknown and ambiguous beginnings name what there is."""
    with pytest.raises(UsageError, match=f"{says}. Known are: ab, b"):
        known([told("ab", 1), told("b", 2)], {}, {}).one(begins)


# --- The ledger -----------------------------------------------------------------------------------------------------

WORTH = {"open": 1.0, "accepted": 2.0, "fixed": 4.0, "verified": 8.0, "not_confirmed": 16.0, "regressed": 32.0}
REPORT = {
    "window": {},
    "findings": [{"id": status, **told(status, 1, usd=usd)["finding"]} for status, usd in WORTH.items()]
    + [told("dismissed", 1, usd=64.0)["finding"]],
}


def annotated() -> dict[str, Any]:
    """A report with a finding of each status, named by it."""
    rows = [told(status, 1) for status in ORDER]
    found = known(rows, {}, {})
    history = [
        Decision(**{**_fields(decided(name, number)), "finding": status})
        for status, path in PATHS.items()
        for number, name in enumerate(path, 1)
    ]
    return ledger.annotated(REPORT, found, states(found.first_seen, history, day(100)).states)


def _fields(decision: Decision) -> dict[str, Any]:
    return {name: getattr(decision, name) for name in decision.__slots__}


def test_the_report_tells_the_life_of_its_findings() -> None:
    """Each has its status and when it was first seen; only a check puts dollars behind it."""
    found = annotated()
    assert [finding["status"] for finding in found["findings"]] == [*WORTH, "dismissed"]
    assert {finding["first_seen"] for finding in found["findings"]} == {"2026-11-02T09:00:00Z"}
    money = {finding["id"]: finding["verified_usd"] for finding in found["findings"]}
    assert {id_ for id_, usd in money.items() if usd} == {"verified", "regressed"}


def test_the_ledger_adds_up() -> None:
    """Every finding is in one stage; what is said to be fixed has saved nothing yet."""
    book = annotated()["ledger"]
    assert book["potential"] == {"findings": 4, "usd_per_week": {"low": 25.5, "high": 51.0}}
    assert book["accepted"] == {"findings": 1, "usd_per_week": {"low": 1.0, "high": 2.0}}
    assert book["fixed"] == {"findings": 1, "promised_usd_per_week": {"low": 2.0, "high": 4.0}}
    assert book["dismissed"]["usd_per_week"]["high"] == 64.0
    assert book["verified"]["findings"] == 1
    assert book["verified"]["usd_per_week"] == SAVED
    assert book["verified"]["usd"] == {end: 2 * usd for end, usd in SAVED.items()}  # the regressed one's until then
    assert (book["not_confirmed"]["findings"], book["regressed"]["findings"]) == (1, 1)


def test_the_ledger_in_words() -> None:
    """One row a stage, rows about nothing left out."""
    rows = {name: (figure, note) for name, figure, note in ledger.lines(annotated()["ledger"])}
    assert list(rows) == ["potential", "accepted", "fixed", "verified", "not confirmed", "regressed", "dismissed"]
    assert rows["fixed"] == ("$0.00", "1 finding, not verified yet; promised $2.00–$4.00 a week")
    assert rows["verified"] == ("$4.00", "so far, 95 % interval $2.00 to $6.00; $2.00 a week in 1 finding")
    over = ledger.ledger([], [State(status="regressed", measure=MEASURE)])
    assert next(ledger.lines(over))[0] == "potential"
    assert list(ledger.lines(over))[1][2].endswith("; none of these fixes lasts")
    nothing = ledger.ledger([], [])
    assert [name for name, _, _ in ledger.lines(nothing)] == ["potential"]


def test_a_finding_tells_its_life_in_a_line() -> None:
    """What matters at its stage, and since when it is known."""
    told_ = {finding["id"]: ledger.life(finding) for finding in annotated()["findings"] if finding["id"] in PATHS}
    assert told_["open"] == "open; first seen 2026-11-02"
    assert told_["fixed"] == "fixed, live since 2026-11-03; first seen 2026-11-02"
    assert told_["verified"] == (
        "verified, live since 2026-11-02: $2.00, 95 % interval $1.00 to $3.00; first seen 2026-11-02"
    )
    owned = {**annotated()["findings"][1], "owner": "ana", "due": "2026-12-15"}
    assert ledger.life(owned) == "accepted by ana, due 2026-12-15; first seen 2026-11-02"
    assert ledger.life({**owned, "overdue": True}).startswith("accepted by ana, due 2026-12-15, overdue;")


def test_a_report_that_nobody_decided_on_is_open() -> None:
    """Also of findings that the store does not know yet."""
    found = ledger.annotated(REPORT, known([], {}, {}), {})
    assert {finding["status"] for finding in found["findings"]} == {"open"}
    assert found["ledger"]["potential"]["findings"] == 7
    assert {finding["first_seen"] for finding in found["findings"]} == {None}
