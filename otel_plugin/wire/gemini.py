"""Google Gemini: generateContent and Interactions. REST takes camelCase and snake_case alike.

Render order: tools, system instruction, contents (assumed: Google does not publish it; a cachedContent holds the same
three in front of the request).
"""

from collections.abc import Iterator
from typing import Any

from prefixscope.otel_plugin.record import Kind, Level, Segment
from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.facts import FACTS, snake
from prefixscope.otel_plugin.wire.parts import JsonObject

_PARTS: list[tuple[str, Kind]] = [
    (name, kind) for camel, kind in FACTS["gemini_parts"].items() for name in dict.fromkeys((camel, snake(camel)))
]


def either(holder: JsonObject, camel: str) -> Any:
    """The value of a field in either spelling, None when absent."""
    return holder.get(camel, holder.get(snake(camel)))


def segments(request: JsonObject) -> list[Segment]:
    """The segments of a generateContent request."""
    found = list(_tools(request.get("tools")))
    found += _content(either(request, "systemInstruction"), "system")
    contents = request.get("contents")
    for item in contents if isinstance(contents, list) else [contents]:
        found += _content(item, "messages")
    return found


def _tools(value: object) -> Iterator[Segment]:
    """One segment a function declaration: how declarations are packed into tools says nothing to the model."""
    for part in value if isinstance(value, list) else parts.objects(value):
        declarations = either(part, "functionDeclarations") if isinstance(part, dict) else None
        if not isinstance(declarations, list):
            yield parts.tool(part)
            continue
        yield from parts.tools(declarations)
        others = {key: v for key, v in part.items() if key not in {"functionDeclarations", "function_declarations"}}
        if others:
            yield parts.tool(others)


def _content(value: object, level: Level) -> Iterator[Segment]:
    """A Content (role and parts), or the bare string that SDKs allow."""
    if not isinstance(value, dict):
        yield from parts.content(value, level, "system" if level == "system" else "user")
        return
    role = str(value.get("role") or "")
    held = value.get("parts")
    for part in held if isinstance(held, list) else parts.objects(held):
        yield from _part(part, level, role)


def _part(part: object, level: Level, role: str) -> Iterator[Segment]:
    if not isinstance(part, dict):
        yield from parts.typed(part, level, role)
        return
    kind: Kind = next((kind for key, kind in _PARTS if key in part), "opaque")
    if kind == "text":
        text = parts.framed(part, "text", ("thought",))
        yield Segment(level, "thinking" if part.get("thought") else "text", role, text)
    else:
        yield Segment(level, _media(part) if kind == "file" else kind, role, parts.compact(part))


def _media(part: JsonObject) -> Kind:
    data = either(part, "inlineData") or either(part, "fileData")
    mime = either(data, "mimeType") if isinstance(data, dict) else ""
    return "image" if str(mime).startswith(("image/", "video/")) else "file"


def interaction_segments(request: JsonObject) -> list[Segment]:
    """The segments of an Interactions request: its input is a string, contents, turns or steps."""
    found = list(parts.tools(request.get("tools")))
    found += parts.content(request.get("system_instruction"), "system", "system")
    value = request.get("input")
    for item in value if isinstance(value, list) else [value]:
        found += _turn(item)
    return found


_STEP_ROLES = {"user_input": "user", "model_output": "model"}


def _turn(item: object) -> Iterator[Segment]:
    if not isinstance(item, dict):
        yield from parts.content(item, "messages", "user")
    elif "role" in item:
        yield from parts.content(item.get("content"), "messages", str(item["role"]))
    elif role := _STEP_ROLES.get(str(item.get("type"))):
        yield from parts.content(item.get("content"), "messages", role)
    else:
        yield from parts.typed(item, "messages", "")
