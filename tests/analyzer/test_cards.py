"""Rule cards: the right one for a model as sent or served; rules files without gaps, overlaps or unsourced rows."""

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.analyzer import cards
from prefixscope.analyzer.cards import RuleBook, RuleCard, card_for
from prefixscope.analyzer.model_names import bare_name
from prefixscope.otel_plugin.providers import canonical

TODAY = date(2026, 11, 30)
BOOKS = {id(book): book for book in cards.books().values()}.values()

NAMES = [
    ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
    ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
    ("anthropic.claude-opus-4-6-v1", "claude-opus-4-6"),
    ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
    ("claude-4.5-sonnet", "claude-sonnet-4-5"),
    ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
    ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5"),
    ("anthropic/claude-3.7-sonnet:thinking", "claude-sonnet-3-7"),
    ("claude-3-5-haiku-latest", "claude-haiku-3-5"),
    ("claude-opus-4-0", "claude-opus-4"),
    ("claude-opus-4-20250514", "claude-opus-4"),
    ("claude-opus-4-8-fast", "claude-opus-4-8-fast"),
    (
        "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0",
        "claude-haiku-4-5",
    ),
    ("projects/p/locations/l/publishers/anthropic/models/claude-opus-5-5", "claude-opus-5-5"),
    ("gpt-4o-2024-08-06", "gpt-4o"),
    ("openai/gpt-5.2-20251211", "gpt-5.2"),
    ("ft:gpt-4o-mini-2024-07-18:acme::AbC", "gpt-4o-mini"),
    ("global.openai.gpt-6.1-terra", "gpt-6.1-terra"),
    ("GPT-6-Sol", "gpt-6-sol"),
    ("models/gemini-3.8-flash-latest", "gemini-3.8-flash"),
    ("eu.amazon.nova-pro-v1:0", "nova-pro"),
    ("deepseek/deepseek-v4-flash-20260423", "deepseek-v4-flash"),
    ("deepseek-v3", "deepseek-v3"),
    ("@cf/meta/llama-3.3-70b-instruct", "llama-3.3-70b-instruct"),
    ("kimi-k2-0905-preview", "kimi-k2-0905-preview"),
    ("", ""),
]


@pytest.mark.parametrize(("model", "bare"), NAMES)
def test_a_models_name_is_one_however_it_is_sent_or_resold(model: str, bare: str) -> None:
    """Regions, vendor paths, dates, revisions and tags say where and when, not which model."""
    assert bare_name(model) == bare


@given(st.text())
def test_any_text_has_a_bare_name_that_is_its_own(model: str) -> None:
    """Names come from logs of strangers: nothing raises, and a bare name has no host, path or tag left."""
    bare = bare_name(model)
    assert "/" not in bare
    assert ":" not in bare


