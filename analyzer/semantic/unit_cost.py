"""What a call costs with each tier, from the traffic's own numbers.

    C = M · [L · C_embed + (1 - R) · (T_cached · P_cached + T_new · P_in + T_gen · P_out)]

M calls; R the share that a response cache serves; L the share whose question is embedded to look for an alike one (hits
and misses alike: a miss costs its embedding too); T tokens of a call that the model answers: read from the provider's
cache, processed anew (writes included), generated; P what such a token costs on average.

A call that is served does not keep the provider's cache warm: the rest is replayed without it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from prefixscope.analyzer import baseline, breaks, savings
from prefixscope.analyzer import families as families_module
from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.replay import Outcome, replay
from prefixscope.analyzer.semantic.questions import Bools, Floats
from prefixscope.analyzer.traffic import INPUT_BUCKETS, Traffic

OPTIONS: Final = ("no cache", "as is", "prompt cache", "exact + prompt cache", "all three")
_NEW: Final = tuple(name for name in INPUT_BUCKETS if name != "read")
_PAID_AS: Final = {"kept_alive": "read"}  # what pings read to keep an entry alive


@dataclass(frozen=True, slots=True)
class Option:
    """One line of the table. Tokens and dollars are those of the calls that the model answers."""

    name: str
    calls: int  # M: all calls whose cost is known
    served: int  # by a response cache
    looked_up: int  # questions embedded
    usd_lookup: float
    cached: tuple[float, float]  # tokens, dollars
    new: tuple[float, float]
    generated: tuple[float, float]

    @property
    def usd(self) -> float:
        return self.usd_lookup + self.cached[1] + self.new[1] + self.generated[1]

    @property
    def usd_per_call(self) -> float:
        return self.usd / self.calls if self.calls else 0.0

    def terms(self) -> Mapping[str, float]:
        """The quantities of the equation; of what does not occur, 0."""
        answered = self.calls - self.served
        parts = {"cached": self.cached, "new": self.new, "gen": self.generated}
        names = {"cached": "P_cached", "new": "P_in", "gen": "P_out"}
        found = {"M": float(self.calls), "R": _ratio(self.served, self.calls), "L": _ratio(self.looked_up, self.calls)}
        found["C_embed"] = _ratio(self.usd_lookup, self.looked_up)
        for part, (count, usd) in parts.items():
            found[f"T_{part}"] = _ratio(count, answered)
            found[names[part]] = _ratio(usd, count)
        return found


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Served:
    """Which calls an option serves from a response cache, and what finding that out costs."""

    exact_alone: Bools  # by an exact cache with no semantic one behind it
    both: Bools  # by either, one behind the other
    looked_up: Bools
    usd_per_lookup: float


def table(traffic: Traffic, priced: pl.DataFrame, served: Served) -> list[Option]:
    """The options, over the calls with known usage and price.

    Args:
        traffic: all calls (``traffic.load``).
        priced: the same calls with their costs (``audit.with_costs``).
        served: what the response caches do.
    """
    bill, model = _Bill(priced), _PromptCache(traffic, priced)
    nobody = np.zeros(priced.height, dtype=np.bool_)
    last = bill.option("all three", served.both, model.mended(~served.both))
    looked_up = int((served.looked_up & bill.known).sum())
    return [
        bill.without_cache(),
        bill.option("as is", nobody, {}),
        bill.option("prompt cache", nobody, model.mended(~nobody)),
        bill.option("exact + prompt cache", served.exact_alone, model.mended(~served.exact_alone)),
        replace(last, looked_up=looked_up, usd_lookup=looked_up * served.usd_per_lookup),
    ]


_Changes = Mapping[str, tuple[Floats, Floats]]  # bucket -> tokens and dollars by call


class _Bill:
    """The calls whose usage and price are known."""

    def __init__(self, priced: pl.DataFrame) -> None:
        told = pl.col("usd_input").is_not_null() & pl.col("usd_output").is_not_null()
        self.known: Bools = priced.select(told).to_series().to_numpy()
        self._priced = priced

    def option(self, name: str, served: Bools, changes: _Changes) -> Option:
        """What the calls that are not served cost, with the changes in it."""
        answered = self.known & ~served
        sums = {name: _sum(self._priced, name, answered, changes.get(name)) for name in (*INPUT_BUCKETS, "output")}
        new = [sums[bucket] for bucket in _NEW]
        return Option(
            name=name,
            calls=int(self.known.sum()),
            served=int((self.known & served).sum()),
            looked_up=0,
            usd_lookup=0.0,
            cached=sums["read"],
            new=(sum(count for count, _ in new), sum(usd for _, usd in new)),
            generated=sums["output"],
        )

    def without_cache(self) -> Option:
        """Every input token at its plain price."""
        frame = self._priced.filter(pl.Series(self.known))
        new = float(frame["input_total"].sum()), float(frame["usd_without_cache"].cast(pl.Float64).sum())
        generated = float(frame["output"].sum()), float(frame["usd_output"].cast(pl.Float64).sum())
        return Option("no cache", frame.height, 0, 0, 0.0, (0.0, 0.0), new, generated)


def _sum(priced: pl.DataFrame, bucket: str, chosen: Bools, change: tuple[Floats, Floats] | None) -> tuple[float, float]:
    """Tokens and dollars of one bucket: as billed, and what a change moves into it."""
    count = priced[bucket].cast(pl.Float64).fill_null(0.0).to_numpy()
    usd = count * priced[f"rate_{bucket}"].cast(pl.Float64).fill_null(0.0).to_numpy()
    moved, moved_usd = change or (np.zeros(len(chosen)), np.zeros(len(chosen)))
    return float((count + moved)[chosen].sum()), float((usd + moved_usd)[chosen].sum())


class _PromptCache:
    """Tier 3: what the provider's cache does for the calls that reach the model."""

    def __init__(self, traffic: Traffic, priced: pl.DataFrame) -> None:
        counted, self._families, _ = baseline.counted(traffic)
        self._traffic, self._outcome = baseline.base_outcome(counted)
        self._priced = priced

    def mended(self, answered: Bools) -> _Changes:
        """The answered calls by themselves, with the fixes that pay (those of the audit) applied to them."""
        if not answered.any():
            return {}
        rates = self._priced.filter(pl.Series(answered))
        rest, kin = self._traffic.only(answered), self._families.only(answered)
        found = families_module.opening(rest, kin)
        base = Baseline(rest, kin, breaks.find(rest, kin, found), replay(rest), found)
        fixed = savings.plan(base, rates).changes[-1]
        colder = self._colder(base.outcome, answered, rates)
        moved = {name: (fixed.tokens[name], fixed.usd[name]) for name in fixed.tokens}
        return {
            bucket: _spread(answered, *(moved[name] for name in moved if _PAID_AS.get(name, name) == bucket), change)
            for bucket, change in colder.items()
        }

    def _colder(self, rest: Outcome, answered: Bools, rates: pl.DataFrame) -> _Changes:
        """What is no longer read because a served call did not keep the cache warm."""
        reported = rates["read"].to_numpy()  # what was not read cannot be lost
        moved = {"read": np.maximum(rest.read - self._outcome.read[answered], -reported)}
        moved |= {name: rest.writes[name] - self._outcome.writes[name][answered] for name in rest.writes}
        moved["uncached"] = -np.sum(list(moved.values()), axis=0)
        usable = (rates["usage_state"] == "reported").to_numpy()
        price = {name: rates[f"rate_{name}"].cast(pl.Float64).fill_null(0.0).to_numpy() for name in moved}
        return {name: (count * usable, count * usable * price[name]) for name, count in moved.items()}


def _spread(answered: Bools, *parts: tuple[Floats, Floats] | None) -> tuple[Floats, Floats]:
    """Sums of changes of the answered calls, laid out over all calls."""
    count, usd = np.zeros(len(answered)), np.zeros(len(answered))
    for part in parts:
        if part is not None:
            count[answered] += part[0]
            usd[answered] += part[1]
    return count, usd
