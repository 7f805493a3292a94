"""REPLAY on traffic made as arrays: how time and memory grow from ten thousand to a million calls of 60 segments.

    python tests/bench/replay.py --calls 1000000

Each size runs in a process of its own, so that its peak memory is its own. CPU time is printed beside wall time: where
both cores are busy with something else, only the former says anything. Sessions grow turn by turn; two services of four
are on an automatic cache, two mark their system prompt and their last message; one has a clock in its system prompt.
"""

import argparse
import resource
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from multiprocessing import get_context
from time import perf_counter, process_time

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import ragged, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.replay import replay

Ints = npt.NDArray[np.int64]

_TOOLS, _SENTENCES, _HISTORY, _TURNS = 11, 60, 24, 24
_MESSAGES = _HISTORY + 2 * _TURNS  # of a session, answers included
_SERVICES = 4
_CLOCK = 0  # the service whose system prompt begins with the time
_MARKED = (1, 3)  # services on Anthropic
_START = datetime(2026, 11, 1)  # noqa: DTZ001 - the store keeps UTC without a zone


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls in time order, as numbers. A session has _TURNS calls, one service and _MESSAGES messages."""

    session: Ints
    turn: Ints
    at_ms: Ints

    @property
    def service(self) -> Ints:
        return self.session % _SERVICES


@dataclass(slots=True)
class Stages:
    """Seconds of each stage, wall and CPU, and the memory in use at its end, in bytes."""

    wall: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    peak: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        wall, cpu = perf_counter(), process_time()
        yield
        self.wall[name], self.cpu[name] = perf_counter() - wall, process_time() - cpu
        self.peak[name] = _peak()


def made(count: int) -> Calls:
    """Sessions begin seven seconds apart, turns follow each other after eight to sixty seconds."""
    rng = np.random.default_rng(20261130)
    sessions = -(-count // _TURNS)
    gaps = rng.integers(8_000, 60_000, (sessions, _TURNS))
    at_ms = (7_000 * np.arange(sessions)[:, None] + np.cumsum(gaps, axis=1)).ravel()
    order = np.argsort(at_ms, kind="stable")[:count]
    number = np.arange(sessions * _TURNS)[order]
    return Calls(number // _TURNS, number % _TURNS, at_ms[order])


def tables(calls: Calls) -> tuple[pl.DataFrame, pa.Table, pa.Table]:
    """What the store would give for them: calls, prompts, contents."""
    return _frame(calls), _prompts(calls), _contents(calls)


def _numbers(calls: Calls) -> tuple[Ints, int, int]:
    """The content of each call's system prompt, and the numbers of the first system prompt and message."""
    first_system = _SERVICES * _TOOLS
    with_clock = calls.service == _CLOCK
    system = np.where(with_clock, first_system + _SERVICES + np.cumsum(with_clock) - 1, first_system + calls.service)
    return system, first_system, first_system + _SERVICES + int(with_clock.sum())


def _prompts(calls: Calls) -> pa.Table:
    system, _, first_message = _numbers(calls)
    lengths = _TOOLS + 1 + _HISTORY + 1 + 2 * calls.turn
    offsets = ragged.offsets_of(lengths)
    segments = np.empty(offsets[-1], dtype=np.int32)
    for begin, end in ragged.slices(offsets):
        part = slice(begin, end)
        place = np.arange(offsets[begin], offsets[end]) - np.repeat(offsets[part], lengths[part])
        tool = np.repeat(calls.service[part] * _TOOLS, lengths[part]) + place
        message = np.repeat(first_message + calls.session[part] * _MESSAGES, lengths[part]) + place - _TOOLS - 1
        found = np.where(place < _TOOLS, tool, message)
        found[offsets[part] - offsets[begin] + _TOOLS] = system[part]
        segments[offsets[begin] : offsets[end]] = found
    marked = np.isin(calls.service, _MARKED)
    at = np.stack([np.full(len(lengths), _TOOLS), lengths - 1], axis=1)[marked].ravel().astype(np.int32)
    marks = pa.array(ragged.offsets_of(2 * marked), pa.int32())
    return pa.table(
        {
            "segments": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(segments)),
            "marker_at": pa.ListArray.from_arrays(marks, pa.array(at)),
            "marker_ttl": pa.ListArray.from_arrays(marks, pa.array(np.full(len(at), "5m"))),
        }
    )


