"""The answers to the traffic with one leak per cause: each call's cause, and what each fix is worth.

All of it follows from what was planted and from the simulator. A call's cause is the first of these that holds:

1. ``unknown_usage``: its response reports no usage.
2. ``provider_side``: the provider read less than the simulator's cache holds.
3. The service's planted cause: without the fault fewer of its tokens stay unread. For ``write_churn``: of what it
   wrote, most is read by nobody.
4. ``ttl_lapse``: if entries lived for ever, it would read more.
5. ``parallel_cold_start``: if every response began at once, it would read more.
6. ``below_minimum``: it read nothing, and without a minimum (and if entries lived for ever) it would read most of
   its prompt.
7. ``first_seen``: it read less than half of its prompt.
8. "": nothing was missed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from random import Random
from typing import Any

import answers
import planted
from planted import TTL_MS, Sent, input_tokens, outcomes, unread, vocabulary
from planted_service import Service, calls, remedy, verdict
from simulator import Outcome, simulate
from traffic import output_tokens

Json = dict[str, Any]

BUCKETS = ("uncached", "read", "write_5m", "write_30m", "write_1h", "output")
_FOR_EVER_MS = 10**12
_PLACES = Decimal("1e-10")


@dataclass(frozen=True)
class Planted:
    """A service and its calls in the order they were made. ``seed`` decides which reads get lost at random."""

    service: Service
    calls: list[Sent]
    seed: int

    @cached_property
    def cached(self) -> list[Outcome]:
        """What the provider's cache holds for each call."""
        return outcomes(self.calls, self.service.model)

    @cached_property
    def served(self) -> list[Outcome]:
        """What the provider reports: what the cache holds, but for reads that it loses at random."""
        rng = Random(f"{self.seed}/{self.service.name}/lost")
        rate = self.service.missed_at_random
        return [Outcome(0, input_tokens(o)) if rng.random() < rate else o for o in self.cached]

    @cached_property
    def mended(self) -> list[Sent]:
        """The calls without the planted fault."""
        return remedy(self.service)(self.calls) if self.service.cause else self.calls

    @cached_property
    def mended_served(self) -> list[Outcome]:
        return outcomes(self.mended, self.service.model)

    @cached_property
    def causes(self) -> list[str]:
        return list(_causes(self))

    @property
    def saving(self) -> Decimal:
        """USD that the fix is worth over all calls, write premiums included; below zero where it would not pay."""
        return cost(self.service, self.calls, self.served) - cost(self.service, self.mended, self.mended_served)


def plant(service: Service, seed: int, days: int) -> Planted:
    return Planted(service, calls(service, seed, days), seed)


# --- Causes -----------------------------------------------------------------------------------------------------------


def _causes(traffic: Planted) -> Iterator[str]:
    fault = _suffering(traffic)
    lapsed, parallel, short = (_hindered(traffic, name) for name in ("ttl", "wait", "minimum"))
    for n, (sent, outcome) in enumerate(zip(traffic.calls, traffic.served, strict=True)):
        if not sent.call.has_usage:
            yield "unknown_usage"
        elif outcome.read < traffic.cached[n].read:
            yield "provider_side"
        elif fault[n]:
            yield traffic.service.cause
        elif lapsed[n]:
            yield "ttl_lapse"
        elif parallel[n]:
            yield "parallel_cold_start"
        elif short[n]:
            yield "below_minimum"
        else:
            yield "first_seen" if outcome.read < input_tokens(outcome) / 2 else ""


def gains(traffic: Planted) -> list[int]:
    """Tokens of each call that are unread only because of the planted fault."""
    pairs = zip(traffic.cached, traffic.mended_served, strict=True)
    return [unread(before) - unread(after) for before, after in pairs]


def tolerance(service: Service, outcome: Outcome) -> float:
    """Tokens by which a read may differ without meaning anything: a step of rounding, or a fiftieth of the prompt."""
    return max(16, 1.5 * service.model.rules.granularity, input_tokens(outcome) / 50)


def _suffering(traffic: Planted) -> list[bool]:
    if traffic.service.cause == "write_churn":
        return _churning(traffic)
    measured = zip(gains(traffic), traffic.cached, strict=True)
    return [gain > tolerance(traffic.service, outcome) for gain, outcome in measured]


def _churning(traffic: Planted) -> list[bool]:
    """Calls most of whose writes nobody reads: the fix, which no call reads less with, does without them."""
    pairs = zip(traffic.cached, traffic.mended_served, strict=True)
    return [2 * sum(after.writes.values()) < sum(before.writes.values()) for before, after in pairs]


def _hindered(traffic: Planted, by: str) -> list[bool]:
    """Calls that would read more if lifetimes, waits or the minimum were not."""
    service, rules = traffic.service, traffic.service.model.rules
    sims = [planted.simulated(sent, service.model) for sent in traffic.calls]
    if by in {"ttl", "minimum"}:
        rules = replace(rules, ttl_ms=_FOR_EVER_MS)
        sims = [replace(s, markers=tuple(replace(m, ttl_ms=_FOR_EVER_MS) for m in s.markers)) for s in sims]
    if by == "wait":
        sims = [replace(s, first_token_ms=s.at_ms) for s in sims]
    if by == "minimum":
        rules = replace(rules, min_tokens=0, granularity=1)
    found = list(zip(traffic.cached, simulate(sims, rules), strict=True))
    if by == "minimum":
        return [before.read == 0 and after.read > input_tokens(after) / 2 for before, after in found]
    return [after.read - before.read > tolerance(service, after) for before, after in found]


# --- Money ------------------------------------------------------------------------------------------------------------


def buckets(sent: Sent, service: Service, outcome: Outcome) -> dict[str, int]:
    """Billed tokens in disjoint buckets, named as in BUCKETS."""
    written = {f"write_{ttl}": outcome.writes.get(ms, 0) for ttl, ms in TTL_MS.items()}
    output = output_tokens(sent.call, vocabulary(service.model))
    return {"uncached": outcome.uncached, "read": outcome.read, **written, "output": output}


def cost(service: Service, sents: Sequence[Sent], served: Sequence[Outcome]) -> Decimal:
    """USD for the calls that report usage: nothing is known of the others."""
    model = service.model
    found = (
        answers.cost(buckets(sent, service, outcome), model.provider, model.name, sent.call.at_ms)
        for sent, outcome in zip(sents, served, strict=True)
        if sent.call.has_usage
    )
    return sum(found, Decimal(0))


def service_answer(traffic: Planted) -> Json:
    """What is known of a service; ``saving_usd`` is null where there is no fix that pays."""
    service = traffic.service
    billed = [buckets(s, service, o) for s, o in zip(traffic.calls, traffic.served, strict=True) if s.call.has_usage]
    pays = verdict(service) == "actionable"
    return {
        "provider": service.model.provider,
        "model": service.model.name,
        "cause": service.cause,
        "also": service.also,
        "verdict": verdict(service),
        "calls": len(traffic.calls),
        "calls_without_usage": len(traffic.calls) - len(billed),
        "calls_by_cause": {name: traffic.causes.count(name) for name in sorted(set(traffic.causes))},
        "tokens": {name: sum(tokens[name] for tokens in billed) for name in BUCKETS},
        "spend_usd": usd(cost(service, traffic.calls, traffic.served)),
        "saving_usd": usd(traffic.saving) if pays else None,
    }


def usd(amount: Decimal) -> str:
    return str(amount.quantize(_PLACES))
