"""The traffic the benchmarks run on, made from a seed: services with long shared prompts, tools and growing sessions.

One service of four has a clock in front of its system prompt, so there is something to find. Words are made up: what
counts is how much text repeats, how long lines are and where the clock stands.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from prefixscope.otel_plugin import call_attributes, segments
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Usage

Json = dict[str, Any]

_START_NS = 1_788_000_000 * 10**9
_SYLLABLES = ("ka", "lor", "min", "te", "sha", "ren", "vo", "pil", "das", "une", "gra", "bo", "tis", "el", "ham", "qui")
_SESSIONS_APART_S = 7
_SPANS_A_LINE = 8
_KEY = b"benchmark"


@dataclass(frozen=True, slots=True)
class Shape:
    """How long the parts of a prompt are."""

    tools: int
    system_sentences: int
    history: int  # messages in front of a session's first turn
    turns: int
    sentences: int  # of a message


LOG = Shape(tools=8, system_sentences=250, history=0, turns=12, sentences=8)
"""Chats with a long system prompt: a request has some 30 KB."""

SIXTY_SEGMENTS = Shape(tools=11, system_sentences=60, history=24, turns=24, sentences=3)
"""11 tools, the system prompt and 25 to 71 messages: 60 segments on average."""


@dataclass(frozen=True, slots=True)
class Call:
    service: str
    session: str
    number: int
    at_ns: int
    body: Json
    usage: Json


@dataclass(frozen=True, slots=True)
class _Service:
    name: str
    is_anthropic: bool
    has_clock: bool
    system: str
    tools: tuple[Json, ...]


def calls(shape: Shape) -> Iterator[Call]:
    """Calls without end, session after session, the services in turn."""
    rng = Random(20261130)
    words = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(3000)]
    services = [_service(rng, words, shape, number) for number in range(4)]
    number = 0
    for session in range(10**9):
        for service, name, at_ns, body, usage in _session(rng, words, shape, services[session % 4], session):
            yield Call(service, name, number, at_ns, body, usage)
            number += 1


def write_log(path: Path, size: int) -> int:
    """A request log of at least ``size`` bytes with requests and answers as they were sent; how many calls it has."""
    written = count = 0
    with path.open("w", encoding="utf-8") as file:
        for call in calls(LOG):
            written += file.write(json.dumps(_entry(call), separators=(",", ":")) + "\n")
            count += 1
            if written >= size:
                break
    return count


def write_fingerprints(path: Path, count: int) -> None:
    """``count`` calls as the plugin exports them: OTLP/JSON lines of spans with prompts' fingerprints, without text."""
    printer = Fingerprinter(_KEY)
    with path.open("w", encoding="utf-8") as file:
        for batch in _batches(islice(calls(SIXTY_SEGMENTS), count)):
            spans = [_span(call, printer) for call in batch]
            service = {"attributes": _pairs({"service.name": batch[0].service})}
            scoped = {"resource": service, "scopeSpans": [{"scope": {"name": "prefixscope"}, "spans": spans}]}
            file.write(json.dumps({"resourceSpans": [scoped]}, separators=(",", ":")) + "\n")


def _sentence(rng: Random, words: list[str]) -> str:
    return " ".join(rng.choices(words, k=rng.randint(6, 14))).capitalize() + "."


def _text(rng: Random, words: list[str], sentences: int) -> str:
    return "\n".join(_sentence(rng, words) for _ in range(sentences))


def _service(rng: Random, words: list[str], shape: Shape, number: int) -> _Service:
    return _Service(
        name=f"service-{number}",
        is_anthropic=number % 2 == 1,
        has_clock=number == 0,
        system=_text(rng, words, shape.system_sentences),
        tools=tuple(_tool(rng, words, number % 2 == 1) for _ in range(shape.tools)),
    )


def _tool(rng: Random, words: list[str], is_anthropic: bool) -> Json:
    fields = {rng.choice(words): {"type": "string", "description": _sentence(rng, words)} for _ in range(3)}
    named = {"name": "_".join(rng.choices(words, k=2)), "description": _sentence(rng, words)}
    schema = {"type": "object", "properties": fields}
    if is_anthropic:
        return named | {"input_schema": schema}
    return {"type": "function", "function": named | {"parameters": schema}}


