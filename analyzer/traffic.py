"""Traffic: calls with their prompts and all that the replay needs to know of each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import ragged
from prefixscope.analyzer.atoms import Contents
from prefixscope.analyzer.cards import Match, RuleCard, card_for
from prefixscope.analyzer.prompts import (
    MESSAGES,
    TOOLS,
    Prompts,
    Rows,
    eligible_segments,
    last_segments,
    markable_segments,
    of_calls,
    portion,
    prompts_of,
    rows_of,
    taken,
    ttl_ms,
)
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints

_FRAME_TOKENS = 4.0
MATTERS = 6
REFERENCES = 5
WRITE_BUCKETS = ("write_5m", "write_30m", "write_1h", "write_12h", "write_unknown")
_PER_CALL = (
    "card",
    "scope",
    "level_salt",
    "at_ms",
    "first_token_ms",
    "ttl_ms",
    "tokens_per_byte",
    "front_tokens",
    "tool_prompt_tokens",
    "scale",
    "warm_tokens",
)
INPUT_BUCKETS = ("uncached", "read", *WRITE_BUCKETS)


@dataclass(frozen=True, slots=True)
class Pings:
    """Requests that are sent again while nobody calls, so that what they have cached stays alive."""

    count: Ints  # call -> how many follow it
    every_ms: Ints  # call -> time from the call to the first, and from each to the next
    rows: Ints  # call -> rows of its prompt that are sent again

    def only(self, chosen: Bools) -> "Pings":
        """Those behind the chosen calls."""
        return Pings(self.count[chosen], self.every_ms[chosen], self.rows[chosen])


@dataclass(frozen=True, slots=True)
class Traffic:
    """Calls in time order; times in ms since the first. A fix is a function from traffic to traffic."""

    calls: pl.DataFrame
    contents: Contents
    cards: tuple[RuleCard, ...]
    card: Ints  # call -> its card
    scope: Ids  # call -> hash of what its cache is isolated by, the model included
    level_salt: Ids  # (calls, 3): hash of the settings that invalidate tools, system, messages; 0 = none set
    at_ms: Ints
    first_token_ms: Ints
    ttl_ms: Ints  # how long an unused entry lives by itself: as the request asked, or the card's default
    prompts: Prompts
    rows: Rows
    tokens_per_byte: Floats  # (calls, MATTERS): by ``matter_of_rows``, and of what ``reference_weights`` gives
    front_tokens: Floats  # of what each prompt begins with where the source does not hold it: ``fronts``; else 0
    tool_prompt_tokens: (
        Floats  # of what the provider puts in front of the messages where there are tools: ``tool_prompts``
    )
    segment_scale: Floats  # content -> what its estimated tokens are corrected by: ``anchors``
    scale: Floats  # (calls, 2): what the tokens of the last block, and of those before it, are corrected by
    warm_tokens: Floats  # tokens at each prompt's head that were cached although no call in the window had sent them
    pings: Pings | None = None  # what the fix ``keep_alive`` adds

    def __len__(self) -> int:
        return len(self.at_ms)

    def per_card(self, name: str) -> Any:
        """A field of each call's card, as an array."""
        return np.array([getattr(card, name) for card in self.cards])[self.card]

    @property
    def min_tokens(self) -> Floats:
        """The shortest prefix that each call could have cached: the card's, or less where the provider did cache less.

        What it read or wrote is evidence; a tenth less leaves room for positions that are estimated from bytes.
        """
        cached = self.calls.select(pl.sum_horizontal(INPUT_BUCKETS[1:])).to_series().to_numpy()
        minimum = self.per_card("min_tokens").astype(np.float64)
        return np.where(cached > 0, np.minimum(minimum, 0.9 * cached), minimum)

    @property
    def stored_tokens(self) -> Ints:
        """Tokens of the stored prefix that a call names and does not hold; 0 = none, or nothing is known of it."""
        return self.calls["stored_tokens"].to_numpy()

    @property
    def known(self) -> Bools:
        """Calls whose prompt is known."""
        return np.diff(self.prompts.offsets) > 0

    @property
    def input_total(self) -> Ints:
        """Input tokens as reported; 0 where they are not."""
        return self.calls.select(pl.sum_horizontal(INPUT_BUCKETS)).to_series().to_numpy()

    def only(self, chosen: Bools) -> "Traffic":
        """The chosen calls, everything about them unchanged."""
        if chosen.all():
            return self
        return replace(
            self,
            calls=self.calls.filter(pl.Series(chosen)),
            prompts=of_calls(self.prompts, chosen),
            rows=of_calls(self.rows, chosen),
            pings=self.pings.only(chosen) if self.pings else None,
            **{name: getattr(self, name)[chosen] for name in _PER_CALL},
        )

    def taken(self, call: Ints, rows: Ints) -> "Traffic":
        """The calls with the given numbers, which may repeat; of each prompt so many rows, and no pings."""
        return replace(
            self,
            calls=self.calls[call],
            prompts=taken(self.prompts, call, np.diff(self.prompts.offsets)[call]),
            rows=taken(self.rows, call, rows),
            pings=None,
            **{name: getattr(self, name)[call] for name in _PER_CALL},
        )

    def portions(self) -> Iterator[tuple[slice, "Traffic"]]:
        """The same calls a few at a time, nothing copied, with the rows that are theirs: what is large is made so."""
        for begin, end in ragged.slices(self.rows.offsets):
            part = replace(
                self,
                calls=self.calls[begin:end],
                prompts=portion(self.prompts, begin, end),
                rows=portion(self.rows, begin, end),
                pings=None,
                **{name: getattr(self, name)[begin:end] for name in _PER_CALL},
            )
            yield slice(self.rows.offsets[begin], self.rows.offsets[end]), part

    def with_prompts(self, prompts: Prompts) -> "Traffic":
        """The same calls with other segments; rows and their tokens are made anew."""
        rows = rows_of(prompts, self.contents, lookback_modes(self))
        return _counted(replace(self, prompts=prompts, rows=rows, pings=None))

    def with_warm(self, warm_tokens: Floats) -> "Traffic":
        """The same calls, of each of which so many tokens were cached before the window began."""
        return _counted(replace(self, warm_tokens=warm_tokens))


