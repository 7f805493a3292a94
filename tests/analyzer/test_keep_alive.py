"""A static part that is sent again before it expires: replayed as calls of their own, claimed only where it pays."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abstract_traffic
import auditing
from prefixscope.analyzer.replay import replay
from prefixscope.analyzer.traffic import Pings
from simulator import Marker, Outcome, Part, Rules, SimCall, simulate

FIVE_MIN_MS = 300_000
PAUSES_MS = st.sampled_from([0, 500, 60_000, FIVE_MIN_MS - 1, FIVE_MIN_MS, 480_000, 2_000_000])
PINGS = st.tuples(st.integers(0, 4), st.sampled_from([100_000, 270_000, FIVE_MIN_MS - 1, 310_000]))
CALLS = st.lists(st.tuples(PAUSES_MS, st.integers(0, 2), PINGS), min_size=1, max_size=10)


def _call(at_ms: int, question: int) -> SimCall:
    system = Part(("system", "text", "system", "rules", True), 900, 0, "system", "text", "system")
    asked = Part(("messages", "text", "user", question, True), 100 + 37 * question, 1, "messages", "text", "user")
    return SimCall(at_ms, at_ms + 400, "scope", (system, asked), (Marker(1, FIVE_MIN_MS),))


@settings(max_examples=300, deadline=None)
@given(CALLS, st.sampled_from([Rules("automatic", 256, 128), Rules("explicit", 256)]))
def test_pings_are_calls(made: Sequence[tuple[int, int, tuple[int, int]]], rules: Rules) -> None:
    """What calls read, and what pings cost, is what the simulator says of all of them in the order of their times."""
    times = np.cumsum([pause for pause, _, _ in made]).tolist()
    calls = [_call(at, question) for at, (_, question, _) in zip(times, made, strict=True)]
    count, every = (np.array([pings[n] for _, _, pings in made]) for n in (0, 1))
    pings = [(i, n) for i in range(len(calls)) for n in range(1, count[i] + 1)]
    repeated = [_call(calls[i].at_ms + n * int(every[i]), made[i][1]) for i, n in pings]
    order = sorted(range(len(calls) + len(pings)), key=lambda k: (calls + repeated)[k].at_ms)
    outcomes: dict[int, Outcome] = dict(
        zip(order, simulate([(calls + repeated)[k] for k in order], rules), strict=True)
    )
    traffic = abstract_traffic.traffic(calls, rules)
    found = replay(replace(traffic, pings=Pings(count, every, np.diff(traffic.rows.offsets))))
    of_pings = [outcomes[len(calls) + k] for k in range(len(pings))]
    np.testing.assert_allclose(found.read, [outcomes[i].read for i in range(len(calls))])
    assert found.pinged["read"].sum() == pytest.approx(sum(o.read for o in of_pings))
    assert found.pinged["uncached"].sum() == pytest.approx(sum(o.uncached for o in of_pings))
    assert found.pinged["write_5m"].sum() == pytest.approx(sum(sum(o.writes.values()) for o in of_pings))


POLICY = "\n".join(f"- Rule {n}: when the parcel is late by {n} days, offer a refund of {n} euros." for n in range(90))
POLICY_TOKENS, QUESTION_TOKENS = 2000, 20
USD_INPUT, USD_READ = 0.3e-6, 0.03e-6  # MiniMax-M2, genai-prices
START = datetime(2026, 11, 10, 8, tzinfo=UTC)


def _report(folder: Path, pauses_min: Sequence[float]) -> Any:
    """The report on questions with such pauses between them, to a cache of five minutes that has no other lifetime."""
    log, now, left = folder / "calls.jsonl", START, 0.0
    with log.open("w", encoding="utf-8") as file:
        for number, pause in enumerate([0.0, *pauses_min]):
            now += timedelta(minutes=pause)
            cached = POLICY_TOKENS if number and pause < 5 else 0
            left += cached
            usage = {
                "prompt_tokens": POLICY_TOKENS + QUESTION_TOKENS,
                "completion_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": cached},
            }
            messages = [
                {"role": "system", "content": POLICY},
                {"role": "user", "content": f"Where is parcel {number * 7919}? It was sent on day {number}."},
            ]
            line = {
                "timestamp": now.timestamp(),
                "service": "parcels",
                "provider": "minimax",
                "session_id": f"s{number}",
                "request": {"model": "MiniMax-M2", "messages": messages},
                "response": {"id": f"r{number}", "model": "MiniMax-M2", "usage": usage},
            }
            file.write(json.dumps(line) + "\n")
    return auditing.report([log])


def test_pauses_a_little_too_long_are_worth_a_ping_each(tmp_path: Path) -> None:
    """Every eight minutes a call: one ping between two of them reads what the next would have paid in full."""
    lapses = 60
    report = _report(tmp_path, [8.0] * lapses)
    [finding] = report["findings"]
    assert (finding["cause"], finding["fix"]["action"]) == ("ttl_lapse", "keep_alive")
    assert finding["evidence"]["ping_seconds"] == 270
    assert finding["evidence"]["most_pings"] == 1
    pings = lapses + 1  # nobody knows that the last pause has no end
    expected = POLICY_TOKENS * (lapses * (USD_INPUT - USD_READ) - pings * USD_READ)
    assert finding["saving_usd"]["high"] == pytest.approx(expected, rel=0.02)
    kept = next(row for row in finding["formula"] if row["bucket"] == "kept_alive")
    assert kept["tokens"] == pytest.approx(pings * POLICY_TOKENS, rel=0.02)
    assert kept["usd"] > 0


def test_pauses_of_hours_are_not_worth_their_pings(tmp_path: Path) -> None:
    """Twice a day a call: a ping every five minutes would cost more than it saves, so nothing is claimed."""
    report = _report(tmp_path, [720.0] * 20)
    assert not report["findings"]


def test_the_number_of_pings_fits_the_pauses(tmp_path: Path) -> None:
    """Most pauses are of a quarter of an hour, nights of eleven hours: pings go on for a quarter of an hour."""
    report = _report(tmp_path, ([15.0] * 15 + [660.0]) * 6)
    [finding] = report["findings"]
    assert finding["evidence"]["most_pings"] == 3
    pings = 3 * 97
    saved = 90 * POLICY_TOKENS * (USD_INPUT - USD_READ) - pings * POLICY_TOKENS * USD_READ
    assert finding["saving_usd"]["high"] == pytest.approx(saved, rel=0.03)


def test_calls_of_one_moment_need_no_ping_between_them(tmp_path: Path) -> None:
    """Two at a time, every eight minutes."""
    [finding] = _report(tmp_path, [0.0, *[8.0, 0.0] * 20])["findings"]
    assert finding["evidence"]["most_pings"] == 1
    assert finding["evidence"]["pings"] == 21


def test_pings_that_may_find_nothing_leave_nothing_certain(tmp_path: Path) -> None:
    """How far this provider keeps what is cached is not known: half of the pings may be paid in full."""
    saving = _report(tmp_path, [8.0] * 60)["findings"][0]["saving_usd"]
    assert saving["low"] == 0
    assert saving["high"] > 0
