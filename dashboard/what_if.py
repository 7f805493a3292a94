"""The store's own traffic under other rules: fixes on and off, other lifetimes, another model. All by replay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import audit, baseline, fixes, savings, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.changes import Bill
from prefixscope.analyzer.prices.call_rates import rate_calls
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.replay import Outcome, replay
from prefixscope.analyzer.savings import Plan
from prefixscope.analyzer.store import Store
from prefixscope.analyzer.traffic import INPUT_BUCKETS, Traffic

BUCKETS: Final = ("read", "write_5m", "write_30m", "write_1h", "write_12h", "uncached")
LIFETIMES: Final = {"as sent": "", "the longest offered": "extend_ttl", "the shortest offered": "shorten_ttl"}


@dataclass(frozen=True, slots=True)
class Loaded:
    """A store's calls ready for replay, with the plan of the audit. Made once, asked often."""

    base: Baseline
    priced: pl.DataFrame  # ``audit.with_costs``
    plan: Plan
    prompts: pa.Table  # as sent: what another model would get

    @property
    def chosen(self) -> list[str]:
        """Fixes that the audit puts on any family, those first that save most."""
        return [name for name, _ in sorted(self._alone().items(), key=lambda item: -item[1])]

    def _alone(self) -> dict[str, float]:
        bill = Bill(self.base.traffic, self.base.outcome, self.priced)
        return {name: float(bill.change(_with(self, [name])).saved.sum()) for name in _names(self.plan)}


@dataclass(frozen=True, slots=True)
class Raw:
    """What a store knows of some calls, as it came from there."""

    calls: pl.DataFrame
    prompts: pa.Table
    contents: pa.Table


def fetch(store: Store, service: str | None) -> Raw:
    """The calls of one service, or of all."""
    chosen = {"service": service, "since": None, "until": None}
    calls = store.frame("analysis/calls", **chosen)
    return Raw(calls, store.arrow("analysis/prompts", **chosen), store.arrow("analysis/contents"))


def load(raw: Raw) -> Loaded | None:
    """Replays the calls as they were and plans fixes; None where there is no call with a prompt."""
    if not raw.calls["prompt_known"].any():
        return None
    found = traffic.load(raw.calls, raw.prompts, contents_of(raw.contents))
    counted, grouped, _ = baseline.counted(found)
    base, priced = baseline.of(counted, grouped), audit.with_costs(raw.calls)
    return Loaded(base, priced, savings.plan(base, priced), raw.prompts)


def waterfall(loaded: Loaded, names: Sequence[str]) -> pl.DataFrame:
    """What each fix adds to those before it, on the families where the audit chose it.

    Columns: fix, saved (USD over the window), before, after (USD of all input).
    """
    bill = Bill(loaded.base.traffic, loaded.base.outcome, loaded.priced)
    spent = float(bill.spent.sum())
    rows, before = [], 0.0
    for count in range(1, len(names) + 1):
        saved = float(bill.change(_with(loaded, names[:count])).saved.sum())
        rows.append(
            {"fix": names[count - 1], "saved": saved - before, "before": spent - before, "after": spent - saved}
        )
        before = saved
    return pl.DataFrame(rows, schema={"fix": pl.String, **dict.fromkeys(("saved", "before", "after"), pl.Float64)})


def spent(loaded: Loaded) -> float:
    """USD of the input of all calls with a known price."""
    return float(Bill(loaded.base.traffic, loaded.base.outcome, loaded.priced).spent.sum())


def _names(plan: Plan) -> list[str]:
    return [name for name in fixes.FIXES if any(name in chosen for chosen in plan.chosen)]


def _with(loaded: Loaded, names: Sequence[str]) -> Outcome:
    """The replay with these fixes on the families that the plan puts them on."""
    of_call = loaded.base.families.of_call
    masks: dict[str, Bools] = {}
    for name in names:
        wanted = np.array([name in chosen for chosen in loaded.plan.chosen], dtype=np.bool_)
        masks[name] = np.append(wanted, False)[of_call]  # -1, no family, is the last
    return replay(fixes.apply(masks, loaded.base.traffic, loaded.base.families))


@dataclass(frozen=True, slots=True)
class Rules:
    """Other rules for the same prompts; "" = as they were."""

    provider: str = ""
    model: str = ""
    lifetime: str = ""  # a fix's name: a value of LIFETIMES
    markers: str = ""  # mark_static, mark_last, mark_both, drop_markers


def under(loaded: Loaded, rules: Rules) -> dict[str, float | None]:
    """Tokens by bucket and ``usd`` of the input under other rules; ``usd`` is None where the model has no price.

    Compared like with like: both sides are replays, and both leave out calls without usage or prompt.
    """
    changed = _rehosted(loaded, rules) if rules.model else loaded.base.traffic
    mask = np.ones(len(changed), dtype=np.bool_)
    names = {name: mask for name in (rules.lifetime, rules.markers) if name}
    outcome = replay(fixes.apply(names, changed, loaded.base.families))
    counted = (changed.calls["usage_state"] == "reported").to_numpy() & changed.known
    buckets = {"read": outcome.read, "uncached": outcome.uncached, **outcome.writes}
    sums: dict[str, float | None] = {name: float(values[counted].sum()) for name, values in buckets.items()}
    return sums | {"usd": _usd(changed, buckets, counted)}


def _rehosted(loaded: Loaded, rules: Rules) -> Traffic:
    """The same prompts sent to another model. Their tokens are counted as before: its tokenizer may differ.

    What the provider read and wrote is no evidence for another one, so all input counts as uncached.
    """
    found = loaded.base.traffic
    served = ("served_model", "tier", "speed", "geo", "cache_ttl", "cache_mode")
    calls = found.calls.with_columns(
        provider=pl.lit(rules.provider),
        model=pl.lit(rules.model),
        uncached=pl.sum_horizontal(INPUT_BUCKETS),
        **dict.fromkeys(served, pl.lit("")),
        **dict.fromkeys(INPUT_BUCKETS[1:], pl.lit(0, pl.Int64)),
    )
    moved = traffic.load(calls, loaded.prompts, found.contents)
    ruled = ("calls", "cards", "card", "scope", "level_salt", "ttl_ms")
    changed = replace(found, warm_tokens=np.zeros(len(found)), **{name: getattr(moved, name) for name in ruled})
    return changed.with_prompts(moved.prompts)


def _usd(found: Traffic, buckets: Mapping[str, Any], counted: Bools) -> float | None:
    named = found.calls.with_columns(input_total=pl.Series(found.input_total), model=traffic.model_name())
    rates = (
        rate_calls(named)
        .select(pl.selectors.starts_with("rate_").cast(pl.Float64, strict=False))
        .filter(pl.Series(counted))
    )
    if rates["rate_uncached"].is_null().all():
        return None
    return float(sum((pl.Series(buckets[name][counted]) * rates[f"rate_{name}"]).sum() for name in BUCKETS))