def load(
    calls: pl.DataFrame,
    prompts: pa.Table,
    contents: Contents,
    find_card: Callable[[str, str, date], Match] = card_for,
) -> Traffic:
    """Puts calls (``queries/analysis/calls``) and prompts (``…/prompts``) together; a byte counts as a token still."""
    cards, card, notes = _cards(calls, find_card)
    at_ms = _milliseconds(calls)
    wait = calls.select(pl.coalesce("ttft_ms", "duration_ms", 0.0)).to_series().to_numpy()
    segments = prompts_of(prompts)
    traffic = Traffic(
        calls=calls.with_columns(
            pl.Series("card_note", notes, dtype=pl.String), stored_tokens=_stored_tokens(cards, card)
        ),
        contents=contents,
        cards=cards,
        card=card,
        scope=_scopes(calls, cards, card),
        level_salt=_level_salts(calls, cards, card),
        at_ms=at_ms,
        first_token_ms=at_ms + np.maximum(wait, 0).round().astype(np.int64),
        ttl_ms=_automatic_ttls(calls, cards, card),
        prompts=segments,
        rows=rows_of(portion(segments, 0, 0), contents, np.zeros(0, dtype=np.int64)),  # made once markers are there
        tokens_per_byte=np.ones((len(at_ms), MATTERS)),
        front_tokens=np.zeros(len(at_ms)),
        tool_prompt_tokens=np.zeros(len(at_ms)),
        segment_scale=np.ones(len(contents.level)),
        scale=np.ones((len(at_ms), 2)),
        warm_tokens=np.zeros(len(at_ms)),
    )
    return traffic.with_prompts(_with_automatic_markers(traffic))