# provider, model, cache, minimum, granularity, default TTL, isolation
GOLDEN = [
    ("anthropic", "claude-fable-5-1", "explicit", 512, 1, "5m", "workspace"),
    ("anthropic", "claude-mythos-5-2", "explicit", 512, 1, "5m", "workspace"),
    ("anthropic", "claude-opus-5-5", "explicit", 512, 1, "5m", "workspace"),
    ("anthropic", "claude-sonnet-5-5-20260929", "explicit", 512, 1, "5m", "workspace"),
    ("anthropic", "claude-haiku-5-5", "explicit", 512, 1, "5m", "workspace"),
    ("anthropic", "claude-sonnet-5", "explicit", 1024, 1, "5m", "workspace"),
    ("anthropic", "claude-opus-4-8", "explicit", 1024, 1, "5m", "workspace"),
    ("anthropic", "claude-opus-4-7", "explicit", 2048, 1, "5m", "workspace"),
    ("anthropic", "claude-opus-4-6", "explicit", 4096, 1, "5m", "workspace"),
    ("anthropic", "claude-opus-4-5-20251101", "explicit", 4096, 1, "5m", "workspace"),
    ("anthropic", "claude-haiku-4-5", "explicit", 4096, 1, "5m", "workspace"),
    ("anthropic", "claude-sonnet-4-6", "explicit", 1024, 1, "5m", "workspace"),
    ("anthropic", "claude-sonnet-4-5", "explicit", 1024, 1, "5m", "workspace"),
    ("anthropic", "claude-3-7-sonnet-20250219", "explicit", 1024, 1, "5m", "workspace"),
    ("anthropic", "claude-3-5-haiku-20241022", "explicit", 2048, 1, "5m", "workspace"),
    ("anthropic", "claude-3-opus-20240229", "explicit", 1024, 1, "5m", "workspace"),
    ("anthropic", "claude-2.1", "none", 0, 1, "5m", "workspace"),
    ("openai", "gpt-6.2-sol", "explicit", 1024, 1, "30m", "organization+region"),
    ("openai", "gpt-6.1-terra", "explicit", 1024, 1, "30m", "organization+region"),
    ("openai", "gpt-5.6-luna", "explicit", 1024, 1, "30m", "organization+region"),
    ("openai", "gpt-5.5-pro", "automatic", 2048, 2048, "24h", "organization+region"),
    ("openai", "gpt-5.1-codex", "automatic", 1024, 128, "24h", "organization+region"),
    ("openai", "gpt-5", "automatic", 1024, 128, "24h", "organization+region"),
    ("openai", "gpt-4.1-mini", "automatic", 1024, 128, "24h", "organization+region"),
    ("openai", "o3", "automatic", 1024, 128, "24h", "organization+region"),
    ("openai", "gpt-4-turbo", "none", 0, 1, "", "organization+region"),
    ("azure", "gpt-4o", "automatic", 1024, 128, "24h", "subscription"),
    ("azure", "claude-opus-4-6", "explicit", 4096, 1, "5m", "workspace"),
    ("google", "gemini-4-argon", "automatic", 4096, 1, "assumed", "project+region"),
    ("google", "gemini-2.5-flash", "automatic", 2048, 1, "assumed", "project+region"),
    ("google", "gemini-2.5-pro", "automatic", 2048, 1, "assumed", "project+region"),
    ("google", "gemini-3-flash-preview", "automatic", 4096, 1, "assumed", "project+region"),
    ("google", "gemini-1.5-pro", "none", 0, 1, "assumed", "project+region"),
    ("google", "claude-sonnet-4-5@20250929", "explicit", 1024, 1, "5m", "organization"),
    ("aws", "us.anthropic.claude-sonnet-4-6", "explicit", 1024, 1, "5m", "account+region"),
    ("aws", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "explicit", 1024, 1, "5m", "account+region"),
    ("aws", "us.anthropic.claude-opus-4-7", "explicit", 4096, 1, "5m", "account+region"),
    ("aws", "eu.amazon.nova-pro-v1:0", "explicit", 1000, 1, "5m", "account+region"),
    ("aws", "openai.gpt-5.6-sol", "explicit", 1024, 1, "30m", "account+region"),
    ("openrouter", "anthropic/claude-opus-4.5", "explicit", 4096, 1, "5m", "upstream"),
    ("openrouter", "openai/gpt-6-sol", "explicit", 1024, 1, "30m", "upstream"),
    ("openrouter", "x-ai/grok-4.6", "automatic", 128, 128, "assumed", "upstream"),
    ("openrouter", "google/gemini-3.8-flash", "automatic", 4096, 1, "assumed", "upstream"),
    ("openrouter", "deepseek/deepseek-v4-flash", "unknown", 0, 1, "", ""),
    ("deepseek", "deepseek-v4-flash", "automatic", 128, 128, "assumed", "account"),
    ("x-ai", "grok-4.6", "automatic", 128, 128, "assumed", "server"),
    ("groq", "openai/gpt-oss-120b", "automatic", 1024, 1, "2h", "organization"),
    ("mistral", "mistral-large-latest", "unknown", 0, 1, "", "account"),
    ("moonshotai", "kimi-k3", "automatic", 256, 256, "5m", "account"),
    ("alibaba", "qwen3-max", "explicit", 1024, 1, "5m", "account"),
    ("minimax", "MiniMax-M2", "automatic", 512, 1, "assumed", "account"),
    ("zai", "glm-5.3", "unknown", 0, 1, "", "account"),
    ("fireworks", "accounts/fireworks/models/deepseek-v4-flash", "automatic", 1, 1, "assumed", "account"),
    ("together", "meta-llama/Llama-4", "unknown", 0, 1, "", ""),
    ("cerebras", "gpt-oss-120b", "automatic", 128, 128, "5m", "organization"),
    ("cohere", "command-a", "unknown", 0, 1, "", ""),
    ("vllm", "anything", "automatic", 16, 16, "lru", "replica"),
    ("sglang", "anything", "automatic", 1, 1, "lru", "replica"),
    ("llamacpp", "anything", "automatic", 1, 1, "slot", "slot"),
    ("infron", "deepseek/deepseek-v4-flash", "unknown", 0, 1, "", ""),
    ("", "nobody-knows", "unknown", 0, 1, "", ""),
]


