"""Conversations turn by turn: what is asked and answered, before anybody puts a prompt together from it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

import texts
import tokenizer
from fronts import Static
from schedule import Arrival, Bounds, Rhythm, arrivals
from traffic import Block, Call, Piece, compact


@dataclass(frozen=True, slots=True)
class Talk:
    """How a service converses. Sizes are in sentences, ``rows`` in records of a tool's result.

    With ``tools``, each turn but the last ends in a tool call and the next brings its result.
    """

    domain: str
    rhythm: Rhythm
    system: int
    tools: int = 0
    document: Bounds = (0, 0)  # in the first question
    notes: Bounds = (0, 0)  # in every later question
    rows: Bounds = (3, 6)
    snippets: Bounds = (0, 0)  # blocks of text that come in front of every question
    snippet: Bounds = (3, 6)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a call has to bring, whatever its service makes of it."""

    source: str  # seeds all that is random about the call
    session: str
    session_source: str
    number: int  # of the turn, from 0
    at_ms: int
    history: tuple[Block, ...]  # everything before, answers included
    asked: tuple[Block, ...]
    answer: Block

    def random(self, what: str) -> Random:
        return Random(f"{self.source}/{what}")

    def session_random(self, what: str) -> Random:
        return Random(f"{self.session_source}/{what}")

    @property
    def messages(self) -> tuple[Block, ...]:
        return (*self.history, *self.asked)


def static(name: str, talk: Talk, seed: int) -> Static:
    """What a service of that name sends with every call. The halves of its system prompt are of equal length."""
    rng = Random(f"{seed}/{name}")
    title = f"You are {name}, an assistant for questions of {talk.domain}. Follow these rules.\n\n"
    head = title + texts.policy(rng, talk.domain, talk.system // 2)
    tail = "\n# Policy\n\n" + texts.policy(rng, talk.domain, talk.system - talk.system // 2)
    tools = texts.tools(rng, talk.domain, talk.tools)
    return Static(head, tail, tuple(Block("tool", "", (Piece(compact(t)),), name=t["name"]) for t in tools))


def sessions(name: str, talk: Talk, fixed: Static, seed: int, days: int) -> Iterator[list[Turn]]:
    """The turns of each session of ``days`` days, oldest session first."""
    source = f"{seed}/{name}"
    for arrival in arrivals(talk.rhythm, Random(f"{source}/arrivals"), days):
        yield list(_turns(name, talk, fixed, arrival, source))


def _turns(name: str, talk: Talk, fixed: Static, arrival: Arrival, source: str) -> Iterator[Turn]:
    rng = Random(f"{source}/{arrival.name}")
    history: tuple[Block, ...] = ()
    result: tuple[Block, ...] = ()
    for number, at_ms in enumerate(arrival.turns_ms):
        asked = result or _question(talk, number, rng)
        is_last = number == len(arrival.turns_ms) - 1
        answer = tool_call(fixed.tools, rng) if talk.tools and not is_last else text("assistant", _answer(talk, rng))
        session = f"{source}/{arrival.name}"
        yield Turn(f"{session}/{number}", f"{name}-{arrival.name}", session, number, at_ms, history, asked, answer)
        history = (*history, *asked, answer)
        result = (tool_result(talk, answer, rng),) if answer.kind == "tool_call" else ()


def _question(talk: Talk, number: int, rng: Random) -> tuple[Block, ...]:
    snippets = [
        text("user", texts.notes(rng, talk.domain, rng.randint(*talk.snippet))) for _ in _times(talk.snippets, rng)
    ]
    question = texts.question(rng, talk.domain)
    length = rng.randint(*(talk.notes if number else talk.document))
    if length:
        question = f"{question}\n\n{texts.notes(rng, talk.domain, length)}"
    return (*snippets, text("user", question))


def _times(bounds: Bounds, rng: Random) -> range:
    return range(rng.randint(*bounds))


def _answer(talk: Talk, rng: Random) -> str:
    return texts.answer(rng, talk.domain)


def text(role: str, content: str) -> Block:
    return Block("text", "user" if role == "user" else "assistant", (Piece(content),))


def tool_call(tools: Sequence[Block], rng: Random) -> Block:
    tool = rng.choice(tools)
    arguments = texts.arguments(rng, tool.text)
    return Block("tool_call", "assistant", (Piece(arguments),), name=tool.name, ref=f"{rng.getrandbits(96):024x}")


def tool_result(talk: Talk, call: Block, rng: Random) -> Block:
    rows = texts.rows(rng, talk.domain, rng.randint(*talk.rows))
    return Block("tool_result", "user", (Piece(rows),), ref=call.ref)


def call(service: str, turn: Turn, blocks: Sequence[Block], provider: str) -> Call:
    """The request of ``turn`` with ``blocks`` as its prompt."""
    rng = turn.random("call")
    ttft_ms = rng.randint(320, 1400)
    return Call(
        service=service,
        session=turn.session,
        key=rng.getrandbits(128),
        at_ms=turn.at_ms,
        ttft_ms=ttft_ms,
        duration_ms=ttft_ms + rng.randint(9, 16) * tokenizer.count(turn.answer.text, provider),
        blocks=tuple(blocks),
        answer=turn.answer,
    )


def system(*pieces: Piece, ttl: str = "") -> Block:
    return Block("system", "", tuple(piece for piece in pieces if piece.text), ttl)


def plain_front(fixed: Static, ttl: str = "") -> tuple[Block, ...]:
    """Tools and system prompt as they are, with a marker behind them if there is a ``ttl``."""
    return (*fixed.tools, system(Piece(fixed.head + fixed.tail), ttl=ttl))


def last_marked(blocks: Sequence[Block], ttl: str) -> tuple[Block, ...]:
    """The blocks with a marker behind the last; the others keep theirs."""
    return (*blocks[:-1], replace(blocks[-1], ttl=ttl))
