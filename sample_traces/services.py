"""The services of the sample traffic: who calls which model, in what rhythm, and which of them leak.

Rhythms matter: calls of a burst follow each other well within five minutes and bursts are more than an hour apart, so
that no other TTL would pay; only research-agent pauses for longer than five minutes and less than an hour.
"""

from dataclasses import dataclass

import fronts
from schedule import Bounds, Rhythm
from simulator import Rules

# Minimum and granularity in tokens (providers' pages, autumn 2026). Automatic caches live for hours to a day; OpenAI's
# are asked for a day with `prompt_cache_retention`, the others are called in bursts that are further apart than that.
_DAY_MS = 86_400_000
_OPENAI = Rules("automatic", min_tokens=1024, granularity=128, ttl_ms=_DAY_MS)
_ANTHROPIC = Rules("explicit", min_tokens=1024, lookback=20)
_GOOGLE = Rules("automatic", min_tokens=2048, granularity=1, ttl_ms=_DAY_MS)
_DEEPSEEK = Rules("automatic", min_tokens=64, granularity=64, ttl_ms=_DAY_MS)


@dataclass(frozen=True, slots=True)
class Service:
    """``head``, ``tail`` and ``document`` are in sentences: the system prompt's two halves, and the first question's.

    ``provider`` is genai-prices' id. ``cause`` names the planted leak, "" is a healthy service.
    """

    name: str
    provider: str
    model: str
    served_model: str
    rules: Rules
    domain: str
    rhythm: Rhythm
    head: int
    tail: int = 0
    tools: int = 0
    front: fronts.Front = fronts.stable
    cause: str = ""
    document: Bounds = (0, 0)
    marks_messages: bool = False  # a marker behind the last message of every call
    retention: str = ""  # OpenAI's prompt_cache_retention
    streams: bool = False
    usage_rate: float = 1.0  # part of the sessions whose calls report usage
    content_in_otlp: bool = False
    provider_in_log: bool = False


def _openai(name: str, model: str, served_model: str, **rest: object) -> Service:
    return Service(name, "openai", model, served_model, _OPENAI, **rest)  # type: ignore[arg-type]


