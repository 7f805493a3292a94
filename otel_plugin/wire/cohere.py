"""Cohere chat, v2 (messages) and v1 (message and chat_history).

Cohere publishes no render order. Tools, system and history stand as elsewhere; documents and tool results follow the
history, as in the published Command templates (Hugging Face model cards, 2024-2025).
"""

from collections.abc import Iterator

from prefixscope.otel_plugin.record import Segment
from prefixscope.otel_plugin.wire import openai_chat, parts
from prefixscope.otel_plugin.wire.parts import JsonObject


def segments(request: JsonObject) -> list[Segment]:
    """The segments of a chat request of either version."""
    found = list(parts.tools(request.get("tools")))
    found += parts.content(request.get("preamble"), "system", "system")
    found += openai_chat.messages(request.get("messages"))
    found += openai_chat.messages(list(_v1_messages(request)))
    for name in ("documents", "tool_results"):
        found += _attached(request.get(name), name)
    return found


def _v1_messages(request: JsonObject) -> Iterator[JsonObject]:
    for turn in parts.objects(request.get("chat_history")):
        yield {**turn, "role": str(turn.get("role")).lower(), "content": turn.get("message"), "message": None}
    if message := request.get("message"):
        yield {"role": "user", "content": message}


def _attached(value: object, name: str) -> Iterator[Segment]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str):
            yield from parts.content(item, "messages", "document")
        elif name == "documents":
            yield Segment("messages", "file", "document", parts.compact(item))
        else:
            yield Segment("messages", "tool_result", "tool", parts.compact(item))
