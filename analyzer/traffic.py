"""Traffic: calls with their prompts as flat rows, a row being one atom in its place. What replay and fixes work on."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import ragged
from prefixscope.analyzer.atoms import Contents
from prefixscope.analyzer.cards import RuleCard, card_for
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints

MESSAGES = 2  # index into atoms.LEVELS


@dataclass(frozen=True, slots=True)
class Rows:
    """The prompts, row by row in render order. A fix returns other rows; nothing else about a call changes."""

    offsets: Ints  # call -> its rows; a call without a known prompt has none
    atom: Ints
    head: Ids  # where a segment begins: hash of its level, kind and role; elsewhere 0
    level: Ints
    block: Ints  # number of the segment within its call
    position: Ints  # number of the block as an explicit cache's lookback counts it
    marker_ms: Ints  # TTL of a breakpoint that stands behind this row; 0 = none
    tokens: Floats
    warm: Bools  # the provider had read this row's prefix although no call in the window had sent it before

    @property
    def call(self) -> Ints:
        return ragged.owners(self.offsets)

    def take(self, order: Ints) -> "Rows":
        """The same calls with their rows in another order (``order`` stays within each call)."""
        arrays = {name: getattr(self, name)[order] for name in _ROW_ARRAYS}
        return replace(self, **arrays)


_ROW_ARRAYS = ("atom", "head", "level", "block", "position", "marker_ms", "tokens", "warm")


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls in time order with what replay needs of each; times in ms since the first call."""

    calls: pl.DataFrame
    contents: Contents
    cards: tuple[RuleCard, ...]
    card: Ints  # call -> its card
    scope: Ids  # call -> what its cache is isolated by, the model included
    level_salt: Ids  # (calls, 3): hash of the settings that invalidate tools, system, messages
    at_ms: Ints
    first_token_ms: Ints
    ttl_ms: Ints  # automatic caches: how long an unused entry lives for this call
    rows: Rows

    def __len__(self) -> int:
        return len(self.at_ms)

    def per_card(self, name: str) -> Any:
        """A field of each call's card, as an array."""
        return np.array([getattr(card, name) for card in self.cards])[self.card]


def load(calls: pl.DataFrame, prompts: pa.Table, contents: Contents) -> Traffic:
    """Puts calls (``queries/analysis/calls``) and prompts (``…/prompts``) together. Tokens are still bytes."""
    cards, card, notes = _cards(calls)
    at_ms = _milliseconds(calls)
    wait = calls.select(pl.coalesce("ttft_ms", "duration_ms", 0.0)).to_series().to_numpy()
    traffic = Traffic(
        calls=calls.with_columns(pl.Series("card_note", notes, dtype=pl.String)),
        contents=contents,
        cards=cards,
        card=card,
        scope=_scopes(calls, cards, card),
        level_salt=_level_salts(calls, cards, card),
        at_ms=at_ms,
        first_token_ms=at_ms + np.maximum(wait, 0).round().astype(np.int64),
        ttl_ms=np.zeros(len(at_ms), dtype=np.int64),
        rows=_rows(calls, prompts, contents),
    )
    traffic = replace(traffic, ttl_ms=_automatic_ttls(traffic))
    return replace(traffic, rows=_with_automatic_markers(traffic))


def ttl_in_ms(card: RuleCard, ttl: str) -> int:
    """What a TTL as written in a request is worth on ``card``; an unknown one counts as the card's default."""
    seconds = card.ttl_seconds.get(ttl) or card.ttl_seconds.get(card.default_ttl, 0)
    return 1000 * seconds


def _milliseconds(calls: pl.DataFrame) -> Ints:
    times = calls["started_at"].dt.epoch("ms").to_numpy()
    return times - times.min() if len(times) else times


def _cards(calls: pl.DataFrame) -> tuple[tuple[RuleCard, ...], Ints, list[str]]:
    """Distinct cards, each call's card, and each call's note on how its card was chosen."""
    keys = calls.select("provider", model=model_name(), on=pl.col("started_at").dt.date())
    distinct = keys.unique(maintain_order=True).with_row_index("key")
    matches = [card_for(row["provider"], row["model"], row["on"]) for row in distinct.iter_rows(named=True)]
    cards = list(dict.fromkeys(match.card for match in matches))
    index = {card: i for i, card in enumerate(cards)}
    key = keys.join(distinct, on=["provider", "model", "on"], how="left", maintain_order="left")["key"].to_numpy()
    by_key = np.array([index[match.card] for match in matches], dtype=np.int64)
    return tuple(cards), by_key[key], [matches[k].note for k in key]


def model_name() -> pl.Expr:
    """The model that served a call, or the one asked for where the answer does not name it."""
    return pl.when(pl.col("served_model") != "").then("served_model").otherwise("model")


def _scopes(calls: pl.DataFrame, cards: tuple[RuleCard, ...], card: Ints) -> Ids:
    separates = pl.Series("separates", np.array([c.key_separates for c in cards], dtype=np.bool_)[card])
    key = pl.when(separates).then("cache_key").otherwise(pl.lit(""))
    name = pl.concat_str("provider", "account", "region", model_name(), key, "cached_content", separator="\0")
    return calls.select(name).to_series().hash(seed=11).to_numpy()


