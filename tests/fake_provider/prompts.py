"""Request bodies as the simulator takes them. Written from the providers' documents, not from the product's parsers."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

import tokenizer
from simulator import Marker, Part

Json = dict[str, Any]

_TTL_MS = {"5m": 300_000, "1h": 3_600_000}
_FRAMING = 4  # tokens around a block
_WORDS = 8  # of a part: a cache that needs no markers finds a prefix that ends within a block
_ENDPOINTS = (  # the end of a path, its API, and the model in it
    (r"/chat/completions$", "openai.chat"),
    (r"/responses$", "openai.responses"),
    (r"/v1/messages$", "anthropic.messages"),
    (r"/models/(?P<model>[^/]+):(?:streamG|g)enerateContent$", "gemini.generate_content"),
    (r"/model/(?P<model>[^/]+)/converse(?:-stream)?$", "bedrock.converse"),
    (r"/model/(?P<model>[^/]+)/invoke(?:-with-response-stream)?$", "bedrock.invoke"),
)
_STREAM_PATHS = (":streamGenerateContent", "/converse-stream", "/invoke-with-response-stream")
_VENDORS = {  # whose tokenizer counts
    "openai.chat": "openai",
    "openai.responses": "openai",
    "anthropic.messages": "anthropic",
    "gemini.generate_content": "google",
    "bedrock.converse": "anthropic",
    "bedrock.invoke": "anthropic",
}


@dataclass(frozen=True, slots=True)
class Block:
    """One tool, system block or message part in render order; ``ttl`` is that of a breakpoint behind it, "" = none."""

    label: str  # level and role: equal texts of different roles are different prompts
    text: str
    ttl: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """A request as the provider understands it."""

    api: str
    model: str
    streams: bool
    wants_usage: bool  # OpenAI's Chat Completions stream it only on request
    blocks: tuple[Block, ...]

    @property
    def vendor(self) -> str:
        return _VENDORS[self.api]

    @property
    def is_marked(self) -> bool:
        """Whether its cache stands at explicit breakpoints."""
        return self.vendor == "anthropic"

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(self._parts())

    def _parts(self) -> Iterator[Part]:
        for number, block in enumerate(self.blocks):
            for index, text in enumerate(_cut(block.text)):
                framing = _FRAMING if index == 0 else 0
                yield Part((block.label, text), tokenizer.count(text, self.vendor) + framing, number)

    def markers(self, parts: Iterable[Part]) -> tuple[Marker, ...]:
        last = {part.block: index for index, part in enumerate(parts)}
        return tuple(Marker(last[n], _TTL_MS[block.ttl]) for n, block in enumerate(self.blocks) if block.ttl)


def parse(path: str, body: Json) -> Request | None:
    """The request, or None for a path that is no model call."""
    for pattern, api in _ENDPOINTS:
        if found := re.search(pattern, path):
            named = found.groupdict().get("model") or str(body.get("model"))
            streams = body.get("stream") is True or path.endswith(_STREAM_PATHS)
            asked = (body.get("stream_options") or {}).get("include_usage") is True
            wants_usage = not streams or api != "openai.chat" or asked or _always_reports(path, named)
            return Request(api, unquote(named), streams, wants_usage, tuple(_READERS[api](body)))
    return None


def _always_reports(path: str, model: str) -> bool:
    """Groq and Mistral stream their usage unasked."""
    return "/openai/v1/" in path or model.startswith("mistral")


def _cut(text: str) -> list[str]:
    """``text`` in runs of words; what a token of the next run takes with it is part of that run."""
    words = re.findall(r"\s*\S+", text) or [text]
    return ["".join(words[i : i + _WORDS]) for i in range(0, len(words), _WORDS)]


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _texts(content: object) -> str:
    """A message's content, a string or parts, as one text."""
    if isinstance(content, list):
        return "".join(part.get("text") or _dump(part) for part in content)
    return content if isinstance(content, str) else ""


def _chat(body: Json) -> Iterator[Block]:
    yield from (Block("tool", _dump(tool)) for tool in body.get("tools") or ())
    for message in body["messages"]:
        calls = _dump(message["tool_calls"]) if message.get("tool_calls") else ""
        yield Block(message["role"], _texts(message.get("content")) + calls)


def _responses(body: Json) -> Iterator[Block]:
    yield from (Block("tool", _dump(tool)) for tool in body.get("tools") or ())
    if body.get("instructions"):
        yield Block("system", body["instructions"])
    turns = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
    yield from (Block(turn.get("role", "item"), _texts(turn.get("content")) or _dump(turn)) for turn in turns)


def _anthropic(body: Json) -> list[Block]:
    blocks = [*_anthropic_blocks(body)]
    if body.get("cache_control"):  # the automatic breakpoint stands behind everything
        blocks[-1] = replace(blocks[-1], ttl=body["cache_control"].get("ttl") or "5m")
    return blocks


def _anthropic_blocks(body: Json) -> Iterator[Block]:
    yield from (_anthropic_block("tool", tool) for tool in body.get("tools") or ())
    turns = [{"role": "system", "content": body.get("system") or []}, *body["messages"]]
    for turn in turns:
        content = turn["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from (_anthropic_block(turn["role"], part) for part in parts)


def _anthropic_block(label: str, part: Json) -> Block:
    bare = {key: value for key, value in part.items() if key != "cache_control"}
    control = part.get("cache_control") or {}
    text = bare["text"] if bare.get("type") == "text" else _dump(bare)
    return Block(label, text, control.get("ttl") or "5m" if control else "")


def _gemini(body: Json) -> Iterator[Block]:
    yield from (Block("tool", _dump(tool)) for tool in body.get("tools") or ())
    yield from (Block("system", part["text"]) for part in (body.get("systemInstruction") or {}).get("parts", ()))
    for turn in body["contents"]:
        yield from (Block(turn.get("role", "user"), part.get("text") or _dump(part)) for part in turn["parts"])


def _converse(body: Json) -> list[Block]:
    turns = [("tool", (body.get("toolConfig") or {}).get("tools") or []), ("system", body.get("system") or [])]
    turns += [(message["role"], message["content"]) for message in body["messages"]]
    blocks: list[Block] = []
    for label, part in ((label, part) for label, parts in turns for part in parts):
        if "cachePoint" in part:
            blocks[-1] = replace(blocks[-1], ttl=part["cachePoint"].get("ttl") or "5m")
        else:
            blocks.append(Block(label, part.get("text") or _dump(part)))
    return blocks


_READERS: dict[str, Callable[[Json], Iterable[Block]]] = {
    "openai.chat": _chat,
    "openai.responses": _responses,
    "anthropic.messages": _anthropic,
    "gemini.generate_content": _gemini,
    "bedrock.converse": _converse,
    "bedrock.invoke": _anthropic,
}
