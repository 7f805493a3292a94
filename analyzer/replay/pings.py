"""Pings: requests sent again to keep their prefix alive, as calls of their own among the others."""

from dataclasses import replace

import numpy as np

from prefixscope.analyzer.ragged import Ints
from prefixscope.analyzer.traffic import Pings, Traffic


def sent(traffic: Traffic, pings: Pings) -> tuple[Traffic, Ints]:
    """The traffic with its pings among its calls, in time order; and of each ping the call that it repeats, else -1."""
    calls = np.arange(len(traffic))
    owner = np.repeat(calls, pings.count)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(pings.count) - pings.count, pings.count) + 1
    at_ms = np.concatenate([traffic.at_ms, traffic.at_ms[owner] + turn * pings.every_ms[owner]])
    order = np.argsort(at_ms, kind="stable")
    source = np.concatenate([calls, owner])[order]
    rows = np.concatenate([np.diff(traffic.rows.offsets), pings.rows[owner]])[order]
    is_ping = order >= len(calls)
    wait_ms = (traffic.first_token_ms - traffic.at_ms)[source]
    everything = traffic.taken(source, rows)
    everything = replace(everything, at_ms=at_ms[order], first_token_ms=at_ms[order] + wait_ms)
    return everything, np.where(is_ping, source, -1)
