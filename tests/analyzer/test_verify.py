"""A saving is what calls show, not what somebody says: from a log to a verdict, held against the simulator."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fixed_log
from fixed_log import DAYS, FIXED_DAY, Log
from prefixscope.analyzer import audit, ingest, store
from prefixscope.analyzer.lifecycle import checks, confounders, decisions
from prefixscope.analyzer.lifecycle.checks import Board
from prefixscope.analyzer.lifecycle.counterfactual import STRATA, saved, with_stratum
from prefixscope.analyzer.lifecycle.decisions import Decision
from prefixscope.analyzer.lifecycle.known import Told
from prefixscope.analyzer.lifecycle.verify import MIN_CALLS, MIN_DAYS, Fix, Verdict, returned_on, verify
from prefixscope.analyzer.store import Store
from prefixscope.analyzer.traffic import INPUT_BUCKETS
from prefixscope.otel_plugin.fingerprint import Fingerprinter

AT = datetime(2026, 12, 7, tzinfo=UTC)
PAUSES = Log("pause", model="claude-sonnet-4-5", pause_s=lambda _: (60, 1500))
# nothing is fixed, but the pauses are halved when it is said to be: more prefixes live by themselves
TWICE = replace(
    PAUSES,
    leaks=lambda _: True,
    calls=lambda day: 60 if day >= FIXED_DAY else 30,
    pause_s=lambda day: (30, 750) if day >= FIXED_DAY else (60, 1500),
)


# --- From a log to a verdict ----------------------------------------------------------------------------------------


@dataclass
class Story:
    """A store with the calls before a fix, then those after it, audited each time."""

    path: Path
    log: Log

    def audited(self) -> None:
        for number, entries in enumerate(fixed_log.before_and_after(self.log)):
            lines = self.path.with_name(f"{number}.jsonl")
            lines.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
            with store.opened(self.path) as opened:
                at = AT - timedelta(days=7) + timedelta(days=number)
                ingested = opened.ingest(ingest.read([lines], Fingerprinter(b"test")), at=at)
                analysis = audit.analyse(opened, audit.Selection(), ingested)
                opened.keep(analysis.report, analysis.explained, at=at)

    @contextmanager
    def board(self) -> Iterator[tuple[Store, Board]]:
        with store.opened(self.path, read_only=True) as opened:
            yield opened, checks.board(opened, self.path, AT)

    def decide(self, told: Told, **fields: Any) -> None:
        decision = Decision(told.id, fields.pop("status", "fixed"), fields.pop("at", AT), "ana", **fields)
        decisions.append(decisions.path_beside(self.path), decision)

    def verified(self, on: datetime | None = None) -> Verdict:
        """What a check says of the first finding, once it is said to be fixed."""
        with self.board() as (_, found):
            told = next(iter(found.known.told.values()))
        self.decide(told, on=on or self.log.fixed_on)
        with self.board() as (opened, found):
            ((_, verdict),) = checks.checked(opened, found, [found.known.one(told.id)])
        return verdict


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Log], Path]:
    """The store of a log, made once."""

    @cache
    def audited(log: Log) -> Path:
        story = Story(tmp_path_factory.mktemp("story") / "calls.duckdb", log)
        story.audited()
        return story.path

    return audited


@pytest.fixture
def tell(audited: Callable[[Log], Path], tmp_path: Path) -> Callable[[Log], Story]:
    """A copy of the store of a log, to decide upon."""
    return lambda log: Story(Path(shutil.copy(audited(log), tmp_path)), log)


Tell = Callable[[Log], Story]


def assert_worth(verdict: Verdict, usd: float) -> None:
    """The interval holds what the simulator says, and is not so wide that it says nothing."""
    assert verdict.saved is not None
    slack = 1e-6 * abs(usd)
    assert verdict.saved.low - slack <= usd <= verdict.saved.high + slack
    assert verdict.saved.high - verdict.saved.low <= 0.5 * abs(usd)


@pytest.mark.parametrize("log", [Log(), PAUSES], ids=["clock", "pause"])
def test_a_fix_is_worth_what_the_simulator_says(log: Log, tell: Tell) -> None:
    """The interval of the verified saving holds the simulator's difference between leak and no leak."""
    verdict = tell(log).verified()
    assert verdict.status == "verified"
    assert_worth(verdict, log.worth(log.fixed_on))
    assert verdict.before is not None
    assert verdict.after is not None
    assert verdict.before.cause_share > 0.5
    assert verdict.after.cause_share < 0.1


