"""Which fixes could change anything for which calls: what is worth a replay at all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.fixes import breakpoints, keys, lifetimes, minimums, tools, volatile
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.replay import replay
from prefixscope.analyzer.traffic import WRITE_BUCKETS, Traffic

_IN_FRONT = ("volatile_prefix", "tools_reordered", "tools_changed")  # tools that change hide what changes behind them
_SELDOM = 0.05  # of a family's calls
_FEW = 16.0  # tokens: less may be rounding


def of_fixes(base: Baseline) -> Mapping[str, Bools]:
    """The fixes that can change anything here, each with the calls whose families it is tried on."""
    traffic, families, outcome = base.traffic, base.families, base.outcome
    marks = _wants_markers(base)
    marked = breakpoints.marked_calls(traffic) & breakpoints.markable_calls(traffic)
    written = marked & (traffic.calls.select(pl.sum_horizontal(WRITE_BUCKETS)).to_series() > 0).to_numpy()
    dynamic = volatile.volatile_rows(traffic, families, base.opening).astype(np.int64)
    longest, shortest = lifetimes.longest_ttl_ms(traffic), lifetimes.shortest_ttl_ms(traffic)
    lives = _marker_ttl_ms(traffic)
    found = {
        "sort_tools": tools.unsorted_calls(traffic),
        "pin_tools": tools.changing_sets(traffic, families),
        "keep_history": np.isin(base.breaks.change, ["history_rewritten", "history_pruned"]),
        "pin_settings": keys.unsettled_calls(traffic, families),
        "one_scope": keys.scattered_calls(traffic, families),
        "move_volatile": (ragged.group_sums(dynamic, traffic.rows.offsets) > 0) & _often(base, _IN_FRONT),
        "raise_to_minimum": minimums.short_calls(traffic, families) & (outcome.read + outcome.write == 0),
        "mark_static": marks,
        "mark_last": marks,
        "mark_both": marks,
        "mark_trail": marks,
        "extend_ttl": (outcome.shared > outcome.unexpired) & (longest > traffic.ttl_ms),
        "keep_alive": (outcome.shared > outcome.unexpired) & lifetimes.pingable_calls(traffic),
        "warm_up": outcome.unexpired > outcome.read + _FEW,
        "keep_static_marker": written,
        "drop_markers": written,
        "shorten_ttl": written & (lives > shortest),
    }
    return {name: calls for name, calls in found.items() if calls.any()}


def _often(base: Baseline, changes: Sequence[str]) -> Bools:
    """Calls of families of which more than a few differ from the call before in such a way; once a day is an edit."""
    member = base.families.of_call >= 0
    of_call = base.families.of_call[member]
    size = np.bincount(of_call, minlength=len(base.families))
    changed = np.bincount(of_call, weights=np.isin(base.breaks.change, changes)[member], minlength=len(base.families))
    return np.append(changed >= np.maximum(_SELDOM * size, 1), False)[base.families.of_call]


def _wants_markers(base: Baseline) -> Bools:
    """Calls with explicit breakpoints, or none, whose prefix was there without an entry that they could find."""
    traffic = base.traffic
    calls = breakpoints.markable_calls(traffic)
    if not calls.any():
        return calls
    longest_prefix = tuple(replace(card, cache="automatic", granularity=1) for card in traffic.cards)
    possible = replay(replace(traffic, cards=longest_prefix)).read
    return calls & (possible > base.reached + np.maximum(_FEW, 0.02 * possible))


def _marker_ttl_ms(traffic: Traffic) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found = np.zeros(len(traffic), dtype=np.int64)
    np.maximum.at(found, traffic.rows.call, traffic.rows.marker_ms)
    return found
