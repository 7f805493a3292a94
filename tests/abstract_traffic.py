"""Traffic made of abstract parts, for tests that compare the replay with the sequential simulator."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import traffic as traffic_module
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.cards import RuleCard
from prefixscope.analyzer.traffic import Traffic
from simulator import Rules, SimCall

_START = datetime(2026, 11, 1)  # noqa: DTZ001 - the store keeps UTC without a zone


def card(rules: Rules) -> RuleCard:
    """A rule card that says what the simulator's rules say."""
    return RuleCard(
        provider="test",
        name="test",
        cache=rules.cache,
        min_tokens=rules.min_tokens,
        granularity=rules.granularity,
        default_ttl="default",
        ttl_seconds={"default": rules.ttl_ms // 1000},
        lookback=rules.lookback,
    )


def traffic(calls: Sequence[SimCall], rules: Rules) -> Traffic:
    """The same calls as the product sees them: a part is a piece, a block is a segment, a token is a byte."""
    order = sorted(range(len(calls)), key=lambda i: (calls[i].at_ms, i))
    ordered = [calls[i] for i in order]
    pieces: dict[Hashable, int] = {}
    contents: dict[tuple[tuple[int, int], ...], int] = {}
    segments: list[list[int]] = []
    markers: list[list[int]] = []
    for call in ordered:
        blocks: dict[int, list[tuple[int, int]]] = {}
        for part in call.parts:
            blocks.setdefault(part.block, []).append((pieces.setdefault(part.content, len(pieces) + 1), part.tokens))
        segments.append([contents.setdefault(tuple(block), len(contents)) for block in blocks.values()])
        markers.append([list(blocks).index(call.parts[marker.part].block) for marker in call.markers])
    frame = _calls(ordered)
    prompts = pa.table(
        {
            "segments": pa.array(segments, pa.list_(pa.int32())),
            "marker_at": pa.array(markers, pa.list_(pa.int32())),
            "marker_ttl": pa.array([["5m"] * len(row) for row in markers], pa.list_(pa.string())),
        }
    )
    found = traffic_module.load(frame, prompts, contents_of(_contents(contents)))
    found = replace(
        found,
        cards=(card(rules),),
        card=np.zeros(len(found), dtype=np.int64),
        ttl_ms=np.full(len(found), rules.ttl_ms, dtype=np.int64),
    )
    ttl = np.array([marker.ttl_ms for call in ordered for marker in sorted(call.markers, key=lambda m: m.part)], int)
    marker_ms = found.prompts.marker_ms.copy()
    marker_ms[marker_ms > 0] = ttl
    return found.with_prompts(replace(found.prompts, marker_ms=marker_ms))


def time_order(calls: Sequence[SimCall]) -> list[int]:
    """Index into ``calls`` of each call of ``traffic(calls, …)``."""
    return sorted(range(len(calls)), key=lambda i: (calls[i].at_ms, i))


def _calls(calls: Sequence[SimCall]) -> pl.DataFrame:
    rows = [
        {"started_at": _START + timedelta(milliseconds=c.at_ms), "ttft_ms": float(c.first_token_ms - c.at_ms)}
        for c in calls
    ]
    texts = ("served_model", "region", "cache_key", "cached_content", "settings", "cache_ttl", "auto_marker")
    numbers = ("uncached", "read", "write_5m", "write_30m", "write_1h", "write_12h", "write_unknown")
    return pl.DataFrame(rows, schema={"started_at": pl.Datetime("us"), "ttft_ms": pl.Float64}).with_columns(
        pl.Series("account", [str(call.scope) for call in calls], dtype=pl.String),
        *(pl.lit("").alias(name) for name in (*texts, "cache_mode", "session_id")),
        *(pl.lit(0, dtype=pl.Int64).alias(name) for name in numbers),
        provider=pl.lit("test"),
        service=pl.lit("test"),
        model=pl.lit("test"),
        usage_state=pl.lit("missing"),
        duration_ms=pl.lit(None, dtype=pl.Float64),
    )


def _contents(contents: dict[tuple[tuple[int, int], ...], int]) -> pa.Table:
    blocks = list(contents)
    return pa.table(
        {
            "level": ["tools"] * len(blocks),  # no frame of tokens around them
            "kind": ["text"] * len(blocks),
            "role": ["user"] * len(blocks),
            "canonical_id": pa.array(range(len(blocks)), pa.uint64()),
            "piece_ids": pa.array([[piece for piece, _ in block] for block in blocks], pa.list_(pa.uint64())),
            "piece_bytes": pa.array([[size for _, size in block] for block in blocks], pa.list_(pa.int32())),
            "piece_kinds": pa.array([[""] * len(block) for block in blocks], pa.list_(pa.string())),
            "piece_continues": pa.array([[False] * len(block) for block in blocks], pa.list_(pa.bool_())),
        }
    )