@pytest.mark.parametrize(
    "log",
    [
        replace(Log(), leaks=lambda _: True),
        replace(PAUSES, leaks=lambda _: True),
        replace(PAUSES, leaks=lambda _: True, seed=4),
        TWICE,
    ],
    ids=["clock", "pause", "other pauses", "twice the traffic"],
)
def test_a_fix_that_did_nothing_is_not_confirmed(log: Log, tell: Tell) -> None:
    """Whatever else makes calls cheaper: the interval has nothing in it that could not be nothing."""
    verdict = tell(log).verified()
    assert verdict.status == "not_confirmed"
    assert verdict.saved is not None
    assert verdict.saved.low <= 1e-9
    assert verdict.saved.high >= -1e-9


def test_twice_the_traffic_does_look_cheaper(tell: Tell) -> None:
    """The last case above is a real one: without regard to pauses the traffic alone would pass for a fix."""
    verdict = tell(TWICE).verified()
    assert verdict.before is not None
    assert verdict.after is not None
    assert verdict.after.usd_per_million < 0.8 * verdict.before.usd_per_million
    assert {one.what for one in verdict.confounders} >= {"volume", "pauses between calls"}


@pytest.mark.parametrize(("log", "day"), [(Log(), 11), (PAUSES, 12)], ids=["clock", "pause"])
def test_a_leak_that_returns_has_regressed(log: Log, day: int, tell: Tell) -> None:
    """What was saved until then stays saved; the days since then count for nothing, also under another cause's name."""
    log = replace(log, leaks=lambda n: n < FIXED_DAY or n >= day + 1, days=day + 4)
    verdict = tell(log).verified()
    assert verdict.status == "regressed"
    back = log.start + timedelta(days=day + 1)
    assert verdict.returned_on == back
    assert_worth(verdict, log.worth(log.fixed_on, back))


def test_volume_is_not_a_saving(tell: Tell) -> None:
    """Twice the calls after the fix: each saves what it saved, the sum is what the simulator says."""
    log = replace(Log(), calls=lambda day: 60 if day >= FIXED_DAY else 30)
    verdict = tell(log).verified()
    assert_worth(verdict, log.worth(log.fixed_on))
    assert "volume" in {one.what for one in verdict.confounders}


def test_prompt_size_is_not_a_saving(tell: Tell) -> None:
    """Longer questions after a fix that did nothing save nothing, although a call costs more; and they are told."""
    longer = replace(Log(), leaks=lambda _: True, size=lambda day: 200 if day >= FIXED_DAY else 1)
    verdict = tell(longer).verified()
    assert verdict.status == "not_confirmed"
    told = {one.what: one.treated for one in verdict.confounders}
    assert told["prompt size"] == "taken out in proportion"


# o3 went from $10 to $2 on 2025-06-10 in genai-prices, cached input stayed at $0.50
O3 = Log(
    model="o3",
    start=datetime(2025, 6, 3, tzinfo=UTC),
    prices=lambda at: (10.0 if at < datetime(2025, 6, 10, tzinfo=UTC) else 2.0, 0.5, 0.0, 0.0),
)


def test_a_price_cut_is_not_a_saving(tell: Tell) -> None:
    """On the day of a fix that did nothing the price falls to a fifth: nothing was saved, and the cut is told."""
    verdict = tell(replace(O3, leaks=lambda _: True)).verified()
    assert verdict.status == "not_confirmed"
    assert verdict.saved is not None
    assert verdict.saved.estimate == pytest.approx(0, abs=1e-9)
    (price,) = [one for one in verdict.confounders if one.what == "price of uncached tokens"]
    assert (price.before, price.after, price.treated) == ("$10 a million", "$2 a million", "taken out")


def test_a_fix_at_new_prices_is_worth_new_dollars(tell: Tell) -> None:
    """A fix on the day of the price cut is paid at the new price alone."""
    verdict = tell(O3).verified()
    assert_worth(verdict, O3.worth(O3.fixed_on))


