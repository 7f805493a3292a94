"""Tokens from bytes: rates per family and matter, fitted to the counts that the provider reported.

Only totals are billed, so only totals are known, and of an explicit cache the part up to the last breakpoint. A rate is
an estimate: bytes per token differ between prose, JSON and languages, which is why each family gets rates of its own,
drawn towards its model's where it has few calls.
"""

from dataclasses import replace

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.counting import fronts, tool_prompts
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.prompts import MESSAGES
from prefixscope.analyzer.ragged import Bools, Floats, Ints
from prefixscope.analyzer.traffic import (
    MATTERS,
    REFERENCES,
    Traffic,
    frame_tokens,
    matter_of_rows,
    model_name,
    numbered,
    reference_weights,
    with_tokens,
)

TYPICAL = 0.25  # tokens a byte of English; used only where nothing was reported
_LOW = np.array([0.02] * REFERENCES + [0.0])  # a rate below is a fit gone wrong; an id may not be rendered at all
_HIGH = 2.0
_PRIMING_TOKENS = 3.0  # that open the answer, counted as input (OpenAI's cookbook)
_PRIOR_CALLS = 4.0  # how many calls of a family its model's rates are worth
_CONTRADICTS, _FEW = 0.1, 0.25  # an equation this far off is left out where no more than so many are
_ROUNDS = 4  # rates and unrecorded beginnings are told from each other


def calibrated(traffic: Traffic, families: Families) -> Traffic:
    """The same traffic counted in tokens.

    A call gives one equation: its bytes make its total. Where an explicit cache was used it gives a second one: what
    was read and written together ends at the last breakpoint.
    """
    usable = traffic.known & (traffic.input_total > traffic.stored_tokens)
    usable &= (traffic.calls["usage_state"] != "missing").to_numpy()
    total = (traffic.input_total - traffic.stored_tokens).astype(np.float64)
    whole = _equations(traffic, np.ones(len(traffic.rows.atom), dtype=np.bool_), total - _PRIMING_TOKENS)
    cached: Floats = total - traffic.calls["uncached"].to_numpy()
    last = _last_marker(traffic)
    ends_before = usable & (cached > 0) & (last >= 0) & (last < np.diff(traffic.rows.offsets) - 1)
    heads = _equations(traffic, _places(traffic) <= last[traffic.rows.call], cached)
    sizes, tokens = (np.concatenate(pair) for pair in zip(whole, heads, strict=True))
    tail = tool_prompts.Tail(
        whole[0] - heads[0], whole[1] - heads[1], ends_before & _in_front_of_messages(traffic, last)
    )
    adds = np.concatenate([np.ones(len(traffic)), ~_in_front_of_messages(traffic, last)])
    chosen = np.concatenate([usable, ends_before])
    model = np.tile(numbered(traffic.calls.select("provider", model=model_name())), 2)
    family = np.tile(families.of_call, 2)
    prior = np.full(sizes.shape, TYPICAL)
    rates, calls = prior, len(traffic)
    for _ in range(_ROUNDS):
        front = fronts.of_calls(traffic, sizes[:calls], rates[:calls])
        added = tool_prompts.of_calls(traffic, tail, rates[:calls])
        recorded = np.maximum(tokens - np.tile(front, 2) - np.tile(added, 2) * adds, 0.0)
        by_model = _fit_groups(sizes, recorded, model, chosen, prior)
        rates = _fit_groups(sizes, recorded, family, chosen & (family >= 0), by_model)
        if not front.any() and not added.any():
            break
    return with_tokens(replace(traffic, front_tokens=front, tool_prompt_tokens=added), rates[:calls])


def _equations(traffic: Traffic, rows: Bools, total: Floats) -> tuple[Floats, Floats]:
    """Weights of each call's chosen rows by matter, (calls, MATTERS), and the tokens that they make without frames."""
    weight = np.where(rows, traffic.contents.atom_weight[traffic.rows.atom], 0.0)
    matter, offsets = matter_of_rows(traffic), traffic.rows.offsets
    sizes = [ragged.group_sums(np.where(matter == number, weight, 0.0), offsets) for number in range(REFERENCES)]
    sizes.append(ragged.group_sums(np.where(rows, reference_weights(traffic), 0.0), offsets))
    frames = ragged.group_sums(np.where(rows, frame_tokens(traffic), 0.0), offsets)
    return np.stack(sizes, axis=1), np.maximum(total - frames, 0.0)


def _places(traffic: Traffic) -> Ints:
    """The number of each row within its call."""
    offsets = traffic.rows.offsets
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _last_marker(traffic: Traffic) -> Ints:
    """Place of the row with each call's last breakpoint, -1 = none or a cache that knows no breakpoints."""
    rows = traffic.rows
    marked = np.flatnonzero((rows.marker_ms > 0) & (traffic.per_card("cache") == "explicit")[rows.call])
    found = np.full(len(traffic), -1, dtype=np.int64)
    np.maximum.at(found, rows.call[marked], _places(traffic)[marked])
    return found


def _in_front_of_messages(traffic: Traffic, place: Ints) -> Bools:
    """Calls whose row at that place is not of a message; none where it is -1."""
    at = np.minimum(traffic.rows.offsets[:-1] + place, len(traffic.rows.level) - 1)
    return (place >= 0) & (traffic.rows.level[at] < MESSAGES)


def _fit_groups(sizes: Floats, total: Floats, group: Ints, usable: Bools, prior: Floats) -> Floats:
    """Rates (calls, MATTERS): one fit for each group of usable calls, and ``prior`` for the rest."""
    rates = prior.copy()
    order = np.argsort(group, kind="stable")
    edges = np.flatnonzero(np.diff(group[order])) + 1
    for members in np.split(order, edges):
        chosen = members[usable[members]]
        if len(chosen):
            rates[members] = _fit(sizes[chosen], total[chosen], prior[members[0]])
    return rates


def _fit(sizes: Floats, total: Floats, prior: Floats) -> Floats:
    """Rates of one group: (MATTERS,). Where few calls contradict the rest, they are left out."""
    rates = _least_squares(sizes, total, prior)
    doubtful = np.abs(sizes @ rates - total) > _CONTRADICTS * total
    if 0 < doubtful.sum() <= _FEW * len(total):
        return _least_squares(sizes[~doubtful], total[~doubtful], prior)
    return rates


def _least_squares(sizes: Floats, total: Floats, prior: Floats) -> Floats:
    """Least squares of total = sizes · rates, drawn towards the prior scaled to the group's overall rate.

    A rate that would leave its bounds stays at them, and the others are fitted to what that leaves.
    """
    centre = prior * total.sum() / max(float((sizes @ prior).sum()), 1.0)
    strength = _PRIOR_CALLS * np.maximum((sizes**2).mean(axis=0), 1.0) / 100
    left = sizes.T @ sizes + np.diag(strength)
    right = left @ centre + sizes.T @ (total - sizes @ centre)
    rates, free = centre.copy(), np.ones(MATTERS, dtype=np.bool_)
    while free.any():
        rates[free] = np.linalg.solve(left[np.ix_(free, free)], right[free] - left[np.ix_(free, ~free)] @ rates[~free])
        outside = free & ((rates < _LOW) | (rates > _HIGH))
        if not outside.any():
            break
        rates[outside] = np.clip(rates, _LOW, _HIGH)[outside]
        free &= ~outside
    return rates
