"""Tokens of the beginnings that a source does not hold: a transcript has neither the tools nor the system prompt.

They have no bytes, but they are billed with the rest. All calls with one beginning and one model have it in common, so
it is what their totals leave when the recorded text is counted, and the less of that there is, the surer.
"""

import numpy as np

from prefixscope.analyzer.ragged import Floats, Ints
from prefixscope.analyzer.traffic import Traffic, front_rows, model_name, numbered, segment_of_rows

_BODY = 100.0  # tokens of recorded text: where it is shorter than this, its own estimate hardly matters


def of_calls(traffic: Traffic, body: Floats, rates: Floats) -> Floats:
    """Tokens in front of each call's recorded text; 0 where the prompt is recorded from its beginning.

    Args:
        traffic: The calls.
        body: (calls, matters): weights of the recorded text.
        rates: (calls, matters): tokens for each, as far as is known.
    """
    group = _groups(traffic)
    told = (group >= 0) & (traffic.calls["usage_state"] == "reported").to_numpy() & (traffic.input_total > 0)
    if not told.any():
        return np.zeros(len(traffic))
    recorded = (body * rates).sum(axis=1)
    left = np.maximum(traffic.input_total - recorded, 0.0)
    weight = np.where(told, 1.0 / (recorded + _BODY) ** 2, 0.0)
    size = int(group.max()) + 1
    member = group >= 0
    total = np.bincount(group[member], weights=weight[member], minlength=size)
    sums = np.bincount(group[member], weights=(weight * left)[member], minlength=size)
    fronts = np.divide(sums, total, out=np.zeros(size), where=total > 0)
    return np.where(member, fronts[np.maximum(group, 0)], 0.0)


def _groups(traffic: Traffic) -> Ints:
    """A number for each beginning that is not recorded, by model; -1 where it is."""
    front = np.full(len(traffic), -1, dtype=np.int64)
    at = np.flatnonzero(front_rows(traffic))
    front[traffic.rows.call[at]] = segment_of_rows(traffic)[at]
    named = traffic.calls.select("provider", model=model_name()).with_columns(front=front)
    return np.where(front >= 0, numbered(named), -1)