@pytest.mark.parametrize(
    ("provider", "model", "cache", "minimum", "granularity", "ttl", "isolation"),
    GOLDEN,
    ids=[f"{row[0]}:{row[1]}" for row in GOLDEN],
)
def test_the_card_of_a_model(  # noqa: PLR0917 - a table's columns
    provider: str, model: str, cache: str, minimum: int, granularity: int, ttl: str, isolation: str
) -> None:
    """The facts that decide most replays, by provider and model, at the end of November 2026."""
    card = card_for(provider, model, TODAY).card
    found = (card.cache, card.min_tokens, card.granularity, card.default_ttl, card.isolation)
    assert found == (cache, minimum, granularity, ttl, isolation)


def test_what_anthropics_card_says() -> None:
    """Markers, lookback, TTLs and what a changed setting invalidates, by Anthropic's page."""
    card = card_for("anthropic", "claude-opus-5-5", TODAY).card
    assert (card.max_markers, card.lookback, card.lookback_unit) == (4, 20, "block")
    assert card.collapse_tool_runs
    assert card.charges_writes
    assert card.deterministic
    assert card.read_is_entry
    assert not card.implicit_marker
    assert card.ttl_seconds == {"5m": 300, "1h": 3600}
    assert card.invalidates["tool_choice"] == "messages"
    assert card.invalidates["speed"] == "system"


def test_gpt_5_6_and_later_write_at_a_marker_of_their_own() -> None:
    """OpenAI's newer models mark the latest message's end themselves and separate by cache key."""
    card = card_for("openai", "gpt-6-sol", TODAY).card
    assert card.implicit_marker
    assert card.key_separates
    assert card.charges_writes
    assert card.ttl_seconds == {"30m": 1800, "12h": 43200}


DATED = [
    ("anthropic", "claude-opus-4-6", date(2026, 7, 31), "collapse_tool_runs", False),
    ("anthropic", "claude-opus-4-6", date(2026, 8, 1), "collapse_tool_runs", True),
    ("aws", "anthropic.claude-opus-4-6-v1", date(2026, 8, 1), "collapse_tool_runs", False),
    ("openai", "gpt-5", date(2026, 5, 28), "default_ttl", "in_memory"),
    ("openai", "gpt-5", date(2026, 5, 29), "default_ttl", "24h"),
    ("azure", "gpt-5", date(2026, 5, 28), "default_ttl", "in_memory"),
    ("moonshotai", "kimi-k3", date(2026, 10, 14), "charges_writes", False),
    ("moonshotai", "kimi-k3", date(2026, 10, 15), "charges_writes", True),
    ("google", "gemini-2.5-flash", date(2026, 10, 12), "min_tokens", 1024),
    ("google", "gemini-2.5-flash", date(2026, 10, 13), "min_tokens", 2048),
]


@pytest.mark.parametrize(("provider", "model", "on", "field", "value"), DATED)
def test_rules_change_on_their_day(provider: str, model: str, on: date, field: str, value: object) -> None:
    """A call is judged by the rules of its own day, through a reseller too."""
    assert getattr(card_for(provider, model, on).card, field) == value


NOTES = [
    ("anthropic", "claude-opus-5-5", ""),
    ("anthropic", "claude-opus-7", "taken from claude-512, the latest for claude-opus-*"),
    ("anthropic", "claude-saga-1", "taken from claude-5-2, the latest for claude*"),
    ("openai", "gpt-7", "taken from gpt-5.6-and-later"),
    ("aws", "us.anthropic.claude-opus-7", "no card for claude-opus-7"),
    ("portkey", "anthropic/claude-opus-4.5", "anthropic's rules, as resold by portkey"),
    ("", "claude-opus-4-5", "no provider was named"),
    ("infron", "deepseek/deepseek-v4-flash", "no card for deepseek-v4-flash at infron"),
]


