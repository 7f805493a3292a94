"""Request logs in which a leak comes and goes by day, with what the sequential simulator says that mending it is worth.

Two leaks: a clock in front of a long system prompt on an automatic cache, and a breakpoint that lives for 5 minutes
although the pauses are longer. Usage is the simulator's, so the log is what an honest provider would have reported.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from leaky_log import STATIC
from simulator import Marker, Outcome, Part, Rules, SimCall, simulate

START = datetime(2026, 11, 2, tzinfo=UTC)
DAYS = 14
FIXED_DAY = 7
_FIVE_MINUTES, _HOUR = 300_000, 3_600_000
# USD a million tokens: input, read, write for 5 minutes, write for an hour
_PRICES = {"gpt-4.1": (2.0, 0.5, 0.0, 0.0), "claude-sonnet-4-5": (3.0, 0.3, 3.75, 6.0)}
Prices = Callable[[datetime], tuple[float, float, float, float]]
Leaks = Callable[[int], bool]


def until_fixed(day: int) -> bool:
    """The leak is there until the day of the fix."""
    return day < FIXED_DAY


@dataclass(frozen=True)
class Log:
    """One service. ``leaks`` says on which days the leak is there, ``calls`` how many calls a day has."""

    kind: str = "clock"  # clock, pause
    leaks: Leaks = until_fixed
    calls: Callable[[int], int] = lambda _: 30
    pause_s: Callable[[int], tuple[int, int]] = lambda _: (60, 500)  # shortest and longest, by day
    days: int = DAYS
    start: datetime = START
    model: str = "gpt-4.1"
    prices: Prices | None = None
    size: Callable[[int], int] = lambda _: 1  # how often the question is repeated, by day
    seed: int = 3

    @property
    def fixed_on(self) -> datetime:
        return self.start + timedelta(days=FIXED_DAY)

    def times(self) -> list[datetime]:
        """Working days begin at six; calls follow each other at random pauses."""
        rng, found = random.Random(self.seed), []
        for day in range(self.days):
            now = self.start + timedelta(days=day, hours=6)
            for _ in range(self.calls(day)):
                now += timedelta(seconds=rng.randint(*self.pause_s(day)))
                found.append(now)
        return found

    def entries(self) -> list[dict[str, Any]]:
        """The lines of the log."""
        times = self.times()
        outcomes = self._simulated(times, self.leaks)
        return [self._entry(number, at, one) for number, (at, one) in enumerate(zip(times, outcomes, strict=True))]

    def worth(self, since: datetime, until: datetime | None = None) -> float:
        """USD that the calls of a time would have cost more if the leak had never gone, as the simulator has it."""
        times = self.times()
        as_sent, leaking = (self._simulated(times, leaks) for leaks in (self.leaks, lambda _: True))
        pairs = zip(times, as_sent, leaking, strict=True)
        chosen = [(at, one, other) for at, one, other in pairs if at >= since and (until is None or at < until)]
        return sum(self._usd(at, other) - self._usd(at, one) for at, one, other in chosen)

    def _day(self, at: datetime) -> int:
        return (at - self.start).days

    def _texts(self, number: int, at: datetime) -> tuple[str, str, str]:
        question = f"Question {number}: " + "and what else is there to know? " * self.size(self._day(at))
        return f"It is {at:%Y-%m-%d %H:%M:%S}.", STATIC, question

    def _simulated(self, times: Sequence[datetime], leaks: Leaks) -> list[Outcome]:
        calls = [self._call(number, at, leaking=leaks(self._day(at))) for number, at in enumerate(times)]
        return simulate(
            calls, Rules("automatic", 1024, 128, 600_000) if self.kind == "clock" else Rules("explicit", 1024)
        )

    def _call(self, number: int, at: datetime, *, leaking: bool) -> SimCall:
        clock, static, question = self._texts(number, at)
        ms = round((at - self.start).total_seconds() * 1000)
        if self.kind == "clock":
            texts = (clock, static, question) if leaking else (static, question, clock)
            return SimCall(ms, ms + 500, "scope", tuple(_part(text, block) for block, text in enumerate(texts)))
        marker = Marker(0, _FIVE_MINUTES if leaking else _HOUR)
        return SimCall(ms, ms + 500, "scope", (_part(static, 0), _part(question, 1)), (marker,))

    def _usd(self, at: datetime, outcome: Outcome) -> float:
        base, read, short, long = (self.prices or (lambda _: _PRICES[self.model]))(at)
        written = outcome.writes.get(_FIVE_MINUTES, 0) * short + outcome.writes.get(_HOUR, 0) * long
        return (outcome.uncached * base + outcome.read * read + written) / 1e6

    def _entry(self, number: int, at: datetime, outcome: Outcome) -> dict[str, Any]:
        clock, static, question = self._texts(number, at)
        leaking = self.leaks(self._day(at))
        if self.kind == "clock":
            system, user = (f"{clock} {static}", question) if leaking else (static, f"{question} {clock}")
            messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
            request: dict[str, Any] = {"model": self.model, "messages": messages}
        else:
            ttl = {} if leaking else {"ttl": "1h"}
            block = {"type": "text", "text": static, "cache_control": {"type": "ephemeral", **ttl}}
            request = {"model": self.model, "system": [block], "messages": [{"role": "user", "content": question}]}
        response = {"id": f"{self.kind}-{number}", "model": self.model, "usage": self._usage(outcome)}
        return {
            "timestamp": at.isoformat(),
            "service": "shop",
            "request": request,
            "response": response,
            "ttft_ms": 500,
        }

    def _usage(self, outcome: Outcome) -> Mapping[str, Any]:
        total = outcome.read + outcome.uncached
        if self.kind == "clock":
            details = {"cached_tokens": outcome.read}
            return {"prompt_tokens": total, "completion_tokens": 5, "prompt_tokens_details": details}
        short, long = (outcome.writes.get(ttl, 0) for ttl in (_FIVE_MINUTES, _HOUR))
        return {
            "input_tokens": outcome.uncached,
            "cache_read_input_tokens": outcome.read,
            "cache_creation_input_tokens": short + long,
            "cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long},
            "output_tokens": 5,
        }


def before_and_after(log: Log) -> Iterator[list[dict[str, Any]]]:
    """The entries up to the fix, and those behind it."""
    entries, on = log.entries(), log.fixed_on.isoformat()
    yield [entry for entry in entries if entry["timestamp"] < on]
    yield [entry for entry in entries if entry["timestamp"] >= on]


def _part(text: str, block: int) -> Part:
    return Part(text, max(1, len(text) // 4), block)
