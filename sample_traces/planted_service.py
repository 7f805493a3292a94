"""A service of the traffic with one leak per cause: how it calls its model, what is planted, and what mends it."""

from dataclasses import dataclass, replace
from random import Random
from typing import Literal

import arrangements
import assembly
from arrangements import Arrange
from assembly import Assembly, Setup
from cause_fixes import FIXES, unchanged
from planted import Fix, Sent
from services import Model
from turns import Talk, sessions, static

Verdict = Literal["actionable", "informational", "provider_side", ""]
Api = Literal["chat", "responses", "messages", "converse", "gemini"]


@dataclass(frozen=True, slots=True)
class Service:
    """``cause`` names the planted fault, "" is a healthy service; ``fix`` replaces the cause's usual one."""

    name: str
    model: Model
    api: Api
    talk: Talk
    cause: str = ""
    also: str = ""  # a second fault, behind the first; ``fix`` mends both
    verdict: Verdict = ""  # "" = the caller's to act on, if there is a cause
    assemble: Assembly = assembly.plain
    arrange: Arrange = arrangements.in_turn
    front_ttl: str = ""
    last_ttl: str = ""
    fix: Fix | None = None
    is_diagnosed: bool = False  # half of its sessions ask the provider why a prefix was missed
    usage_rate: float = 1.0  # part of the sessions whose calls report usage
    missed_at_random: float = 0.0  # part of the calls whose read the provider's cache fails to give


def calls(service: Service, seed: int, days: int) -> list[Sent]:
    """The service's calls of ``days`` days in the order they are made. The same arguments give the same calls."""
    fixed = static(service.name, service.talk, seed)
    setup = Setup(
        service.name, service.model, service.talk.domain, fixed, service.front_ttl, service.last_ttl, service.assemble
    )
    made = service.arrange(setup, list(sessions(service.name, service.talk, fixed, seed, days)))
    asked = (_asked(service, sent, Random(f"{seed}/{sent.call.session}")) for sent in made)
    return sorted(asked, key=lambda sent: (sent.call.at_ms, sent.call.key))


def _asked(service: Service, sent: Sent, of_session: Random) -> Sent:
    has_usage, is_diagnosed = of_session.random() < service.usage_rate, of_session.random() < 0.5
    call = replace(sent.call, has_usage=has_usage, streams=service.usage_rate < 1)
    return replace(sent, call=call, is_diagnosed=service.is_diagnosed and is_diagnosed)


def verdict(service: Service) -> Verdict:
    """Whose it is: a fault with a fix that pays is for the caller to act on, unless the service says otherwise."""
    return service.verdict or ("actionable" if service.cause else "")


def remedy(service: Service) -> Fix:
    """The service's calls without the planted fault, whether or not that pays."""
    return service.fix or FIXES.get(service.cause, unchanged)