# --- Too little to say ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on", "missing"),
    [
        (fixed_log.START + timedelta(days=3), ("calls on 5 days before the fix, there are 3",)),
        (fixed_log.START + timedelta(days=10), ("calls on 5 days after the fix, there are 4",)),
        (
            fixed_log.START + timedelta(days=DAYS),
            ("30 calls after the fix, there are 0", "calls on 5 days after the fix, there are 0"),
        ),
    ],
)
def test_too_few_days_are_told(on: datetime, missing: tuple[str, ...], tell: Tell) -> None:
    """The verdict says what is missing, and nothing is written down."""
    story = tell(Log())
    verdict = story.verified(on)
    assert (verdict.status, verdict.missing, verdict.saved) == ("not_enough_data", missing, None)
    with story.board() as (_, found):
        told = next(iter(found.known.told.values()))
        assert checks.decision_of(verdict, told, found.state(told), AT) is None


class Moved(Log):
    """The prompt goes to another model from the day of the fix on."""

    def entries(self) -> list[dict[str, Any]]:
        entries = super().entries()
        for entry in entries:
            if entry["timestamp"] >= self.fixed_on.isoformat():
                entry["request"]["model"] = entry["response"]["model"] = "gpt-4.1-mini"
        return entries


def test_calls_of_another_model_are_no_evidence(tell: Tell) -> None:
    """Another model caches and costs otherwise: nothing is claimed, and where the calls went is told."""
    verdict = tell(Moved()).verified()
    assert verdict.missing[0] == "30 calls after the fix, there are 0"
    (told,) = verdict.confounders
    assert (told.what, told.before, told.after) == ("model of this prompt", "gpt-4.1-mini 0%", "gpt-4.1-mini 100%")


def test_an_audit_of_other_calls_is_no_evidence(tell: Tell) -> None:
    """Where the last audit saw none of the finding's calls, it says so instead of guessing."""
    story = tell(Log())
    with store.opened(story.path) as opened:
        analysis = audit.analyse(opened, audit.Selection(service="another"))
        opened.keep(analysis.report, analysis.explained, at=AT)
    verdict = story.verified()
    assert verdict.missing == ("calls of this finding in the last audit, there are none",)


def test_what_was_found_is_written_once(tell: Tell) -> None:
    """The same calls give the same verdict; a second check adds no line."""
    story = tell(Log())
    verdict = story.verified()
    with story.board() as (_, found):
        told = next(iter(found.known.told.values()))
        decision = checks.decision_of(verdict, told, found.state(told), AT)
    assert decision is not None
    decisions.append(decisions.path_beside(story.path), decision)
    with story.board() as (opened, found):
        ((_, again),) = checks.checked(opened, found, [told])
        assert found.state(told).status == "verified"
        assert found.state(told).measure == verdict.as_json() == again.as_json()
        assert checks.decision_of(again, told, found.state(told), AT) is None


def test_one_finding_keeps_its_life_under_a_new_id(tell: Tell) -> None:
    """The fix cuts the text that names the family, so the id changes; decisions and first sight stay with it."""
    story = tell(Log())
    with story.board() as (_, found):
        (told,) = found.known.told.values()
        assert len(told.ids) == 2
        assert told.first_seen == AT - timedelta(days=7)
        assert all(found.known.one(id_) is told for id_ in told.ids)
    story.decide(told, status="accepted", owner="ana", also=told.ids[1:])
    with story.board() as (_, found):
        assert found.state(told).owner == "ana"


# --- Two fixes of one family ----------------------------------------------------------------------------------------


def test_fixes_of_one_day_part_what_they_saved(tell: Tell) -> None:
    """Two findings of the same calls, fixed together: their shares sum to one, as the reports had promised."""
    story = tell(Log())
    with story.board() as (opened, found):
        (told,) = found.known.told.values()
        other = replace(told, id="other", ids=("other",), finding={**told.finding, "cause": "tools_reordered"})
        fixed = replace(found.state(told), status="fixed", fixed_on=story.log.fixed_on)
        known = replace(found.known, told={told.id: told, "other": other})
        both = Board(known, {told.id: fixed, "other": fixed})
        verdicts = [verdict for _, verdict in checks.checked(opened, both, [told, other])]
    assert [verdict.share for verdict in verdicts] == [0.5, 0.5]
    assert [verdict.together_with for verdict in verdicts] == [("other",), (told.id,)]
    whole = verdicts[0].saved
    assert whole is not None
    parts = sum(verdict.as_json()["saved_usd"]["estimate"] for verdict in verdicts)
    assert parts == pytest.approx(whole.estimate)


