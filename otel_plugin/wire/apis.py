"""Which API a request is for, by its URL path or by its shape, and which of its fields are settings."""

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import unquote

from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.facts import FACTS, snake
from prefixscope.otel_plugin.wire.parts import JsonObject

_PATHS = [(re.compile(row["pattern"]), str(row["api"])) for row in FACTS["path"]]
_MODEL = re.compile(FACTS["paths"]["model"])
_STREAM = re.compile(FACTS["paths"]["stream"])

_ANTHROPIC_FIELDS = ("anthropic_version", "system")
_CONVERSE_FIELDS = ("inferenceConfig", "toolConfig", "additionalModelRequestFields", "modelId", "schemaVersion")
_NO_CHAT_FIELDS = ("encoding_format", "dimensions", "voice", "size", "quality", "texts", "input_type", "query")
_NO_CHAT_MODEL = re.compile(r"embed|moderation|rerank|whisper|tts-|dall-e|-image-\d")


@lru_cache(maxsize=1024)
def by_path(path: str) -> str | None:
    """The API of a URL path, "" for a path that is known to be no model call, None for one that is not known."""
    bare = path.partition("?")[0].rstrip("/")
    return next((api for pattern, api in _PATHS if pattern.search(bare)), None)


def model_in(path: str) -> str:
    """The model that a path names (Bedrock, Gemini, Vertex, Azure deployments), "" if none."""
    found = _MODEL.search(path.partition("?")[0])
    return unquote(next(filter(None, found.groups()))) if found else ""


def streams(path: str) -> bool:
    """Whether the path asks for a stream."""
    return bool(_STREAM.search(path.partition("?")[0].rstrip("/")))


def by_shape(request: JsonObject) -> str:
    """The API a body looks like, "" if it looks like none. Where two agree in all they send, either will do."""
    if any(field in request for field in _NO_CHAT_FIELDS) or _NO_CHAT_MODEL.search(str(request.get("model"))):
        return ""
    return next((api for field, decide in _SHAPES if field in request and (api := decide(request))), "")


def _of_messages(request: JsonObject) -> str:
    if any(field in request for field in _CONVERSE_FIELDS):
        return "bedrock.converse"
    if any(field in request for field in _ANTHROPIC_FIELDS) or _claude_native(request):
        return "anthropic.messages"
    return "cohere.chat" if "documents" in request else "openai.chat"


def _claude_native(request: JsonObject) -> bool:
    """Blocks or tools that only Anthropic has; a bare Claude name without OpenAI's roles is taken for it as well."""
    tools = parts.objects(request.get("tools"))
    if tools:
        return any("input_schema" in tool for tool in tools)
    roles = {str(message.get("role")) for message in parts.objects(request.get("messages"))}
    return str(request.get("model")).startswith("claude") and roles <= {"user", "assistant"}


def _of_input(request: JsonObject) -> str:
    native = "agent" in request or "system_instruction" in request or "generation_config" in request
    if native or "previous_interaction_id" in request or str(request.get("model")).startswith("gemini"):
        return "gemini.interactions"
    return "openai.responses" if "model" in request or "previous_response_id" in request else ""


# A shape is told by its first field of these.
_SHAPES: tuple[tuple[str, Callable[[JsonObject], str]], ...] = (
    ("contents", lambda _: "gemini.generate_content"),
    ("messages", _of_messages),
    ("input", _of_input),
    ("chat_history", lambda _: "cohere.chat"),
    ("message", lambda request: "cohere.chat" if isinstance(request["message"], str) else ""),
    ("prompt", lambda request: "openai.completions" if isinstance(request["prompt"], str | list) else ""),
    ("inputText", lambda request: "openai.completions" if isinstance(request["inputText"], str) else ""),
)


def _declared(entry: str) -> tuple[str, list[tuple[str, str]]]:
    path, _, name = entry.partition(" as ")
    return name or path, [(key, snake(key)) for key in path.split(".")]


_SETTINGS = {api: [_declared(entry) for entry in entries] for api, entries in FACTS["settings"].items()}
_SET_VALUED = frozenset({"anthropic_beta"})  # the active betas are a set: their order says nothing


def settings(api: str, request: JsonObject) -> dict[str, str]:
    """The settings of a request as compact JSON by name; what was not sent, or sent as null, is not there."""
    found = ((name, _dig(request, keys)) for name, keys in _SETTINGS.get(api, ()))
    return {name: parts.compact(_plain(name, value)) for name, value in found if value is not None}


def _dig(value: object, keys: list[tuple[str, str]]) -> object:
    for camel, spelled in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(camel, value.get(spelled))
    return value


def _plain(name: str, value: object) -> object:
    if name in _SET_VALUED and isinstance(value, list):
        return sorted(map(str, value))
    return parts.without_secrets(value) if name == "mcp_servers" else value
