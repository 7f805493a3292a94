"""What the traffic costs, and what each planted leak's fix is worth: both by the simulator and the table of prices."""

import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from services import Service
from simulator import Outcome, simulate
from traffic import FIXES, TTL_MS, Call, output_tokens, simulated

Json = dict[str, Any]
Tokens = Mapping[str, int]  # bucket -> tokens

BUCKETS = ("uncached", "read", "write_5m", "write_1h", "output")
_PLACES = Decimal("1e-10")


def outcomes(service: Service, calls: Sequence[Call]) -> list[Outcome]:
    """What the provider's cache does with ``calls``."""
    model = service.model
    return simulate([simulated(call, model.provider, model.name) for call in calls], model.rules)


def buckets(call: Call, service: Service, outcome: Outcome) -> Tokens:
    """Billed tokens in disjoint buckets, named as in BUCKETS."""
    written = {f"write_{ttl}": outcome.writes.get(ms, 0) for ttl, ms in TTL_MS.items()}
    output = output_tokens(call, service.model.provider)
    return {"uncached": outcome.uncached, "read": outcome.read, **written, "output": output}


def cost(tokens: Tokens, provider: str, model: str, at_ms: int) -> Decimal:
    """USD for ``tokens`` (by bucket).

    Raises:
        LookupError: prices.toml has no price of the model for that day, or none for a bucket that holds tokens.
    """
    price = _price(provider, model, datetime.fromtimestamp(at_ms / 1000, UTC).date())
    return sum((Decimal(count) * Decimal(price[name]) / 10**6 for name, count in tokens.items() if count), Decimal(0))


@cache
def _price(provider: str, model: str, day: date) -> Mapping[str, str]:
    rows = [r for r in _table() if (r["provider"], r["model"]) == (provider, model) and r["from"] <= day]
    if not rows:
        raise LookupError(f"prices.toml: no price of {provider}/{model} on {day}: add a row, or choose a smaller scale")
    return max(rows, key=lambda row: row["from"])


@cache
def _table() -> list[Json]:
    table: list[Json] = tomllib.loads((Path(__file__).parent / "prices.toml").read_text(encoding="utf-8"))["price"]
    return table


def service_answer(service: Service, calls: Sequence[Call], served: Sequence[Outcome]) -> Json:
    """Calls, tokens and spend of a service. Calls without usage are counted, and nothing else is known of them."""
    billed = [(call, buckets(call, service, o)) for call, o in zip(calls, served, strict=True) if call.has_usage]
    spend = sum((cost(t, service.model.provider, service.model.name, c.at_ms) for c, t in billed), Decimal(0))
    return {
        "provider": service.model.provider,
        "model": service.model.name,
        "calls": len(calls),
        "calls_without_usage": len(calls) - len(billed),
        "tokens": {name: sum(tokens[name] for _, tokens in billed) for name in BUCKETS},
        "spend_usd": _usd(spend),
    }


def leak_answer(service: Service, calls: Sequence[Call], served: Sequence[Outcome], cause: str) -> Json:
    """What the fix of ``cause`` is worth over the service's whole traffic, write premiums included.

    A call is affected if it reads more with the fix than without.
    """
    fixed = [FIXES[cause](call) for call in calls]
    fixed_served = outcomes(service, fixed)
    as_is_usd, fixed_usd = _total(service, calls, served), _total(service, fixed, fixed_served)
    return {
        "service": service.name,
        "cause": cause,
        "provider": service.model.provider,
        "model": service.model.name,
        "affected_calls": sum(after.read > before.read for before, after in zip(served, fixed_served, strict=True)),
        "cost_usd": _usd(as_is_usd),
        "fixed_cost_usd": _usd(fixed_usd),
        "saving_usd": _usd(as_is_usd - fixed_usd),
    }


def _total(service: Service, calls: Sequence[Call], served: Sequence[Outcome]) -> Decimal:
    model = service.model
    costs = (
        cost(buckets(call, service, outcome), model.provider, model.name, call.at_ms)
        for call, outcome in zip(calls, served, strict=True)
    )
    return sum(costs, Decimal(0))


def total(services: Sequence[Json]) -> Json:
    """The services' answers, added up."""
    return {
        "calls": sum(s["calls"] for s in services),
        "calls_without_usage": sum(s["calls_without_usage"] for s in services),
        "tokens": {name: sum(s["tokens"][name] for s in services) for name in BUCKETS},
        "spend_usd": _usd(sum((Decimal(s["spend_usd"]) for s in services), Decimal(0))),
    }


def _usd(amount: Decimal) -> str:
    return str(amount.quantize(_PLACES))
