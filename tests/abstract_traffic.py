"""Traffic made of abstract parts, for tests that compare the replay with the sequential simulator."""

from collections.abc import Hashable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

from prefixscope.analyzer import traffic as traffic_module
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.cards import Match, RuleCard
from prefixscope.analyzer.traffic import Traffic
from simulator import Part, Rules, SimCall

_START = datetime(2026, 11, 1)  # noqa: DTZ001 - the store keeps UTC without a zone
_FRAME = 4  # tokens that the product counts around a block that is no tool
_TTLS = {300_000: "5m", 1_800_000: "30m", 3_600_000: "1h", 43_200_000: "12h"}
_KEPT = {"automatic": "prefixes", "units": "units", "slot": "last_prompt"}
_SETTINGS = {"of_tools": "tools", "of_system": "system", "of_messages": "messages"}


class _Block(NamedTuple):
    """A segment: (piece, bytes) of each of its parts."""

    level: str
    kind: str
    role: str
    pieces: tuple[tuple[int, int], ...]


def card(rules: Rules) -> RuleCard:
    """A rule card that says what the simulator's rules say."""
    by_messages = rules.cache == "boundaries"
    cache = "automatic" if rules.cache in _KEPT else "explicit" if by_messages else rules.cache
    return RuleCard(
        provider="test",
        name="test",
        cache=cache,  # type: ignore[arg-type]
        keeps=_KEPT.get(rules.cache, "prefixes"),  # type: ignore[arg-type]
        always_processed=rules.always_processed,
        min_tokens=rules.min_tokens,
        granularity=rules.granularity,
        default_ttl="default",
        ttl_seconds={"default": rules.ttl_ms // 1000} | {name: ttl_ms // 1000 for ttl_ms, name in _TTLS.items()},
        max_markers=rules.max_markers,
        lookback=rules.lookback,
        lookback_unit="message" if by_messages else "block",
        first_lookups=rules.first_lookups,
        latest_lookups=rules.latest_lookups,
        collapse_tool_runs=rules.collapse_tool_runs,
        implicit_marker=by_messages,
        charges_writes=rules.charges_writes,
        stored_contents=True,
        switched_off_by="off",
        invalidates=_SETTINGS,  # type: ignore[arg-type]
    )


def traffic(calls: Sequence[SimCall], rules: Rules | Mapping[str, Rules]) -> Traffic:
    """The same calls as the product sees them: a part is a piece, a block is a segment, a token is a byte.

    Each scope is a provider; ``rules`` are those of all, or of each by its name.
    """
    ordered = [calls[i] for i in time_order(calls)]
    numbers: dict[_Block, int] = {}
    pieces: dict[Hashable, int] = {}
    segments, marker_at, marker_ttl = [], [], []
    for call in ordered:
        blocks: dict[int, list[Part]] = {}
        for part in call.parts:
            blocks.setdefault(part.block, []).append(part)
        segments.append([numbers.setdefault(_block(parts, pieces), len(numbers)) for parts in blocks.values()])
        markers = sorted(call.markers, key=lambda marker: marker.part)
        marker_at.append([list(blocks).index(call.parts[marker.part].block) for marker in markers])
        marker_ttl.append([_TTLS[marker.ttl_ms] for marker in markers])
    prompts = pa.table(
        {
            "segments": pa.array(segments, pa.list_(pa.int32())),
            "marker_at": pa.array(marker_at, pa.list_(pa.int32())),
            "marker_ttl": pa.array(marker_ttl, pa.list_(pa.string())),
        }
    )

    def find_card(provider: str, _model: str, _on: date) -> Match:
        return Match(card(rules if isinstance(rules, Rules) else rules[provider]))

    return traffic_module.load(_calls(ordered), prompts, contents_of(_contents(list(numbers))), find_card)


def time_order(calls: Sequence[SimCall]) -> list[int]:
    """Index into ``calls`` of each call of ``traffic(calls, …)``."""
    return sorted(range(len(calls)), key=lambda i: (calls[i].at_ms, i))


def _block(parts: list[Part], pieces: dict[Hashable, int]) -> _Block:
    head = parts[0]
    sizes = [part.tokens for part in parts]
    if head.level != "tools":
        sizes[0] -= _FRAME
        assert sizes[0] > 0, "a block that is no tool begins with more tokens than its frame has"
    named = [pieces.setdefault((part.content, size), len(pieces) + 1) for part, size in zip(parts, sizes, strict=True)]
    return _Block(head.level, head.kind, head.role, tuple(zip(named, sizes, strict=True)))


def _calls(calls: Sequence[SimCall]) -> pl.DataFrame:
    rows = [
        {
            "started_at": _START + timedelta(milliseconds=call.at_ms),
            "ttft_ms": float(call.first_token_ms - call.at_ms),
            "provider": str(call.scope),
            "settings": _settings(call),
            "cache_ttl": _TTLS.get(call.ttl_ms, ""),
            "auto_marker": _TTLS.get(call.auto_marker_ms, ""),
            "cache_mode": "explicit" if call.explicit_only else "",
            "reasoning": sum(part.tokens for part in call.answer if part.kind == "thinking"),
            "cached_content": str(call.stored.created_ms) if call.stored else "",
            "read": call.stored.tokens if call.stored else 0,
            "usage_state": "reported" if call.stored else "missing",
            "uncached": sum(part.tokens for part in call.parts) if call.stored else 0,
        }
        for call in calls
    ]
    texts = ("provider", "settings", "cache_ttl", "auto_marker", "cache_mode", "cached_content", "usage_state")
    numbers = ("reasoning", "read", "uncached")
    schema: dict[str, Any] = {"started_at": pl.Datetime("us"), "ttft_ms": pl.Float64}
    schema |= dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Int64)
    return pl.DataFrame(rows, schema=schema).with_columns(
        *(pl.lit("").alias(name) for name in ("served_model", "account", "region", "cache_key", "session_id")),
        *(pl.lit("test").alias(name) for name in ("service", "model")),
        *(pl.lit(0, dtype=pl.Int64).alias(f"write_{ttl}") for ttl in ("5m", "30m", "1h", "12h", "unknown")),
        duration_ms=pl.lit(None, dtype=pl.Float64),
    )


def _settings(call: SimCall) -> str:
    found = [f"{name}={value}" for name, value in zip(_SETTINGS, call.settings, strict=True) if value != ""]
    return ",".join(found if call.reads else [*found, "off=1"])


def _contents(blocks: Sequence[_Block]) -> pa.Table:
    return pa.table(
        {
            "level": [block.level for block in blocks],
            "kind": [block.kind for block in blocks],
            "role": [block.role for block in blocks],
            "canonical_id": pa.array(range(len(blocks)), pa.uint64()),
            "piece_ids": pa.array([[piece for piece, _ in block.pieces] for block in blocks], pa.list_(pa.uint64())),
            "piece_bytes": pa.array([[size for _, size in block.pieces] for block in blocks], pa.list_(pa.int32())),
            "piece_kinds": pa.array([[""] * len(block.pieces) for block in blocks], pa.list_(pa.string())),
            "piece_continues": pa.array([[False] * len(block.pieces) for block in blocks], pa.list_(pa.bool_())),
        }
    )