def test_a_later_fix_ends_what_an_earlier_one_counts(tell: Tell) -> None:
    """No call is counted for two fixes of different days, and the later one is compared with the time between."""
    story = tell(Log())
    with story.board() as (opened, found):
        (told,) = found.known.told.values()
        other = replace(told, id="other", ids=("other",), finding={**told.finding, "cause": "tools_reordered"})
        later = story.log.fixed_on + timedelta(days=2)
        fixed = replace(found.state(told), status="fixed", fixed_on=story.log.fixed_on)
        states = {told.id: fixed, "other": replace(fixed, fixed_on=later)}
        both = Board(replace(found.known, told={told.id: told, "other": other}), states)
        first, second = (verdict for _, verdict in checks.checked(opened, both, [told, other]))
    assert first.missing == ("calls on 5 days after the fix, there are 2",)
    assert second.missing == ("calls on 5 days before the fix, there are 2",)


# --- Laws of the estimate -------------------------------------------------------------------------------------------

RATES = {"uncached": 3e-6, "read": 0.3e-6, **dict.fromkeys(INPUT_BUCKETS[2:], 3.75e-6), "write_1h": 6e-6}


def calls(rows: list[dict[str, Any]], start: datetime = datetime(2026, 11, 2)) -> pl.DataFrame:  # noqa: DTZ001 - as in the store
    """Priced calls; ``day`` and ``minute`` say when, the rest as in the store."""
    defaults = {
        **dict.fromkeys(INPUT_BUCKETS, 0),
        **dict.fromkeys(("session_id", "account", "region", "cache_key", "key_id", "tier", "cause"), ""),
        **dict.fromkeys(("markers", "auto_marker", "cache_ttl"), ""),
        "usage_state": "reported",
    }
    made = []
    for number, row in enumerate(rows):
        at = start + timedelta(days=row.get("day", 0), minutes=row.get("minute", number))
        known = {name: value for name, value in row.items() if name not in {"day", "minute"}}
        made.append({**defaults, "call_id": f"{number:06}", "started_at": at, **known})
    frame = pl.DataFrame(made)
    costs = [pl.lit(usd).alias(f"rate_{bucket}") for bucket, usd in RATES.items()]
    total = pl.sum_horizontal(INPUT_BUCKETS)
    return frame.with_columns(costs).with_columns(
        usd_input=pl.sum_horizontal(pl.col(bucket) * pl.col(f"rate_{bucket}") for bucket in INPUT_BUCKETS),
        usd_without_cache=total * pl.col("rate_uncached"),
    )


ROW = st.fixed_dictionaries(
    {
        "day": st.integers(0, 6),
        "minute": st.integers(0, 1439),
        "uncached": st.integers(1, 5000),
        "read": st.integers(0, 5000),
        "write_5m": st.integers(0, 5000),
        "session_id": st.sampled_from(["", "a", "b"]),
        "cause": st.sampled_from(["", "ttl_lapse"]),
    }
)
ROWS = st.lists(ROW, min_size=8, max_size=40).filter(lambda rows: len({row["day"] for row in rows}) >= 2)


@settings(max_examples=15, deadline=None)
@given(ROWS, ROWS)
def test_the_interval_holds_the_estimate_and_the_sum_is_the_bill(before: Any, after: Any) -> None:
    """``paid`` is what was billed, ``expected`` what is paid and saved, and no more than the dearest bucket."""
    earlier, later = (with_stratum(calls(rows)) for rows in (before, after))
    found = saved(earlier, later)
    assert found.low <= found.estimate <= found.high
    assert found.paid == pytest.approx(later["usd_input"].sum())
    assert found.expected - found.paid == pytest.approx(found.estimate)
    assert 0 <= found.expected <= float(later["usd_without_cache"].sum()) * 1.25 + 1e-9


