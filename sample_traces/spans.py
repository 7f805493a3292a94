"""The same calls as OTLP/JSON lines: what the collector's file exporter writes for the official GenAI instrumentations.

A line is a batch of one service, as its exporter sent it. Counts follow the instrumentations: the input count includes
cache reads and writes, zeros are left out, and markers are not recorded.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from bodies import response_id, tool_call_id
from services import Service
from simulator import Outcome
from traffic import TTL_MS, Block, Call, compact, output_tokens

Json = dict[str, Any]

_BATCH = 16  # calls a line
_SCHEMA = "https://opentelemetry.io/schemas/1.37.0"
_SERVER, _CLIENT = 2, 3  # SpanKind
_SEEN_TWICE = {"claude-healthy": 4}  # service -> of so many calls one is recorded by the vendor's own SDK as well
_BEHIND_HTTP = {"chat-healthy", "stream-gateway"}  # the calls are children of a server span, which is not a call


@dataclass(frozen=True, slots=True)
class _Emitter:
    scope: str
    version: str
    provider: str  # gen_ai.provider.name
    host: str
    operation: str = "chat"


_OPENAI_SCOPE = "opentelemetry.instrumentation.genai.openai"
_GEMINI_HOST = "generativelanguage.googleapis.com"
_EMITTERS = {
    "openai": _Emitter(_OPENAI_SCOPE, "1.3b0", "openai", "api.openai.com"),
    "deepseek": _Emitter(_OPENAI_SCOPE, "1.3b0", "deepseek", "api.deepseek.com"),
    "anthropic": _Emitter("opentelemetry.instrumentation.genai.anthropic", "1.3b0", "anthropic", "api.anthropic.com"),
    "google": _Emitter(
        "opentelemetry.instrumentation.google_genai", "1.3b0", "gcp.gemini", _GEMINI_HOST, "generate_content"
    ),
}
_VENDOR_SDK = _Emitter("com.anthropic.sdk.python", "2.14.0", "anthropic", "api.anthropic.com")
_HTTP_SERVER = _Emitter("opentelemetry.instrumentation.fastapi", "0.66b2", "", "")


def lines(service: Service, served: Sequence[tuple[Call, Outcome]]) -> Iterator[Json]:
    """``served`` as export requests, oldest first."""
    attributes = _attributes({"service.name": service.name, "telemetry.sdk.language": "python"})
    for start in range(0, len(served), _BATCH):
        spans: dict[_Emitter, list[Json]] = {}
        for number, (call, outcome) in enumerate(served[start : start + _BATCH], start):
            for emitter, span in _spans(service, call, outcome, number):
                spans.setdefault(emitter, []).append(span)
        scopes = [
            {"scope": {"name": e.scope, "version": e.version}, "spans": found, "schemaUrl": _SCHEMA}
            for e, found in spans.items()
        ]
        yield {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": scopes}]}


def _spans(service: Service, call: Call, outcome: Outcome, number: int) -> Iterator[tuple[_Emitter, Json]]:
    ids = Random(call.key)
    trace, root, main, inner = (f"{ids.getrandbits(bits):0{bits // 4}x}" for bits in (128, 64, 64, 64))
    emitter = _EMITTERS[service.model.provider]
    common = _call_attributes(emitter, service, call) | _usage(service, call, outcome)
    has_root = service.name in _BEHIND_HTTP
    yield (
        emitter,
        _span(
            f"{emitter.operation} {service.model.name}",
            (trace, main, root if has_root else ""),
            call,
            common | (_content(service, call) if service.content_in_otlp else {}),
        ),
    )
    if has_root:
        route = {"http.request.method": "POST", "http.route": "/chat", "http.response.status_code": 200}
        yield _HTTP_SERVER, _span("POST /chat", (trace, root, ""), call, route, kind=_SERVER)
    if service.name in _SEEN_TWICE and number % _SEEN_TWICE[service.name] == 0:
        yield _VENDOR_SDK, _span("anthropic.messages.create", (trace, inner, main), call, common | _ttl_split(outcome))


def _span(name: str, ids: tuple[str, str, str], call: Call, attributes: Json, kind: int = _CLIENT) -> Json:
    """``ids``: trace, span, parent ("" = none)."""
    return {
        "traceId": ids[0],
        "spanId": ids[1],
        **({"parentSpanId": ids[2]} if ids[2] else {}),
        "flags": 256,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(call.at_ms * 1_000_000),
        "endTimeUnixNano": str((call.at_ms + call.duration_ms) * 1_000_000),
        "attributes": _attributes(attributes),
        "status": {},
    }


def _call_attributes(emitter: _Emitter, service: Service, call: Call) -> Json:
    return {
        "gen_ai.operation.name": emitter.operation,
        "gen_ai.provider.name": emitter.provider,
        "gen_ai.request.model": service.model.name,
        "gen_ai.response.model": service.model.served_name,
        "gen_ai.response.id": response_id(call, service.model.provider),
        "gen_ai.response.finish_reasons": ["tool_calls" if call.answer.kind == "tool_call" else "stop"],
        "gen_ai.conversation.id": call.session,
        "gen_ai.response.time_to_first_chunk": call.ttft_ms / 1000,
        "server.address": emitter.host,
        "server.port": 443,
    }


def _usage(service: Service, call: Call, outcome: Outcome) -> Json:
    if not call.has_usage:
        return {}
    written = sum(outcome.writes.values())
    counts = {
        "gen_ai.usage.input_tokens": outcome.uncached + outcome.read + written,
        "gen_ai.usage.output_tokens": output_tokens(call, service.model.provider),
        "gen_ai.usage.cache_read.input_tokens": outcome.read,
        "gen_ai.usage.cache_write.input_tokens": written,
    }
    return {name: count for name, count in counts.items() if count}


def _ttl_split(outcome: Outcome) -> Json:
    """The vendor's SDK records zeros, and the writes by TTL."""
    split = {
        f"anthropic.usage.cache_creation.ephemeral_{t}_input_tokens": outcome.writes.get(TTL_MS[t], 0) for t in TTL_MS
    }
    totals = {"cache_read": outcome.read, "cache_write": sum(outcome.writes.values())}
    return split | {f"gen_ai.usage.{name}.input_tokens": count for name, count in totals.items()}


