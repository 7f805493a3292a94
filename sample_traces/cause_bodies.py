"""Lines of the request log for the traffic with one leak per cause.

Chat completions, messages and generateContent are those of bodies.py; OpenAI's Responses and Bedrock's Converse are
here, and what goes into any of them: settings, cache keys, and what a provider says of a miss.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import bodies
from cause_answers import Planted, gains
from planted import TTL_MS, Sent, input_tokens
from planted_service import Service
from simulator import Outcome
from traffic import Block, Call, output_tokens

Json = dict[str, Any]

_REASONS = {  # (API, cause) -> what Anthropic and OpenAI call it (SDKs of November 2026)
    ("messages", "volatile_prefix"): "system_changed",
    ("messages", "tools_reordered"): "tools_changed",
    ("messages", "tools_changed"): "tools_changed",
    ("messages", "history_rewritten"): "messages_changed",
    ("messages", "compacted"): "messages_changed",
    ("responses", "settings_changed"): "reasoning_effort_changed",
    ("responses", "split_scope"): "prompt_cache_key_changed",
}


def log_lines(planted: Planted) -> Iterator[Json]:
    """One line a call, in the order of the calls."""
    previous: dict[str, str] = {}  # session -> its latest response
    service = planted.service
    for sent, outcome, cause, missed in zip(planted.calls, planted.served, planted.causes, gains(planted), strict=True):
        line = _line(sent, service, outcome)
        before = previous.get(sent.call.session, "")
        if sent.is_diagnosed:
            reason = _REASONS.get((service.api, cause), "") if before else ""
            _DIAGNOSE[service.api](line, before, reason, missed)
        previous[sent.call.session] = response_id(sent, service)
        yield line


def response_id(sent: Sent, service: Service) -> str:
    """What names the response; Converse names none, so it is the id of the request."""
    if service.api == "converse":
        return str(UUID(int=sent.call.key))
    return f"resp_{sent.id}" if service.api == "responses" else bodies.response_id(sent.call, service.model.provider)


def _line(sent: Sent, service: Service, outcome: Outcome) -> Json:
    request, response = _APIS[service.api]
    body = request(sent.call, service)
    for setting in sent.settings:
        _put(body, setting.path.split("."), json.loads(setting.value))
    if sent.cache_key:
        body["prompt_cache_key"] = sent.cache_key
    provider = service.model.provider if service.api in {"converse", "gemini"} else ""
    line = bodies.entry(sent.call, body, response(sent.call, service, outcome), provider)
    told = {"account": sent.account, "region": sent.region}
    told["request_id"] = response_id(sent, service) if service.api == "converse" else ""
    return line | {name: value for name, value in told.items() if value}


def _put(body: Json, path: Sequence[str], value: Any) -> None:
    for name in path[:-1]:
        body = body.setdefault(name, {})
    body[path[-1]] = value


# --- What a provider says of a miss -----------------------------------------------------------------------------------


def _diagnose_messages(line: Json, previous: str, reason: str, missed: int) -> None:
    """Anthropic: null where there is no call before or nothing diverges."""
    line["request"]["diagnostics"] = {"previous_message_id": previous or None}
    found = {"cache_miss_reason": {"type": reason, "cache_missed_input_tokens": missed}}
    line["response"]["diagnostics"] = found if reason else None


def _diagnose_responses(line: Json, previous: str, reason: str, missed: int) -> None:
    """OpenAI compares with the response that the request names."""
    if not previous:
        return
    line["request"]["prompt_cache_options"] = {"comparison_response_id": previous}
    reusable = line["response"]["usage"]["input_tokens_details"]["cached_tokens"] + missed
    told: Json = {"type": "cache_hit"}
    if reason:
        told = {"type": "cache_miss", "reason": reason, "cache_missed_tokens": missed}
        told["comparison_reusable_tokens"] = reusable
    line["response"]["prompt_cache_diagnostics"] = told


_DIAGNOSE = {"messages": _diagnose_messages, "responses": _diagnose_responses}


# --- OpenAI Responses -------------------------------------------------------------------------------------------------


def _responses_request(call: Call, service: bodies.Asking) -> Json:
    instructions = "".join(block.text for block in call.blocks if block.kind == "system")
    items = [_item(block) for block in call.blocks if block.role]
    tools = [{"type": "function"} | json.loads(block.text) for block in call.blocks if block.kind == "tool"]
    body: Json = {"model": service.model.name, "instructions": instructions, "input": items, "store": False}
    return body | ({"tools": tools} if tools else {})


def _item(block: Block) -> Json:
    call_id = bodies.tool_call_id(block, "openai")
    if block.kind == "tool_call":
        return {"type": "function_call", "call_id": call_id, "name": block.name, "arguments": block.text}
    if block.kind == "tool_result":
        return {"type": "function_call_output", "call_id": call_id, "output": block.text}
    kind = "output_text" if block.role == "assistant" else "input_text"
    return {"type": "message", "role": block.role, "content": [{"type": kind, "text": block.text}]}


def _responses_response(call: Call, service: bodies.Asking, outcome: Outcome) -> Json:
    output, total = output_tokens(call, "openai"), input_tokens(outcome)
    written = outcome.writes.get(TTL_MS["30m"], 0)
    details = {"cached_tokens": outcome.read, "cache_write_tokens": written}
    details_by_ttl = {"cache_write_tokens_details": {"ttl_30m_tokens": written, "ttl_12h_tokens": 0}}
    return {
        "id": f"resp_{call.key:032x}",
        "object": "response",
        "created_at": call.at_ms // 1000,
        "status": "completed",
        "model": service.model.served_name,
        "output": [_item(call.answer)],
        "usage": {
            "input_tokens": total,
            "input_tokens_details": details | details_by_ttl,
            "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": total + output,
        },
    }


# --- Bedrock Converse: a marker is a block of its own behind what it marks --------------------------------------------


def _converse_request(call: Call, service: bodies.Asking) -> Json:
    system = [part for block in call.blocks if block.kind == "system" for part in _converse_parts(block)]
    messages = [{"role": block.role, "content": _converse_parts(block)} for block in call.blocks if block.role]
    return {
        "modelId": service.model.name,
        "system": system,
        "messages": messages,
        "inferenceConfig": {"maxTokens": 1024},
    }


def _converse_parts(block: Block) -> list[Json]:
    point = {"cachePoint": {"type": "default"} | ({"ttl": block.ttl} if block.ttl != "5m" else {})}
    return [{"text": block.text}, *([point] if block.ttl else [])]


def _converse_response(call: Call, _: bodies.Asking, outcome: Outcome) -> Json:
    output = output_tokens(call, "anthropic")
    written = {ttl: outcome.writes[ms] for ttl, ms in reversed(TTL_MS.items()) if ms in outcome.writes}
    usage: Json = {
        "inputTokens": outcome.uncached,
        "outputTokens": output,
        "totalTokens": input_tokens(outcome) + output,
        "cacheReadInputTokens": outcome.read,
        "cacheWriteInputTokens": sum(written.values()),
        "cacheDetails": [{"ttl": ttl, "inputTokens": tokens} for ttl, tokens in written.items()],
    }
    message = {"role": "assistant", "content": _converse_parts(call.answer)}
    return {"output": {"message": message}, "stopReason": "end_turn", "usage": usage}


_APIS = {
    "chat": bodies.APIS["openai"],
    "messages": bodies.APIS["anthropic"],
    "gemini": bodies.APIS["google"],
    "responses": (_responses_request, _responses_response),
    "converse": (_converse_request, _converse_response),
}
