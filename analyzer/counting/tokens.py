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
from prefixscope.analyzer.prompts import MESSAGES, last_rows
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
_FAR = 0.5  # the same before anything is fitted, against the group's median
_SWAPS, _SLACK = 60, 1e-9  # of the active set: a bound on its turns, and what counts as nothing
_ROUNDS = 4  # rates and unrecorded beginnings are told from each other


def calibrated(traffic: Traffic, families: Families) -> Traffic:
    """The same traffic counted in tokens.

    A call gives one equation: its bytes make its total. Where an explicit cache was used it gives a second one: what
    was read and written together ends at the last breakpoint.
    """
    if not len(traffic.rows.atom):
        return traffic
    usable = traffic.known & (traffic.input_total > traffic.stored_tokens)
    usable &= (traffic.calls["usage_state"] != "missing").to_numpy()
    total = (traffic.input_total - traffic.stored_tokens).astype(np.float64)
    whole = _equations(traffic, np.ones(len(traffic.rows.atom), dtype=np.bool_), total - _PRIMING_TOKENS)
    cached: Floats = total - traffic.calls["uncached"].to_numpy()
    explicit = traffic.per_card("cache") == "explicit"
    last = last_rows(traffic.rows, (traffic.rows.marker_ms > 0) & explicit[traffic.rows.call])
    ends_before = usable & (cached > 0) & (last >= 0) & (last < traffic.rows.offsets[1:] - 1)
    heads = _equations(traffic, np.arange(len(traffic.rows.atom)) <= last[traffic.rows.call], cached)
    in_front = (last >= 0) & (traffic.rows.level[last] < MESSAGES)
    sizes, tokens = (np.concatenate(pair) for pair in zip(whole, heads, strict=True))
    tail = tool_prompts.Tail(whole[0] - heads[0], whole[1] - heads[1], ends_before & in_front)
    adds = np.concatenate([np.ones(len(traffic)), ~in_front])
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
    """Rates of one group: (MATTERS,). Where few calls contradict the rest, they are left out.

    What is far from the median by the prior's rates has no part in the first fit, so that it cannot bend it.
    """
    expected = np.maximum(sizes @ prior, 1.0)
    ratio = total / expected
    kept = np.abs(ratio - np.median(ratio)) <= _FAR * np.median(ratio)
    rates = _least_squares(sizes, total, prior, kept)
    sound = np.abs(sizes @ rates - total) <= _CONTRADICTS * total
    return rates if sound.all() else _least_squares(sizes, total, prior, sound)


def _least_squares(sizes: Floats, total: Floats, prior: Floats, chosen: Bools) -> Floats:
    """Least squares of total = sizes · rates, drawn towards the prior scaled to the group's overall rate.

    ``chosen`` equations count, or all where more than a few would be left out. Rates stay within their bounds.
    """
    if chosen.sum() >= (1 - _FEW) * len(total):
        sizes, total = sizes[chosen], total[chosen]
    centre = prior * total.sum() / max(float((sizes @ prior).sum()), 1.0)
    strength = _PRIOR_CALLS * np.maximum((sizes**2).mean(axis=0), 1.0) / 100
    left = sizes.T @ sizes + np.diag(strength)
    return _within_bounds(left, left @ centre + sizes.T @ (total - sizes @ centre), centre)


def _within_bounds(left: Floats, right: Floats, start: Floats) -> Floats:
    """The least of x · left · x / 2 - right · x for x between ``_LOW`` and ``_HIGH``: an active set.

    What leaves its bounds is held at them, the farthest first, and let go again once it would rather be inside.
    """
    rates, free = start.copy(), np.ones(MATTERS, dtype=np.bool_)
    for _ in range(_SWAPS):
        rates[free] = np.linalg.solve(left[np.ix_(free, free)], right[free] - left[np.ix_(free, ~free)] @ rates[~free])
        beyond = np.where(free, np.maximum(_LOW - rates, rates - _HIGH), 0.0)
        if (beyond > 0).any():
            farthest = int(np.argmax(beyond))
            rates[farthest] = np.clip(rates, _LOW, _HIGH)[farthest]
            free[farthest] = False
            continue
        pull = right - left @ rates
        inwards = ~free & np.where(rates <= _LOW, pull > _SLACK * np.abs(right), pull < -_SLACK * np.abs(right))
        if not inwards.any():
            break
        free[np.argmax(np.where(inwards, np.abs(pull), -1.0))] = True
    return np.clip(rates, _LOW, _HIGH)
