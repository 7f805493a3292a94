"""Anthropic messages, on its own API, Bedrock, Vertex, Foundry and on those who speak it (MiniMax, DeepSeek, Moonshot).

Render order: tools, system, messages (Anthropic prompt caching page, 2026-09). MiniMax renders system before tools: its
rule card says so, segments stay in this order.
"""

from collections.abc import Iterator

from prefixscope.otel_plugin.record import Segment
from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.parts import JsonObject


def segments(request: JsonObject) -> list[Segment]:
    """The segments of a messages request. A ``role: system`` message in the conversation stays in its place."""
    found = list(parts.tools(request.get("tools")))
    found += parts.content(request.get("system"), "system", "system")
    found += _messages(request.get("messages"))
    return found


def _messages(value: object) -> Iterator[Segment]:
    for item in value if isinstance(value, list) else parts.objects(value):
        if isinstance(item, dict):
            yield from parts.content(item.get("content"), "messages", str(item.get("role") or ""))
        else:
            yield from parts.typed(item, "messages", "")
