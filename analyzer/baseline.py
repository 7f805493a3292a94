"""The traffic as it was: how it groups, where its prompts part, what the replay makes of it and what really came."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from prefixscope.analyzer import breaks, ragged
from prefixscope.analyzer.breaks import Breaks
from prefixscope.analyzer.counting import markers, tokens
from prefixscope.analyzer.counting.anchors import anchored
from prefixscope.analyzer.families import Families, Opening, find, opening
from prefixscope.analyzer.prompts import block_ends
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.replay import Outcome, replay
from prefixscope.analyzer.traffic import Traffic, model_name

_SLACK = 0.02  # of the tokens read: how far a position that is estimated from bytes may be off
_NEAR = 0.05  # the same where an entry must end at a block's end


@dataclass(frozen=True, slots=True)
class Baseline:
    """What every explanation and every fix starts from."""

    traffic: Traffic
    families: Families
    breaks: Breaks
    outcome: Outcome
    opening: Opening

    @property
    def reported(self) -> Floats:
        """Tokens that each call read, as its provider said."""
        return self.traffic.calls["read"].to_numpy().astype(np.float64)

    @property
    def reached(self) -> Floats:
        """Tokens that each call read, or should have read as things were."""
        return np.maximum(self.outcome.read, self.reported)


def counted(traffic: Traffic) -> tuple[Traffic, Families, Bools]:
    """Loaded traffic counted in tokens, its families, and for which calls a breakpoint was inferred."""
    families = find(traffic)
    found, inferred = markers.inferred(anchored(tokens.calibrated(traffic, families)))
    return found, families, inferred


def of(traffic: Traffic, families: Families) -> Baseline:
    """Replays the traffic as it was."""
    warm, outcome = base_outcome(traffic)
    found = opening(warm, families)
    return Baseline(warm, families, breaks.find(warm, families, found), outcome, found)


def base_outcome(traffic: Traffic) -> tuple[Traffic, Outcome]:
    """The replay as is, and the traffic with what the provider had cached before the window marked as warm."""
    first = replay(traffic)
    reported = traffic.calls["read"].to_numpy()
    slack = np.maximum(traffic.per_card("granularity"), _SLACK * reported)
    begins_warm = (reported > first.shared + slack) & (reported > first.read + slack) & traffic.known
    if not begins_warm.any():
        return traffic, first
    warm = traffic.with_warm(np.where(begins_warm, _warm_tokens(traffic, reported + slack, begins_warm), 0.0))
    return warm, replay(warm)


def _warm_tokens(traffic: Traffic, upto: Floats, begins_warm: Bools) -> Floats:
    """Where what was warm ends; an entry of an explicit cache ends with a block, so it is the nearest such end."""
    rows = traffic.rows
    of_entries = begins_warm & traffic.per_card("read_is_entry").astype(np.bool_)
    reported = traffic.calls["read"].to_numpy()
    at = np.flatnonzero(block_ends(rows) & of_entries[rows.call])
    call, ends = rows.call[at], ragged.running_sums(rows.tokens, rows.offsets)[at]
    off = np.abs(ends - reported[call])
    order = np.lexsort((off, call))
    nearest = order[np.flatnonzero(np.diff(call[order], prepend=-1))] if len(order) else order
    nearest = nearest[off[nearest] <= _NEAR * reported[call[nearest]]]
    found = upto.copy()
    found[call[nearest]] = ends[nearest] + 0.5
    return found


def achieved_rate(base: Baseline) -> pl.DataFrame:
    """Reported against predicted reads by provider and model: the share of what the model expects that really came.

    Columns: provider, model, calls (with a prediction), predicted, reported (tokens), rate (0..1, null = no evidence).
    """
    frame = base.traffic.calls.select("provider", "usage_state", "read", model=model_name()).with_columns(
        predicted=pl.Series(base.outcome.read)
    )
    checked = frame.filter((pl.col("predicted") > 0) & (pl.col("usage_state") == "reported"))
    sums = checked.group_by("provider", "model").agg(
        calls=pl.len(),
        predicted=pl.col("predicted").sum(),
        reported=pl.col("read").sum(),
        achieved=pl.min_horizontal("read", "predicted").sum(),
    )
    return sums.with_columns(rate=pl.col("achieved") / pl.col("predicted")).drop("achieved").sort("provider", "model")
