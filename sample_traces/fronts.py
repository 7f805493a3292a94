"""How a service puts the front of its prompt together, tools and system prompt: well, or with a planted fault."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from uuid import UUID

import texts
from traffic import Block, Piece


@dataclass(frozen=True, slots=True)
class Static:
    """What a service sends unchanged with every call."""

    head: str
    tail: str
    tools: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Now:
    """What differs from call to call. ``session`` is a fresh source for every call and gives the same all session."""

    at_ms: int
    session: Random
    call: Random


Front = Callable[[Static, Now], tuple[Block, ...]]


def _system(*pieces: Piece, ttl: str = "") -> Block:
    return Block("system", "", tuple(piece for piece in pieces if piece.text), ttl)


def stable(static: Static, _: Now) -> tuple[Block, ...]:
    return (*static.tools, _system(Piece(static.head + static.tail)))


def stable_with_marker(static: Static, _: Now) -> tuple[Block, ...]:
    return (*static.tools, _system(Piece(static.head + static.tail), ttl="5m"))


def clock_in_front(static: Static, now: Now) -> tuple[Block, ...]:
    clock = datetime.fromtimestamp(now.at_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return (_system(Piece(f"Current time: {clock}\n\n", volatile=True), Piece(static.head + static.tail)),)


def request_id_inside(static: Static, now: Now) -> tuple[Block, ...]:
    request_id = UUID(int=now.call.getrandbits(128), version=4)
    line = Piece(f"Request id: {request_id}\n", volatile=True)
    return (_system(Piece(static.head), line, Piece(static.tail), ttl="5m"),)


def customer_inside(static: Static, now: Now) -> tuple[Block, ...]:
    customer = Piece(texts.customer(now.session), volatile=True)
    return (_system(Piece(static.head), customer, Piece(static.tail)),)


def tools_in_random_order(static: Static, now: Now) -> tuple[Block, ...]:
    shuffled = now.call.sample(static.tools, len(static.tools))
    return (*shuffled, _system(Piece(static.head + static.tail)))
