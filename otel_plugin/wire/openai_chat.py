"""OpenAI chat completions, and everyone who speaks it (DeepSeek, Groq, Mistral, OpenRouter, LiteLLM, vLLM, Cohere v2…).

Render order: tools, then the system and developer messages a conversation starts with, then the history (OpenAI prompt
caching guide, 2026-09). MiniMax renders system before tools: its rule card says so, segments stay in this order.
"""

from collections.abc import Iterator

from prefixscope.otel_plugin.record import Kind, Level, Segment
from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.facts import FACTS
from prefixscope.otel_plugin.wire.parts import JsonObject

SYSTEM_ROLES = ("system", "developer")  # a tuple: a role that is no string is compared, not hashed
_RESULT_ROLES = frozenset({"tool", "function"})
_BEFORE: dict[str, Kind] = FACTS["message_fields"]["before"]
_AFTER: dict[str, Kind] = FACTS["message_fields"]["after"]
_KNOWN = {*_BEFORE, *_AFTER, "role", "content", "tool_calls", "cache_control", "prompt_cache_breakpoint"}
# Bookkeeping of the client or a switch for the answer: not rendered.
_KNOWN |= {"type", "id", "status", "index", "prefix", "partial"}


def segments(request: JsonObject) -> list[Segment]:
    """The segments of a chat completions request."""
    found = list(parts.tools(request.get("tools")))
    found += parts.tools(request.get("functions"))  # the form before tools, deprecated 2023-11
    found += messages(request.get("messages"))
    return found


def messages(value: object) -> Iterator[Segment]:
    """Messages in order; system messages count as level "system" up to the first of another role."""
    level: Level = "system"
    for item in value if isinstance(value, list) else ():
        if not (isinstance(item, dict) and item.get("role") in SYSTEM_ROLES):
            level = "messages"
        yield from message(item, level)


def message(item: object, level: Level) -> list[Segment]:
    """The segments of one message: its fields in render order, a tool's answer as one piece."""
    if not isinstance(item, dict):
        return list(parts.typed(item, level, ""))
    role = str(item.get("role") or "")
    if role in _RESULT_ROLES:
        return [parts.tool_result(item, level, role, ("role",))]
    found = list(_message(item, level, role))
    parts.mark_last(found, parts.marker_of(item))  # LiteLLM marks whole messages
    return found


def _message(item: JsonObject, level: Level, role: str) -> Iterator[Segment]:
    yield from _fields(item, _BEFORE, level, role)
    yield from parts.content(item.get("content"), level, role)
    yield from _fields(item, _AFTER, level, role)
    for call in parts.objects(item.get("tool_calls")):
        yield Segment(level, "tool_call", role, parts.compact(parts.unmarked(call)), marker=parts.marker_of(call))
    unknown = {key: value for key, value in item.items() if key not in _KNOWN and value}
    if unknown:
        yield Segment(level, "opaque", role, parts.compact(unknown))


def _fields(item: JsonObject, fields: dict[str, Kind], level: Level, role: str) -> Iterator[Segment]:
    for name, kind in fields.items():
        if value := item.get(name):
            yield Segment(level, kind, role, value if isinstance(value, str) else parts.compact(value))
