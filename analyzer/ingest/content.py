"""The prompt in a span's attributes -> the request body it came from, as well as it can be told.

Best is an attribute with the body itself. Second best are messages: GenAI conventions (``parts``), the shapes of the
SDKs (``content``), or one attribute a field (``llm.input_messages.0.message.role``), which become a chat body in
OpenAI's shape. What was cut is never fingerprinted: a prefix that only looks shared is worse than none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from prefixscope.analyzer.ingest import dialects
from prefixscope.analyzer.ingest.loose import embedded, items, mapping, text
from prefixscope.analyzer.ingest.span import Span

BODY_KEYS = frozenset({"messages", "contents", "input", "prompt", "system", "instructions"})
_REDACTED = "__REDACTED__"  # OpenInference's mask, and others' after it
_HIDDEN_KEYS = frozenset({"api_key", "extra_headers", "http_options"})  # parameters of the client, not of the request


class LostError(ValueError):
    """A prompt was recorded, but not all of it. The message says why and what to do."""


class Request(NamedTuple):
    """A request body. ``rebuilt``: from messages, in OpenAI's chat shape, whatever API they were sent to."""

    body: dict[str, Any]
    rebuilt: bool


def request(span: Span, found: Mapping[str, Any]) -> Request | None:
    """The request that ``span`` describes, None if it carries no prompt; ``found`` are its ``meanings``.

    Raises:
        LostError: parts of the prompt are missing.
    """
    recorded = _recorded_body(found)
    body = recorded or _from_messages(found) or _from_numbered(span.attributes)
    return Request(_completed(body, span, found), rebuilt=recorded is None) if body else None


def _completed(body: dict[str, Any], span: Span, found: Mapping[str, Any]) -> dict[str, Any]:
    """``body`` with what stands in other attributes: tools, model, parameters."""
    if span.dropped_attributes:
        raise LostError(
            "the exporter dropped attributes of this span, so the beginning of the prompt may be missing: "
            "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT"
        )
    if _REDACTED in body.values() or any(_is_redacted(m) for m in items(body.get("messages"))):
        raise LostError(
            "the instrumentation masked the prompt's text: let it record inputs, or capture with prefixscope"
        )
    beside = {"model": text(found.get("model")), "tools": _tools(found) or _numbered_tools(span.attributes)}
    present = {name: value for name, value in beside.items() if value and not body.get(name)}
    return {**_invocation(found), **body, **present}


def _recorded_body(found: Mapping[str, Any]) -> dict[str, Any] | None:
    raw = found.get("request_body")
    if not isinstance(raw, str | dict) or (isinstance(raw, str) and raw[:1] not in {"{", "["}):
        return None
    parsed = embedded(raw)
    if not isinstance(parsed, dict) or BODY_KEYS.isdisjoint(parsed):
        return None
    if "messages" not in parsed:
        return _flat_config(parsed)
    return {**parsed, "messages": _chat_messages(parsed["messages"])} if _are_messages(parsed["messages"]) else None


def _flat_config(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """A body of the google-genai SDK has its tools and system instruction inside ``config``."""
    config = parsed.get("config")
    return {**config, **parsed} if isinstance(config, dict) and "contents" in parsed else dict(parsed)


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "role" in m for m in value)


def _from_messages(found: Mapping[str, Any]) -> dict[str, Any] | None:
    messages = _decoded(found.get("messages", found.get("request_body")))
    if not _are_messages(messages):
        return None
    system = _decoded(found["system"]) if "system" in found else None
    head = [{"role": "system", "content": _parts(system)}] if system else []
    return {"messages": [*head, *_chat_messages(messages)]}


def _decoded(value: Any) -> Any:
    """An attribute that should hold JSON, or a plain string; lists come as they are from log events."""
    if isinstance(value, list):
        return [embedded(v) if isinstance(v, str) and v[:1] in {"{", "["} else v for v in value]
    if not isinstance(value, str) or value[:1] not in {"{", "["}:
        return value
    parsed = embedded(value)
    if parsed is None:
        raise LostError(
            "the prompt's JSON does not end, as if it was cut off: raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT"
        )
    return parsed


def _tools(found: Mapping[str, Any]) -> Sequence[Any]:
    return [tool for tool in items(_decoded(found.get("tools"))) if isinstance(tool, dict)]


def _invocation(found: Mapping[str, Any]) -> dict[str, Any]:
    parameters = mapping(embedded(found.get("invocation")))
    return {name: value for name, value in parameters.items() if name not in _HIDDEN_KEYS and value is not None}


