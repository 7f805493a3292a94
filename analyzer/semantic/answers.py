"""Recorded answers -> their text, and whether they may be served again. Takes what the APIs send, whole or streamed.

Pure. A body counts as a stream of one event; what several events give is put together in their order.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from prefixscope.analyzer.ingest.loose import embedded, items, mapping, text
from prefixscope.analyzer.ingest.span import Span
from prefixscope.otel_plugin import sse


class Answer(NamedTuple):
    """What a model said."""

    text: str
    acts: bool = False  # it asks for a tool to be run: an action, which no cache may repeat
    whole: bool = True  # it ended by itself: neither cut off nor refused
    choices: int = 1


def of_response(response: Any) -> Answer | None:
    """The answer in a response body, its JSON text, an event stream or a list of events; None if there is none."""
    if isinstance(response, str):
        streamed = not response.lstrip().startswith(("{", "["))
        response = list(sse.decode(response)) if streamed else embedded(response)
    if isinstance(response, list):
        return _put_together((_event(event) for event in response), streamed=True)
    return _put_together((response,), streamed=False)


def of_span(span: Span) -> Answer | None:
    """The answer that a span records."""
    names, found = _table()["spans"], span.attributes
    draft = _Draft()
    for name in names["messages"]:
        for message in items(_decoded(found.get(name))):
            _take_message(draft, mapping(message))
    for _, attributes in (event for name in names["events"] for event in span.event(name)):
        _take_choice(draft, {"message": _decoded(attributes.get("message")) or attributes, **attributes})
    if not draft.said:
        _take_bodies(draft, span, names)
    draft.acts = draft.acts or any(found.get(name) for name in names["acts"])
    finish = next((_first_text(found[name]) for name in names["finish"] if name in found), "")
    draft.finish = draft.finish or finish
    return draft.answer(streamed=False)


@dataclass
class _Draft:
    """An answer in the making."""

    texts: list[str] = field(default_factory=list)
    acts: bool = False
    finish: str = ""
    choices: set[int] = field(default_factory=lambda: {0})
    seen: bool = False

    @property
    def said(self) -> bool:
        return bool(self.texts) or self.acts

    def answer(self, *, streamed: bool) -> Answer | None:
        if not (self.said or self.seen):
            return None
        ends, finish = _table()["finish"], self.finish.lower()
        whole = finish in ends["whole"] or (not finish and not streamed)
        acts = self.acts or finish in ends["acting"]
        return Answer("".join(self.texts), acts=acts, whole=whole or acts, choices=len(self.choices))


@cache
def _table() -> Any:
    return tomllib.loads((resources.files(__package__) / "answers.toml").read_text("utf-8"))


def _put_together(events: Iterable[Any], *, streamed: bool) -> Answer | None:
    draft = _Draft()
    for event in events:
        _take(draft, mapping(event))
    return draft.answer(streamed=streamed)


def _event(raw: Any) -> Any:
    """One stream event: decoded, its JSON text, or {"event": …, "data": …} as event-stream clients give it."""
    event = embedded(raw.removeprefix("data:")) if isinstance(raw, str) else raw
    return embedded(event["data"]) if isinstance(event, dict) and "event" in event and "data" in event else event


def _take(draft: _Draft, event: Mapping[str, Any]) -> None:
    """Adds what one event or body says. Told by its keys, as no event names its API."""
    kind = text(event.get("type"))
    if "choices" in event:
        for choice in items(event["choices"]):
            _take_choice(draft, mapping(choice))
    elif kind.startswith("response."):
        _take_responses_event(draft, kind, event)
    elif isinstance(event.get("output"), list):
        _take_responses(draft, event)
    elif "candidates" in event:
        _take_gemini(draft, mapping(next(iter(items(event["candidates"])), {})))
    elif isinstance(event.get("output"), dict):
        _take_blocks(draft, mapping(event["output"].get("message")).get("content"))
        draft.finish = text(event.get("stopReason"))
    elif any(name.startswith("contentBlock") or name == "messageStop" for name in event):
        _take_converse_event(draft, event)
    else:
        _take_anthropic(draft, kind, event)


def _take_choice(draft: _Draft, choice: Mapping[str, Any]) -> None:
    """OpenAI chat and completions, whole or streamed. Only the first choice is the answer; others are counted."""
    index = choice.get("index") or 0
    draft.choices.add(index if isinstance(index, int) else 0)
    draft.seen = True
    if index:
        return
    message = mapping(choice.get("message")) or mapping(choice.get("delta"))
    _take_blocks(draft, message.get("content", choice.get("text")))
    draft.acts |= bool(message.get("tool_calls") or message.get("function_call"))
    if message.get("refusal"):
        draft.finish = "refusal"
    draft.finish = draft.finish or text(choice.get("finish_reason"))


def _take_responses_event(draft: _Draft, kind: str, event: Mapping[str, Any]) -> None:
    if kind == "response.output_text.delta":
        draft.texts.append(text(event.get("delta")))
    elif kind in {"response.completed", "response.incomplete", "response.failed"}:
        draft.texts.clear()  # the last event repeats the whole answer
        _take_responses(draft, mapping(event.get("response")))


def _take_responses(draft: _Draft, body: Mapping[str, Any]) -> None:
    draft.seen = True
    for item in map(mapping, items(body.get("output"))):
        kind = text(item.get("type"))
        if kind == "message":
            _take_blocks(draft, item.get("content"))
        draft.acts |= kind.endswith("_call") or kind == "mcp_approval_request"
    draft.finish = text(body.get("status"))


def _take_gemini(draft: _Draft, candidate: Mapping[str, Any]) -> None:
    draft.seen = True
    _take_blocks(draft, mapping(candidate.get("content")).get("parts"))
    draft.finish = text(candidate.get("finishReason", candidate.get("finish_reason"))) or draft.finish


def _take_converse_event(draft: _Draft, event: Mapping[str, Any]) -> None:
    """Bedrock's event stream."""
    draft.seen = True
    draft.acts |= "toolUse" in mapping(mapping(event.get("contentBlockStart")).get("start"))
    draft.texts.append(text(mapping(mapping(event.get("contentBlockDelta")).get("delta")).get("text")))
    draft.finish = text(mapping(event.get("messageStop")).get("stopReason")) or draft.finish


