"""What capture costs a service: latency added to a request, processor time, memory; ours beside others.

    python tests/bench/capture.py [--rounds 40] [--memory]

Every stack runs in a process of its own, with the OpenAI SDK against a server on loopback that answers at once. The
rounds are interleaved: in each, every stack makes a few calls of every kind, one process after the other, so that a
busy machine is busy for all. Differences are taken within a round. Stacks whose packages are absent are left out.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _canned
import openai
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from prefixscope.otel_plugin import PrefixscopeInstrumentor

KINDS = {"4 KB": 50, "400 KB": 20, "200 events": 10}
"""Kind of call -> how many in a round: enough for work in the background to fall into them."""


@dataclass(frozen=True, slots=True)
class Stack:
    """What is switched on: classes of instrumentors, and whether it is ours."""

    name: str
    instrumentors: tuple[str, ...] = ()
    ours: bool = False

    @property
    def available(self) -> bool:
        return all(_is_there(path.partition(":")[0]) for path in self.instrumentors)


_HTTP = "opentelemetry.instrumentation.httpx:HTTPX2ClientInstrumentor"
STACKS = (
    Stack("none"),
    Stack("OTel httpx", (_HTTP,)),
    Stack("+ prefixscope", (_HTTP,), ours=True),
    Stack("prefixscope alone", (), ours=True),
    Stack("+ OpenLLMetry", (_HTTP, "opentelemetry.instrumentation.openai:OpenAIInstrumentor")),
    Stack("+ OpenInference", (_HTTP, "openinference.instrumentation.openai:OpenAIInstrumentor")),
    Stack("+ OTel GenAI", (_HTTP, "opentelemetry.instrumentation.genai.openai:OpenAIInstrumentor")),
)
BASE = "OTel httpx"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


class Nowhere(SpanExporter):
    """Exports to nobody."""

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


# --- one stack, in its process ----------------------------------------------------------------------------------------


def child(name: str, url: str, spool: str) -> None:
    """Makes calls when told to by a line on standard input; answers with their times."""
    stack = next(stack for stack in STACKS if stack.name == name)
    finish = _switch_on(stack, spool)
    call = _caller(url)
    for line in sys.stdin:
        order = json.loads(line)
        _flushed(finish)
        cpu = time.process_time_ns()
        times = [_timed(call, order["kind"]) for _ in range(order["calls"])]
        _flushed(finish)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"ns": times, "cpu_ns": time.process_time_ns() - cpu, "rss": rss}), flush=True)


def _timed(call: Callable[[str], None], kind: str) -> int:
    before = time.perf_counter_ns()
    call(kind)
    return time.perf_counter_ns() - before


def _flushed(finish: Callable[[], Any]) -> None:
    if not finish():
        raise SystemExit("a queue was not emptied in time")


def _switch_on(stack: Stack, spool: str) -> Callable[[], bool]:
    """Returns what waits for all work done in the background."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(Nowhere()))
    if stack.instrumentors or stack.ours:
        trace.set_tracer_provider(provider)
    for path in stack.instrumentors:
        module, _, kind = path.partition(":")
        getattr(import_module(module), kind)().instrument()
    if not stack.ours:
        return provider.force_flush
    instrumentor = PrefixscopeInstrumentor()
    instrumentor.instrument(skip_dep_check=True, spool=spool)
    assert instrumentor.capture is not None
    capture = instrumentor.capture
    return lambda: capture.flush(30) and provider.force_flush()


def _caller(url: str) -> Callable[[str], None]:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="sk-bench", max_retries=0)
    texts = {kind: _text(400_000 if kind == "400 KB" else 4_000) for kind in KINDS}
    turn = iter(range(1 << 30))

    def call(kind: str) -> None:
        messages: Any = [
            {"role": "system", "content": texts[kind]},
            {"role": "user", "content": f"question {next(turn)}"},
        ]
        if kind != "200 events":
            client.chat.completions.create(model="gpt-5.1", messages=messages)
            return
        options: Any = {"stream_options": {"include_usage": True}}
        for _ in client.chat.completions.create(model="gpt-5.1", messages=messages, stream=True, **options):
            pass

    return call


