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
class Model:
    """``provider`` is genai-prices' id; ``retention`` is OpenAI's prompt_cache_retention, "" leaves it out."""

    provider: str
    name: str
    served_name: str
    rules: Rules
    retention: str = ""


GPT_5_1 = Model("openai", "gpt-5.1", "gpt-5.1-2025-11-13", _OPENAI, retention="24h")
GPT_5_MINI = Model("openai", "gpt-5-mini", "gpt-5-mini-2025-08-07", _OPENAI)
GPT_4_1 = Model("openai", "gpt-4.1", "gpt-4.1-2025-04-14", _OPENAI, retention="24h")
SONNET_4_5 = Model("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929", _ANTHROPIC)
SONNET_4_6 = Model("anthropic", "claude-sonnet-4-6", "claude-sonnet-4-6", _ANTHROPIC)
GEMINI_FLASH = Model("google", "gemini-2.5-flash", "gemini-2.5-flash", _GOOGLE)
DEEPSEEK_FLASH = Model("deepseek", "deepseek-v4-flash", "deepseek-v4-flash", _DEEPSEEK)


@dataclass(frozen=True, slots=True)
class Service:
    """``head``, ``tail`` (the system prompt's halves) and ``document`` (in the first question) are in sentences.

    ``cause`` names the planted leak; "" is a healthy service.
    """

    name: str
    model: Model
    domain: str
    rhythm: Rhythm
    head: int
    tail: int = 0
    tools: int = 0
    document: Bounds = (0, 0)
    front: fronts.Front = fronts.stable
    cause: str = ""
    marks_messages: bool = False  # a marker behind the last message of every call
    streams: bool = False
    usage_rate: float = 1.0  # part of the sessions whose calls report usage
    content_in_otlp: bool = False
    provider_in_log: bool = False


SERVICES = (
    Service(
        name="support-bot",
        model=GPT_5_1,
        domain="retail",
        rhythm=Rhythm((6, 8, 10, 11, 13, 15, 17, 20), sessions=4, session_gap=(40, 200)),
        head=40,
        tail=95,
        front=fronts.clock_in_front,
        cause="volatile_prefix",
        content_in_otlp=True,
    ),
    Service(
        name="billing-assistant",
        model=SONNET_4_5,
        domain="billing",
        rhythm=Rhythm((7, 9, 11, 13, 15, 17), sessions=3, session_gap=(50, 220)),
        head=40,
        tail=70,
        front=fronts.request_id_inside,
        cause="volatile_prefix",
        content_in_otlp=True,
        provider_in_log=True,
    ),
    Service(
        name="crm-copilot",
        model=GPT_4_1,
        domain="sales",
        rhythm=Rhythm((7, 8, 10, 12, 14, 16), sessions=1, session_gap=(60, 200), turns=(2, 4)),
        head=24,
        tail=110,
        front=fronts.customer_inside,
        cause="volatile_prefix",
        content_in_otlp=True,
    ),
    Service(
        name="agent-tools",
        model=GPT_5_1,
        domain="operations",
        rhythm=Rhythm((1, 7, 13, 19), sessions=1, session_gap=(60, 200), turns=(3, 5), turn_gap=(20, 60)),
        head=20,
        tools=18,
        front=fronts.tools_in_random_order,
        cause="tools_reordered",
        content_in_otlp=True,
    ),
    Service(
        name="research-agent",
        model=SONNET_4_5,
        domain="research",
        rhythm=Rhythm((7,), sessions=3, session_gap=(700, 2300), turns=(4, 6), turn_gap=(660, 2350), is_sequence=True),
        head=80,
        tools=6,
        front=fronts.stable_with_marker,
        cause="ttl_lapse",
        marks_messages=True,
        content_in_otlp=True,
        provider_in_log=True,
    ),
    Service(
        name="chat-healthy",
        model=GPT_5_1,
        domain="retail",
        rhythm=Rhythm((7, 9, 12, 16, 20), sessions=1, session_gap=(60, 200), turns=(4, 6)),
        head=60,
        content_in_otlp=True,
    ),
    Service(
        name="claude-healthy",
        model=SONNET_4_6,
        domain="billing",
        rhythm=Rhythm((6, 11, 16), sessions=2, session_gap=(50, 200), turns=(2, 4), turn_gap=(30, 140)),
        head=60,
        front=fronts.stable_with_marker,
        marks_messages=True,
        content_in_otlp=True,
    ),
    Service(
        name="gemini-summariser",
        model=GEMINI_FLASH,
        domain="research",
        rhythm=Rhythm((3,), sessions=30, session_gap=(20, 60), every_days=3),
        head=110,
        document=(10, 18),
        provider_in_log=True,
    ),
    Service(
        name="deepseek-batch",
        model=DEEPSEEK_FLASH,
        domain="sales",
        rhythm=Rhythm((13,), sessions=40, session_gap=(15, 50), every_days=3),
        head=40,
        document=(6, 12),
        provider_in_log=True,
    ),
    Service(
        name="tiny-prompts",
        model=GPT_5_MINI,
        domain="operations",
        rhythm=Rhythm((2, 8, 12, 16, 22), sessions=5, session_gap=(30, 300)),
        head=4,
    ),
    Service(
        name="one-off-reports",
        model=GPT_4_1,
        domain="research",
        rhythm=Rhythm((7, 9, 11, 13, 15, 17), sessions=1, session_gap=(60, 200)),
        head=2,
        document=(50, 80),
    ),
    Service(
        name="stream-gateway",
        model=GPT_4_1,
        domain="operations",
        rhythm=Rhythm((5, 9, 14, 18), sessions=3, session_gap=(30, 180)),
        head=60,
        streams=True,
        usage_rate=0.5,
    ),
)
