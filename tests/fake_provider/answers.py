"""A call's answer in the providers' own shapes: one document, or the events of a stream."""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from fake_provider.prompts import Request
from simulator import Outcome

Json = dict[str, Any]

_TEXT = "Grüße aus Köln: the answer is 42 — naïve café, 日本語 and 🙂 included, “quoted” and done."
_WORDS = _TEXT.split()


class Event(NamedTuple):
    """``data`` is a JSON object, or the text of a closing mark such as ``[DONE]``."""

    name: str
    data: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call: the text, and the tokens that are billed. ``key`` is what every id is made of."""

    request: Request
    outcome: Outcome
    key: str  # 32 hex digits
    created: int  # Unix epoch, seconds
    words: tuple[str, ...]
    output: int  # tokens, reasoning included
    reasoning: int

    @property
    def text(self) -> str:
        return "".join(self.words)

    @property
    def response_id(self) -> str:
        """The id the body states; Bedrock's Converse states none."""
        prefix = {"openai.chat": "chatcmpl-", "openai.responses": "resp_", "gemini.generate_content": ""}
        return "" if self.request.api == "bedrock.converse" else prefix.get(self.request.api, "msg_") + self.key

    @property
    def served_model(self) -> str:
        """The model the body names."""
        return "" if self.request.api == "bedrock.converse" else self.request.model

    @property
    def tier(self) -> str:
        """The service tier the body names."""
        tiers = {"openai.chat": "default", "openai.responses": "default"}
        tiers |= {"anthropic.messages": "standard", "bedrock.invoke": "standard"}
        return tiers.get(self.request.api, "")

    @property
    def prompt(self) -> int:
        """All input tokens."""
        return self.outcome.read + self.outcome.uncached + sum(self.outcome.writes.values())

    @property
    def document(self) -> Json:
        return _DOCUMENTS[self.request.api](self)

    @property
    def events(self) -> list[Event]:
        return list(_EVENTS[self.request.api](self))


