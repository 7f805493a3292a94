"""How fast files become a report: prints figures, tests nothing.

Every size runs in a process of its own, so that peak memory is its own. Machines differ and are shared: look at the
ratios, which compare with one pass of ``json.loads`` over the same lines in the same process.
"""

import argparse
import json
import resource
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import ModuleType
from unittest.mock import patch

import _workload

from prefixscope.analyzer import audit, baseline, breaks, ingest, savings, store, traffic, unclaimed
from prefixscope.analyzer.counting import markers, tokens
from prefixscope.analyzer.report import data
from prefixscope.otel_plugin.fingerprint import Fingerprinter

_STAGES: dict[str, tuple[tuple[ModuleType | type, str], ...]] = {
    "load": ((store.Store, "frame"), (store.Store, "arrow")),
    "prices": ((audit, "with_costs"),),
    "atoms": ((audit, "contents_of"),),
    "traffic": ((traffic, "load"),),
    "families": ((baseline, "find"), (baseline, "opening")),
    "tokens": ((tokens, "calibrated"), (baseline, "anchored"), (markers, "inferred")),
    "replay": ((baseline, "base_outcome"),),
    "breaks": ((breaks, "find"),),
    "plan": ((savings, "plan"),),
    "causes": ((audit, "explain"), (unclaimed, "find")),
    "findings": ((audit, "find"),),
    "report": ((data, "build"),),
}


@dataclass(frozen=True, slots=True)
class Run:
    """What one file took. Seconds and bytes."""

    size: int
    calls: int
    json_s: float
    ingest_s: float
    stages: dict[str, float]
    store_size: int
    peak: int

    @property
    def analysis_s(self) -> float:
        return sum(self.stages.values())

    @property
    def total_s(self) -> float:
        return self.ingest_s + self.analysis_s


@contextmanager
def stage_clock() -> Iterator[dict[str, float]]:
    """Seconds in each of _STAGES while it is open; its functions are exchanged for timed ones."""
    seconds = dict.fromkeys(_STAGES, 0.0)
    with ExitStack() as exchanged:
        for stage, functions in _STAGES.items():
            for owner, name in functions:
                timed = _timed(getattr(owner, name), seconds, stage)
                exchanged.enter_context(patch.object(owner, name, timed))
        yield seconds


def _timed(function: Callable[..., object], seconds: dict[str, float], stage: str) -> Callable[..., object]:
    def timed(*args: object, **kwargs: object) -> object:
        begun = perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            seconds[stage] += perf_counter() - begun

    return timed


def measured(path: Path) -> Run:
    """``path`` read by ``json.loads``, then into a store, then analysed."""
    begun = perf_counter()
    with path.open("rb") as lines:
        for line in lines:
            json.loads(line)
    json_s = perf_counter() - begun
    database = path.with_suffix(".duckdb")
    begun = perf_counter()
    with store.opened(database) as opened:
        found = opened.ingest(ingest.read([path], Fingerprinter(b"benchmark")), at=datetime.now(UTC))
        ingest_s = perf_counter() - begun
        with stage_clock() as stages:
            audit.analyse(opened, audit.Selection(), found)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    run = Run(path.stat().st_size, found.calls, json_s, ingest_s, dict(stages), database.stat().st_size, peak)
    database.unlink()
    return run


def _alone(path: Path) -> Run:
    """``measured`` in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, path).result()


def show(title: str, run: Run) -> None:
    print(f"\n{title}: {run.size / 1e6:,.0f} MB, {run.calls:,} calls")
    for name, seconds in (("json.loads", run.json_s), ("ingest", run.ingest_s), ("analysis", run.analysis_s)):
        rate = f"{run.size / seconds / 1e6:8,.0f} MB/s {run.calls / seconds:10,.0f} calls/s"
        print(f"  {name:<12}{seconds:8.2f} s {rate}  {seconds / run.json_s:6.2f} × json.loads")
    print("  analysis:   " + ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in run.stages.items()))
    per_call, peak = run.store_size / run.calls, run.peak / 1e9
    print(f"  report after {run.total_s:.1f} s; store {per_call:,.0f} B a call; peak {peak:.2f} GB")


def show_growth(small: Run, large: Run) -> None:
    """How much more the larger run took, for each time the calls."""
    times = large.calls / small.calls
    parts = {"ingest": (small.ingest_s, large.ingest_s), "analysis": (small.analysis_s, large.analysis_s)}
    parts["peak memory"] = (small.peak, large.peak)
    told = ", ".join(f"{name} × {after / before:.1f}" for name, (before, after) in parts.items())
    print(f"\ngrowth from {small.calls:,} to {large.calls:,} calls (× {times:.0f}): {told}")


def sizes(most: int) -> Sequence[int]:
    """Powers of ten from ten thousand, up to and with ``most``."""
    return [*(n for n in (10_000, 100_000, 1_000_000) if n < most), most]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure ingest and analysis on traffic made for it.")
    parser.add_argument("--log-mb", type=int, default=300, help="size of the request log with text; 0 leaves it out")
    parser.add_argument("--calls", type=int, default=100_000, help="fingerprinted calls, 15 KB each; 0 leaves them out")
    parser.add_argument("--folder", type=Path, help="where the temporary files go (default: the system's folder)")
    arguments = parser.parse_args()
    with TemporaryDirectory(dir=arguments.folder) as folder:
        if arguments.log_mb:
            path = Path(folder) / "log.jsonl"
            _workload.write_log(path, arguments.log_mb * 10**6)
            show("request log with text", _alone(path))
        runs = []
        for count in sizes(arguments.calls) if arguments.calls else ():
            path = Path(folder) / "spans.jsonl"
            _workload.write_fingerprints(path, count)
            runs.append(_alone(path))
            show("fingerprinted spans, 60 segments each", runs[-1])
        for small, large in pairwise(runs):
            show_growth(small, large)


if __name__ == "__main__":
    main()
