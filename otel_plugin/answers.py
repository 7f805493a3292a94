"""Answers of models -> their words, and whether they may be served again. Takes what the APIs send, whole or streamed.

Pure. A body counts as a stream of one event; what several events give is put together in their order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from prefixscope.otel_plugin.loose import items, mapping, text
from prefixscope.otel_plugin.record import AnswerKind
from prefixscope.otel_plugin.response_cache import FACTS

_ENDS: Final[Mapping[str, frozenset[str]]] = {name: frozenset(words) for name, words in FACTS["finish"].items()}
_COHERE: Final = frozenset({"content-start", "content-delta", "tool-call-start", "message-end"})


class Answer(NamedTuple):
    """What a model said."""

    text: str
    acts: bool = False  # it asks for a tool to be run: an action, which no cache may repeat
    whole: bool = True  # it ended by itself: neither cut off nor refused
    choices: int = 1
    refused: bool = False

    @property
    def kind(self) -> AnswerKind:
        """How it ended."""
        if self.acts:
            return "tool_call"
        return "refused" if self.refused else "whole" if self.whole else "cut"


def of_body(body: Any) -> Answer | None:
    """The answer in a response body; None if there is none."""
    return _put_together((body,), streamed=False)


def of_events(events: Iterable[Any]) -> Answer | None:
    """The answer in the decoded events of a stream; None if there is none."""
    return _put_together(events, streamed=True)


def _put_together(events: Iterable[Any], *, streamed: bool) -> Answer | None:
    draft = Draft()
    for event in events:
        draft.take(mapping(event))
    return draft.answer(streamed=streamed)


@dataclass(slots=True)
class Draft:
    """An answer in the making."""

    texts: list[str] = field(default_factory=list)
    acts: bool = False
    finish: str = ""
    choices: set[int] = field(default_factory=lambda: {0})
    seen: bool = False

    @property
    def said(self) -> bool:
        """Whether there is anything of an answer."""
        return bool(self.acts or any(self.texts))

    def answer(self, *, streamed: bool) -> Answer | None:
        """The answer, as far as it was taken; a stream that does not tell why it ended has broken off."""
        if not (self.said or self.seen):
            return None
        finish = self.finish.lower()
        whole = finish in _ENDS["whole"] or (not finish and not streamed)
        acts, refused = self.acts or finish in _ENDS["acting"], finish in _ENDS["refused"]
        return Answer("".join(self.texts), acts, whole or acts, len(self.choices), refused=refused)

    def take(self, event: Mapping[str, Any]) -> None:
        """Adds what one event or body says. Told by its keys, as no event names its API."""
        kind = text(event.get("type"))
        if "choices" in event:
            for choice in items(event["choices"]):
                self.take_choice(mapping(choice))
        elif kind.startswith("response."):
            self._take_responses_event(kind, event)
        elif isinstance(event.get("output"), list):
            self._take_responses(event)
        elif "candidates" in event:
            self._take_gemini(mapping(next(iter(items(event["candidates"])), {})))
        elif isinstance(event.get("output"), dict):
            self.take_blocks(mapping(event["output"].get("message")).get("content"))
            self.finish = text(event.get("stopReason"))
        elif any(name.startswith("contentBlock") or name == "messageStop" for name in event):
            self._take_converse_event(event)
        elif kind in _COHERE:
            self._take_cohere_event(kind, mapping(event.get("delta")))
        else:
            self._take_anthropic(kind, event)

    def take_choice(self, choice: Mapping[str, Any]) -> None:
        """OpenAI chat and completions, whole or streamed. Only the first choice is the answer; others are counted."""
        index = choice.get("index") or 0
        self.choices.add(index if isinstance(index, int) else 0)
        self.seen = True
        if index:
            return
        message = mapping(choice.get("message")) or mapping(choice.get("delta"))
        self.take_blocks(message.get("content", choice.get("text")))
        self.acts |= bool(message.get("tool_calls") or message.get("function_call"))
        if message.get("refusal"):
            self.finish = "refusal"
        self.finish = self.finish or text(choice.get("finish_reason"))

    def take_blocks(self, content: Any) -> None:
        """Content of a message: a string, or typed parts of which only text is said aloud."""
        if isinstance(content, str):
            self.texts.append(content)
            return
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, str):
                self.texts.append(part)
            elif isinstance(part, dict):
                self._take_block(part)

    def _take_block(self, part: Mapping[str, Any]) -> None:
        kind = text(part.get("type"))
        self.acts |= kind.endswith(("tool_use", "tool_call")) or bool(
            {"functionCall", "function_call", "toolUse"} & part.keys()
        )
        if "text" in part and kind in {"", "text", "output_text"} and not part.get("thought"):
            self.texts.append(text(part["text"]))
        elif kind == "text":
            self.texts.append(text(part.get("content")))
        elif kind == "refusal":
            self.finish = "refusal"

    def _take_responses_event(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "response.output_text.delta":
            self.seen = True
            self.texts.append(text(event.get("delta")))
        elif kind in {"response.completed", "response.incomplete", "response.failed"}:
            self.texts.clear()  # the last event repeats the whole answer
            self._take_responses(mapping(event.get("response")))

    def _take_responses(self, body: Mapping[str, Any]) -> None:
        self.seen = True
        for item in map(mapping, items(body.get("output"))):
            kind = text(item.get("type"))
            if kind == "message":
                self.take_blocks(item.get("content"))
            self.acts |= kind.endswith("_call") or kind == "mcp_approval_request"
        self.finish = text(body.get("status"))

    def _take_gemini(self, candidate: Mapping[str, Any]) -> None:
        self.seen = True
        self.take_blocks(mapping(candidate.get("content")).get("parts"))
        self.finish = text(candidate.get("finishReason", candidate.get("finish_reason"))) or self.finish

    def _take_converse_event(self, event: Mapping[str, Any]) -> None:
        """Bedrock's event stream."""
        self.seen = True
        self.acts |= "toolUse" in mapping(mapping(event.get("contentBlockStart")).get("start"))
        self.texts.append(text(mapping(mapping(event.get("contentBlockDelta")).get("delta")).get("text")))
        self.finish = text(mapping(event.get("messageStop")).get("stopReason")) or self.finish

    def _take_cohere_event(self, kind: str, delta: Mapping[str, Any]) -> None:
        """Cohere's stream (v2)."""
        self.seen = True
        self.acts |= kind == "tool-call-start"
        content = mapping(mapping(delta.get("message")).get("content"))
        if "thinking" not in content:
            self.texts.append(text(content.get("text")))
        self.finish = text(delta.get("finish_reason")) or self.finish

    def _take_anthropic(self, kind: str, event: Mapping[str, Any]) -> None:
        """Anthropic's body and events, and whoever answers with one message (Cohere, Ollama) or one text."""
        if kind == "content_block_start":
            self.take_blocks([event.get("content_block")])
        elif kind == "content_block_delta":
            self.seen = True
            self.texts.append(text(mapping(event.get("delta")).get("text")))
        elif kind == "message_delta":
            self.finish = text(mapping(event.get("delta")).get("stop_reason")) or self.finish
        elif kind != "message_start":
            message = mapping(event.get("message")) or event
            known = next((k for k in ("content", "text", "generation", "completion", "outputText") if k in message), "")
            self.seen = self.seen or bool(known)
            self.take_blocks(message.get(known))
            self.acts |= bool(message.get("tool_calls"))
            self.finish = text(event.get("stop_reason") or event.get("finish_reason")) or self.finish
