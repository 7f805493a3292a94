"""A call as a sequence of blocks, what it is for the simulator, and the fixes whose worth the answers state."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import tokenizer
from simulator import Marker, Part, SimCall

TTL_MS = {"5m": 300_000, "1h": 3_600_000}
_FRAMING = {"tool": 8, "system": 7, "text": 4, "tool_call": 9, "tool_result": 6}  # tokens around a block of that kind


@dataclass(frozen=True, slots=True)
class Piece:
    """Text within a block; ``volatile`` text is what the planted fault puts in front of static text."""

    text: str
    volatile: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One tool, the system prompt, or one message.

    A ``tool``'s text is its definition as JSON, a ``tool_call``'s the arguments as JSON (``name`` is the tool's), a
    ``tool_result``'s what came back; ``ref`` is the tool call's id. ``ttl`` is "5m" or "1h" where a marker stands
    behind the block.
    """

    kind: Literal["tool", "system", "text", "tool_call", "tool_result"]
    role: Literal["", "user", "assistant"]
    pieces: tuple[Piece, ...]
    ttl: str = ""
    name: str = ""
    ref: str = ""

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class Call:
    """One request in the provider's render order (tools, system, messages) and its answer."""

    service: str
    session: str
    key: int  # 128 random bits, from which every id of the call is made
    at_ms: int  # Unix epoch
    ttft_ms: int
    duration_ms: int
    blocks: tuple[Block, ...]
    answer: Block
    streams: bool = False
    has_usage: bool = True


def simulated(call: Call, provider: str, model: str) -> SimCall:
    """``call`` as the simulator takes it: a part is a piece, so that volatile text is apart from its surroundings."""
    parts = tuple(_parts(call, provider))
    last_part = {part.block: index for index, part in enumerate(parts)}
    markers = tuple(Marker(last_part[n], TTL_MS[b.ttl]) for n, b in enumerate(call.blocks) if b.ttl)
    return SimCall(call.at_ms, call.at_ms + call.ttft_ms, (provider, model), parts, markers)


def _parts(call: Call, provider: str) -> Iterator[Part]:
    for number, block in enumerate(call.blocks):
        framing = _FRAMING[block.kind]
        for piece in block.pieces:
            content = (block.kind, block.role, block.name, block.ref, piece.text)
            yield Part(content, tokenizer.count(piece.text, provider) + framing, number)
            framing = 0


def output_tokens(call: Call, provider: str) -> int:
    return tokenizer.count(call.answer.text, provider) + (9 if call.answer.kind == "tool_call" else 2)


def move_volatile(call: Call) -> Call:
    """Volatile text goes behind everything else, outside all markers: it can break nothing there."""
    moved = tuple(piece for block in call.blocks for piece in block.pieces if piece.volatile)
    if not moved:
        return call
    static = tuple(replace(b, pieces=tuple(p for p in b.pieces if not p.volatile)) for b in call.blocks)
    return replace(call, blocks=(*static, Block("text", "user", moved)))


def sort_tools(call: Call) -> Call:
    tools = sorted((b for b in call.blocks if b.kind == "tool"), key=lambda block: block.name)
    return replace(call, blocks=(*tools, *(b for b in call.blocks if b.kind != "tool")))


def set_ttl(call: Call, ttl: str) -> Call:
    """Every marker gets ``ttl``; no marker is added."""
    return replace(call, blocks=tuple(replace(b, ttl=ttl if b.ttl else "") for b in call.blocks))


FIXES: dict[str, Callable[[Call], Call]] = {
    "volatile_prefix": move_volatile,
    "tools_reordered": sort_tools,
    "ttl_lapse": partial(set_ttl, ttl="1h"),
}
"""Cause -> the fix that removes it."""


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
