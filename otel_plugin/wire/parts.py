"""What the request shapes have in common: compact JSON, markers, parts told apart by their ``type``.

Everything here takes parsed JSON and never raises on its shape: what it does not know becomes an opaque segment.
"""

import json
from base64 import b64encode
from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from prefixscope.otel_plugin.record import Kind, Level, Segment
from prefixscope.otel_plugin.wire.facts import FACTS

JsonObject = dict[str, Any]

INHERITED = "request"
"""The marker of an OpenAI breakpoint without a TTL: it takes the request's (SDK 3.57.0, ``PromptCacheBreakpoint``)."""

_MARKERS = {"cache_control": "5m", "prompt_cache_breakpoint": INHERITED}
"""The field that marks a breakpoint -> its TTL when it names none."""

_SECRETS = frozenset({"authorization", "authorization_token", "headers"})
"""What a remote tool is called with: rotated, and never shown to the model."""

_CANONICAL_CACHED_SIZE = 8192  # characters; with the cache's 1,024 entries at most some 16 MB


def compact(value: Any) -> str:
    """``value`` as JSON without white space between tokens, keys in wire order.

    Raises:
        RecursionError: nested deeper than the interpreter can follow.
    """
    return _ENCODER.encode(value)


def canonical(text: str) -> str:
    """The compact JSON ``text`` with its keys sorted. Tools come back on every request, so most are looked up."""
    return _sorted_cached(text) if len(text) <= _CANONICAL_CACHED_SIZE else _sorted(text)


def _sorted(text: str) -> str:
    return _SORTED_ENCODER.encode(json.loads(text))


_sorted_cached = lru_cache(maxsize=1024)(_sorted)


def _wire_form(value: object) -> object:
    """What an SDK object becomes on the wire: botocore takes raw bytes where the body has base64."""
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return dict(value) if isinstance(value, Mapping) else str(type(value))


_ENCODER = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), check_circular=False, skipkeys=True, default=_wire_form
)
_SORTED_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False, sort_keys=True)

KINDS: dict[str, Kind] = {name: cast("Kind", kind) for kind, names in FACTS["kinds"].items() for name in names}
_KIND_SUFFIXES: dict[str, Kind] = FACTS["kind_suffixes"]


def kind_of(part_type: object) -> Kind:
    """The kind of a part by its ``type``; parts without one are text if they hold text, which the caller knows."""
    if not isinstance(part_type, str):
        return "opaque"
    if found := KINDS.get(part_type):
        return found
    return next((kind for end, kind in _KIND_SUFFIXES.items() if part_type.endswith(end)), "opaque")


def marker_of(part: JsonObject) -> str:
    """The TTL of the breakpoint at this part's end, "" for none."""
    for field, default in _MARKERS.items():
        if isinstance(mark := part.get(field), dict):
            ttl = mark.get("ttl")
            return ttl if isinstance(ttl, str) and ttl else default
    return ""


def unmarked(part: JsonObject, without: Container[str] = ()) -> JsonObject:
    """``part`` without its marker (and without the fields named); the same object when there is nothing to cut."""
    cut = [key for key in part if key in _MARKERS or key in without]
    return {key: value for key, value in part.items() if key not in cut} if cut else part


def objects(value: object) -> list[JsonObject]:
    """The objects of a JSON list; an object by itself counts as a list of one."""
    if isinstance(value, list):
        return [item for item in value if isinstance(item, dict)]
    return [value] if isinstance(value, dict) else []


def tool(part: object, role: str = "") -> Segment:
    """One tool definition. The marker may stand in the tool or, as LiteLLM has it, in its ``function``."""
    if not isinstance(part, dict):
        return Segment("tools", "opaque", role, compact(part))
    marker = marker_of(part)
    clean = unmarked(part, _SECRETS if part.get("type") == "mcp" else ())
    if isinstance(function := clean.get("function"), dict) and (bare := unmarked(function)) is not function:
        marker = marker or marker_of(function)
        clean = {**clean, "function": bare}
    text = compact(clean)
    return Segment("tools", "tool", role, text, canonical(text), marker)


def tools(value: object) -> Iterator[Segment]:
    """A list of tool definitions, in the order sent."""
    if isinstance(value, list):
        for part in value:
            yield tool(part)
    elif value is not None:
        yield tool(value)


def without_secrets(value: object) -> object:
    """A list of remote servers without what they are called with."""
    return [unmarked(server, _SECRETS) for server in objects(value)]


def content(value: object, level: Level, role: str) -> Iterator[Segment]:
    """The parts of a message or system field: a string, a list of typed parts, or one part by itself."""
    if isinstance(value, list):
        for part in value:
            yield from typed(part, level, role)
    elif value is not None:
        yield from typed(value, level, role)


def typed(part: object, level: Level, role: str) -> Iterator[Segment]:
    """One part told apart by its ``type``. An empty text without a marker is no segment: nothing is rendered."""
    if isinstance(part, str):
        if part:
            yield Segment(level, "text", role, part)
    elif not isinstance(part, dict):
        yield Segment(level, "opaque", role, compact(part))
    elif (segment := _typed(part, level, role)).text or segment.marker:
        yield segment


def _typed(part: JsonObject, level: Level, role: str) -> Segment:
    kind = "text" if _holds_text(part) else kind_of(part.get("type"))
    marker = marker_of(part)
    if kind == "text":
        return Segment(level, kind, role, text_of(part), marker=marker)
    if kind == "tool_result":
        return tool_result(part, level, role)
    return Segment(level, kind, role, compact(unmarked(part)), marker=marker)


def _holds_text(part: JsonObject) -> bool:
    return isinstance(part.get("text"), str) and ("type" not in part or kind_of(part["type"]) == "text")


def text_of(part: JsonObject) -> str:
    """The text of a text part, the bare string unless the part says more (citations, a signature)."""
    if len(part) <= 2 and isinstance(part.get("text"), str) and ("type" in part or len(part) == 1):
        return cast("str", part["text"])
    return framed(part, "text", ("type",))


def framed(part: JsonObject, field: str, without: Container[str] = ()) -> str:
    """``part`` as its other fields in compact JSON, a line break, and the text of ``field`` as it is.

    So the text keeps its own lines, which is where long segments are cut, and the ids sent with it count too. Fields
    that are null, false or empty say nothing and are left out, as is the first line when nothing is left of it.
    """
    head = {key: value for key, value in unmarked(part, without).items() if value and key != field}
    body = flat(part.get(field))
    return "\n".join(filter(None, (compact(head), body))) if head else body


def flat(value: object) -> str:
    """The text of a string or of a list of parts; what is no text is compact JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(flat(part) for part in value)
    if isinstance(value, dict):
        return text_of(value) if _holds_text(value) else compact(unmarked(value))
    return "" if value is None else compact(value)


_RESULT_FIELDS = ("content", "output", "result")


def tool_result(part: JsonObject, level: Level, role: str, without: Container[str] = ()) -> Segment:
    """What a tool returned: the ids and flags sent with it, then its text. A marker may stand in the parts inside."""
    field = next((name for name in _RESULT_FIELDS if name in part), "content")
    inner = part.get(field)
    markers = [marker_of(part), *(marker_of(item) for item in reversed(objects(inner)))]
    marker = next(filter(None, markers), "")
    return Segment(level, "tool_result", role, framed(part, field, without), marker=marker)


def mark_last(segments: list[Segment], ttl: str) -> None:
    """Set a breakpoint at the end of what has been rendered so far; nothing to mark, nothing done."""
    if segments and ttl:
        segments[-1] = replace(segments[-1], marker=ttl)
