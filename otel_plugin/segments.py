"""A request body as sent -> the prompt in it: segments in the provider's render order, markers, settings.

Pure: JSON in, a :class:`~prefixscope.otel_plugin.record.Prompt` out. The shapes live in :mod:`..wire`.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from prefixscope.otel_plugin.record import Prompt, Segment
from prefixscope.otel_plugin.wire import (
    anthropic,
    apis,
    bedrock,
    cohere,
    gemini,
    openai_chat,
    openai_completions,
    openai_responses,
    parts,
)
from prefixscope.otel_plugin.wire.parts import JsonObject

HISTORY = "history"
"""The setting (value "server") of a prompt whose earlier turns only the provider holds: its segments are not all of it,
so where it starts or breaks must not be read from them. It is no cache key of its own."""

_SHAPES: dict[str, Callable[[JsonObject], list[Segment]]] = {
    "openai.chat": openai_chat.segments,
    "openai.responses": openai_responses.segments,
    "openai.completions": openai_completions.segments,
    "anthropic.messages": anthropic.segments,
    "gemini.generate_content": gemini.segments,
    "gemini.interactions": gemini.interaction_segments,
    "bedrock.converse": bedrock.segments,
    "cohere.chat": cohere.segments,
}

APIS = (*_SHAPES, "bedrock.invoke", "")
"""The names of request shapes. "bedrock.invoke" carries the vendor's own shape; "" is unknown."""


def parse(body: bytes | str | Mapping[str, Any], *, api: str = "", path: str = "") -> Prompt | None:
    """Take a request body apart.

    Args:
        body: the decoded HTTP body (not compressed), or the JSON object in it.
        api: one of :data:`APIS`; when empty it is told by ``path``, then by the shape of the body.
        path: the URL path, with or without host and query; on some providers it alone names the model.

    Returns:
        The prompt, or None when this is no request to a language model: no JSON object, a path of another endpoint, a
        shape nobody has. Also None for JSON nested deeper than Python can follow, which no provider accepts.
    """
    try:
        request = _read(body)
        return _prompt(request, api, path) if request is not None else None
    except RecursionError:
        return None


def _read(body: bytes | str | Mapping[str, Any]) -> JsonObject | None:
    if isinstance(body, dict):
        return body
    if isinstance(body, Mapping):
        return dict(body)
    try:
        read = json.loads(body)
    except ValueError:  # no JSON, or no Unicode
        return None
    return read if isinstance(read, dict) else None


def _prompt(request: JsonObject, api: str, path: str) -> Prompt | None:
    api = api if api in APIS and api else _recognised(request, path)
    shape = apis.by_shape(request) if api == "bedrock.invoke" else api
    if not api:
        return None
    found = _SHAPES[shape](request) if shape else []
    options = _object(request.get("prompt_cache_options"))
    ttl = _text(options.get("ttl"))
    return Prompt(
        api=api,
        model=_model(request, path),
        segments=_resolved(found, ttl or "30m"),
        settings=_settings(shape, request),
        auto_marker=parts.marker_of({"cache_control": request.get("cache_control")}),
        cache_mode=_text(options.get("mode")),
        cache_ttl=ttl or _text(request.get("prompt_cache_retention")).replace("-", "_"),
        cache_key=_first(request, "prompt_cache_key", "x_grok_conv_id", "x-grok-conv-id"),
        cached_content=_first(request, "cachedContent", "cached_content"),
        session=_session(request),
        stream=request.get("stream") is True or apis.streams(path),
    )


def _recognised(request: JsonObject, path: str) -> str:
    known = apis.by_path(path) if path else None
    return apis.by_shape(request) if known is None else known


def _resolved(found: list[Segment], ttl: str) -> tuple[Segment, ...]:
    """Breakpoints without a TTL take the request's."""
    return tuple(replace(s, marker=ttl) if s.marker == parts.INHERITED else s for s in found)


def _model(request: JsonObject, path: str) -> str:
    """The model a body names; else, as on Bedrock, Gemini, Vertex and Azure, the one in the path."""
    return _first(request, "model", "modelId") or apis.model_in(path) or _first(request, "agent")


def _settings(shape: str, request: JsonObject) -> dict[str, str]:
    found = apis.settings(shape, request)
    if _server_has_history(shape, request):
        found[HISTORY] = "server"
    return found


_HISTORY_FIELDS = ("previous_response_id", "previous_interaction_id", "conversation", "conversation_id")


def _server_has_history(shape: str, request: JsonObject) -> bool:
    if any(request.get(name) for name in _HISTORY_FIELDS) or _object(request.get("thread")).get("type") == "continue":
        return True
    return shape == "openai.responses" and openai_responses.holds_references(request)


_CLAUDE_CODE_SESSION = re.compile(r"session_(?:id\W+)?([0-9a-f]{8}-[0-9a-f-]{27})")


def _session(request: JsonObject) -> str:
    """The conversation a client says this belongs to. Claude Code puts it in Anthropic's ``metadata.user_id``."""
    metadata = _object(request.get("metadata"))
    conversation = request.get("conversation")
    named = _text(conversation) or _text(_object(conversation).get("id")) or _first(request, "conversation_id")
    named = named or _first(request, "session_id", "litellm_session_id") or _first(metadata, "session_id")
    found = None if named else _CLAUDE_CODE_SESSION.search(_first(metadata, "user_id"))
    return found[1] if found else named


def _first(holder: JsonObject, *names: str) -> str:
    """The first of the fields that is a string and not empty."""
    return next((value for name in names if (value := _text(holder.get(name)))), "")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
