"""Prompts that are just too short to be cached."""

from dataclasses import replace

import numpy as np
import polars as pl

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
    by_family = pl.DataFrame(
        {"family": families.of_call, "size": size, "minimum": traffic.per_card("min_tokens") * _MARGIN}
    ).with_columns(pl.col("size").median().over("family"), pl.col("minimum").max().over("family"))
    usual, needed = by_family["size"].to_numpy(), by_family["minimum"].to_numpy()
    grows = (families.of_call >= 0) & (usual > 0) & (usual < needed)
    return np.where(grows, needed / np.where(grows, usual, 1.0), 1.0)