def with_tokens(traffic: Traffic, tokens_per_byte: Floats) -> Traffic:
    """Counts rows in tokens: bytes by their matter's rate, and what the reported total leaves falls to the last block.

    The last block, or run of tool results, is what a call adds; so a prefix weighs the same in all calls that share it.
    """
    traffic = replace(traffic, tokens_per_byte=tokens_per_byte)
    if not len(traffic.rows.atom):
        return traffic
    tokens, total = estimated_tokens(traffic), traffic.input_total - traffic.stored_tokens
    last = _in_last_block(traffic)
    in_last = ragged.group_sums(np.where(last, tokens, 0.0), traffic.rows.offsets)
    before = ragged.group_sums(tokens, traffic.rows.offsets) - in_last
    left = total - before
    fits = (left > 0) & ((left >= 0.2 * in_last) & (left <= 10.0 * in_last) | ~_ends_in_text(traffic))
    with np.errstate(divide="ignore", invalid="ignore"):
        of_last = np.where(fits, left / in_last, total / (before + in_last))
        of_rest = np.where(fits, 1.0, total / (before + in_last))
    reported = (traffic.calls["usage_state"] != "missing").to_numpy() & (total > 0) & traffic.known
    scale = np.where(reported[:, None], np.stack([of_last, of_rest], axis=1), 1.0)
    return _counted(replace(traffic, scale=scale))


def estimated_tokens(traffic: Traffic) -> Floats:
    """Tokens of each row: bytes at their matter's rate, corrected by segment, and what is known of unrecorded text."""
    rows = traffic.rows
    segment = segment_of_rows(traffic)
    rate = traffic.tokens_per_byte[rows.call, _matters(traffic.contents)[segment]]
    text = traffic.contents.atom_weight[rows.atom] * rate
    frame = frame_tokens(traffic)
    if traffic.contents.reference_weight.any():
        frame += reference_weights(traffic) * traffic.tokens_per_byte[rows.call, REFERENCES]
    return (text + frame) * traffic.segment_scale[segment] + unrecorded_tokens(traffic)


def unrecorded_tokens(traffic: Traffic) -> Floats:
    """Tokens that each row stands for although the source does not hold their text."""
    call = traffic.rows.call
    found = np.where(front_rows(traffic), traffic.front_tokens[call], 0.0)
    if traffic.tool_prompt_tokens.any():
        found += np.where(tool_prompt_rows(traffic), traffic.tool_prompt_tokens[call], 0.0)
    return found


def segment_of_rows(traffic: Traffic) -> Ints:
    """The content number of the segment that each row is of; before any fix has moved rows."""
    rows, prompts = traffic.rows, traffic.prompts
    return prompts.segment[prompts.offsets[:-1][rows.call] + rows.block]


def front_rows(traffic: Traffic) -> Bools:
    """Rows that stand for the beginning of a prompt that the source does not hold."""
    rows, unrecorded = traffic.rows, (traffic.contents.kind == "unrecorded").to_numpy()
    if not unrecorded.any():
        return np.zeros(len(rows.atom), dtype=np.bool_)
    return (rows.block == 0) & unrecorded[segment_of_rows(traffic)]


def tool_prompt_rows(traffic: Traffic) -> Bools:
    """The first row of the messages of each call with tools: what a provider adds because of them comes before it."""
    rows = traffic.rows
    with_tools = np.zeros(len(traffic), dtype=np.bool_)
    with_tools[rows.call[rows.level == TOOLS]] = True
    first = (rows.level == MESSAGES) & with_tools[rows.call]
    behind = np.flatnonzero(first[1:] & (rows.level[:-1] == MESSAGES) & (rows.call[1:] == rows.call[:-1])) + 1
    first[behind] = False
    return first


def reference_weights(traffic: Traffic) -> Floats:
    """What the id that joins a tool's call and result weighs, at the first row of each; 0 elsewhere."""
    return np.where(traffic.rows.head != 0, traffic.contents.reference_weight[segment_of_rows(traffic)], 0.0)


def matter_of_rows(traffic: Traffic) -> Ints:
    """What each row is made of: 0 tools, 1 system, 2 text of messages, 3 tool calls, 4 tool results.

    JSON makes other tokens of its bytes than prose does. References (5) have no rows of their own.
    """
    return _matters(traffic.contents)[segment_of_rows(traffic)]


