"""Prompts that are just too short to be cached."""

from dataclasses import replace

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families, opening
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.traffic import Traffic

_MARGIN = 1.02  # token counts are estimates: a prompt that is raised is raised a little more than it must be
_MOST = 4.0  # times its tokens: whoever must write more than that has nothing to say


def raise_to_minimum(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """The static part of each prompt is made longer, until it is what the provider caches at the least."""
    rows = traffic.rows
    static = opening(traffic, families).static & where[rows.call]
    factor = np.where(where, _factors(traffic, families), 1.0)[rows.call]
    return replace(traffic, rows=replace(rows, tokens=np.where(static, rows.tokens * factor, rows.tokens)))


def short_calls(traffic: Traffic, families: Families) -> Bools:
    """Calls whose static part is shorter than the minimum, but not by much."""
    factor = _factors(traffic, families)
    return (factor > 1.0) & (factor <= _MOST) & (families.of_call >= 0)


def _factors(traffic: Traffic, families: Families) -> Floats:
    """What the static part must grow by; the median of a family, so that its calls still share a prefix."""
    rows = traffic.rows
    static = np.where(opening(traffic, families).static, rows.tokens, 0.0)
    size = ragged.group_sums(static, rows.offsets)
    minimum = traffic.per_card("min_tokens") * _MARGIN
    found = np.ones(len(traffic))
    for family in np.unique(families.of_call[families.of_call >= 0]).tolist():
        members = families.of_call == family
        usual, needed = float(np.median(size[members])), float(minimum[members].max())
        if 0 < usual < needed:
            found[members] = needed / usual
    return found
