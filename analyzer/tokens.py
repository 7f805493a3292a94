"""Tokens from bytes: rates per family and level, fitted to the totals that the provider reported.

Only totals are billed, so only totals are known. A rate is an estimate: bytes per token differ between prose, JSON and
languages, which is why each family gets rates of its own, drawn towards its model's where it has few calls.
"""

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools, Floats, Ints
from prefixscope.analyzer.traffic import Traffic, frame_tokens, model_name, numbered, with_tokens

TYPICAL = 0.25  # tokens a byte of English; used only where nothing was reported
_LOW, _HIGH = 0.02, 2.0  # a rate outside is a fit gone wrong
_PRIMING_TOKENS = 3.0  # that open the answer, counted as input (OpenAI's cookbook)
_PRIOR_CALLS = 4.0  # how many calls of a family its model's rates are worth


def calibrated(traffic: Traffic, families: Families) -> Traffic:
    """The same traffic counted in tokens."""
    sizes = _bytes_by_level(traffic)
    framing = ragged.group_sums(frame_tokens(traffic), traffic.rows.offsets) + _PRIMING_TOKENS
    text = np.maximum(traffic.input_total - framing, 0.0)
    usable = traffic.known & (traffic.input_total > 0) & (traffic.calls["usage_state"] != "missing").to_numpy()
    model = numbered(traffic.calls.select("provider", model=model_name()))
    by_model = _fit_groups(sizes, text, model, usable, np.full((len(traffic), 3), TYPICAL))
    rates = _fit_groups(sizes, text, families.of_call, usable & (families.of_call >= 0), by_model)
    return with_tokens(traffic, rates)


def _bytes_by_level(traffic: Traffic) -> Floats:
    rows = traffic.rows
    size = traffic.contents.atom_weight[rows.atom]
    return np.stack(
        [ragged.group_sums(np.where(rows.level == level, size, 0.0), rows.offsets) for level in range(3)], axis=1
    )


def _fit_groups(sizes: Floats, total: Floats, group: Ints, usable: Bools, prior: Floats) -> Floats:
    """Rates (calls, 3): one fit for each group of usable calls, and ``prior`` for the rest."""
    rates = prior.copy()
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    for members in np.split(order, edges):
        chosen = members[usable[members]]
        if len(chosen):
            rates[members] = _fit(sizes[chosen], total[chosen], prior[members[0]])
    return rates


def _fit(sizes: Floats, total: Floats, prior: Floats) -> Floats:
    """Least squares of total = sizes · rates, drawn towards the prior scaled to the group's overall rate."""
    centre = prior * total.sum() / max(float((sizes @ prior).sum()), 1.0)
    strength = _PRIOR_CALLS * np.maximum((sizes**2).mean(axis=0), 1.0) / 100
    left = sizes.T @ sizes + np.diag(strength)
    right = sizes.T @ (total - sizes @ centre)
    return np.clip(centre + np.linalg.solve(left, right), _LOW, _HIGH)