def _session(
    rng: Random, words: list[str], shape: Shape, service: _Service, number: int
) -> Iterator[tuple[str, str, int, Json, Json]]:
    """One call a turn; each holds all messages before."""
    messages = [_message(rng, words, shape, turn) for turn in range(shape.history)]
    at_ns = _START_NS + number * _SESSIONS_APART_S * 10**9
    cached = 0
    for _ in range(shape.turns):
        messages.append(_message(rng, words, shape, len(messages)))
        body = _body(service, messages, at_ns)
        tokens = len(json.dumps(body)) // 4
        read = 0 if service.has_clock else cached
        yield service.name, f"session-{number}", at_ns, body, _usage(service, tokens, read)
        cached = tokens // 128 * 128
        messages.append(_message(rng, words, shape, len(messages)))
        at_ns += rng.randint(8, 60) * 10**9


def _message(rng: Random, words: list[str], shape: Shape, turn: int) -> Json:
    return {"role": "assistant" if turn % 2 else "user", "content": _text(rng, words, rng.randint(1, shape.sentences))}


def _body(service: _Service, messages: list[Json], at_ns: int) -> Json:
    now = datetime.fromtimestamp(at_ns / 1e9, UTC)
    system = f"Now: {now:%Y-%m-%dT%H:%M:%SZ}\n{service.system}" if service.has_clock else service.system
    tools = list(service.tools)
    if service.is_anthropic:
        mark = {"cache_control": {"type": "ephemeral"}}
        last = {"role": "user", "content": [{"type": "text", "text": messages[-1]["content"]} | mark]}
        blocks = [{"type": "text", "text": system} | mark]
        head = {"model": "claude-sonnet-4-5", "max_tokens": 1024, "tools": tools, "system": blocks}
        return head | {"messages": [*messages[:-1], last]}
    return {"model": "gpt-5.1", "tools": tools, "messages": [{"role": "system", "content": system}, *messages]}


def _usage(service: _Service, tokens: int, read: int) -> Json:
    if service.is_anthropic:
        written = {"cache_creation_input_tokens": tokens - read - 8, "cache_read_input_tokens": read}
        return {"input_tokens": 8, "output_tokens": 90} | written
    details = {"prompt_tokens_details": {"cached_tokens": read}}
    return {"prompt_tokens": tokens, "completion_tokens": 90, "total_tokens": tokens + 90} | details


def _entry(call: Call) -> Json:
    return {
        "timestamp": datetime.fromtimestamp(call.at_ns / 1e9, UTC).isoformat(),
        "service": call.service,
        "session_id": call.session,
        "duration_ms": 2100,
        "ttft_ms": 600,
        "status": 200,
        "request": call.body,
        "response": {"id": f"answer-{call.number:09}", "model": call.body["model"], "usage": call.usage},
    }


def _batches(found: Iterable[Call]) -> Iterator[list[Call]]:
    """Calls of one service that follow each other, as its exporter sends them."""
    batch: list[Call] = []
    for call in found:
        if batch and (call.service != batch[0].service or len(batch) == _SPANS_A_LINE):
            yield batch
            batch = []
        batch.append(call)
    if batch:
        yield batch


def _span(call: Call, printer: Fingerprinter) -> Json:
    prompt = segments.parse(call.body)
    assert prompt is not None
    written = call.usage.get("cache_creation_input_tokens", 0)
    total = call.usage.get("prompt_tokens", 0)
    read = call.usage.get("cache_read_input_tokens", 0) or call.usage.get("prompt_tokens_details", {}).get(
        "cached_tokens", 0
    )
    record = CallRecord(
        started_ns=call.at_ns,
        provider="anthropic" if prompt.api == "anthropic.messages" else "openai",
        api=prompt.api,
        model=prompt.model,
        usage=Usage(
            state="reported",
            uncached=max(total - read, 8),
            read=read,
            write_5m=written,
            output=90,
            served_model=prompt.model,
            response_id=f"answer-{call.number:09}",
        ),
        fingerprint=printer.fingerprint(prompt),
        ttft_ms=600.0,
        status=200,
        session_id=call.session,
    )
    return {
        "traceId": f"{call.number + 1:032x}",
        "spanId": f"{call.number + 1:016x}",
        "name": f"chat {prompt.model}",
        "kind": 3,
        "startTimeUnixNano": str(call.at_ns),
        "endTimeUnixNano": str(call.at_ns + 2_100_000_000),
        "attributes": _pairs(call_attributes.encode(record)),
    }


def _pairs(plain: Mapping[str, Any]) -> list[Json]:
    return [{"key": key, "value": _any_value(value)} for key, value in plain.items()]


def _any_value(value: Any) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
