"""What stands in a cache's key beside the text: settings, and the scope of account, region and cache key."""

from dataclasses import replace

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.traffic import Traffic, numbered


def pin_settings(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """All calls of a family are made with the settings that most of them have."""
    distinct, number = np.unique(traffic.level_salt, axis=0, return_inverse=True)
    pinned = distinct[_commonest(number.ravel(), families)]
    return replace(traffic, level_salt=np.where(where[:, None], pinned, traffic.level_salt))


def unsettled_calls(traffic: Traffic, families: Families) -> Bools:
    """Calls of families whose settings differ."""
    _, number = np.unique(traffic.level_salt, axis=0, return_inverse=True)
    return differing(number.ravel(), families)


def one_scope(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """All calls of a family are made with one account, region and cache key: those that most of them have."""
    distinct, number = np.unique(traffic.scope, return_inverse=True)
    joined: Ids = distinct[_commonest(number, families)]
    # a stored prefix is part of the prompt, not a place to send it to
    stored = (traffic.calls["cached_content"] != "").to_numpy()
    return replace(traffic, scope=np.where(where & ~stored, joined, traffic.scope))


def scattered_calls(traffic: Traffic, families: Families) -> Bools:
    """Calls of families that are spread over several scopes."""
    _, number = np.unique(traffic.scope, return_inverse=True)
    return differing(number, families)


def scope_parts(traffic: Traffic) -> dict[str, Ints]:
    """Account, region and cache key of each call, numbered; what ``one_scope`` joins."""
    return {name: numbered(traffic.calls.select(name)) for name in ("account", "region", "cache_key")}


def _commonest(number: Ints, families: Families) -> Ints:
    """For each call the commonest number in its family; its own where it has no family."""
    found = number.copy()
    member = families.of_call >= 0
    stride = int(number.max(initial=0)) + 1
    pair, counts = np.unique(families.of_call[member] * stride + number[member], return_counts=True)
    order = np.lexsort((counts, pair // stride))
    best = np.zeros(len(families), dtype=np.int64)
    best[pair[order] // stride] = pair[order] % stride  # the last of each family is its commonest
    found[member] = best[families.of_call[member]]
    return found


def differing(number: Ints, families: Families) -> Bools:
    """Calls of families with more than one number."""
    member = families.of_call >= 0
    stride = int(number.max(initial=0)) + 1
    pair = ragged.distinct(families.of_call[member] * stride + number[member])
    several = np.bincount(pair // stride, minlength=len(families)) > 1
    found = np.zeros(len(number), dtype=np.bool_)
    found[member] = several[families.of_call[member]]
    return found