def _level_salts(calls: pl.DataFrame, cards: tuple[RuleCard, ...], card: Ints) -> Ids:
    """For each call and level the hash of the settings whose change invalidates it, 0 where there are none."""
    keys = calls.select("settings").with_columns(card=pl.Series(card))
    distinct = keys.unique(maintain_order=True)
    salts = np.array(
        [_level_salt(row["settings"], cards[row["card"]]) for row in distinct.iter_rows(named=True)], dtype=np.uint64
    ).reshape(-1, 3)
    index = distinct.with_row_index("key")
    key = keys.join(index, on=["settings", "card"], how="left", maintain_order="left")["key"].to_numpy()
    return salts[key]


def _level_salt(settings: str, card: RuleCard) -> list[int]:
    texts = {"tools": "", "system": "", "messages": ""}
    for pair in filter(None, settings.split(",")):
        texts[card.invalidates.get(pair.partition("=")[0], "messages")] += pair + ","
    hashes = pl.Series(list(texts.values())).hash(seed=13).to_list()
    return [value if text else 0 for value, text in zip(hashes, texts.values(), strict=True)]


def _rows(calls: pl.DataFrame, prompts: pa.Table, contents: Contents) -> Rows:
    lists = prompts["segments"].combine_chunks()
    segment_offsets = lists.offsets.to_numpy().astype(np.int64)
    segment = lists.flatten().to_numpy().astype(np.int64)
    # rows of the segments of each call, then atoms of each segment
    counts = np.diff(contents.offsets)[segment]
    per_segment = ragged.offsets_of(counts)
    source = ragged.ranges(contents.offsets[:-1][segment], counts)
    of_segment = ragged.owners(per_segment)
    offsets = per_segment[segment_offsets]
    is_first = np.zeros(len(source), dtype=np.bool_)
    is_first[per_segment[:-1][counts > 0]] = True
    marker_ms = np.zeros(len(source), dtype=np.int64)
    marked, ttl = _markers(calls, prompts, segment_offsets)
    marker_ms[per_segment[1:][marked] - 1] = ttl
    return Rows(
        offsets=offsets,
        atom=contents.atom[source],
        head=np.where(is_first, contents.header[segment][of_segment], np.uint64(0)),
        level=contents.level[segment][of_segment],
        block=of_segment - np.repeat(segment_offsets[:-1], np.diff(offsets)),
        position=_positions(segment, segment_offsets, contents)[of_segment],
        marker_ms=marker_ms,
        tokens=contents.size[source],
        warm=np.zeros(len(source), dtype=np.bool_),
    )


def _positions(segment: Ints, offsets: Ints, contents: Contents) -> Ints:
    """Numbers blocks as lookback counts them: a run of tool calls, or of tool results, is one position."""
    codes = contents.kind.cast(pl.Enum(["tool", "text", "image", "file", "tool_call", "tool_result", "thinking", "opaque"]))
    kind = codes.to_physical().to_numpy()[segment]
    counted = np.ones(len(segment), dtype=np.int64)
    counted[1:] = ~((kind[1:] == kind[:-1]) & np.isin(kind[1:], (4, 5)))
    counted[offsets[:-1][np.diff(offsets) > 0]] = 1
    return ragged.running_sums(counted.astype(np.float64), offsets).astype(np.int64)


def _markers(calls: pl.DataFrame, prompts: pa.Table, segment_offsets: Ints) -> tuple[Ints, Ints]:
    """Segments with an explicit marker behind them, and its TTL in ms. Empty segments cannot carry one."""
    lists = prompts["marker_at"].combine_chunks()
    owner = ragged.owners(lists.offsets.to_numpy().astype(np.int64))
    marked = lists.flatten().to_numpy().astype(np.int64) + segment_offsets[owner]
    names = pl.Series(pl.from_arrow(prompts["marker_ttl"].combine_chunks().flatten()), dtype=pl.String)
    return marked, names.replace_strict(_TTL_MS, default=300_000, return_dtype=pl.Int64).to_numpy()


_TTL_MS = {"5m": 300_000, "30m": 1_800_000, "1h": 3_600_000, "12h": 43_200_000, "24h": 86_400_000}


def _automatic_ttls(traffic: Traffic) -> Ints:
    """How long an entry lives by itself: the TTL or retention a request asked for, or the card's default."""
    keys = traffic.calls.select("cache_ttl").with_columns(card=pl.Series(traffic.card))
    known = {row: ttl_in_ms(traffic.cards[row[1]], row[0]) for row in keys.unique().iter_rows()}
    return np.array([known[row] for row in keys.iter_rows()], dtype=np.int64)


def _with_automatic_markers(traffic: Traffic) -> Rows:
    """Adds the breakpoint a request asks for at its end, or the provider sets there by itself."""
    rows = traffic.rows
    asked = traffic.calls["auto_marker"].to_numpy()
    implied = traffic.per_card("implicit_marker").astype(np.bool_) & (traffic.calls["cache_mode"] != "explicit").to_numpy()
    wanted = ((asked != "") | implied) & (np.diff(rows.offsets) > 0)
    ttl = np.where(asked == "", traffic.ttl_ms, [_TTL_MS.get(name, 300_000) for name in asked])
    marker_ms = rows.marker_ms.copy()
    last = rows.offsets[1:][wanted] - 1
    marker_ms[last] = np.where(marker_ms[last] > 0, marker_ms[last], ttl[wanted])
    return replace(rows, marker_ms=marker_ms)
