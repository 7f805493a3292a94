"""Exchanges as a mount would report them, without an HTTP library."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.context import Context, attach, detach

from prefixscope.otel_plugin.endpoints import Endpoints
from prefixscope.otel_plugin.exchange import Exchange, Outcome
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.tap import Tap

CHAT = ("api.openai.com", "/v1/chat/completions")
MESSAGES = ("api.anthropic.com", "/v1/messages")
ENDPOINTS = Endpoints(["gateway.test/ai/*"])
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream; charset=utf-8"}


def tap(delivered: list[Exchange], *, request_cap: int = 1 << 20, response_cap: int = 1 << 20) -> Tap:
    """A tap that puts finished exchanges into ``delivered``."""
    return Tap(ENDPOINTS, delivered.append, Guard(reraise=True), request_cap=request_cap, response_cap=response_cap)


def exchange(
    request: Any,
    *chunks: bytes,
    at: tuple[str, str] = CHAT,
    status: int | None = 200,
    sent: Mapping[str, str] | None = None,
    headers: Mapping[str, str] = JSON,
    outcome: Outcome = "ended",
    context: Context | None = None,
    response_cap: int = 1 << 20,
) -> Exchange:
    """A finished exchange; ``request`` that is no bytes is sent as JSON."""
    delivered: list[Exchange] = []
    body = request if isinstance(request, bytes) else json.dumps(request).encode()
    token = attach(context) if context is not None else None
    found = tap(delivered, response_cap=response_cap).begin("POST", *at, sent or {}, body)
    if token is not None:
        detach(token)
    assert found is not None
    if status is not None:
        found.responded(status, headers)
    for chunk in chunks:
        found.chunk(chunk)
    found.finish(outcome)
    assert delivered == [found]
    return found


def sse(events: Sequence[Any], *, done: bool = True) -> bytes:
    """Events as OpenAI streams them."""
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


def chat(system: str = "You are helpful.", user: str = "hi", **more: Any) -> dict[str, Any]:
    """A request to Chat Completions."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return {"model": "gpt-5.1", "messages": messages, **more}


def completion(**usage: Any) -> dict[str, Any]:
    """An answer of Chat Completions with 100 prompt tokens, 64 of them read, and 5 of output."""
    counts = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "total_tokens": 105,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    message = {"role": "assistant", "content": "hello"}
    return {
        "id": "chatcmpl-1",
        "model": "gpt-5.1-2025-11-13",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": counts | usage,
    }


SEEN: list[list[str]] = []
"""What ``lengths`` was asked."""


def lengths(questions: list[str]) -> list[list[float]]:
    """A vector of each question: how long it is, and one."""
    SEEN.append(questions)
    return [[float(len(question)), 1.0] for question in questions]
