"""What was missed and is not claimed: healthy causes, the provider's side, and fixes that would not pay."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.causes import Causes, verdict
from prefixscope.analyzer.evidence.case import Case
from prefixscope.analyzer.evidence.healthy import HEALTHY, of_any
from prefixscope.analyzer.findings import examples, finding_id
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.savings import Option, Plan
from prefixscope.analyzer.traffic import model_name, numbered

_MOST = 200  # entries; what is left out is in the sums by cause all the same


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """A cause in a family of which no saving is promised."""

    id: str
    cause: str
    verdict: str
    service: str
    provider: str
    model: str
    calls: int
    family_calls: int
    missed_tokens: int
    usd_at_stake: float  # what reading the missed tokens would have saved; not a claim
    headline: str
    evidence: Mapping[str, Any]
    tried: tuple[Option, ...]  # fixes of this cause and what they would save, or cost where negative
    examples: tuple[Mapping[str, Any], ...]


def find(base: Baseline, causes: Causes, plan: Plan, priced: pl.DataFrame) -> list[Unclaimed]:
    """One for each cause, service and model with unclaimed calls, those with most at stake first."""
    traffic, families = base.traffic, base.families
    dearer = (priced["rate_uncached"] - priced["rate_read"]).cast(pl.Float64).fill_null(0.0).to_numpy()
    chosen = (causes.cause != "") & ~causes.claimed
    keys = traffic.calls.select("service", "provider", model=model_name()).with_columns(cause=pl.Series(causes.cause))
    group = np.where(chosen, numbered(keys), -1)
    at_stake = np.bincount(group[chosen], weights=(causes.missed * dearer)[chosen])
    missed = np.bincount(group[chosen], weights=causes.missed[chosen])
    present = np.flatnonzero(np.bincount(group[chosen]))
    order = np.lexsort((present, -missed[present], -at_stake[present]))[:_MOST]
    found = []
    for number in present[order].tolist():
        hit = group == number
        row = keys.row(int(np.flatnonzero(hit)[0]), named=True)
        cause, concerned = row["cause"], np.unique(families.of_call[hit])
        members = np.isin(families.of_call, concerned[concerned >= 0]) | hit
        case = Case(base, int(concerned[-1]), members, hit, cause, fix="")
        headline, facts = HEALTHY.get(cause, of_any)(case)
        found.append(
            Unclaimed(
                id=finding_id("not claimed", cause, row["service"], row["provider"], row["model"]),
                cause=cause,
                verdict=verdict(cause, claimed=False),
                service=row["service"],
                provider=row["provider"],
                model=row["model"],
                calls=int(hit.sum()),
                family_calls=int(members.sum()),
                missed_tokens=round(float(missed[number])),
                usd_at_stake=float(at_stake[number]),
                headline=headline,
                evidence=facts,
                tried=_tried(plan, concerned.tolist(), cause),
                examples=examples(traffic, hit),
            )
        )
    return sorted(found, key=lambda item: (-item.usd_at_stake, -item.missed_tokens, item.id))


def _tried(plan: Plan, concerned: Sequence[int], cause: str) -> tuple[Option, ...]:
    """Fixes of the cause that were tried on the families and not chosen, and what they would save in all."""
    saved: dict[str, list[Option]] = {}
    for family in concerned:
        if family >= 0:
            for option in plan.options.get((family, len(plan.chosen[family])), ()):
                if cause in FIXES[option.fix].causes:
                    saved.setdefault(option.fix, []).append(option)
    found = [Option(f, sum(o.saved for o in options), sum(o.premium for o in options)) for f, options in saved.items()]
    return tuple(sorted(found, key=lambda option: -option.saved))