def _matters(contents: Contents) -> Ints:
    kinds = [(contents.kind == kind).to_numpy() for kind in ("tool_call", "tool_result")]
    of_messages = np.select(kinds, [3, 4], MESSAGES)
    return np.where(contents.level == MESSAGES, of_messages, contents.level)


def _in_last_block(traffic: Traffic) -> Bools:
    """Rows of each call's last segment; results of tools that were called side by side come together and are one."""
    rows, prompts, contents = traffic.rows, traffic.prompts, traffic.contents
    lengths = np.diff(rows.offsets)
    last = np.zeros(len(lengths), dtype=np.int64)
    last[lengths > 0] = rows.block[rows.offsets[1:][lengths > 0] - 1]
    other = (contents.kind != "tool_result").to_numpy() & (np.diff(contents.offsets) > 0)
    before = last_segments(prompts, other)
    first = np.where(before >= 0, before - prompts.offsets[:-1] + 1, 0)  # of the run of results at the end
    return rows.block >= np.repeat(np.minimum(first, last).astype(rows.block.dtype), lengths)


def _counted(traffic: Traffic) -> Traffic:
    """The same prompts, their rows counted in tokens and told whether they were cached before the window began."""
    tokens = np.empty(len(traffic.rows.atom))
    warm = np.zeros(len(tokens), dtype=np.bool_)
    for at, part in traffic.portions():
        rows = part.rows
        scale = np.where(_in_last_block(part), part.scale[rows.call, 0], part.scale[rows.call, 1])
        tokens[at] = estimated_tokens(part) * scale
        if part.warm_tokens.any():
            warm[at] = ragged.running_sums(tokens[at], rows.offsets) <= part.warm_tokens[rows.call]
    return replace(traffic, rows=replace(traffic.rows, tokens=tokens, warm=warm))


def _ends_in_text(traffic: Traffic) -> Bools:
    """Calls whose last segment is text: the tokens of a file or an image do not follow from the bytes that name it."""
    prompts = traffic.prompts
    found = np.zeros(len(traffic), dtype=np.bool_)
    text = traffic.contents.kind.is_in(["image", "file", "opaque"]).not_().to_numpy()
    found[traffic.known] = text[prompts.segment[prompts.offsets[1:][traffic.known] - 1]]
    return found


def frame_tokens(traffic: Traffic) -> Floats:
    """Tokens around each message, at its first row: OpenAI's cookbook counts three and one for the role's name.

    Other providers do not say and are close.
    """
    rows = traffic.rows
    return np.where((rows.head != 0) & (rows.level != TOOLS), _FRAME_TOKENS, 0.0)


def lookback_modes(traffic: Traffic) -> Ints:
    """``rows_of``'s lookback mode of each call."""
    return np.array([_lookback_mode(card) for card in traffic.cards], dtype=np.int64)[traffic.card]


def model_name() -> pl.Expr:
    """The model that served a call, or the one asked for where the answer does not name it."""
    return pl.when(pl.col("served_model") != "").then("served_model").otherwise("model")


def numbered(frame: pl.DataFrame) -> Ints:
    """The number of each row among the distinct rows of ``frame``."""
    keys = frame.unique(maintain_order=True).with_row_index("number")
    joined = frame.join(keys, on=frame.columns, how="left", nulls_equal=True, maintain_order="left")
    return joined["number"].to_numpy().astype(np.int64)


def _lookback_mode(card: RuleCard) -> int:
    return 2 if card.lookback_unit == "message" else int(card.collapse_tool_runs)


def _milliseconds(calls: pl.DataFrame) -> Ints:
    times = calls["started_at"].dt.epoch("ms").to_numpy()
    return times - times.min() if len(times) else times


