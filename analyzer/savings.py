"""PRICE: what each fix is worth, by replaying the traffic with it.

Fixes of one family overlap, so they are put on one after the other, the dearest first, and each is worth what it adds.
Families share next to nothing, so their savings add up. No saving exceeds what the same calls cost.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from prefixscope.analyzer import fixes as fixes_module
from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.replay import Outcome, replay
from prefixscope.analyzer.traffic import Traffic, model_name, numbered

BUCKETS = ("uncached", "read", "write_5m", "write_30m", "write_1h", "write_12h")
FixSet = frozenset[str]
NONE: FixSet = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """What a set of fixes does to each call: tokens moved between buckets, and dollars saved (negative = dearer)."""

    tokens: Mapping[str, Floats]  # bucket -> change in tokens
    usd: Mapping[str, Floats]  # bucket -> change in dollars
    saved: Floats
    doubtful: Floats  # dollars of ``saved`` that hang on the last step of a rounded read


@dataclass(frozen=True, slots=True)
class Plan:
    """The fixes that pay, family by family, in the order in which they are put on."""

    outcomes: Mapping[FixSet, Outcome]
    changes: Mapping[FixSet, Change]
    chosen: tuple[tuple[str, ...], ...]  # family -> fixes


def base_outcome(traffic: Traffic) -> tuple[Traffic, Outcome]:
    """The replay as is, and the traffic with what the provider had cached before the window marked as warm."""
    first = replay(traffic)
    reported = traffic.calls["read"].to_numpy()
    slack = np.maximum(traffic.per_card("granularity"), 0.02 * reported)
    begins_warm = (reported > first.shared + slack) & (reported > first.read + slack) & traffic.known
    if not begins_warm.any():
        return traffic, first
    rows = traffic.rows
    ends = ragged.running_sums(rows.tokens, rows.offsets)
    warm = begins_warm[rows.call] & (ends <= (reported + slack)[rows.call])
    traffic = replace(traffic, rows=replace(rows, warm=warm))
    return traffic, replay(traffic)


def plan(traffic: Traffic, families: Families, base: Outcome, rates: pl.DataFrame) -> Plan:
    """Replays every sensible combination of fixes and chooses for each family those that pay."""
    outcomes = {NONE: base}
    relevant = _relevant(traffic, families, base)
    for fix_set in _combinations(list(relevant)):
        chosen = _bound_together(traffic, families, np.any([relevant[name] for name in fix_set], axis=0))
        fixed = replay(_apply(fix_set, traffic.only(chosen), families.only(chosen)))
        outcomes[fix_set] = base.with_calls(chosen, fixed)
    price, limit = _prices(rates), _limits(rates)
    changes = {fix_set: _change(traffic, base, outcome, price, limit) for fix_set, outcome in outcomes.items()}
    saved = {fix_set: _by_family(change.saved, families) for fix_set, change in changes.items()}
    best = tuple(tuple(_greedy({s: values[f] for s, values in saved.items()})) for f in range(len(families)))
    return Plan(outcomes, changes, best)


def achieved_rate(traffic: Traffic, base: Outcome) -> pl.DataFrame:
    """Reported against predicted reads by provider and model: the share of what the model expects that really came.

    Columns: provider, model, calls (with a prediction), predicted, reported (tokens), rate (0..1, null = no evidence).
    """
    frame = traffic.calls.select("provider", "usage_state", "read", model=model_name()).with_columns(
        predicted=pl.Series(base.read)
    )
    checked = frame.filter((pl.col("predicted") > 0) & (pl.col("usage_state") == "reported"))
    sums = checked.group_by("provider", "model").agg(
        calls=pl.len(),
        predicted=pl.col("predicted").sum(),
        reported=pl.col("read").sum(),
        achieved=pl.min_horizontal("read", "predicted").sum(),
    )
    return sums.with_columns(rate=pl.col("achieved") / pl.col("predicted")).drop("achieved").sort("provider", "model")


def _relevant(traffic: Traffic, families: Families, base: Outcome) -> dict[str, Bools]:
    """Fixes that can change anything here, each with the calls that it can change."""
    lapsed = base.shared > base.unexpired
    longer = fixes_module.longest_ttl_ms(traffic) > traffic.ttl_ms
    volatile = fixes_module.volatile_rows(traffic, families).astype(np.int64)
    found = {
        fixes_module.SORT_TOOLS: fixes_module.unsorted_calls(traffic),
        fixes_module.MOVE_VOLATILE: ragged.group_sums(volatile, traffic.rows.offsets) > 0,
        fixes_module.EXTEND_TTL: lapsed & longer,
    }
    return {name: found[name] for name in fixes_module.APPLY if found[name].any()}


def _bound_together(traffic: Traffic, families: Families, chosen: Bools) -> Bools:
    """The chosen calls, those that share a cache scope, a family or a session with them, and so on.

    No other call has any bearing on what a fix does to the chosen ones.
    """
    session = np.where(traffic.calls["session_id"] == "", -1, numbered(traffic.calls.select("session_id")))
    bonds = (ragged.factorize(traffic.scope)[1], families.of_call, session)
    while True:
        grown = chosen
        for bond in bonds:
            touched = np.zeros(int(bond.max(initial=-1)) + 2, dtype=np.bool_)
            touched[bond[grown]] = True
            touched[-1] = False  # where -1, no bond, has ended up
            grown = grown | touched[bond]
        if np.array_equal(grown, chosen):
            return chosen
        chosen = grown


def _combinations(names: list[str]) -> Iterator[FixSet]:
    for size in range(1, len(names) + 1):
        yield from map(frozenset, combinations(names, size))


def _apply(fix_set: FixSet, traffic: Traffic, families: Families) -> Traffic:
    for name, fix in fixes_module.APPLY.items():
        if name in fix_set:
            traffic = fix(traffic, families)
    return traffic


def _prices(rates: pl.DataFrame) -> Mapping[str, Floats]:
    """USD per token of each bucket and call; 0 where the call is unpriced or its usage is not known."""
    usable = (rates["usage_state"] == "reported").to_numpy()
    return {
        bucket: np.where(usable, rates[f"rate_{bucket}"].cast(pl.Float64).fill_null(0.0).to_numpy(), 0.0)
        for bucket in BUCKETS
    }


def _limits(rates: pl.DataFrame) -> Floats:
    """USD that a call would save if all of its input were read: no claim goes beyond, however model and bill differ."""
    usable = (rates["usage_state"] == "reported").to_numpy()
    usd = rates.select(pl.col("usd_input") - pl.col("input_total") * pl.col("rate_read")).to_series()
    return np.where(usable, np.maximum(usd.cast(pl.Float64).fill_null(0.0).to_numpy(), 0.0), 0.0)


def _change(traffic: Traffic, base: Outcome, fixed: Outcome, price: Mapping[str, Floats], limit: Floats) -> Change:
    reported = traffic.calls["read"].to_numpy()
    rise = fixed.read - base.read
    # what the provider read anyway cannot be gained again
    gained = np.where(rise > 0, np.maximum(fixed.read - np.maximum(base.read, reported), 0.0), rise)
    tokens = {"read": gained} | {name: fixed.writes[name] - base.writes[name] for name in base.writes}
    tokens["uncached"] = -np.sum(list(tokens.values()), axis=0)
    saved = -np.sum([tokens[bucket] * price[bucket] for bucket in BUCKETS], axis=0)
    kept = np.where(saved > limit, limit / np.where(saved > limit, saved, 1.0), 1.0)
    tokens = {bucket: count * kept for bucket, count in tokens.items()}
    usd = {bucket: tokens[bucket] * price[bucket] for bucket in BUCKETS}
    saved, gained = saved * kept, gained * kept
    at_stake = np.clip(fixed.read - fixed.read_at_least, 0.0, np.maximum(gained, 0.0))
    return Change(tokens, usd, saved, doubtful=at_stake * np.maximum(price["uncached"] - price["read"], 0.0))


def _by_family(values: Floats, families: Families) -> Floats:
    member = families.of_call >= 0
    return np.bincount(families.of_call[member], weights=values[member], minlength=len(families)).astype(np.float64)


def _greedy(saved: Mapping[FixSet, float]) -> Iterator[str]:
    """Fixes in the order of what each adds to those before it, as long as it adds something."""
    on: FixSet = NONE
    while True:
        options = {s: value - saved[on] for s, value in saved.items() if len(s) == len(on) + 1 and s > on}
        best = max(options, key=lambda s: options[s], default=NONE)
        if not best or options[best] <= 1e-9:
            return
        yield next(iter(best - on))
        on = best


def steps(chosen: Iterable[str]) -> Iterator[tuple[str, FixSet, FixSet]]:
    """Each fix with the set before and the set after it."""
    before = NONE
    for name in chosen:
        after = before | {name}
        yield name, before, after
        before = after
