"""Identical pairs through two routers: a repeat that read nothing is nobody's leak.

Each request was sent twice, the second one when the first was answered. No field of these records holds the prompt, so
each pair gets a text of its own of about its length; times are those of the recorded durations, a minute between pairs.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import auditing
from prefixscope.analyzer import audit, store
from prefixscope.analyzer.causes import VERDICTS
from prefixscope.analyzer.ingest import Observed
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Prompt, Segment
from prefixscope.otel_plugin.usage import from_usage

INFRON = Path(__file__).resolve().parents[3] / "shared" / "data" / "usage" / "infron"
pytestmark = pytest.mark.skipif(not INFRON.is_dir(), reason="needs ../shared/data/usage/infron")

BEGIN = 1_782_000_000 * 10**9  # 2026-06-21, when they were sent, to the week
MINUTE = 60 * 10**9
BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class Pair:
    """Two requests as recorded."""

    router: str
    first: dict[str, Any]
    second: dict[str, Any]

    @property
    def moved(self) -> bool:
        """The router sent the repeat to another upstream."""
        return upstream(self.first) != upstream(self.second)

    @property
    def missed(self) -> bool:
        return not self.second["cache_read_tokens"]


def upstream(row: dict[str, Any]) -> str:
    """Who served a request: a provider's id where rules are known by that name (``deepseek``, ``fireworks``)."""
    return str(row["provider_name"]).lower()


@cache
def pairs() -> list[Pair]:
    """In the order of the files."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in sorted(INFRON.glob("*/benchmark_requests.jsonl")):
        for row in map(json.loads, path.read_text("utf-8").splitlines()):
            key = (path, *(row[name] for name in ("provider", "sort", "group", "round")))
            found.setdefault(key, {})[row["request"]] = row
    return [Pair(key[1], **rows) for key, rows in found.items()]


def _message(number: int, tokens: int) -> Segment:
    """A text that no other pair has a sentence of."""
    words = random.Random(number)
    letters = "".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=BYTES_PER_TOKEN * tokens))
    text = " ".join(letters[at : at + 7] for at in range(0, len(letters), 8))
    return Segment("messages", "text", "user", text.replace("q", ".\n"))


def _observed() -> Iterator[Observed]:
    printer = Fingerprinter(b"test")
    for number, pair in enumerate(pairs()):
        prompt = Prompt("openai.chat", pair.first["response_model"], (_message(number, pair.first["prompt_tokens"]),))
        print_ = printer.fingerprint(prompt)
        at = BEGIN + number * MINUTE
        for row in (pair.first, pair.second):
            record = CallRecord(
                started_ns=at,
                service="benchmark",
                provider=upstream(row),
                api="openai.chat",
                model=row["response_model"],
                usage=from_usage(row["usage"] | {"id": row["response_id"]}, provider=upstream(row)),
                fingerprint=print_,
                duration_ms=row["latency_ms"],
                ttft_ms=row["ttft_ms"],
                account=pair.router,
                span_id=f"{2 * number + (row is pair.second):016x}",
                trace_id=f"{number:032x}",
            )
            yield Observed(record, "pairs", 2 * number + (row is pair.second))
            at += round(row["latency_ms"] * 1e6)


@cache
def analysed() -> tuple[pl.DataFrame, Any]:
    """A row a call, in the order in which they were sent, and the report."""
    with store.opened(None) as opened:
        opened.ingest(_observed(), at=auditing.AT)
        found = audit.analyse(opened, audit.Selection())
        times = opened.frame("analysis/calls", service=None, since=None, until=None)
    rows = times.select("call_id", "started_at", "provider").join(found.explained, on="call_id").sort("started_at")
    return rows, found.report


def _repeats() -> pl.DataFrame:
    """The second request of each pair."""
    rows, _ = analysed()
    return rows[1::2].with_columns(
        missed=pl.Series([pair.missed for pair in pairs()]), moved=pl.Series([pair.moved for pair in pairs()])
    )


def test_the_pairs_are_those_that_were_sent() -> None:
    """137 repeats read nothing: 118 at the upstream that had the first one, 19 at another that a router chose."""
    rows, _ = analysed()
    assert rows.height == 2 * len(pairs()) == 3452
    assert sum(pair.missed for pair in pairs()) == 137
    assert Counter(pair.moved for pair in pairs() if pair.missed) == {False: 118, True: 19}


def test_a_repeat_that_read_nothing_is_the_providers() -> None:
    """Where the first had gone to the same place: by its rules (Fireworks), or as plain as any rules could make it."""
    missed = _repeats().filter(pl.col("missed") & ~pl.col("moved"))
    assert missed["cause"].unique().to_list() == ["provider_side"]
    by_rules = missed.filter(pl.col("predicted_read") > 0)
    assert by_rules["provider"].unique().to_list() == ["fireworks"]
    assert by_rules.height == 7
    assert (missed["missed_tokens"] > 1600).all()


def test_a_repeat_that_a_router_sent_elsewhere_is_new_there() -> None:
    """No rule says that its prefix was alive; a caller who repeats himself has not broken it either."""
    moved = _repeats().filter(pl.col("missed") & pl.col("moved"))
    assert moved["cause"].unique().to_list() == ["first_seen"]
    assert moved["missed_tokens"].sum() == 0


def test_nothing_is_claimed() -> None:
    """Not of the repeats that missed, and not of any other call: nobody sent anything that could be better."""
    rows, report = analysed()
    assert not rows["claimed"].any()
    assert report["findings"] == []
    assert set(rows["cause"].unique()) == {"", "first_seen", "provider_side"}
    assert not [name for name in rows["cause"].unique() if name and VERDICTS[name] == "actionable"]


def test_a_read_in_steps_is_no_miss() -> None:
    """Upstreams of unknown rules read 1,536 of 1,640 tokens, as caches with steps do; less than half is a miss."""
    healthy = _repeats().filter(~pl.col("missed") & ~pl.col("moved") & (pl.col("cause") == ""))
    assert healthy.height > 1200
    partly = _repeats().filter(~pl.col("missed") & ~pl.col("moved") & (pl.col("cause") != ""))
    assert partly["cause"].unique().to_list() == ["provider_side"]
    under_half = [2 * p.second["cache_read_tokens"] < p.second["prompt_tokens"] for p in pairs()]
    assert partly.height == sum(half and not (p.missed or p.moved) for half, p in zip(under_half, pairs(), strict=True))
    assert partly["provider"].unique().to_list() == ["baidu"]
