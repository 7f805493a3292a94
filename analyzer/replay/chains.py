"""Chain ids: the name of a prefix, the running sum, modulo 2^64, of one hash per row (content, header, place)."""

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Floats, Ids, Ints
from prefixscope.analyzer.traffic import Traffic


def chain_ids(traffic: Traffic) -> Ids:
    """The id of the prefix that ends at each row, in the call's scope and under its settings."""
    rows = traffic.rows
    found = np.empty(len(rows.atom), dtype=np.uint64)
    for begin, end in ragged.slices(rows.offsets):
        offsets = rows.offsets[begin : end + 1]
        at = slice(offsets[0], offsets[-1])
        lengths = np.diff(offsets)
        place = (np.arange(at.start, at.stop) - np.repeat(offsets[:-1], lengths)).astype(np.uint64)
        with np.errstate(over="ignore"):
            value = ragged.mix(place + np.uint64(1)) ^ rows.head[at] * np.uint64(3)
            value = ragged.mix(value ^ traffic.contents.atom_ids[rows.atom[at]])
            value += _salts_of_levels_entered(traffic.level_salt[begin:end], rows.level[at], lengths)
            total = np.cumsum(value, dtype=np.uint64)
            before = np.concatenate([np.zeros(1, dtype=np.uint64), total])[offsets[:-1] - offsets[0]]
            found[at] = ragged.mix(total + np.repeat(traffic.scope[begin:end] - before, lengths))
    return found


def token_ends(traffic: Traffic) -> Floats:
    """Tokens of the prefix that ends at each row."""
    tokens, offsets = traffic.rows.tokens, traffic.rows.offsets
    found = np.empty(len(tokens))
    for begin, end in ragged.slices(offsets):
        at = slice(offsets[begin], offsets[end])
        found[at] = ragged.running_sums(tokens[at], offsets[begin : end + 1] - at.start)
    return found


def _salts_of_levels_entered(salts: Ids, row_level: Ints, lengths: Ints) -> Ids:
    """At the first row of each level, and of each level it skips, the salt of the settings that invalidate it."""
    found = np.zeros(len(row_level), dtype=np.uint64)
    if not salts.any():
        return found
    call = np.repeat(np.arange(len(lengths)), lengths)
    before = np.full(len(row_level), -1, dtype=np.int64)
    before[1:] = row_level[:-1]
    before[np.cumsum(lengths)[lengths > 0] - lengths[lengths > 0]] = -1
    highest = np.maximum.accumulate(before + 4 * call) - 4 * call  # a moved row may step back a level
    for level in range(3):
        enters = (highest < level) & (row_level >= level)
        found[enters] += salts[call[enters], level]
    return found