def _contents(calls: Calls) -> pa.Table:
    """Tools of one piece, system prompts of a line a sentence, messages of one to three lines."""
    rng = np.random.default_rng(7)
    _, first_system, first_message = _numbers(calls)
    clocks = first_message - first_system - _SERVICES
    messages = (int(calls.session.max()) + 1) * _MESSAGES
    counts = np.concatenate(
        [
            np.ones(first_system, dtype=np.int64),
            np.full(_SERVICES, _SENTENCES),
            np.full(clocks, _SENTENCES + 1),
            rng.integers(1, 4, messages),
        ]
    )
    offsets = ragged.offsets_of(counts)
    ids = rng.integers(0, 2**63, offsets[-1], dtype=np.uint64)
    clock = np.zeros(len(ids), dtype=np.bool_)
    clocked = offsets[first_system + _SERVICES : first_message]
    clock[clocked] = True
    static = ids[offsets[first_system] :][:_SENTENCES]
    ids[clocked[:, None] + np.arange(1, _SENTENCES + 1)] = static
    lists = {
        "piece_ids": ids,
        "piece_bytes": np.where(clock, 20, 80 + ids % np.uint64(60)).astype(np.int32),
        "piece_kinds": pa.DictionaryArray.from_arrays(clock.astype(np.int8), ["", "timestamp"]).cast(pa.string()),
        "piece_continues": np.zeros(len(ids), dtype=np.bool_),
    }
    flat = {
        name: pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(values))
        for name, values in lists.items()
    }
    role = np.where(np.arange(messages) % 2 == 1, "assistant", "user")
    kinds = (first_system, _SERVICES + clocks, messages)
    return pa.table(
        {
            "level": np.repeat(["tools", "system", "messages"], kinds),
            "kind": np.repeat(["tool", "text", "text"], kinds),
            "role": np.concatenate([np.repeat(["", "system"], kinds[:2]), role]),
            "canonical_id": pa.array(np.arange(len(counts)), pa.uint64()),
            **flat,
        }
    )


def _frame(calls: Calls) -> pl.DataFrame:
    marked = pl.Series(np.isin(calls.service, _MARKED))
    count = len(calls.at_ms)
    return pl.DataFrame(
        {
            "started_at": pl.Series(calls.at_ms).cast(pl.Duration("ms")) + pl.Series([_START]),
            "ttft_ms": np.full(count, 600.0),
            "duration_ms": np.full(count, 2100.0),
            "session_id": pl.Series(calls.session).cast(pl.String),
            "service": pl.Series(calls.service).cast(pl.String),
        }
    ).with_columns(
        *(pl.lit("").alias(name) for name in ("account", "region", "served_model", "cache_key", "cached_content")),
        *(pl.lit("").alias(name) for name in ("settings", "cache_ttl", "auto_marker", "cache_mode")),
        *(pl.lit(0, pl.Int64).alias(name) for name in ("uncached", "read", "reasoning")),
        *(pl.lit(0, pl.Int64).alias(f"write_{ttl}") for ttl in ("5m", "30m", "1h", "12h", "unknown")),
        provider=pl.when(marked).then(pl.lit("anthropic")).otherwise(pl.lit("openai")),
        model=pl.when(marked).then(pl.lit("claude-sonnet-4-5")).otherwise(pl.lit("gpt-5.1")),
        usage_state=pl.lit("missing"),
    )


def measured(count: int) -> tuple[Stages, int, float]:
    """Stages, rows, and the share of tokens that the replay reads."""
    stages = Stages()
    with stages.timed("(input)"):
        calls, prompts, table = tables(made(count))
    with stages.timed("atoms"):
        contents = contents_of(table)
        del table
    with stages.timed("traffic"):
        loaded = traffic.load(calls, prompts, contents)
        del prompts
    with stages.timed("replay"):
        outcome = replay(loaded)
    tokens = float(loaded.rows.tokens.sum())
    return stages, len(loaded.rows.atom), float(outcome.read.sum()) / tokens


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _alone(function: Callable[[int], tuple[Stages, int, float]], count: int) -> tuple[Stages, int, float]:
    """``function`` in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, count).result()


def _total(seconds: dict[str, float]) -> float:
    return sum(value for name, value in seconds.items() if name != "(input)")


def show(count: int, stages: Stages, rows: int, read: float) -> None:
    print(f"\n{count:,} calls, {rows:,} rows ({rows / count:.0f} a call); {read:.1%} of their tokens are read")
    for name, wall in stages.wall.items():
        peak = f"peak until then {stages.peak[name] / 1e9:5.2f} GB"
        print(f"  {name:<10}{wall:8.2f} s wall {stages.cpu[name]:8.2f} s CPU  {peak}")
    wall, cpu = _total(stages.wall), _total(stages.cpu)
    print(f"  {'together':<10}{wall:8.2f} s wall {cpu:8.2f} s CPU  {count / cpu:,.0f} calls per CPU second")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure replay on traffic made for it.")
    parser.add_argument("--calls", type=int, default=1_000_000, help="the most calls; smaller powers of ten come first")
    most = parser.parse_args().calls
    sizes = [*(size for size in (10_000, 100_000, 1_000_000) if size < most), most]
    runs = []
    for size in sizes:
        runs.append((size, _alone(measured, size)))
        show(size, *runs[-1][1])
    for (small, (before, *_)), (large, (after, *_)) in pairwise(runs):
        cpu, peak = _total(after.cpu) / _total(before.cpu), after.peak["replay"] / before.peak["replay"]
        print(f"\ngrowth from {small:,} to {large:,} calls (× {large / small:.0f}): CPU × {cpu:.1f}, peak × {peak:.1f}")


if __name__ == "__main__":
    main()
