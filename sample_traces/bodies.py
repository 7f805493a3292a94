"""Request and response bodies in the providers' own shapes, and the line of the request log that holds both."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol
from uuid import UUID

from services import Model, Service
from simulator import Outcome
from traffic import TTL_MS, Block, Call, output_tokens

Json = dict[str, Any]


class Asking(Protocol):
    """Whoever calls a model."""

    @property
    def model(self) -> Model: ...


def log_line(call: Call, service: Service, outcome: Outcome) -> Json:
    """One call as an application or gateway logs it. The usage is the simulator's."""
    request, response = APIS[service.model.provider]
    provider = service.model.provider if service.provider_in_log else ""
    return entry(call, request(call, service), response(call, service, outcome), provider)


def entry(call: Call, request: Json, response: Json, provider: str) -> Json:
    """The line of a call with these bodies; it names the provider where ``provider`` is not empty."""
    when = datetime.fromtimestamp(call.at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "timestamp": when,
        "service": call.service,
        "session_id": call.session,
        **({"provider": provider} if provider else {}),
        "request": request,
        "response": response,
        "status": 200,
        "ttft_ms": call.ttft_ms,
        "duration_ms": call.duration_ms,
    }


def response_id(call: Call, provider: str) -> str:
    if provider == "anthropic":
        return f"msg_01{call.key:032x}"
    if provider == "google":
        return f"{call.key:032x}"[:22]
    return f"chatcmpl-{call.key:032x}" if provider == "openai" else str(UUID(int=call.key))


def tool_call_id(block: Block, provider: str) -> str:
    return f"toolu_{block.ref}" if provider == "anthropic" else f"call_{block.ref}"


# --- OpenAI chat completions, and DeepSeek, which copies them ---------------------------------------------------------


def _openai_request(call: Call, service: Asking) -> Json:
    body: Json = {
        "model": service.model.name,
        "messages": [_openai_message(block) for block in call.blocks if block.kind != "tool"],
    }
    if tools := [json.loads(block.text) for block in call.blocks if block.kind == "tool"]:
        body["tools"] = [{"type": "function", "function": tool} for tool in tools]
    if service.model.retention:
        body["prompt_cache_retention"] = service.model.retention
    if call.streams:
        body |= {"stream": True} | ({"stream_options": {"include_usage": True}} if call.has_usage else {})
    return body


def _openai_message(block: Block) -> Json:
    if block.kind == "tool_result":
        return {"role": "tool", "tool_call_id": tool_call_id(block, "openai"), "content": block.text}
    if block.kind == "tool_call":
        return {"role": "assistant", "content": None, "tool_calls": [_openai_tool_call(block)]}
    return {"role": block.role or "system", "content": block.text}


def _openai_tool_call(block: Block) -> Json:
    function = {"name": block.name, "arguments": block.text}
    return {"id": tool_call_id(block, "openai"), "type": "function", "function": function}


def _openai_response(call: Call, service: Asking, outcome: Outcome) -> Json:
    reason = "tool_calls" if call.answer.kind == "tool_call" else "stop"
    body: Json = {
        "id": response_id(call, service.model.provider),
        "object": "chat.completion",
        "created": call.at_ms // 1000,
        "model": service.model.served_name,
        "choices": [{"index": 0, "message": _openai_message(call.answer), "finish_reason": reason}],
    }
    usage = _openai_usage(outcome, output_tokens(call, service.model.provider))
    if service.model.provider == "deepseek":
        usage |= {"prompt_cache_hit_tokens": outcome.read, "prompt_cache_miss_tokens": outcome.uncached}
    return body | ({"usage": usage} if call.has_usage else {})


def _openai_usage(outcome: Outcome, output: int) -> Json:
    prompt = outcome.read + outcome.uncached
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": outcome.read},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


# --- Anthropic messages -----------------------------------------------------------------------------------------------


def _anthropic_request(call: Call, service: Asking) -> Json:
    tools = [json.loads(block.text) for block in call.blocks if block.kind == "tool"]
    body: Json = {"model": service.model.name, "max_tokens": 1024}
    if tools:
        body["tools"] = [
            {"name": t["name"], "description": t["description"], "input_schema": t["parameters"]} for t in tools
        ]
    body["system"] = [_anthropic_content(block) for block in call.blocks if block.kind == "system"]
    body["messages"] = [
        {"role": block.role, "content": [_anthropic_content(block)]} for block in call.blocks if block.role
    ]
    return body


def _anthropic_content(block: Block) -> Json:
    call_id = tool_call_id(block, "anthropic")
    if block.kind == "tool_call":
        content = {"type": "tool_use", "id": call_id, "name": block.name, "input": json.loads(block.text)}
    elif block.kind == "tool_result":
        content = {"type": "tool_result", "tool_use_id": call_id, "content": block.text}
    else:
        content = {"type": "text", "text": block.text}
    control = {"type": "ephemeral"} | ({"ttl": block.ttl} if block.ttl != "5m" else {})
    return content | ({"cache_control": control} if block.ttl else {})


def _anthropic_response(call: Call, service: Asking, outcome: Outcome) -> Json:
    writes = {f"ephemeral_{ttl}_input_tokens": outcome.writes.get(ms, 0) for ttl, ms in TTL_MS.items()}
    return {
        "id": response_id(call, "anthropic"),
        "type": "message",
        "role": "assistant",
        "model": service.model.served_name,
        "content": [_anthropic_content(call.answer)],
        "stop_reason": "tool_use" if call.answer.kind == "tool_call" else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": outcome.uncached,
            "cache_creation_input_tokens": sum(writes.values()),
            "cache_read_input_tokens": outcome.read,
            "cache_creation": writes,
            "output_tokens": output_tokens(call, "anthropic"),
            "service_tier": "standard",
        },
    }


# --- Gemini generateContent: the model stands in the URL, not in the body ---------------------------------------------


def _google_request(call: Call, _: Asking) -> Json:
    system = [{"text": block.text} for block in call.blocks if block.kind == "system"]
    contents = [_google_content(block) for block in call.blocks if block.role]
    return {"systemInstruction": {"parts": system}, "contents": contents, "generationConfig": {"temperature": 0.2}}


def _google_content(block: Block) -> Json:
    return {"role": "model" if block.role == "assistant" else "user", "parts": [{"text": block.text}]}


def _google_response(call: Call, service: Asking, outcome: Outcome) -> Json:
    prompt, output = outcome.read + outcome.uncached, output_tokens(call, "google")
    usage: Json = {"promptTokenCount": prompt, "candidatesTokenCount": output, "totalTokenCount": prompt + output}
    if outcome.read:  # the API leaves zeros out
        usage["cachedContentTokenCount"] = outcome.read
        usage["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": outcome.read}]
    usage["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": prompt}]
    return {
        "candidates": [{"content": _google_content(call.answer), "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": service.model.served_name,
        "responseId": response_id(call, "google"),
    }


APIS: dict[str, tuple[Callable[[Call, Asking], Json], Callable[[Call, Asking, Outcome], Json]]] = {
    "openai": (_openai_request, _openai_response),
    "deepseek": (_openai_request, _openai_response),
    "anthropic": (_anthropic_request, _anthropic_response),
    "google": (_google_request, _google_response),
}
