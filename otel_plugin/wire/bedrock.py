"""Amazon Bedrock Converse. A ``cachePoint`` block stands behind the piece it marks.

Render order: tools, system, messages (Bedrock prompt caching page, 2026). Amazon Nova's own InvokeModel body is the
same shape.
"""

from collections.abc import Iterable

from prefixscope.otel_plugin.record import Kind, Level, Segment
from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.facts import FACTS
from prefixscope.otel_plugin.wire.parts import JsonObject

_BLOCKS: dict[str, Kind] = FACTS["bedrock_blocks"]


def segments(request: JsonObject) -> list[Segment]:
    """The segments of a Converse request; tools of the vendor (computer use) come in the additional fields."""
    found: list[Segment] = []
    for holder in ("toolConfig", "additionalModelRequestFields"):
        if isinstance(config := request.get(holder), dict):
            _tools(found, config.get("tools"))
    _blocks(found, request.get("system"), "system", "system")
    for message in parts.objects(request.get("messages")):
        _blocks(found, message.get("content"), "messages", str(message.get("role") or ""))
    return found


def _tools(found: list[Segment], value: object) -> None:
    for part in _listed(value):
        if not _marks(found, part):
            found.append(parts.tool(part))


def _blocks(found: list[Segment], value: object, level: Level, role: str) -> None:
    for part in _listed(value):
        if not _marks(found, part):
            found += _block(part, level, role)


def _listed(value: object) -> Iterable[object]:
    if isinstance(value, list):
        return value
    return () if value is None else (value,)


def _marks(found: list[Segment], part: object) -> bool:
    """Whether ``part`` is a cache point; if so, the segment before it is marked."""
    if not (isinstance(part, dict) and isinstance(point := part.get("cachePoint"), dict)):
        return False
    ttl = point.get("ttl")
    parts.mark_last(found, ttl if isinstance(ttl, str) and ttl else "5m")
    return True


def _block(part: object, level: Level, role: str) -> Iterable[Segment]:
    kind = next((kind for key, kind in _BLOCKS.items() if key in part), None) if isinstance(part, dict) else None
    if not isinstance(part, dict) or kind is None:
        return parts.typed(part, level, role)
    if kind == "tool_result" and isinstance(result := part["toolResult"], dict):
        return (parts.tool_result(result, level, role),)
    return (Segment(level, kind, role, parts.compact(part)),)
