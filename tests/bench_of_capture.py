"""Runs a program twice, as it is and captured, and says what both saw and what was recorded."""

import asyncio
import gc
import itertools
from dataclasses import dataclass, field

from fake_provider.journal import Entry
from fake_provider.plan import Plan, Reply
from fake_provider.server import FakeProvider
from prefixscope.otel_plugin import codec, segments
from prefixscope.otel_plugin.record import CallRecord, Usage
from recording import Recorder, fingerprinter
from sdks.clients import Clients
from sdks.seeing import Ending, Seen, drive
from sdks.ways import Way, observed


@dataclass(frozen=True, slots=True)
class Observation:
    """What the program saw, and what the provider knows of its calls."""

    seen: Seen
    journal: list[Entry]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A program that ran without capture and with it."""

    plain: Observation
    tapped: Observation
    records: list[CallRecord]

    def check_app_is_unaffected(self, *, bounds: bool = True) -> None:
        """The program saw the same, and sent the same; without ``bounds``, bytes may be cut at other places."""
        seen = [self.plain.seen, self.tapped.seen]
        first, second = seen if bounds else map(joined, seen)
        assert first == second
        sent = [[(e.path, e.body, e.headers) for e in o.journal] for o in (self.plain, self.tapped)]
        assert sent[0] == sent[1]


@dataclass(slots=True)
class Bench:
    """``compare`` gives every run a scope of its own, so that caches and answers are the same in both."""

    provider: FakeProvider
    clients: Clients
    recorder: Recorder
    runner: asyncio.Runner
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def compare(self, way: Way, *replies: Reply, ending: Ending = "all") -> Comparison:
        plain = self._run(way, replies, ending)
        with self.recorder.on():
            tapped = self._run(way, replies, ending)
        return Comparison(plain, tapped, self.recorder.new())

    def _run(self, way: Way, replies: tuple[Reply, ...], ending: Ending) -> Observation:
        plan = Plan(f"{next(self._numbers)}", replies or (Reply(),), warm=True)
        program = observed(way, self.clients, plan.headers, ending)
        seen = self.runner.run(program) if way.is_async else drive(program)
        if ending != "all" or seen[-1] != "returned":
            self._clean_up()
        self.provider.release(plan.scope)
        return Observation(seen, self.provider.journal(plan.scope))

    def _clean_up(self) -> None:
        """What the program has left open and nobody holds is closed; asynchronous generators need their loop for it."""
        for _ in range(2):
            gc.collect()
            self.runner.run(asyncio.sleep(0.005))
        gc.freeze()  # what has survived stays: the next collection need not look at it


def joined(seen: Seen) -> Seen:
    """Neighbouring bytes as one."""
    found: Seen = []
    for item in seen:
        if isinstance(item, bytes) and found and isinstance(found[-1], bytes):
            found[-1] += item
        else:
            found.append(item)
    return found


def billed(entry: Entry) -> Usage:
    """The usage that a record of a call must have, if its answer was seen to the end."""
    if not entry.reports:
        return Usage(response_id=entry.response_id, served_model=entry.served_model, tier=entry.tier)
    return Usage(
        state="reported",
        uncached=entry.uncached,
        read=entry.read,
        write_5m=entry.writes.get("5m", 0),
        write_1h=entry.writes.get("1h", 0),
        output=entry.output,
        reasoning=entry.reasoning,
        tier=entry.tier,
        response_id=entry.response_id,
        served_model=entry.served_model,
    )


def check_record(record: CallRecord, entry: Entry) -> None:
    """Everything that a record says of a call that went well, held against what the provider knows."""
    assert (record.api, record.model, record.status, record.error) == (entry.api, entry.model, entry.status, "")
    assert record.usage == billed(entry)
    assert record.request_id == entry.request_id
    assert not record.aborted
    assert record.account
    assert record.ttft_ms is None or 0 < record.ttft_ms <= (record.duration_ms or 0)
    prompt = segments.parse(entry.body, path=entry.path)
    assert prompt is not None
    packed = codec.pack(fingerprinter().fingerprint(prompt))
    assert record.fingerprint == codec.unpack(packed)