def _cards(
    calls: pl.DataFrame, find_card: Callable[[str, str, date], Match]
) -> tuple[tuple[RuleCard, ...], Ints, list[str]]:
    """Distinct cards, each call's card, and each call's note on how its card was chosen."""
    keys = calls.select("provider", model=model_name(), on=pl.col("started_at").dt.date())
    key = numbered(keys)
    matches = [find_card(*row) for row in keys.unique(maintain_order=True).iter_rows()]
    cards: list[RuleCard] = []
    for match in matches:
        if match.card not in cards:
            cards.append(match.card)
    by_key = np.array([cards.index(match.card) for match in matches], dtype=np.int64)
    return tuple(cards), by_key[key], [matches[k].note for k in key]


def _scopes(calls: pl.DataFrame, cards: tuple[RuleCard, ...], card: Ints) -> Ids:
    separates = pl.Series("separates", np.array([c.key_separates for c in cards], dtype=np.bool_)[card])
    key = pl.when(separates).then("cache_key").otherwise(pl.lit(""))
    name = pl.concat_str("provider", "account", "region", model_name(), key, "cached_content", separator="\0")
    return calls.select(name).to_series().hash(seed=11).to_numpy()


def _stored_tokens(cards: tuple[RuleCard, ...], card: Ints) -> pl.Expr:
    """The size of each call's stored prefix, which no request shows: the least that calls which name it have read."""
    named = pl.Series(np.array([c.stored_contents for c in cards], dtype=np.bool_)[card]) & (
        pl.col("cached_content") != ""
    )
    read = pl.when(pl.col("read") > 0).then("read").min()
    return pl.when(named).then(read.over("provider", "account", "region", model_name(), "cached_content")).fill_null(0)


def _level_salts(calls: pl.DataFrame, cards: tuple[RuleCard, ...], card: Ints) -> Ids:
    keys = calls.select("settings").with_columns(card=pl.Series(card))
    distinct = keys.unique(maintain_order=True)
    salts = [_level_salt(settings, cards[card]) for settings, card in distinct.iter_rows()]
    return np.array(salts, dtype=np.uint64).reshape(-1, 3)[numbered(keys)]


def _level_salt(settings: str, card: RuleCard) -> list[int]:
    texts = {"tools": "", "system": "", "messages": ""}
    for pair in filter(None, settings.split(",")):
        level = card.invalidates.get(pair.partition("=")[0])
        if level:  # a setting that the card does not list invalidates nothing
            texts[level] += pair + ","
    hashes = pl.Series(list(texts.values())).hash(seed=13).to_list()
    return [value if text else 0 for value, text in zip(hashes, texts.values(), strict=True)]


def _automatic_ttls(calls: pl.DataFrame, cards: tuple[RuleCard, ...], card: Ints) -> Ints:
    keys = calls.select("cache_ttl").with_columns(card=pl.Series(card))
    ttls = [1000 * _seconds(cards[card], name) for name, card in keys.unique(maintain_order=True).iter_rows()]
    return np.array(ttls, dtype=np.int64)[numbered(keys)]


def _seconds(card: RuleCard, ttl: str) -> int:
    return card.ttl_seconds.get(ttl) or card.ttl_seconds.get(card.default_ttl, 0)


def _with_automatic_markers(traffic: Traffic) -> Prompts:
    """Adds the breakpoint that a request asks for at its end, or that the provider sets there by itself."""
    prompts = traffic.prompts
    marker_ms = prompts.marker_ms.copy()
    implicit = traffic.per_card("implicit_marker").astype(np.bool_)
    implied = implicit & (traffic.calls["cache_mode"] != "explicit").to_numpy()
    asked = np.array([ttl_ms(name) if name else 0 for name in traffic.calls["auto_marker"].to_list()], dtype=np.int64)
    for wanted, ttl, can_be_marked in (
        (implied, traffic.ttl_ms, eligible_segments(traffic.contents)),
        (~implicit & (asked > 0), asked, markable_segments(traffic.contents)),
    ):
        last = last_segments(prompts, can_be_marked)
        chosen = wanted & (last >= 0)
        at = last[chosen]
        marker_ms[at] = np.where(marker_ms[at] > 0, marker_ms[at], ttl[chosen])
    return replace(prompts, marker_ms=marker_ms)