@pytest.mark.parametrize(("provider", "model", "note"), NOTES)
def test_a_card_says_when_it_is_not_simply_the_models(provider: str, model: str, note: str) -> None:
    """A fallback is visible: the family's latest card, a reseller, or nothing known."""
    found = card_for(provider, model, TODAY).note
    assert note in found if note else not found


@pytest.mark.parametrize("name", ["aws.bedrock", "bedrock", "gcp.vertex_ai", "azure.ai.openai", "x_ai", "mistral_ai"])
def test_providers_may_go_by_their_telemetry_names(name: str) -> None:
    """OpenTelemetry's provider names find the same rules as genai-prices' ids."""
    assert card_for(name, "claude-opus-4-6", TODAY) == card_for(canonical(name), "claude-opus-4-6", TODAY)


def _rows() -> Iterator[tuple[RuleBook, cards.Row]]:
    return ((book, row) for book in BOOKS for row in book.rows)


def test_every_row_is_sourced_and_checked() -> None:
    """Each card and each change names a page and the day somebody looked."""
    tables = [row.values for _, row in _rows()] + [change for book in BOOKS for change in book.changes]
    for values in tables:
        assert values["source"].startswith("https://")
        assert date(2026, 1, 1) <= values["checked"] <= TODAY


def test_cards_of_one_name_follow_each_other_without_gap_or_overlap() -> None:
    """The first has no beginning, the last no end, and each ends the day the next begins."""
    for book in BOOKS:
        for name in {row.values["name"] for row in book.rows}:
            spans = [row for row in book.rows if row.values["name"] == name]
            assert {(row.models, row.excluded) for row in spans} == {(spans[0].models, spans[0].excluded)}
            begins: list[Any] = [row.values.get("since") for row in spans]
            ends: list[Any] = [row.values.get("until") for row in spans]
            assert begins == [None, *ends[:-1]], name
            assert ends[-1] is None
            assert begins[1:] == sorted(begins[1:])


def test_no_model_has_two_cards_on_one_day() -> None:
    """Rows of different names never claim the same model, whatever the day."""
    names = {bare_name(model) for _, model in _listed_models()} | {bare_name(row[1]) for row in GOLDEN}
    days = {row.values[end] for _, row in _rows() for end in ("since", "until") if end in row.values} | {TODAY}
    for book in BOOKS:
        for day in days | {day - timedelta(days=1) for day in days}:
            for name in names:
                assert sum(row.fits(name, day) for row in book.rows) <= 1, (book.providers, name, day)


def test_changes_follow_each_other() -> None:
    """Changes of one file come in the order of their days, and each says something."""
    for book in BOOKS:
        days = [change["since"] for change in book.changes]
        assert days == sorted(set(days))
        assert all(change.keys() - {"since", "source", "checked"} for change in book.changes)


def test_rows_refer_to_what_exists() -> None:
    """``like`` names a rules file, ``[latest]`` a card."""
    for book, row in _rows():
        assert not row.like or row.like in cards.books()
        assert set(book.latest.values()) <= {row.values["name"] for row in book.rows}


def _cards() -> Iterator[RuleCard]:
    """The card of every row for a model that it lists, on the first and on the last day it holds."""
    for book, row in _rows():
        for day in {row.values.get("since", date(2026, 1, 1)), row.values.get("until", TODAY) - timedelta(days=1)}:
            yield book._card(row, row.models[0].replace("*", ""), day).card


def test_every_card_is_whole_and_without_contradiction() -> None:
    """A cache has a lifetime, a minimum and an isolation; markers belong to explicit caches; an assumption says so."""
    for card in _cards():
        caches, explicit = card.cache in {"automatic", "explicit"}, card.cache == "explicit"
        assert not caches or (card.ttl_seconds[card.default_ttl] > 0 and card.min_tokens >= 1 and card.isolation), card
        assert (card.max_markers > 0) == (card.lookback > 0) >= explicit, card
        assert (card.lookback_unit == "message") == card.implicit_marker == (card.latest_lookups > 0), card
        assert card.keeps == "prefixes" or card.cache == "automatic", card
        assert card.granularity >= 1, card
        assert card.always_processed >= 0, card
        guessed = caches and card.default_ttl in {"assumed", "lru", "slot"}
        assert not guessed or "assumed" in card.notes or "taken as" in card.notes, card