def _content(service: Service, call: Call) -> Json:
    """The prompt as the GenAI conventions spell it: OpenAI's system prompt stays among the messages."""
    provider = service.model.provider
    system = [block for block in call.blocks if block.kind == "system"]
    tools = [{"type": "function", **json.loads(block.text)} for block in call.blocks if block.kind == "tool"]
    messages = [block for block in call.blocks if block.role or (block.kind == "system" and provider == "openai")]
    content = {
        "gen_ai.input.messages": [_message(block, provider) for block in messages],
        "gen_ai.system_instructions": [_part(b, provider) for b in system if provider != "openai"],
        "gen_ai.tool.definitions": tools,
        "gen_ai.output.messages": [_message(call.answer, provider) | {"finish_reason": "stop"}],
    }
    return {name: compact(value) for name, value in content.items() if value}


def _message(block: Block, provider: str) -> Json:
    role = "tool" if block.kind == "tool_result" and provider == "openai" else block.role or "system"
    return {"role": role, "parts": [_part(block, provider)]}


def _part(block: Block, provider: str) -> Json:
    call_id = tool_call_id(block, provider)
    if block.kind == "tool_call":
        return {"type": "tool_call", "id": call_id, "name": block.name, "arguments": json.loads(block.text)}
    if block.kind == "tool_result":
        return {"type": "tool_call_response", "id": call_id, "response": block.text}
    return {"type": "text", "content": block.text}


def _attributes(values: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: str | int | float | list[str]) -> Json:  # noqa: PYI041 -- the three are encoded differently
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}
