"""What was missed and is not claimed: healthy causes, the provider's side, and fixes that would not pay."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.causes import VERDICTS, Causes
from prefixscope.analyzer.evidence.case import Case
from prefixscope.analyzer.evidence.healthy import HEALTHY, of_any
from prefixscope.analyzer.findings import examples, finding_id
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.savings import Option, Plan
from prefixscope.analyzer.traffic import model_name, numbered


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
    """One for each cause, service, model and family with unclaimed calls, those with most at stake first."""
    traffic, families = base.traffic, base.families
    dearer = (priced["rate_uncached"] - priced["rate_read"]).cast(pl.Float64).fill_null(0.0).to_numpy()
    chosen = (causes.cause != "") & ~causes.claimed
    keys = traffic.calls.select("service", "provider", model=model_name()).with_columns(
        cause=pl.Series(causes.cause), family=pl.Series(families.of_call)
    )
    group = np.where(chosen, numbered(keys), -1)
    found = []
    for number in np.unique(group[chosen]).tolist():
        hit = group == number
        row = keys.row(int(np.flatnonzero(hit)[0]), named=True)
        family, cause = row["family"], row["cause"]
        members = families.of_call == family if family >= 0 else hit
        case = Case(base, family, members, hit, cause, fix="")
        headline, facts = HEALTHY.get(cause, of_any)(case)
        name = f"{families.anchor[family]:016x}" if family >= 0 else ""
        found.append(
            Unclaimed(
                id=finding_id(cause, row["service"], row["provider"], row["model"], name),
                cause=cause,
                verdict=VERDICTS[cause],
                service=row["service"],
                provider=row["provider"],
                model=row["model"],
                calls=int(hit.sum()),
                family_calls=int(members.sum()),
                missed_tokens=round(float(causes.missed[hit].sum())),
                usd_at_stake=float((causes.missed * dearer)[hit].sum()),
                headline=headline,
                evidence=facts,
                tried=_tried(plan, family, cause),
                examples=examples(traffic, hit),
            )
        )
    return sorted(found, key=lambda item: (-item.usd_at_stake, -item.missed_tokens, item.id))


def _tried(plan: Plan, family: int, cause: str) -> tuple[Option, ...]:
    """Fixes of the cause that were tried on the family and not chosen."""
    if family < 0:
        return ()
    last = plan.options.get((family, len(plan.chosen[family])), ())
    return tuple(option for option in last if cause in FIXES[option.fix].causes)
