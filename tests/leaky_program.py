"""A program as it is found in production: three services, two of which leak. It knows nothing of prefixscope.

``PROVIDER_URL`` says where the fake provider is. To be run by ``opentelemetry-instrument``.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
from opentelemetry import baggage, context

from fake_provider.plan import Plan

CALLS = 24  # of each service
CLOCK = "It is 2026-11-02 09:{minute:02}:{second:02}. "
URL = os.environ.get("PROVIDER_URL", "")


def rules(topic: str, count: int) -> str:
    """Static text of about 13 tokens a rule."""
    return " ".join(f"Rule {n} of {topic}: answer questions of kind {n % 7} from page {n % 91}." for n in range(count))


def tools() -> list[dict[str, Any]]:
    """Tools whose definitions are most of the prompt."""
    names = ["search", "order", "refund", "invoice", "ship", "track", "cancel", "rate", "list", "quote"]
    return [{"type": "function", "function": {"name": n, "description": rules(n, 14), "parameters": {}}} for n in names]


def clock_in_front(client: openai.OpenAI) -> None:
    """The time stands in front of a long system prompt."""
    for number in range(CALLS):
        system = CLOCK.format(minute=number, second=7 * number % 60) + rules("the shop", 150)
        _chat(client, "clock", [{"role": "system", "content": system}, _question(number)])


def tools_in_any_order(client: openai.OpenAI) -> None:
    """The tools come out of a set."""
    shuffled, order = tools(), random.Random(7)
    for number in range(CALLS):
        order.shuffle(shuffled)
        system = {"role": "system", "content": rules("the desk", 10)}
        _chat(client, "tools", [system, _question(number)], tools=shuffled, stream=number % 2 == 0)


def healthy(client: anthropic.Anthropic) -> None:
    """A stable prompt with a breakpoint behind it."""
    text = {"type": "text", "text": rules("the bank", 150), "cache_control": {"type": "ephemeral"}}
    for number in range(CALLS):
        body: Any = {"system": [text], "messages": [_question(number)], "max_tokens": 64}
        client.messages.create(model="claude-sonnet-4-6", **body, extra_headers=Plan("healthy").headers)


def _question(number: int) -> dict[str, str]:
    return {"role": "user", "content": f"What about customer {number * 7919}?"}


def _chat(client: openai.OpenAI, service: str, messages: Any, **more: Any) -> None:
    if more.get("stream"):
        more["stream_options"] = {"include_usage": True}
    headers = Plan(service).headers
    answer: Any = client.chat.completions.create(model="gpt-4.1", messages=messages, **more, extra_headers=headers)
    if more.get("stream"):
        list(answer)


def main() -> None:
    """Run the services one after the other, each in a conversation of its own."""
    gpt = openai.OpenAI(api_key="of no account", base_url=f"{URL}/v1")
    claude = anthropic.Anthropic(api_key="of no account", base_url=URL)
    with _conversation("clock"):
        clock_in_front(gpt)
    with _conversation("tools"):
        tools_in_any_order(gpt)
    with _conversation("healthy"):
        healthy(claude)


@contextmanager
def _conversation(name: str) -> Iterator[None]:
    token = context.attach(baggage.set_baggage("session.id", name))
    try:
        yield
    finally:
        context.detach(token)


if __name__ == "__main__":
    main()
