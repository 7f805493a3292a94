"""When a service is called: bursts of sessions, sessions of turns."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from random import Random

LAST_DAY = date(2026, 11, 22)

Bounds = tuple[int, int]  # inclusive


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Gaps are in seconds, from the start of a call to the start of the next."""

    hours: tuple[int, ...]  # UTC; a burst begins at each
    sessions: int  # of a burst
    session_gap: Bounds
    turns: Bounds = (1, 1)
    turn_gap: Bounds = (40, 150)
    every_days: int = 1  # counted back from the last day
    is_sequence: bool = False  # a session begins after the end of the one before, not after its start


@dataclass(frozen=True, slots=True)
class Arrival:
    """One session: a name that is unique within its service, and when its calls are made (Unix epoch, ms)."""

    name: str
    turns_ms: tuple[int, ...]


def arrivals(rhythm: Rhythm, rng: Random, days: int) -> Iterator[Arrival]:
    """The sessions of the ``days`` days up to the last day, oldest first."""
    for back in range(days - 1, -1, -1):
        if back % rhythm.every_days == 0:
            for hour in rhythm.hours:
                yield from _burst(rhythm, rng, LAST_DAY - timedelta(days=back), hour)


def _burst(rhythm: Rhythm, rng: Random, day: date, hour: int) -> Iterator[Arrival]:
    midnight = datetime.combine(day, time(), UTC)
    start_ms = int(midnight.timestamp() * 1000) + hour * 3_600_000 + rng.randint(0, 600_000)
    for number in range(rhythm.sessions):
        turns_ms = [start_ms]
        for _ in range(rng.randint(*rhythm.turns) - 1):
            turns_ms.append(turns_ms[-1] + _gap_ms(rng, rhythm.turn_gap))
        yield Arrival(f"{day:%m%d}-{hour:02}-{number}", tuple(turns_ms))
        start_ms = (turns_ms[-1] if rhythm.is_sequence else start_ms) + _gap_ms(rng, rhythm.session_gap)


def _gap_ms(rng: Random, seconds: Bounds) -> int:
    return rng.randint(seconds[0] * 1000, seconds[1] * 1000)
