"""Prices of single calls: known bills, the price list's own arithmetic, and what is said when a price is assumed."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.analyzer.prices import overlay as price_overlay
from prefixscope.analyzer.prices.money import BUCKETS, PriceBook
from prefixscope.otel_plugin.record import Usage
from prefixscope.otel_plugin.usage import from_body

BOOK = PriceBook()
NOW = datetime(2026, 11, 30, tzinfo=UTC)  # a Monday, off-peak
M = 1_000_000


def _bill(provider: str, model: str, usage: Usage, at: datetime = NOW, **served: str) -> Decimal:
    rates = BOOK.rates(provider, model, at, input_total=usage.input_total, **served)
    assert rates is not None
    return rates.cost(usage)


BILLS = [
    # FinOps Foundation's FOCUS example: $3 in, $3.75 written, $0.30 read per million tokens
    ("claude-sonnet-4-0", Usage(uncached=M // 2, write_5m=2 * M, read=8 * M), "11.40"),
    ("claude-sonnet-4-0", Usage(uncached=M // 2 + 2 * M + 8 * M), "31.50"),
    # BerriAI/litellm#9812, where the written tokens were charged twice
    ("claude-3-7-sonnet-20250219", Usage(uncached=3, write_5m=12_304, output=550), "0.054399"),
    ("claude-sonnet-4-5", Usage(uncached=200_000), "0.6"),
    ("claude-sonnet-4-5", Usage(uncached=100_000, read=100_001, output=1000), "0.6825006"),  # beyond 200k: all at 2x
    ("claude-haiku-5-5", Usage(read=100_000), "0.001"),
    ("claude-haiku-5-5", Usage(read=100_001), "0.00500005"),  # beyond 100k: all at 5x
]


@pytest.mark.parametrize(("model", "usage", "usd"), BILLS)
def test_a_known_anthropic_bill(model: str, usage: Usage, usd: str) -> None:
    """To the last digit: no float is on the way."""
    assert _bill("anthropic", model, usage) == Decimal(usd)


BODIES = [
    (
        "anthropic",
        {
            "model": "claude-sonnet-5-5",
            "usage": {
                "input_tokens": 50,
                "cache_read_input_tokens": 100_000,
                "cache_creation_input_tokens": 30_000,
                "cache_creation": {"ephemeral_5m_input_tokens": 10_000, "ephemeral_1h_input_tokens": 20_000},
                "output_tokens": 500,
            },
        },
        "0.1201",
    ),
    (
        "openai",
        {
            "model": "gpt-6.1-terra",
            "usage": {
                "input_tokens": 15_000,
                "input_tokens_details": {"cached_tokens": 12_000, "cache_write_tokens": 3_000},
                "output_tokens": 100,
                "total_tokens": 15_100,
            },
        },
        "0.00485",
    ),
    (
        "google",
        {
            "modelVersion": "gemini-3.8-flash",
            "usageMetadata": {
                "promptTokenCount": 20_000,
                "cachedContentTokenCount": 16_000,
                "candidatesTokenCount": 300,
                "thoughtsTokenCount": 50,
            },
        },
        "0.0055125",
    ),
    (
        "deepseek",
        {
            "model": "deepseek-v4-flash",
            "usage": {
                "prompt_tokens": 10_000,
                "completion_tokens": 100,
                "prompt_cache_hit_tokens": 9_600,
                "prompt_cache_miss_tokens": 400,
                "prompt_tokens_details": {"cached_tokens": 9_600},
            },
        },
        "0.0001488",
    ),
]


@pytest.mark.parametrize(("provider", "body", "usd"), BODIES, ids=[row[0] for row in BODIES])
def test_a_response_body_to_dollars(provider: str, body: dict[str, Any], usd: str) -> None:
    """Usage as each provider writes it, read and priced."""
    usage = from_body(body, provider=provider)
    assert _bill(provider, usage.served_model, usage) == Decimal(usd)


# One bucket's USD per million tokens; where the list alone is wrong or silent, the overlay speaks.
RATES = [
    ("openai", "gpt-6.1-terra", "write_30m", {}, "2026-11-30", "1.25", ""),
    ("openai", "gpt-6.1-terra", "write_12h", {}, "2026-11-30", "2.5", "12h write = 2.5x input"),
    ("openai", "gpt-6.1-terra", "write_12h", {"tier": "flex"}, "2026-11-30", "1.25", "12h write"),
    ("openai", "gpt-6-sol", "read", {"input_total": 272_000}, "2026-11-30", "0.2", ""),
    ("openai", "gpt-6-sol", "read", {"input_total": 272_001}, "2026-11-30", "0.4", ""),
    ("openai", "gpt-6-sol", "output", {"input_total": 272_001}, "2026-11-30", "15", ""),
    ("openai", "gpt-6-sol", "write_12h", {"input_total": 272_001}, "2026-11-30", "10", ""),
    ("openai", "gpt-6.1-terra", "read", {"tier": "Batch"}, "2026-11-30", "0.025", ""),
    ("openai", "gpt-6.1-terra", "read", {"tier": "ultrafast"}, "2026-11-30", "0.05", "no price for tier ultrafast"),
    ("openai", "gpt-4o", "read", {}, "2026-11-30", "1.25", ""),
    ("openai", "gpt-4o", "write_unknown", {}, "2026-11-30", "2.5", ""),  # writes are free: plain input
    ("anthropic", "claude-sonnet-5-5", "read", {}, "2026-10-06", "0.2", "before 2026-10-07"),
    ("anthropic", "claude-sonnet-5-5", "read", {}, "2026-10-07", "0.1", ""),
    ("anthropic", "claude-sonnet-5-5", "read", {"tier": "batch"}, "2026-10-06", "0.1", "batch 0.5x"),
    ("anthropic", "claude-sonnet-5-5", "read", {"tier": "batch"}, "2026-10-14", "0.05", ""),
    ("anthropic", "claude-opus-5-5", "read", {"geo": "us"}, "2026-11-30", "0.22", "US-only inference 1.1x"),
    ("anthropic", "claude-opus-5-5", "read", {"geo": "global"}, "2026-11-30", "0.2", ""),
    ("anthropic", "claude-opus-5-5", "write_1h", {"speed": "fast", "geo": "us"}, "2026-11-30", "17.6", "1.1x"),
    ("anthropic", "claude-haiku-4-5", "read", {"speed": "fast"}, "2026-11-30", "0.1", "no price for speed fast"),
    ("anthropic", "claude-opus-4-5", "read", {"tier": "standard", "geo": "not_available"}, "2026-11-30", "0.5", ""),
    ("anthropic", "claude-mythos-5-1", "read", {}, "2026-11-30", "0.25", "priced as claude-fable-5-1"),
    ("aws", "us.anthropic.claude-sonnet-5-5", "read", {}, "2026-11-30", "0.11", "regional."),
    ("aws", "global.anthropic.claude-sonnet-5-5", "read", {}, "2026-11-30", "0.1", "global."),
    ("aws.bedrock", "eu.amazon.nova-pro-v1:0", "read", {}, "2026-11-30", "0.2", ""),
    ("", "us.anthropic.claude-sonnet-5-5", "read", {}, "2026-11-30", "0.11", "aws/"),
    ("", "anthropic/claude-sonnet-4.5", "read", {}, "2026-11-30", "0.3", "anthropic/"),
    ("google", "claude-sonnet-4@20250514", "write_1h", {}, "2026-11-30", "6", "1h write = 2x input"),
    ("google", "models/gemini-4-argon", "read", {}, "2026-11-30", "0.1", ""),
    ("google", "models/gemini-4-argon", "read", {}, "2026-12-01", "0.2", ""),
    ("azure.ai.openai", "gpt-6-sol", "read", {}, "2026-11-30", "0.2", "azure lists none"),
    ("litellm", "openai/gpt-6-sol", "read", {}, "2026-11-30", "0.2", "the vendor's price: litellm has no list"),
    ("mistral", "mistral-large-latest", "read", {}, "2026-11-30", "0.2", "read = 0.1x input"),
    ("deepseek", "deepseek-v3.2", "read", {}, "2026-11-30", "0.2288", "no price for reads is listed"),
    ("moonshotai", "kimi-k3", "write_1h", {}, "2026-11-30", "6", ""),
]


@pytest.mark.parametrize(("provider", "model", "bucket", "served", "day", "usd", "note"), RATES)
def test_the_rate_of_a_bucket(  # noqa: PLR0917 - a table's columns
    provider: str, model: str, bucket: str, served: dict[str, Any], day: str, usd: str, note: str
) -> None:
    """By day, tier, speed, geography and input size; what was assumed stands in the source."""
    rates = BOOK.rates(provider, model, datetime.fromisoformat(day), **served)
    assert rates is not None
    assert getattr(rates, bucket) * M == Decimal(usd)
    assert note in rates.source
    assert rates.source.startswith("genai-prices ")
    assert note or ";" not in rates.source.replace("; 12h write = 2.5x input", "")


# DeepSeek's list rows carry an hour or a date, not both: the overlay knows when there really was a peak.
CLOCK = [
    ("2026-06-19T02:00", "0.14"),  # no peak prices yet
    ("2026-08-18T00:59", "0.22"),
    ("2026-08-18T01:00", "0.44"),
    ("2026-08-22T02:00", "0.44"),  # Saturday, before weekends were off-peak
    ("2026-11-28T02:00", "0.15"),  # Saturday
    ("2026-11-30T02:00", "0.3"),
    ("2026-11-30T04:00", "0.15"),
    ("2026-11-30T09:59", "0.3"),
    ("2026-11-30T10:00", "0.15"),
]


@pytest.mark.parametrize(("moment", "usd"), CLOCK)
def test_deepseeks_price_goes_by_the_clock(moment: str, usd: str) -> None:
    """Peak hours on weekdays since they began; before, and on weekends, the plain price."""
    rates = BOOK.rates("deepseek", "deepseek-v4-flash", datetime.fromisoformat(moment))
    assert rates is not None
    assert rates.uncached * M == Decimal(usd)


def test_a_time_zone_is_respected() -> None:
    """Nine in the morning in Shanghai is one in the morning, UTC: peak."""
    shanghai = timezone(timedelta(hours=8))
    rates = BOOK.rates("deepseek", "deepseek-v4-flash", datetime(2026, 11, 30, 9, tzinfo=shanghai))
    assert rates is not None
    assert rates.uncached * M == Decimal("0.3")


UNPRICED = [
    ("openai", "gpt-6.2-sol"),
    ("anthropic", "gpt-6-sol"),
    ("vllm", "deepseek-v4-flash"),
    ("ollama", "gpt-oss:20b"),
    ("alibaba", "qwen3-max"),
    ("infron", "nobody/knows"),
    ("", "nobody-knows"),
    ("", ""),
    ("openai", ""),
]


@pytest.mark.parametrize(("provider", "model"), UNPRICED)
def test_what_has_no_price_is_unpriced_and_not_free(provider: str, model: str) -> None:
    """None, so that nobody can add it up."""
    assert BOOK.rates(provider, model, NOW) is None


@given(st.text(max_size=40), st.text(max_size=60), st.text(max_size=8))
def test_any_names_are_priced_or_unpriced(provider: str, model: str, tier: str) -> None:
    """Provider, model and tier come from strangers' logs: nothing raises, no rate is negative."""
    rates = BOOK.rates(provider, model, NOW, tier=tier)
    assert rates is None or all(getattr(rates, bucket) >= 0 for bucket in BUCKETS)


