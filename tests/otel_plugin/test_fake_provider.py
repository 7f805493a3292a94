"""The fake provider is what the SDKs take it for: their own types read its counts, which are the simulator's."""

import json
from dataclasses import replace
from typing import Any

import anthropic
import groq
import openai
import pytest
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]

from fake_provider import framing, prompts
from fake_provider.answers import Event
from fake_provider.cache import START_MS, Cache, sim_call
from fake_provider.journal import Entry
from fake_provider.plan import HEADER, Plan, Reply, parse
from fake_provider.server import FakeProvider
from sdks import prompts as bodies
from sdks.clients import Clients, headers_of_bedrock
from simulator import Rules, simulate

MODELS = {"openai": "gpt-4.1", "groq": "llama-3.3-70b", "mistral": "mistral-large-latest"}


def _chat(clients: Clients, name: str, plan: dict[str, str]) -> Any:
    chat = clients.get(name).chat
    if name == "mistral":
        return chat.complete(**bodies.CHAT, model=MODELS[name], http_headers=plan).usage
    return chat.completions.create(**bodies.CHAT, model=MODELS[name], extra_headers=plan).usage


def _input(entry: Entry) -> int:
    return entry.read + entry.uncached + sum(entry.writes.values())


@pytest.mark.parametrize("name", MODELS)
def test_chat_usage_as_the_sdk_reads_it(provider: FakeProvider, name: str) -> None:
    """First nothing is cached, then all whole blocks of 128 tokens."""
    scope = f"typed {name}"
    found = [_chat(Clients(provider.url), name, Plan(scope).headers) for _ in range(2)]
    first, second = provider.journal(scope)
    assert [usage.prompt_tokens for usage in found] == [_input(first), _input(second)]
    assert (
        found[1].model_dump()["prompt_tokens_details"]["cached_tokens"] == second.read
    )  # mistralai has no type for it
    assert (first.read, second.read % 128) == (0, 0)
    assert second.read > 1024
    assert found[1].completion_tokens == second.output


def test_claude_usage_as_the_sdk_reads_it(provider: FakeProvider) -> None:
    """Written with both lifetimes, then read; after the shorter one has lapsed, the longer one is still there."""
    at = [START_MS, START_MS + 60_000, START_MS + 500_000]
    plan = Plan("typed anthropic", tuple(Reply(at_ms=time) for time in at)).headers
    client = Clients(provider.url).get("anthropic")
    body: Any = bodies.MESSAGES | {"model": "claude-sonnet-4-6"}
    found = [client.messages.create(**body, extra_headers=plan).usage for _ in at]
    assert [entry.uncached for entry in provider.journal("typed anthropic")] == [0, 0, 0]
    long, short = (getattr(found[0].cache_creation, f"ephemeral_{ttl}_input_tokens") for ttl in ("1h", "5m"))
    assert found[0].cache_creation_input_tokens == long + short
    assert [usage.cache_read_input_tokens for usage in found] == [0, long + short, long]
    assert [usage.cache_creation.ephemeral_5m_input_tokens for usage in found] == [short, 0, short]


def test_bedrock_usage_as_boto3_reads_it(provider: FakeProvider) -> None:
    """The two APIs of Converse say the same, and have a cache of their own."""
    client = Clients(provider.url).get("bedrock")
    headers_of_bedrock.set(Plan("typed bedrock").headers)
    body: Any = {"modelId": bodies.CLAUDE_ON_BEDROCK, **bodies.CONVERSE}
    whole = client.converse(**body)["usage"]
    streamed = list(client.converse_stream(**body)["stream"])[-1]["metadata"]["usage"]
    assert [detail["ttl"] for detail in whole["cacheDetails"]] == ["1h", "5m"]
    assert streamed["cacheReadInputTokens"] == whole["cacheWriteInputTokens"]
    assert streamed["totalTokens"] == whole["totalTokens"]


def test_gemini_usage_as_the_sdk_reads_it(provider: FakeProvider) -> None:
    """Thoughts are counted beside candidates, and zeros are left out."""
    client = Clients(provider.url).get("google")
    config: Any = {"system_instruction": bodies.SYSTEM, "http_options": {"headers": Plan("typed google").headers}}
    ask: Any = {"model": "gemini-2.5-flash", "contents": bodies.QUESTION, "config": config}
    found = [client.models.generate_content(**ask).usage_metadata for _ in range(2)]
    assert [usage.cached_content_token_count for usage in found] == [None, found[0].prompt_token_count]
    for usage in found:
        parts = usage.prompt_token_count + usage.candidates_token_count + usage.thoughts_token_count
        assert usage.total_token_count == parts


@pytest.mark.parametrize(
    ("client", "status", "error"),
    [
        ("openai", 429, openai.RateLimitError),
        ("openai", 500, openai.InternalServerError),
        ("anthropic", 429, anthropic.RateLimitError),
        ("anthropic", 529, anthropic.InternalServerError),
        ("groq", 400, groq.BadRequestError),
    ],
)
def test_errors_as_the_sdk_reads_them(provider: FakeProvider, client: str, status: int, error: type) -> None:
    """Each SDK has a class for it, and billed is nothing."""
    plan = Plan(f"error {client} {status}", (Reply(status=status),)).headers
    found = Clients(provider.url).get(client)
    create, body = (
        (found.messages.create, bodies.MESSAGES | {"model": "claude-sonnet-4-6"})
        if client == "anthropic"
        else (found.chat.completions.create, bodies.CHAT | {"model": MODELS[client]})
    )
    with pytest.raises(error):
        create(**body, extra_headers=plan)
    (entry,) = provider.journal(f"error {client} {status}")
    assert (entry.status, _input(entry), entry.reports) == (status, 0, False)


def test_plans_travel_in_a_header() -> None:
    """What is written is read."""
    plan = Plan("a name", (Reply(status=429, retry_after="1"), Reply(encoding="br", split=7)), warm=True)
    assert parse(plan.headers[HEADER]) == plan
    assert parse("") == Plan()
    assert [plan.reply(n).status for n in range(4)] == [429, 200, 200, 200]


def test_a_cache_is_the_simulator_fed_call_by_call() -> None:
    """Serving one request after the other gives what the reference gives for all of them at once."""
    rules = Rules("explicit", min_tokens=1024, lookback=20)
    body = bodies.MESSAGES | {"model": "claude-sonnet-4-6"}
    request = prompts.parse("/v1/messages", body)
    assert request is not None
    requests = [request, replace(request, blocks=request.blocks[:1]), request]
    times = [START_MS, START_MS + 1_000, START_MS + 400_000]
    cache = Cache()
    served = [cache.serve(each, at) for each, at in zip(requests, times, strict=True)]
    assert served == simulate([sim_call(each, at) for each, at in zip(requests, times, strict=True)], rules)
    assert served[1].read > 0


def test_frames_have_sound_checksums() -> None:
    """Botocore refuses a frame whose checksums are wrong."""
    buffer = EventStreamBuffer()
    buffer.add_data(framing.aws(Event("messageStop", {"stopReason": "ende — 日本"})))
    (message,) = list(buffer)
    assert message.headers[":event-type"] == "messageStop"
    assert json.loads(message.payload) == {"stopReason": "ende — 日本"}