@settings(max_examples=15, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_calls_within_a_day_does_not_matter(rows: Any, rng: Any) -> None:
    """Neither the order of rows, nor which call of a day and of a class of pauses had which bill."""
    frame = with_stratum(calls(rows))
    other = with_stratum(calls(rows, datetime(2026, 12, 1))).with_columns(read=pl.lit(100))  # noqa: DTZ001
    bills = ["uncached", "read", "write_5m", "cause", "usd_input"]
    keys = frame.select(pl.col("started_at").dt.date(), "stratum").rows()
    order = list(range(len(keys)))
    rng.shuffle(order)
    swapped = sorted(range(len(keys)), key=lambda i: keys[i])
    shuffled = sorted(order, key=lambda i: keys[i])
    bill = frame.select(bills)[shuffled].with_columns(at=pl.Series(swapped)).sort("at").drop("at")
    mixed = frame.drop(bills).hstack(bill)
    expected = saved(frame, other)
    for changed in (frame.sample(fraction=1.0, shuffle=True, seed=1), mixed):
        found = saved(changed, other)
        assert found.estimate == pytest.approx(expected.estimate)
        assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@settings(max_examples=10, deadline=None)
@given(ROWS)
def test_against_itself_nothing_is_saved(rows: Any) -> None:
    """The same calls before and after: the estimate is nothing, and the interval is around it."""
    frame = with_stratum(calls(rows))
    found = saved(frame, frame)
    assert found.estimate == pytest.approx(0, abs=1e-12)
    assert found.low <= 1e-12
    assert found.high >= -1e-12


def test_days_that_are_all_alike_leave_no_doubt() -> None:
    """The interval is the estimate, also where some days have more calls than others."""
    before = with_stratum(calls([{"day": n % 7, "uncached": 1000} for n in range(70)]))
    after = with_stratum(calls([{"day": n % n_days, "read": 1000} for n_days in (5, 7) for n in range(35)]))
    found = saved(before, after)
    assert found.estimate == pytest.approx(70 * 1000 * (RATES["uncached"] - RATES["read"]))
    assert (found.low, found.high) == pytest.approx((found.estimate, found.estimate))


def test_every_call_twice_saves_twice() -> None:
    """Volume after the fix scales the saving and nothing else."""
    rng = np.random.default_rng(1)
    before = with_stratum(calls([{"day": n % 7, "uncached": int(rng.integers(1000, 4000))} for n in range(70)]))
    rows = [{"day": n % 7, "uncached": 200, "read": int(rng.integers(1000, 4000))} for n in range(70)]
    after = with_stratum(calls(rows))
    once, twice = saved(before, after), saved(before, pl.concat([after, after]))
    for end in ("estimate", "low", "high"):
        assert getattr(twice, end) == pytest.approx(2 * getattr(once, end))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Days that differ: of 100 draws of a week before and after, nine intervals in ten hold the true saving."""
    rng = np.random.default_rng(4)
    hit = 0
    for _ in range(100):
        sides = []
        for mean in (0.2, 0.6):
            of_day = rng.beta(8 * mean, 8 * (1 - mean), size=7)
            reads = rng.random((7, 40)) < of_day[:, None]
            day, minute = (grid.ravel() for grid in np.indices(reads.shape))
            sides.append((day, minute, reads.ravel()))
        frames = [_frame(*side) for side in sides]
        found = saved(*frames)
        truth = 7 * 40 * 1000 * (0.6 - 0.2) * (RATES["uncached"] - RATES["read"])
        hit += found.low <= truth <= found.high
    assert hit >= 90


def _frame(day: Any, minute: Any, read: Any) -> pl.DataFrame:
    """Calls of a thousand tokens, all read or none."""
    start = pl.lit(datetime(2026, 11, 2))  # noqa: DTZ001 - as in the store
    base = pl.DataFrame({"day": day, "minute": minute, "read": read * 1000, "uncached": ~read * 1000})
    return base.with_columns(
        *(pl.lit(0).alias(bucket) for bucket in INPUT_BUCKETS[2:]),
        *(pl.lit(usd).alias(f"rate_{bucket}") for bucket, usd in RATES.items()),
        started_at=start + pl.duration(days="day", minutes="minute"),
        stratum=pl.lit(0, pl.Int64),
    )


# --- Pauses, returns, and what else changed -------------------------------------------------------------------------


def test_pauses_are_those_of_the_session_or_else_of_the_account() -> None:
    """Each class, within a session and at its beginning."""
    minutes = [0, 3, 30, 200, 3000, 3001, 3002]
    sessions = ["a", "a", "a", "a", "a", "b", ""]
    accounts = ["x"] * 6 + ["y"]
    rows = zip(minutes, sessions, accounts, strict=True)
    frame = with_stratum(calls([{"minute": m, "session_id": s, "account": a} for m, s, a in rows]))
    assert frame["stratum"].to_list() == [3, 4, 5, 6, 7, 0, 3]
    assert frame["stratum"].max() == STRATA - 1


@pytest.mark.parametrize(
    ("hits", "former", "day"),
    [
        ([0, 0, 0, 0, 0], 1.0, None),
        ([0, 0, 0, 10, 10], 1.0, 3),
        ([0, 9, 0, 10, 10], 1.0, 3),  # a bad day in between is no return
        ([0, 0, 10, 10, 4], 1.0, 2),  # a better day at the end is no cure
        ([0, 0, 0, 0, 10], 1.0, None),  # ten calls are too few
        ([10, 10, 10, 10, 10], 1.0, 0),
        ([0, 0, 0, 3, 3], 0.5, 3),
        ([0, 0, 0, 2, 2], 0.5, None),
        ([0, 0, 0, 0, 0], 0.0, None),
    ],
)
def test_a_return_is_a_stretch_of_days_up_to_the_last(hits: list[int], former: float, day: int | None) -> None:
    """From ``BACK`` of the former share on, with enough calls to be one."""
    rows = [{"day": n, "cause": "x" if i < hit else ""} for n, hit in enumerate(hits) for i in range(10)]
    expected = None if day is None else datetime(2026, 11, 2 + day)  # noqa: DTZ001 - as in the store
    assert returned_on(calls(rows), frozenset("x"), former) == expected


@pytest.mark.parametrize(
    ("column", "values", "what", "shows"),
    [
        ("account", ("", "k2"), "API key or account", ("k2 0%", "k2 100%")),
        ("tier", ("default", "flex"), "service tier", ("flex 0%", "flex 100%")),
        ("markers", ("5m", "1h"), "lifetime of breakpoints", ("1h 0%", "1h 100%")),
        ("cause", ("", "tools_reordered"), "calls with tools_reordered", ("0%", "100%")),
    ],
)
def test_what_else_changed_is_told(column: str, values: tuple[str, str], what: str, shows: tuple[str, str]) -> None:
    """Keys, tiers, lifetimes and other causes; the fixed cause and what stays the same are not."""
    before, after = (
        with_stratum(calls([{"day": n % 5, "uncached": 10, column: value} for n in range(50)])) for value in values
    )
    (found,) = confounders.told(before, after, frozenset({"ttl_lapse"}))
    assert (found.what, found.before, found.after) == (what, *shows)
    assert confounders.told(before, before, frozenset()) == ()
    if column == "cause":
        assert confounders.told(before, after, frozenset(values)) == ()


def test_calls_without_usage_or_price_are_left_out_and_counted() -> None:
    """Missing is not zero: they are in no figure."""
    good = [{"day": n % 14, "uncached": 1000, "cause": "x" if n % 14 < 7 else ""} for n in range(140)]
    frame = calls(good)
    bad = frame.head(5).with_columns(
        call_id=pl.lit("bad"), usage_state=pl.lit("partial"), uncached=pl.lit(10**9, pl.Int64)
    )
    fix = Fix(frozenset("x"), datetime(2026, 11, 9, tzinfo=UTC))
    plain, mixed = verify(frame, fix), verify(pl.concat([frame, bad]), fix)
    assert (plain.left_out, mixed.left_out) == (0, 5)
    assert replace(mixed, left_out=0) == plain


def test_calls_of_a_free_model_save_nothing() -> None:
    """Prices of zero: no saving, no division by it."""
    rows = [{"day": n % 14, "uncached": 1000 if n % 14 < 7 else 0, "read": 1} for n in range(140)]
    free = calls(rows).with_columns(pl.selectors.starts_with("rate_", "usd_") * 0.0)
    verdict = verify(free, Fix(frozenset("x"), datetime(2026, 11, 9, tzinfo=UTC)))
    assert verdict.status == "not_confirmed"
    assert verdict.saved is not None
    assert (verdict.saved.low, verdict.saved.estimate, verdict.saved.high) == (0, 0, 0)


def test_calls_longer_ago_than_four_weeks_do_not_count() -> None:
    """What was so long ago is no measure of what would have been."""
    old = [{"day": n % 7, "uncached": 1000} for n in range(70)]
    new = [{"day": 60 + n % 7, "uncached": 10} for n in range(70)]
    verdict = verify(calls(old + new), Fix(frozenset("x"), datetime(2026, 11, 2, tzinfo=UTC) + timedelta(days=60)))
    assert verdict.missing == (
        f"{MIN_CALLS} calls before the fix, there are 0",
        f"calls on {MIN_DAYS} days before the fix, there are 0",
    )
