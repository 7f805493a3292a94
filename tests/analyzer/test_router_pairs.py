"""Identical pairs through two routers: a repeat that read nothing is nobody's leak.

Each request was sent twice, the second one when the first was answered. No field of these records holds the prompt, so
each pair gets a text of its own of about its length; times are those of the recorded durations, a minute between pairs.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
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


def _observed() -> Iterator[Observed]:
    printer = Fingerprinter(b"test")
    for number, pair in enumerate(pairs()):
        tokens = pair.first["prompt_tokens"]
        text = "\n".join(f"line {line} of prompt {number}" for line in range(tokens))[: BYTES_PER_TOKEN * tokens]
        prompt = Prompt("openai.chat", pair.first["response_model"], (Segment("messages", "text", "user", text),))
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