def _chat_messages(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Messages in OpenAI's chat shape; those that have ``content`` already are left as they are."""
    return [chat for message in messages for chat in (_from_parts(message) if "parts" in message else [message])]


def _from_parts(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One message of the GenAI conventions. A response to a tool call is a message of its own in the chat shape."""
    parts = [mapping(part) for part in items(message["parts"])]
    content = _parts([p for p in parts if p.get("type") not in {"tool_call", "tool_call_response"}])
    calls = [_tool_call(p.get("id"), p.get("name"), p.get("arguments")) for p in parts if p.get("type") == "tool_call"]
    if content or calls:
        yield {"role": message.get("role"), "content": content, **({"tool_calls": calls} if calls else {})}
    for part in parts:
        if part.get("type") == "tool_call_response":
            response = part.get("response", part.get("result"))
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": _as_text(response)}


def _parts(parts: Any) -> Any:
    """System instructions or message parts as chat content: text parts in OpenAI's spelling, anything else as it is."""
    if not isinstance(parts, list):
        return parts
    return [
        {"type": "text", "text": part["content"]}
        if isinstance(part, dict) and part.get("type") == "text" and "content" in part
        else {"type": "text", "text": part}
        if isinstance(part, str)
        else part
        for part in parts
    ]


def _tool_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": _as_text(arguments)}}


def _as_text(value: Any) -> Any:
    return value if isinstance(value, str | list) or value is None else orjson.dumps(value).decode()


# --- One attribute a field ---


def _from_numbered(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    messages = [_numbered_message(tree) for tree in _trees(attributes, "messages")]
    return {"messages": messages} if messages else None


def _numbered_tools(attributes: Mapping[str, Any]) -> list[Any]:
    return [tool for tree in _trees(attributes, "tools") if (tool := _numbered_tool(tree))]


def _trees(attributes: Mapping[str, Any], meaning: str) -> list[dict[str, Any]]:
    """The numbered attributes of a meaning as nested objects, in their order."""
    for prefix in dialects.table().numbered[meaning]:
        rows: dict[str, Any] = {}
        for name, value in attributes.items():
            if name.startswith(prefix):
                _plant(rows, name[len(prefix) :].split("."), value)
        if rows:
            return _in_order(rows)
    return []


def _plant(tree: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for step in path[:-1]:
        below = tree.setdefault(step, {})
        if not isinstance(below, dict):  # a.b and a.b.c at once: the longer name says more
            below = tree[step] = {}
        tree = below
    tree.setdefault(path[-1], value)


def _in_order(rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Raises LostError where a number is missing: the first may be 1, since an absent system prompt counts as 0."""
    numbers = sorted(int(n) for n in rows if n.isdecimal() and len(n) < 7)
    if numbers and (numbers[0] > 1 or numbers[-1] - numbers[0] != len(numbers) - 1):
        raise LostError(
            "a message is missing among this span's attributes: the instrumentation left it out, or a limit did "
            "(OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT)"
        )
    return [row for n in numbers if isinstance(row := rows[str(n)], dict)]


def _numbered_message(tree: Mapping[str, Any]) -> dict[str, Any]:
    """``message.role`` of OpenInference, ``role`` of older OpenLLMetry."""
    message = mapping(tree.get("message")) or tree
    parts = _children(message, "contents", "message_content")
    calls = [_numbered_call(call) for call in _children(message, "tool_calls", "tool_call")]
    found = {
        "role": message.get("role"),
        "content": parts or message.get("content"),
        "tool_calls": calls,
        "tool_call_id": message.get("tool_call_id"),
        "name": message.get("name"),
    }
    return {name: value for name, value in found.items() if value or name == "content"}


def _children(tree: Mapping[str, Any], name: str, wrapper: str) -> list[Mapping[str, Any]]:
    rows = _in_order(mapping(tree.get(name)))
    return [mapping(row.get(wrapper)) or row for row in rows]


def _numbered_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = mapping(call.get("function")) or call
    return _tool_call(call.get("id"), function.get("name"), function.get("arguments"))


def _numbered_tool(tree: Mapping[str, Any]) -> Any:
    """``tool.json_schema`` of OpenInference; name, description and parameters of older OpenLLMetry."""
    schema = embedded(mapping(tree.get("tool")).get("json_schema"))
    if schema is not None or "name" not in tree:
        return schema
    function = {**tree, "parameters": embedded(tree.get("parameters"))}
    return {"type": "function", "function": function}


def _is_redacted(message: Any) -> bool:
    content = mapping(message).get("content")
    parts = content if isinstance(content, list) else [content]
    return any(part == _REDACTED or mapping(part).get("text") == _REDACTED for part in parts)
