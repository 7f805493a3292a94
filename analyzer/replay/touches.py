"""Which prefixes are alive when somebody looks, given who touched them when."""

from dataclasses import dataclass

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Events:
    """Lookups and touches of prefixes. Times are those of their calls."""

    node: Ids
    call: Ints
    ttl_ms: Ints  # touches: how long the entry lives unless touched again; lookups: -1


@dataclass(frozen=True, slots=True)
class Depths:
    """Rows at the head of each call's prompt, 0 = none, and of calls with other caches."""

    reached: Ints  # alive
    unexpired: Ints  # not expired, be the first response begun or not
    shared: Ints  # ever seen before


def no_depths(calls: int) -> Depths:
    return Depths(*(np.zeros(calls, dtype=np.int64) for _ in range(3)))


def states(events: Events, traffic: Traffic) -> Bools:
    """(3, events): was the prefix alive just before the event, had it not expired, had anybody ever touched it."""
    ready, clock = _ranks(traffic)
    found = np.zeros((3, len(events.node)), dtype=np.bool_)
    parts = 1 + len(events.node) // ragged.ROWS_AT_ONCE
    part = (events.node % np.uint64(parts)).astype(np.uint16)
    for i in range(parts):
        at = _by_prefix_and_time(events, np.flatnonzero(part == i))
        call, ttl_ms = events.call[at], events.ttl_ms[at]
        at_ms, touch = traffic.at_ms[call], ttl_ms >= 0
        expires_ms = np.where(touch, at_ms + ttl_ms, -1)
        # a lookup expires at once and begins never
        begins = np.where(touch, ready[call], len(traffic) * 2 + 1)
        found[:, at] = _states_sorted(events.node[at], at_ms, expires_ms, begins, clock[call])
    return found


def _by_prefix_and_time(events: Events, at: Ints) -> Ints:
    """The given events by prefix, then in time order; of one call, lookups before touches."""
    time = 2 * events.call[at].astype(np.int64) + (events.ttl_ms[at] >= 0)
    if np.any(time[1:] < time[:-1]):
        at = at[np.argsort(time, kind="stable")]
    return at[ragged.stable_order(events.node[at])]


def _ranks(traffic: Traffic) -> tuple[Ints, Ints]:
    """First-response times and request times as ranks on one scale, so that running minima stay small integers."""
    scale = ragged.distinct(np.concatenate([traffic.first_token_ms, traffic.at_ms]))
    return np.searchsorted(scale, traffic.first_token_ms), np.searchsorted(scale, traffic.at_ms)


def _states_sorted(node: Ids, at_ms: Ints, expires_ms: Ints, ready: Ints, clock: Ints) -> Bools:
    """The rule itself, on events sorted by prefix, then time.

    An entry's *life* begins with a touch that finds none, and lasts while each touch comes before the latest expiry so
    far. It can be read once the earliest first response among the touches of this life has begun.
    """
    if not len(node):
        return np.zeros((3, 0), dtype=np.bool_)
    first = np.ones(len(node), dtype=np.bool_)
    first[1:] = node[1:] != node[:-1]
    group = np.cumsum(first)
    stride = int(expires_ms.max()) + 3
    latest = np.maximum.accumulate(expires_ms + 1 + group * stride)  # of the group up to and with this event
    expiry_before = np.where(first, -1, _shifted(latest) - group * stride - 1)
    touch = expires_ms >= 0
    life = np.cumsum(touch & (expiry_before < at_ms), dtype=np.int64)
    ranks = int(max(ready.max(), clock.max())) + 2
    earliest = np.minimum.accumulate(ready - life * ranks)
    ready_before = _shifted(earliest) + _shifted(life) * ranks
    seen = expiry_before >= 0
    unexpired = seen & (expiry_before >= at_ms)
    return np.stack([unexpired & (ready_before <= clock), unexpired, seen])


def _shifted(values: Ints) -> Ints:
    """Each row's predecessor; the first row gets itself."""
    return np.concatenate([values[:1], values[:-1]])