def _text(size: int) -> str:
    lines = (f"{n}. Item {n * 7919 % 10_007} ships within {n % 5 + 1} days, says “{n:x}”.\n" for n in range(size))
    text = ""
    parts = []
    for line in lines:
        parts.append(line)
        size -= len(line)
        if size <= 0:
            break
    return text.join(parts)


# --- all stacks, in turn ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Runner:
    """A child process."""

    process: "subprocess.Popen[str]"

    def calls(self, kind: str, count: int) -> Mapping[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"kind": kind, "calls": count}) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("a child process has ended")
        found: Mapping[str, Any] = json.loads(answer)
        return found


def start(stack: Stack, url: str, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, __file__, "--child", stack.name, "--url", url, "--spool", str(folder / stack.name)]
    environment = os.environ | {"PREFIXSCOPE_KEY": "bench", "OTEL_SERVICE_NAME": "bench"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


Measured = dict[tuple[str, str], list[tuple[float, float]]]
"""(stack, kind) -> for each round: median microseconds a call, microseconds of processor time a call."""


def measure(runners: Mapping[str, Runner], rounds: int, kinds: Sequence[str]) -> Measured:
    found: Measured = {(name, kind): [] for name in runners for kind in kinds}
    for kind in kinds:
        for runner in runners.values():
            runner.calls(kind, 20)  # warm
    names = list(runners)
    for number in range(rounds):
        for kind in kinds:
            for name in names[number % len(names) :] + names[: number % len(names)]:
                answer = runners[name].calls(kind, KINDS[kind])
                found[name, kind].append(
                    (statistics.median(answer["ns"]) / 1000, answer["cpu_ns"] / 1000 / KINDS[kind])
                )
    return found


def table(found: Measured) -> Iterator[str]:
    names, kinds = (list(dict.fromkeys(column)) for column in zip(*found, strict=True))
    for kind in kinds:
        yield f"\n{kind}: microseconds a call"
        yield f"{'stack':20} {'p50':>8} {'p95':>8} {'added to ' + BASE:>20} {'ratio':>7} {'CPU':>8} {'CPU added':>10}"
        base = found[BASE, kind]
        for name in names:
            mine = found[name, kind]
            times = sorted(latency for latency, _ in mine)
            added = statistics.median(a - b for (a, _), (b, _) in zip(mine, base, strict=True))
            cpu = statistics.median(c for _, c in mine)
            cpu_added = statistics.median(a - b for (_, a), (_, b) in zip(mine, base, strict=True))
            p50, p95 = statistics.median(times), times[int(0.95 * len(times))]
            ratio = 1 + added / statistics.median(latency for latency, _ in base)
            yield f"{name:20} {p50:8.0f} {p95:8.0f} {added:+20.0f} {ratio:7.3f} {cpu:8.0f} {cpu_added:+10.0f}"


def memory(url: str, folder: Path, calls: int) -> Iterator[str]:
    """Resident memory while a service calls as fast as it can."""
    for name in ("none", "prefixscope alone"):
        stack = next(stack for stack in STACKS if stack.name == name)
        process = start(stack, url, folder)
        runner = Runner(process)
        before = runner.calls("400 KB", 20)["rss"]
        after = runner.calls("400 KB", calls)["rss"]
        yield f"{name:20} {before / 1e6:8.0f} MB -> {after / 1e6:8.0f} MB after {calls:,} calls of 400 KB"
        process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--stacks", default=",".join(stack.name for stack in STACKS), help="names, separated by commas")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of calls, separated by commas")
    parser.add_argument("--memory", type=int, default=0, metavar="CALLS", help="memory instead")
    parser.add_argument("--child")
    parser.add_argument("--url")
    parser.add_argument("--spool")
    given = parser.parse_args()
    if given.child:
        child(given.child, given.url, given.spool)
        return
    with _canned.running() as url, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if given.memory:
            print("\n".join(memory(url, Path(folder), given.memory)))
            return
        used = [one for one in STACKS if one.available and one.name in {BASE, *given.stacks.split(",")}]
        print("left out:", ", ".join(one.name for one in STACKS if one not in used) or "none")
        runners = {one.name: Runner(stack.enter_context(start(one, url, Path(folder)))) for one in used}
        found = measure(runners, given.rounds, given.kinds.split(","))
        print("\n".join(table(found)))
        for runner in runners.values():
            assert runner.process.stdin is not None
            runner.process.stdin.close()


if __name__ == "__main__":
    main()