def test_every_card_in_force_is_in_the_golden_table() -> None:
    """No row is there that no test reads: each is the card of a model in GOLDEN."""
    golden = {(canonical(row[0]) or row[0], card_for(row[0], row[1], TODAY).card.name) for row in GOLDEN}
    in_force = {(book.providers[0], row.values["name"]) for book, row in _rows() if "until" not in row.values}
    assert in_force <= golden


ANTHROPIC_MINIMUMS = {
    512: "fable-5 fable-5-1 mythos-5 mythos-5-1 opus-5 opus-5-5 sonnet-5-5 haiku-5-5",
    1024: "opus-4-8 sonnet-5 sonnet-4-6 sonnet-4-5 opus-4-1 opus-4 sonnet-4 3-7-sonnet",
    2048: "opus-4-7 mythos-preview 3-5-haiku 3-haiku",
    4096: "opus-4-6 opus-4-5 haiku-4-5",
}


@pytest.mark.parametrize(
    ("model", "minimum"),
    [(f"claude-{name}", minimum) for minimum, names in ANTHROPIC_MINIMUMS.items() for name in names.split()],
)
def test_the_minimum_of_every_claude(model: str, minimum: int) -> None:
    """Anthropic's table, model by model, none of them by way of another's card."""
    found = card_for("anthropic", model, TODAY)
    assert (found.card.min_tokens, found.note) == (minimum, "")


@pytest.mark.parametrize("provider", ["anthropic", "aws", "azure", "google", "openrouter"])
def test_a_claude_of_tomorrow_falls_to_the_latest_card_and_says_so(provider: str) -> None:
    """Whoever serves it, a model that no card lists follows its family's latest card, with a note."""
    found = card_for(provider, "claude-opus-9", TODAY)
    assert found.card.min_tokens == card_for(provider, "claude-opus-5-5", TODAY).card.min_tokens
    assert "no card for claude-opus-9: taken from claude-512" in found.note


@pytest.mark.parametrize(
    ("provider", "model", "like"),
    [
        ("openai", "gpt-9-sol", "gpt-6.2-sol"),
        ("azure", "gpt-9-sol", "gpt-6.2-sol"),
        ("aws", "openai.gpt-9-sol", "gpt-6.2-sol"),
        ("google", "gemini-9-ultra", "gemini-4-argon"),
        ("openrouter", "google/gemini-9-ultra", "gemini-4-argon"),
    ],
)
def test_models_of_tomorrow_have_the_latest_rules(provider: str, model: str, like: str) -> None:
    """The same for OpenAI's and Google's models, with their resellers."""
    found, known = card_for(provider, model, TODAY), card_for(provider, like, TODAY)
    assert found.card == known.card
    assert "no card for" in found.note
    assert not known.note


@pytest.mark.parametrize("vendor", ["anthropic", "google"])
def test_every_listed_model_of_a_vendor_has_a_card_of_its_own(vendor: str) -> None:
    """No Claude and no Gemini text model that has a price falls back on another's card."""
    text = [model for provider, model in _listed_models() if provider == vendor and _is_text(model)]
    strays = {model for model in text if card_for(vendor, model, TODAY).note}
    assert not strays


def test_a_rules_file_with_an_unknown_field_is_refused() -> None:
    """A misspelt field must not become a silently missing rule."""
    with pytest.raises(ValueError, match=r"minimum"):
        cards._parse(
            {"providers": ["p"], "models": [], "card": [{"name": "n", "models": ["*"], "minimum": 1}]}, "p.toml"
        )


def _listed_models() -> Iterator[tuple[str, str]]:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - slow

    return ((provider.id, model.id) for provider in get_snapshot().providers for model in provider.models)


def _is_text(model: str) -> bool:
    others = ("embedding", "image", "tts", "live", "banana", "omni", "robotics", "audio", "gemma")
    return model.startswith(("claude", "gemini")) and not any(other in model for other in others)
