"""What a change of the traffic would do to the bill, call by call."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from prefixscope.analyzer.ragged import Floats
from prefixscope.analyzer.replay import Outcome
from prefixscope.analyzer.traffic import WRITE_BUCKETS, Traffic

BUCKETS = ("uncached", "read", "kept_alive", "write_5m", "write_30m", "write_1h", "write_12h")
"""Where tokens are moved to and from; ``kept_alive`` is all that pings process."""
_BILLED = tuple(name for name in BUCKETS if name != "kept_alive")


@dataclass(frozen=True, slots=True)
class Change:
    """Against the calls as they were: tokens moved between buckets, and dollars saved (negative = dearer)."""

    tokens: Mapping[str, Floats]  # bucket -> change in tokens
    usd: Mapping[str, Floats]  # bucket -> change in dollars
    saved: Floats
    doubtful: Floats  # dollars of ``saved`` that hang on the last step of a rounded read
    pings_missed: Floats  # dollars that the pings after each call would cost if none of them read anything


def _total(outcome: Outcome) -> Floats:
    """Tokens of each call's prompt."""
    return outcome.read + outcome.write + outcome.uncached


class Bill:
    """What the provider charged for each call, and so what can be saved of it."""

    def __init__(self, traffic: Traffic, base: Outcome, rates: pl.DataFrame) -> None:
        """``rates`` are the calls with their prices (``audit.with_costs``); ``base`` is the replay as is."""
        usable = (rates["usage_state"] == "reported").to_numpy()
        self._base = base
        self._reported = traffic.calls["read"].to_numpy()
        self._written = traffic.calls.select(pl.sum_horizontal(WRITE_BUCKETS)).to_series().to_numpy()
        self._list = {name: rates[f"rate_{name}"].cast(pl.Float64).fill_null(0.0).to_numpy() for name in _BILLED}
        self._price = {name: np.where(usable, rate, 0.0) for name, rate in self._list.items()}
        # what a call would save if all of its input were read: no claim goes beyond, however model and bill differ
        usd = rates.select(pl.col("usd_input") - pl.col("input_total") * pl.col("rate_read")).to_series()
        self._limit = np.where(usable, np.maximum(usd.cast(pl.Float64).fill_null(0.0).to_numpy(), 0.0), 0.0)
        spent = rates["usd_input"].cast(pl.Float64).fill_null(0.0).to_numpy()
        self.spent = np.where(usable, spent, 0.0)

    def change(self, fixed: Outcome) -> Change:
        """What is saved where the calls do as in ``fixed``.

        What the provider read anyway cannot be gained again, and what it did not write cannot be saved.
        """
        base, price = self._base, self._price
        rise = fixed.read - base.read
        gained = np.where(rise > 0, np.maximum(fixed.read - np.maximum(base.read, self._reported), 0.0), rise)
        tokens = {"read": gained} | self._writes(fixed)
        # a longer prompt is more to pay: what the buckets do not take from each other comes on top
        longer = _total(fixed) - _total(base)
        tokens["uncached"] = longer - np.sum(list(tokens.values()), axis=0)
        saved = -np.sum([tokens[bucket] * price[bucket] for bucket in _BILLED], axis=0)
        over = saved > self._limit
        kept = np.where(over, self._limit / np.where(over, saved, 1.0), 1.0)
        at_stake = np.clip(fixed.read - fixed.read_at_least, 0.0, np.maximum(gained * kept, 0.0))
        tokens = {bucket: count * kept for bucket, count in tokens.items()}
        usd = {bucket: tokens[bucket] * price[bucket] for bucket in _BILLED}
        # pings are paid whatever is known of the call in front of them
        pings = np.sum([np.zeros(len(saved)), *fixed.pinged.values()], axis=0)
        paid = np.sum([np.zeros(len(saved)), *(n * self._list[name] for name, n in fixed.pinged.items())], axis=0)
        return Change(
            tokens | {"kept_alive": pings},
            usd | {"kept_alive": paid},
            saved * kept - paid,
            doubtful=at_stake * np.maximum(price["uncached"] - price["read"], 0.0),
            pings_missed=pings * self._list["uncached"],
        )

    def _writes(self, fixed: Outcome) -> dict[str, Floats]:
        moved = {name: fixed.writes[name] - self._base.writes[name] for name in fixed.writes}
        fewer = -np.sum([np.minimum(count, 0.0) for count in moved.values()], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            kept = np.where(fewer > self._written, self._written / fewer, 1.0)
        return {name: np.where(count < 0, count * kept, count) for name, count in moved.items()}
