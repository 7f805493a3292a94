"""How long entries live, and who waits for whom."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools, Ints
from prefixscope.analyzer.traffic import Traffic


def extend_ttl(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """Entries live as long as the provider offers: 1h for 5m markers, the longest retention for automatic caches."""
    return _with_ttl(traffic, where, longest_ttl_ms(traffic), np.maximum)


def shorten_ttl(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """Entries live as short as the provider offers, which is what a write costs least for."""
    return _with_ttl(traffic, where, shortest_ttl_ms(traffic), np.minimum)


def warm_up(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """The first call of a burst goes ahead, and the others wait until its response has begun."""
    return replace(traffic, first_token_ms=np.where(where, traffic.at_ms, traffic.first_token_ms))


def longest_ttl_ms(traffic: Traffic) -> Ints:
    """The longest time to live that each call's provider offers, ms."""
    return _offered_ms(traffic, max)


def shortest_ttl_ms(traffic: Traffic) -> Ints:
    """The shortest time to live that each call's provider offers, ms."""
    return _offered_ms(traffic, min)


def _offered_ms(traffic: Traffic, choose: Callable[..., int]) -> Ints:
    offered = [1000 * choose(card.ttl_seconds.values(), default=0) for card in traffic.cards]
    return np.array(offered, dtype=np.int64)[traffic.card]


def _with_ttl(traffic: Traffic, where: Bools, ttl_ms: Ints, choose: Callable[[Ints, Ints], Ints]) -> Traffic:
    rows = traffic.rows
    changed = where[rows.call] & (rows.marker_ms > 0)
    marker_ms = np.where(changed, choose(rows.marker_ms, ttl_ms[rows.call]), rows.marker_ms)
    lives = np.where(where, choose(traffic.ttl_ms, ttl_ms), traffic.ttl_ms)
    return replace(traffic, ttl_ms=lives, rows=replace(rows, marker_ms=marker_ms))