def _take_anthropic(draft: _Draft, kind: str, event: Mapping[str, Any]) -> None:
    """Anthropic's body and events, and whoever answers with one message (Cohere, Ollama) or one text."""
    if kind == "content_block_start":
        _take_blocks(draft, [event.get("content_block")])
    elif kind == "content_block_delta":
        draft.texts.append(text(mapping(event.get("delta")).get("text")))
    elif kind == "message_delta":
        draft.finish = text(mapping(event.get("delta")).get("stop_reason")) or draft.finish
    elif kind != "message_start":
        message = mapping(event.get("message")) or event
        known = next((k for k in ("content", "text", "generation", "completion", "outputText") if k in message), "")
        draft.seen = draft.seen or bool(known)
        _take_blocks(draft, message.get(known))
        draft.acts |= bool(message.get("tool_calls"))
        draft.finish = text(event.get("stop_reason") or event.get("finish_reason")) or draft.finish


def _take_blocks(draft: _Draft, content: Any) -> None:
    """Content of a message: a string, or typed parts of which only text is said aloud."""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            draft.texts.append(part)
        elif isinstance(part, dict):
            kind = text(part.get("type"))
            draft.acts |= kind.endswith(("tool_use", "tool_call")) or bool(
                {"functionCall", "function_call", "toolUse"} & part.keys()
            )
            if "text" in part and kind in {"", "text", "output_text"} and not part.get("thought"):
                draft.texts.append(text(part["text"]))
            elif kind == "text":
                draft.texts.append(text(part.get("content")))
            elif kind == "refusal":
                draft.finish = "refusal"
    draft.texts = [said for said in draft.texts if said]


def _take_message(draft: _Draft, message: Mapping[str, Any]) -> None:
    """One message of the GenAI conventions."""
    draft.seen = True
    _take_blocks(draft, message.get("parts", message.get("content")))
    draft.acts |= bool(message.get("tool_calls"))
    draft.finish = draft.finish or text(message.get("finish_reason"))


def _take_bodies(draft: _Draft, span: Span, names: Mapping[str, Any]) -> None:
    """A body, plain text, or one attribute a field."""
    found = span.attributes
    for name in names["bodies"]:
        value = _decoded(found.get(name))
        if isinstance(value, dict):
            _take(draft, value)
        elif isinstance(value, str):
            draft.texts.append(value)
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


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        parsed = embedded(value)
        return value if parsed is None else parsed
    return value


def _first_text(value: Any) -> str:
    found = _decoded(value)
    return text(found[0]) if isinstance(found, list) and found else text(found)
