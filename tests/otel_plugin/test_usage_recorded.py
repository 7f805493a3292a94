"""Usage against real answers: genai-prices' usage objects with their normalisation, and the recorded exchanges."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

import cassettes
from prefixscope.otel_plugin import sse, usage
from prefixscope.otel_plugin.record import Usage

ORACLE = cassettes.DATA / "prices" / "usages.json"

needs_oracle = pytest.mark.skipif(not ORACLE.exists(), reason="needs ../shared/data/prices")
needs_cassettes = pytest.mark.skipif(not cassettes.CASSETTES.exists(), reason="needs ../shared/data/cassettes")

# Who answered, from the name of the recording; the oracle's extractor of that provider is the one to agree with.
CHAT_PROVIDERS = [
    ("test_openrouter|openrouter", "openrouter", "chat"),
    ("mistral", "mistral", "default"),
    ("groq", "groq", "default"),
    ("deepseek", "deepseek", "chat"),
    ("cerebras", "cerebras", "chat"),
    ("zai", "zai", "chat"),
    ("azure", "azure", "chat"),
    ("huggingface", "huggingface_together", "chat"),
    ("embeddings", "openai", "embeddings"),
    ("", "openai", "chat"),
]

# Why we differ: a test of the usage object for each reason. Every difference has one.
DIFFERENCES: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "compaction was billed but is not in the totals; the oracle leaves it out": lambda reported: any(
        item["type"] == "compaction" for item in reported.get("iterations", ())
    ),
}


def extractor(body: Mapping[str, Any]) -> tuple[str, str]:
    """Provider and flavour whose normalisation is the right one for ``body``."""
    if "usageMetadata" in body:
        return "google", "default"
    if "meta" in body:
        return "cohere", "embeddings"
    reported = body["usage"]
    if "prompt_tokens" in reported:
        return next((who, how) for pattern, who, how in CHAT_PROVIDERS if re.search(pattern, body["file"]))
    if "tokens" in reported:
        return "cohere", "tokens"
    if "inputTokens" in reported:
        return "aws", "default"
    return ("anthropic", "default") if "cache_read_input_tokens" in reported else ("openai", "responses")


def expected(entry: Mapping[str, Any]) -> tuple[int, ...]:
    provider, flavour = extractor(entry["body"])
    for found in entry["extracted"]:
        if any((one["provider_id"], one["api_flavor"]) == (provider, flavour) for one in found["extractors"]):
            names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
            return tuple(found["usage"].get(name, 0) for name in names)
    raise LookupError(f"no {provider}/{flavour} for {entry['body']}")


@needs_oracle
def test_oracle() -> None:
    """Input, read, write and output equal genai-prices' own, but for the listed differences."""
    entries = json.loads(ORACLE.read_text())
    reasons: Counter[str] = Counter()
    for entry in entries:
        found = usage.from_body(entry["body"], provider=extractor(entry["body"])[0])
        if (found.input_total, found.read, found.write, found.output) == expected(entry):
            continue
        told = [why for why, holds in DIFFERENCES.items() if holds(entry["body"]["usage"])]
        assert len(told) == 1, (entry, found)
        reasons[told[0]] += 1
    agreed = len(entries) - reasons.total()
    print(f"agreement with the oracle: {agreed}/{len(entries)} = {agreed / len(entries):.2%}")
    for why, count in reasons.items():
        print(f"  {count} differ: {why}")
    assert agreed / len(entries) >= 0.99
    assert set(reasons) == set(DIFFERENCES), "a listed difference is gone"


def of(exchange: cassettes.Exchange) -> Usage:
    answer = exchange.response
    if isinstance(answer, Mapping):
        return usage.from_body(answer)
    return usage.from_events(answer if isinstance(answer, list) else exchange.events)


MODEL_CALLS = re.compile(
    r"/(messages|responses|chat|completions|chat/completions|converse|converse-stream|invoke)$|:(stream)?[gG]enerateContent$"
)


@needs_cassettes
def test_every_recorded_answer() -> None:
    """Every answered model call has usage, with input and output; only known servers leave the cache unknown."""
    states: Counter[tuple[str, str]] = Counter()
    for exchange in cassettes.exchanges():
        found = of(exchange)
        assert found.uncached >= 0
        assert found.uncached + found.read + found.write == found.input_total
        if exchange.status == 200 and MODEL_CALLS.search(exchange.path):
            states[exchange.host, found.state] += 1
            assert found.input_total, exchange
            assert found.output or "max_tokens" in str(exchange.request), exchange
    print("recorded model calls:", dict(sorted(Counter(state for _, state in states.elements()).items())))
    unknown = {host for host, state in states if state != "reported"}
    # Cohere v1; Groq when the provider is not told; Mistral when it only gives its engine's counter
    assert unknown == {"api.cohere.com", "api.groq.com", "api.mistral.ai"}
    assert states.total() > 600


@needs_cassettes
def test_recordings_that_are_no_http() -> None:
    """Web-socket frames, SDK messages and managed-agent events are read where they carry usage, and never raise."""
    found = [usage.from_body(document) for document in cassettes.documents()]
    assert sum(one.state == "reported" for one in found) > 20


@needs_cassettes
def test_recorded_streams_need_few_events() -> None:
    """The usage is the same when only the telling events of a stream are parsed."""
    streams = [one for one in cassettes.exchanges("rig", "pydantic-ai", "openllmetry") if b"data:" in one.response_body]
    assert len(streams) > 100
    for exchange in streams:
        few = list(sse.decode(exchange.response_body, wanted=usage.telling()))
        assert usage.from_events(few) == usage.from_events(exchange.events), exchange.source


@needs_cassettes
def test_recorded_streams_cut_off() -> None:
    """A stream cut anywhere never counts more than the whole, and is not reported before its usage came."""
    for exchange in cassettes.exchanges("rig"):
        events = exchange.events
        whole = usage.from_events(events)
        for cut in {0, 1, len(events) // 2, len(events) - 1} if events else ():
            part = usage.from_events(events[:cut])
            assert part.input_total <= whole.input_total
            assert part.state != "reported" or part.input_total == whole.input_total
