"""OpenAI Responses, and those who speak it (Azure, xAI, DeepSeek, OpenRouter, Bedrock mantle).

Render order: tools, instructions and the system and developer messages a conversation starts with, then the items
(OpenAI prompt caching guide, 2026-09).
"""

from collections.abc import Iterator

from prefixscope.otel_plugin.record import Level, Segment
from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.openai_chat import SYSTEM_ROLES, message
from prefixscope.otel_plugin.wire.parts import JsonObject


def segments(request: JsonObject) -> list[Segment]:
    """The segments of a Responses request; what a stored prompt template holds stays unseen: one opaque segment."""
    found = list(parts.tools(request.get("tools")))
    if template := request.get("prompt"):
        found.append(Segment("system", "opaque", "", parts.compact(template)))
    found += _instructions(request.get("instructions"))
    found += _items(request.get("input"))
    return found


def holds_references(request: JsonObject) -> bool:
    """Whether an item stands for one that only the server has."""
    return any(item.get("type") == "item_reference" for item in parts.objects(request.get("input")))


def _instructions(value: object) -> Iterator[Segment]:
    if isinstance(value, list):
        for item in value:
            yield from _item(item, "system")
    elif value is not None:
        yield from parts.content(value, "system", "system")


def _items(value: object) -> Iterator[Segment]:
    level: Level = "system"
    if isinstance(value, str):
        yield from parts.content(value, "messages", "user")
    for item in value if isinstance(value, list) else parts.objects(value):
        if not (isinstance(item, dict) and item.get("role") in SYSTEM_ROLES):
            level = "messages"
        yield from _item(item, level)


def _item(item: object, level: Level) -> Iterator[Segment]:
    if isinstance(item, dict) and item.get("type") in (None, "message") and "role" in item:
        yield from message(item, level)
    else:
        yield from parts.typed(item, level, "")