LISTED = ["anthropic", "openai", "google", "aws", "x-ai", "moonshotai", "groq", "mistral"]
COUNT = st.integers(0, 300_000)


def _listed_models() -> list[tuple[str, str]]:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    lists = (provider for provider in get_snapshot().providers if provider.id in LISTED)
    return [(provider.id, model.id) for provider in lists for model in provider.models]


@given(
    named=st.sampled_from(_listed_models()),
    at=st.datetimes(datetime.fromisoformat("2025-01-01"), datetime.fromisoformat("2026-12-31"), timezones=st.just(UTC)),
    tier=st.sampled_from(["", "flex", "priority"]),
    uncached=COUNT,
    read=COUNT,
    write_5m=COUNT,
    write_1h=COUNT,
    output=COUNT,
)
def test_unit_rates_add_up_to_the_lists_own_price(  # noqa: PLR0917 - a bill's terms
    named: tuple[str, str],
    at: datetime,
    tier: str,
    uncached: int,
    read: int,
    write_5m: int,
    write_1h: int,
    output: int,
) -> None:
    """Where the overlay is silent, a call costs what genai-prices makes of its whole usage at once."""
    usage = Usage(uncached=uncached, read=read, write_5m=write_5m, write_1h=write_1h, output=output)
    entry, rates = BOOK.entry(*named), BOOK.rates(*named, at, tier=tier, input_total=usage.input_total)
    if entry is None or rates is None or any(row.name in rates.source for row in price_overlay.overlay().rates):
        return
    bill = calc_price(
        ListUsage(
            input_tokens=usage.input_total,
            cache_read_tokens=read,
            cache_write_tokens=write_5m + write_1h,
            cache_write_5m_tokens=write_5m,
            cache_write_1h_tokens=write_1h,
            output_tokens=output,
        ),
        entry.name,
        provider_id=entry.provider,
        genai_request_timestamp=at,
        price_context={"service_tier": tier} if tier else None,
    )
    per_call = bill.model_price.requests_kcount
    assert rates.cost(usage) == bill.total_price - (per_call / 1000 if isinstance(per_call, Decimal) else 0)


def test_rates_say_as_of_when() -> None:
    """The day the price list was last compared; an unknown version is taken to be as old as the newest known one."""
    rates = BOOK.rates("openai", "gpt-6-sol", NOW)
    assert rates is not None
    assert rates.as_of == date(2026, 11, 30)
    assert price_overlay.overlay().compared_on("9.9.9") == date(2026, 11, 30)


def test_an_overlay_row_without_a_source_is_refused() -> None:
    """Prices are facts: no row without a page and the day somebody looked."""
    row = {"name": "n", "providers": ["p"], "field": "geo", "value": "us", "factor": "2", "checked": date(2026, 11, 30)}
    with pytest.raises(KeyError, match="source"):
        price_overlay.parse({"alias": [], "rate": [], "surcharge": [row], "peak": [], "storage": []})


def test_importing_money_does_not_import_the_price_list() -> None:
    """The list takes its time to load, and most commands price nothing."""
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    code = "import sys, prefixscope.analyzer.prices.money; sys.exit('genai_prices' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