def answer(request: Request, outcome: Outcome, seed: bytes, at_ms: int, words: int) -> Answer:
    """An answer of ``words`` words: a token a word, and seven of reasoning where the model reasons."""
    reasons = request.model.startswith(("gpt-5", "gemini"))
    key = hashlib.sha256(seed + str(at_ms).encode()).hexdigest()[:32]
    text = tuple(_WORDS[n % len(_WORDS)] + " " for n in range(words))
    reasoning = 7 if reasons else 0
    return Answer(request, outcome, key, at_ms // 1000, text, words + reasoning, reasoning)


# --- OpenAI Chat Completions, Groq, Mistral ---------------------------------------------------------------------------


def _chat_usage(a: Answer) -> Json:
    return {
        "prompt_tokens": a.prompt,
        "completion_tokens": a.output,
        "total_tokens": a.prompt + a.output,
        "prompt_tokens_details": {"cached_tokens": a.outcome.read},
        "completion_tokens_details": {"reasoning_tokens": a.reasoning},
    }


def _chat_body(a: Answer, kind: str, choices: list[Json]) -> Json:
    head = {"id": a.response_id, "object": kind, "created": a.created, "model": a.request.model}
    return head | {"choices": choices, "service_tier": "default"}


def _chat_document(a: Answer) -> Json:
    message = {"role": "assistant", "content": a.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return _chat_body(a, "chat.completion", [choice]) | {"usage": _chat_usage(a)}


def _chat_events(a: Answer) -> Iterator[Event]:
    deltas: list[Json] = [{"role": "assistant", "content": ""}, *({"content": word} for word in a.words), {}]
    for number, delta in enumerate(deltas):
        reason = "stop" if number == len(deltas) - 1 else None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        chunk = _chat_body(a, "chat.completion.chunk", [choice])
        yield Event("", chunk | ({"usage": None} if a.request.wants_usage else {}))
    if a.request.wants_usage:
        yield Event("", _chat_body(a, "chat.completion.chunk", []) | {"usage": _chat_usage(a)})
    yield Event("", "[DONE]")


# --- OpenAI Responses -------------------------------------------------------------------------------------------------


def _responses_body(a: Answer, status: str, output: list[Json], usage: Json | None) -> Json:
    fixed: Json = {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "tools": []}
    fixed |= {"parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "top_p": 1.0}
    head = {"id": a.response_id, "object": "response", "created_at": a.created, "status": status}
    return head | fixed | {"model": a.request.model, "output": output, "usage": usage, "service_tier": "default"}


def _responses_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _responses_item(a: Answer, status: str, content: list[Json]) -> Json:
    return {"id": f"msg_{a.key}", "type": "message", "status": status, "role": "assistant", "content": content}


def _responses_document(a: Answer) -> Json:
    usage = {
        "input_tokens": a.prompt,
        "input_tokens_details": {"cached_tokens": a.outcome.read},
        "output_tokens": a.output,
        "output_tokens_details": {"reasoning_tokens": a.reasoning},
        "total_tokens": a.prompt + a.output,
    }
    return _responses_body(a, "completed", [_responses_item(a, "completed", [_responses_part(a.text)])], usage)


def _responses_events(a: Answer) -> Iterator[Event]:
    for number, (name, data) in enumerate(_responses_steps(a)):
        yield Event(f"response.{name}", {"type": f"response.{name}", "sequence_number": number} | data)


def _responses_steps(a: Answer) -> Iterator[tuple[str, Json]]:
    opened = {"response": _responses_body(a, "in_progress", [], None)}
    item, part = {"output_index": 0}, {"item_id": f"msg_{a.key}", "output_index": 0, "content_index": 0}
    yield "created", opened
    yield "in_progress", opened
    yield "output_item.added", item | {"item": _responses_item(a, "in_progress", [])}
    yield "content_part.added", part | {"part": _responses_part("")}
    for word in a.words:
        yield "output_text.delta", part | {"delta": word, "logprobs": []}
    yield "output_text.done", part | {"text": a.text, "logprobs": []}
    yield "content_part.done", part | {"part": _responses_part(a.text)}
    yield "output_item.done", item | {"item": _responses_item(a, "completed", [_responses_part(a.text)])}
    yield "completed", {"response": _responses_document(a)}


# --- Anthropic Messages, also inside Bedrock's InvokeModel ------------------------------------------------------------


def _anthropic_usage(a: Answer) -> Json:
    split = {f"ephemeral_{ttl}_input_tokens": a.outcome.writes.get(ms, 0) for ttl, ms in _TTLS.items()}
    return {
        "input_tokens": a.outcome.uncached,
        "cache_creation_input_tokens": sum(split.values()),
        "cache_read_input_tokens": a.outcome.read,
        "cache_creation": split,
        "output_tokens": a.output,
        "service_tier": "standard",
    }


_TTLS = {"5m": 300_000, "1h": 3_600_000}


def _anthropic_document(a: Answer) -> Json:
    return {
        "id": a.response_id,
        "type": "message",
        "role": "assistant",
        "model": a.request.model,
        "content": [{"type": "text", "text": a.text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": _anthropic_usage(a),
    }


def _anthropic_events(a: Answer) -> Iterator[Event]:
    for data in _anthropic_steps(a):
        yield Event(data["type"], data)


def _anthropic_steps(a: Answer) -> Iterator[Json]:
    """Counts in ``message_delta`` are cumulative and come without the split by TTL."""
    usage = _anthropic_usage(a)
    opened = _anthropic_document(a) | {"content": [], "stop_reason": None, "usage": usage | {"output_tokens": 1}}
    yield {"type": "message_start", "message": opened}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield {"type": "ping"}
    for word in a.words:
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
    yield {"type": "content_block_stop", "index": 0}
    totals = {key: value for key, value in usage.items() if key.endswith("tokens")}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": totals}
    yield {"type": "message_stop"}


# --- Gemini -----------------------------------------------------------------------------------------------------------


def _gemini_usage(a: Answer) -> Json:
    """Zeros are left out; thoughts are counted beside candidates."""
    candidates = a.output - a.reasoning
    usage: Json = {"promptTokenCount": a.prompt, "candidatesTokenCount": candidates}
    usage |= {"totalTokenCount": a.prompt + a.output, "thoughtsTokenCount": a.reasoning}
    if a.outcome.read:
        usage["cachedContentTokenCount"] = a.outcome.read
        usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": a.outcome.read}]
    return usage | {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": a.prompt}]}


def _gemini_body(a: Answer, text: str, *, ends: bool) -> Json:
    candidate: Json = {"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}
    usage = _gemini_usage(a) if ends else {"promptTokenCount": a.prompt, "totalTokenCount": a.prompt}
    return {
        "candidates": [candidate | ({"finishReason": "STOP"} if ends else {})],
        "usageMetadata": usage,
        "modelVersion": a.request.model,
        "responseId": a.response_id,
    }


def _gemini_document(a: Answer) -> Json:
    return _gemini_body(a, a.text, ends=True)


def _gemini_events(a: Answer) -> Iterator[Event]:
    for number, word in enumerate(a.words, 1):
        yield Event("", _gemini_body(a, word, ends=number == len(a.words)))


# --- Bedrock ----------------------------------------------------------------------------------------------------------


def _converse_usage(a: Answer) -> Json:
    """``inputTokens`` is without the cache, ``totalTokens`` with it; writes by TTL, the longest first."""
    written = [{"ttl": ttl, "inputTokens": a.outcome.writes[ms]} for ttl, ms in _TTLS.items() if ms in a.outcome.writes]
    return {
        "inputTokens": a.outcome.uncached,
        "outputTokens": a.output,
        "totalTokens": a.prompt + a.output,
        "cacheReadInputTokens": a.outcome.read,
        "cacheWriteInputTokens": sum(a.outcome.writes.values()),
        "cacheDetails": written[::-1],
    }


def _converse_document(a: Answer) -> Json:
    message = {"role": "assistant", "content": [{"text": a.text}]}
    head = {"metrics": {"latencyMs": 500}, "output": {"message": message}, "stopReason": "end_turn"}
    return head | {"usage": _converse_usage(a)}


def _converse_events(a: Answer) -> Iterator[Event]:
    yield Event("messageStart", {"role": "assistant"})
    for word in a.words:
        yield Event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": word}})
    yield Event("contentBlockStop", {"contentBlockIndex": 0})
    yield Event("messageStop", {"stopReason": "end_turn"})
    yield Event("metadata", {"metrics": {"latencyMs": 500}, "usage": _converse_usage(a)})


def _invoke_events(a: Answer) -> Iterator[Event]:
    """The vendor's own events in envelopes; the last also has the metrics that Bedrock adds."""
    for data in _anthropic_steps(a):
        added: Json = {"amazon-bedrock-invocationMetrics": _metrics(a)} if data["type"] == "message_stop" else {}
        wrapped = json.dumps(data | added, ensure_ascii=False).encode()
        yield Event("chunk", {"bytes": base64.b64encode(wrapped).decode()})


def _metrics(a: Answer) -> Json:
    counts = {"inputTokenCount": a.outcome.uncached, "outputTokenCount": a.output}
    cached = {"cacheReadInputTokenCount": a.outcome.read, "cacheWriteInputTokenCount": sum(a.outcome.writes.values())}
    return counts | cached | {"invocationLatency": 500, "firstByteLatency": 100}


_DOCUMENTS: dict[str, Callable[[Answer], Json]] = {
    "openai.chat": _chat_document,
    "openai.responses": _responses_document,
    "anthropic.messages": _anthropic_document,
    "gemini.generate_content": _gemini_document,
    "bedrock.converse": _converse_document,
    "bedrock.invoke": _anthropic_document,
}
_EVENTS: dict[str, Callable[[Answer], Iterator[Event]]] = {
    "openai.chat": _chat_events,
    "openai.responses": _responses_events,
    "anthropic.messages": _anthropic_events,
    "gemini.generate_content": _gemini_events,
    "bedrock.converse": _converse_events,
    "bedrock.invoke": _invoke_events,
}
