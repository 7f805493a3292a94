"""Recorded answers -> their text, and whether they may be served again: those of logs, and those of spans.

Pure. The wire formats are otel_plugin/answers.py's; here is what logs and spans make of them.
"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from prefixscope.analyzer.ingest.loose import embedded, items, mapping, text
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin import sse
from prefixscope.otel_plugin.answers import Answer, Draft, of_body, of_events

__all__ = ["Answer", "decoded", "of_response", "of_span"]


def of_response(response: Any) -> Answer | None:
    """The answer in a response body, its JSON text, an event stream or a list of events; None if there is none."""
    found = decoded(response)
    return of_events(found) if isinstance(found, list) else of_body(found)


def decoded(response: Any) -> Any:
    """A recorded response: the body, or the events of a stream as a list. Decoding twice changes nothing."""
    if isinstance(response, str):
        streamed = not response.lstrip().startswith(("{", "["))
        response = list(sse.decode(response)) if streamed else embedded(response)
    return [_event(raw) for raw in response] if isinstance(response, list) else response


def of_span(span: Span) -> Answer | None:
    """The answer that a span records."""
    names, found = _table()["spans"], span.attributes
    draft = Draft()
    for name in names["messages"]:
        for message in items(_decoded(found.get(name))):
            _take_message(draft, mapping(message))
    for _, attributes in (event for name in names["events"] for event in span.event(name)):
        draft.take_choice({"message": _decoded(attributes.get("message")) or attributes, **attributes})
    if not draft.said:
        _take_bodies(draft, span, names)
    draft.acts = draft.acts or any(found.get(name) for name in names["acts"])
    finish = next((_first_text(found[name]) for name in names["finish"] if name in found), "")
    draft.finish = draft.finish or finish
    draft.finish = _table()["finish_numbers"].get(draft.finish, draft.finish)
    return draft.answer(streamed=False)


@cache
def _table() -> Any:
    return tomllib.loads((resources.files(__package__) / "answers.toml").read_text("utf-8"))


def _event(raw: Any) -> Any:
    """One stream event: decoded, its JSON text, or {"event": …, "data": …} as event-stream clients give it."""
    event = embedded(raw.removeprefix("data:")) if isinstance(raw, str) else raw
    return embedded(event["data"]) if isinstance(event, dict) and "event" in event and "data" in event else event


def _take_message(draft: Draft, message: Mapping[str, Any]) -> None:
    """One message of the GenAI conventions."""
    draft.seen = True
    draft.take_blocks(message.get("parts", message.get("content")))
    draft.acts |= bool(message.get("tool_calls"))
    draft.finish = draft.finish or text(message.get("finish_reason"))


def _take_bodies(draft: Draft, span: Span, names: Mapping[str, Any]) -> None:
    """A body, plain text, or one attribute a field."""
    found = span.attributes
    for name in names["bodies"]:
        _take_body(draft, _decoded(found.get(name)))
        if draft.said:
            return
    for prefix in names["numbered"]:
        pattern = re.compile(rf"{re.escape(prefix)}\.(\d+)\.(?:message\.)?(content|tool_calls\..*)\Z")
        for name in sorted(found):
            if match := pattern.match(name):
                draft.acts |= match[2] != "content"
                draft.texts += [text(found[name])] if match[2] == "content" and match[1] == "0" else []
        if draft.said:
            return
    draft.texts += [said for name in names["texts"] if (said := text(found.get(name)))][:1]


def _take_body(draft: Draft, value: Any) -> None:
    """A body, messages, plain text, or what the Vercel AI SDK tells of tool calls."""
    if isinstance(value, str):
        draft.texts.append(value)
    for item in map(mapping, value if isinstance(value, list) else [value]):
        draft.acts |= "toolCallId" in item or bool(mapping(item.get("additional_kwargs")).get("tool_calls"))
        if "parts" in item:
            _take_message(draft, item)
        elif "parts" in mapping(item.get("content")):
            draft.take({"candidates": [item]})  # as Google's ADK tells it
        else:
            draft.take(item)


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        parsed = embedded(value)
        return value if parsed is None else parsed
    return value


def _first_text(value: Any) -> str:
    found = _decoded(value)
    return text(found[0]) if isinstance(found, list) and found else text(found)
