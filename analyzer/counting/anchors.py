"""Positions that are known to the token, and what follows for the text between them.

Where a prompt ends, its reported total says how many tokens its text has; where its last breakpoint stands, read and
written tokens together do; and a cache that reads whole entries says where one ends. Every other call that begins with
the same text has that position too. So tokens between two such places are known, whatever their bytes suggest.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.prompts import block_ends, last_rows
from prefixscope.analyzer.ragged import Floats, Ids, Ints
from prefixscope.analyzer.replay import chain_ids
from prefixscope.analyzer.traffic import (
    WRITE_BUCKETS,
    Traffic,
    estimated_tokens,
    model_name,
    numbered,
    segment_of_rows,
    unrecorded_tokens,
    with_tokens,
)

_NEAR = 0.2  # of the tokens read: a breakpoint farther off, by the estimate, is not where a read ended
_SAME = 0.02  # places that calls disagree on by more than this are not known
_LOW, _HIGH = 0.2, 5.0  # a correction outside is a mistake


def anchored(traffic: Traffic) -> Traffic:
    """The same traffic, its segments counted so that known positions come out as they are known."""
    if not len(traffic.rows.atom):
        return traffic
    text = _texts(traffic)
    positions = _ends_known(traffic, text)
    for _ in range(2):  # what ends of prompts tell brings breakpoints near enough to be told by reads
        traffic = _corrected(traffic, _of_rows(text, positions))
        positions = pl.concat([positions, _reads_known(traffic, text)])
    return _corrected(traffic, _of_rows(text, positions))


def _texts(traffic: Traffic) -> Ids:
    """Names of prefixes by text and model alone: what has one number of tokens."""
    model = numbered(traffic.calls.select("provider", model=model_name())).astype(np.uint64)
    settings = np.zeros_like(traffic.level_salt)
    return chain_ids(replace(traffic, scope=ragged.mix(model + np.uint64(1)), level_salt=settings))


def _ends_known(traffic: Traffic, text: Ids) -> pl.DataFrame:
    """Prompts' ends at their totals, last breakpoints at what was read and written. Columns: prefix, tokens."""
    rows = traffic.rows
    reported = (traffic.calls["usage_state"] == "reported").to_numpy() & traffic.known
    total = (traffic.input_total - traffic.stored_tokens).astype(np.float64)
    whole = np.flatnonzero(reported & (total > 0))
    cached = total - traffic.calls["uncached"].to_numpy()
    last = last_rows(rows, rows.marker_ms > 0)
    explicit = traffic.per_card("read_is_entry").astype(np.bool_)
    headed = np.flatnonzero(reported & explicit & (last >= 0) & (cached > 0))
    at = np.concatenate([rows.offsets[1:][whole] - 1, last[headed]])
    return pl.DataFrame({"prefix": text[at], "tokens": np.concatenate([total[whole], cached[headed]])})


def _reads_known(traffic: Traffic, text: Ids) -> pl.DataFrame:
    """Breakpoints at what was read, where an entry is read whole and one of them is near. Columns as above.

    What a call wrote as well as read stands behind what it read, so its last breakpoint is not where the read ended.
    """
    rows = traffic.rows
    read = traffic.calls["read"].to_numpy().astype(np.float64)
    explicit = traffic.per_card("read_is_entry").astype(np.bool_) & (read > 0) & (traffic.stored_tokens == 0)
    wrote = traffic.calls.select(pl.sum_horizontal(WRITE_BUCKETS)).to_series().to_numpy() > 0
    last = np.zeros(len(rows.atom), dtype=np.bool_)
    found = last_rows(rows, rows.marker_ms > 0)
    last[found[found >= 0]] = True
    at = np.flatnonzero((rows.marker_ms > 0) & block_ends(rows) & explicit[rows.call] & ~(last & wrote[rows.call]))
    ends = ragged.running_sums(rows.tokens, rows.offsets)[at]
    call = rows.call[at]
    off = np.abs(ends - read[call])
    order = np.lexsort((off, call))
    nearest = order[np.flatnonzero(np.diff(call[order], prepend=-1))]
    nearest = nearest[off[nearest] <= _NEAR * read[call[nearest]]]
    return pl.DataFrame({"prefix": text[at[nearest]], "tokens": read[call[nearest]]})


def _of_rows(text: Ids, positions: pl.DataFrame) -> Floats:
    """Tokens of the prefix that ends with each row, where they are known; NaN elsewhere."""
    known = positions.group_by("prefix").agg(
        pl.col("tokens").median(), spread=pl.col("tokens").quantile(0.9) - pl.col("tokens").quantile(0.1)
    )
    known = known.filter(pl.col("spread") <= _SAME * pl.col("tokens")).sort("prefix")
    ids, tokens = known["prefix"].to_numpy(), known["tokens"].to_numpy()
    if not len(ids):
        return np.full(len(text), np.nan)
    at = np.minimum(np.searchsorted(ids, text), len(ids) - 1)
    return np.where(ids[at] == text, tokens[at], np.nan)


def _corrected(traffic: Traffic, known: Floats) -> Traffic:
    """Segments scaled by what their rows' tokens must be multiplied with for known positions to come out.

    What a source does not hold has no bytes to scale: what is known of it stays.
    """
    rows = traffic.rows
    unrecorded = unrecorded_tokens(traffic)
    plain = replace(traffic, segment_scale=np.ones_like(traffic.segment_scale))
    tokens = estimated_tokens(plain) - unrecorded
    recorded = known - ragged.running_sums(unrecorded, rows.offsets)
    factor, weight = _factors(tokens, recorded, rows.offsets, rows.call)
    segment = segment_of_rows(traffic)
    size = len(traffic.segment_scale)
    before = np.bincount(segment, weights=tokens * weight, minlength=size)
    after = np.bincount(segment, weights=tokens * factor * weight, minlength=size)
    scale = np.where(before > 0, after / np.where(before > 0, before, 1.0), 1.0)
    return with_tokens(replace(traffic, segment_scale=scale), traffic.tokens_per_byte)


def _factors(tokens: Floats, known: Floats, offsets: Ints, call: Ints) -> tuple[Floats, Floats]:
    """For each row the factor between the known positions around it, and what that is worth: nothing behind the last.

    The nearer two positions stand, the less of other text is between them: a pair counts by the inverse square.
    """
    ends = ragged.running_sums(tokens, offsets)
    at = np.flatnonzero(~np.isnan(known))
    while len(at):
        first = np.ones(len(at), dtype=np.bool_)
        first[1:] = call[at][1:] != call[at][:-1]
        exact = known[at] - np.where(first, 0.0, np.roll(known[at], 1))
        guess = ends[at] - np.where(first, 0.0, np.roll(ends[at], 1))
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = exact / guess
        sound = (ratio >= _LOW) & (ratio <= _HIGH)
        if sound.all():
            break
        at = at[sound]
    factor, weight = np.ones(len(tokens)), np.zeros(len(tokens))
    if not len(at):
        return factor, weight
    behind = np.searchsorted(at, np.arange(len(tokens)))
    inside = behind < len(at)
    near = np.minimum(behind, len(at) - 1)
    certain = inside & (call[at[near]] == call)
    factor[certain] = ratio[near[certain]]
    weight[certain] = 1.0 / guess[near[certain]] ** 2
    return factor, weight
