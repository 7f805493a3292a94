"""From a service to its calls: every session's conversation, one call a turn."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import texts
import tokenizer
from fronts import Now, Static
from schedule import Arrival, arrivals
from services import Service
from traffic import Block, Call, Piece, compact


def calls(service: Service, seed: int, days: int) -> list[Call]:
    """The service's calls of ``days`` days, in the order they are made. The same arguments give the same calls."""
    source = f"{seed}/{service.name}"
    static = _static(service, Random(source))
    sessions = arrivals(service.rhythm, Random(f"{source}/arrivals"), days)
    made = [call for session in sessions for call in _session(service, static, session, f"{source}/{session.name}")]
    return sorted(made, key=lambda call: (call.at_ms, call.key))


def _static(service: Service, rng: Random) -> Static:
    title = f"You are {service.name}, an assistant for questions of {service.domain}. Follow these rules.\n\n"
    head = title + texts.policy(rng, service.domain, service.head)
    tail = "\n# Policy\n\n" + texts.policy(rng, service.domain, service.tail) if service.tail else ""
    tools = texts.tools(rng, service.domain, service.tools)
    return Static(head, tail, tuple(Block("tool", "", (Piece(compact(t)),), name=t["name"]) for t in tools))


def _session(service: Service, static: Static, session: Arrival, source: str) -> Iterator[Call]:
    turns = (
        _agent(service, static, session, Random(source)) if service.tools else _chat(service, session, Random(source))
    )
    has_usage = Random(f"{source}/usage").random() < service.usage_rate
    messages: tuple[Block, ...] = ()
    for number, (asked, answer) in enumerate(turns):
        rng = Random(f"{source}/{number}")
        now = Now(session.turns_ms[number], Random(f"{source}/front"), rng)
        messages += (asked,)
        last = replace(asked, ttl="5m") if service.marks_messages else asked
        ttft_ms = rng.randint(320, 1400)
        yield Call(
            service=service.name,
            session=f"{service.name}-{session.name}",
            key=rng.getrandbits(128),
            at_ms=now.at_ms,
            ttft_ms=ttft_ms,
            duration_ms=ttft_ms + rng.randint(9, 16) * tokenizer.count(answer.text, service.model.provider),
            blocks=(*service.front(static, now), *messages[:-1], last),
            answer=answer,
            streams=service.streams,
            has_usage=has_usage,
        )
        messages += (answer,)


def _text(role: str, text: str) -> Block:
    return Block("text", "user" if role == "user" else "assistant", (Piece(text),))


def _chat(service: Service, session: Arrival, rng: Random) -> Iterator[tuple[Block, Block]]:
    """(what the user asks, what the model answers) for every turn; the first question may bring a document."""
    for number in range(len(session.turns_ms)):
        question = texts.question(rng, service.domain)
        if number == 0 and service.document[1]:
            question = f"{question}\n\n{texts.notes(rng, service.domain, rng.randint(*service.document))}"
        yield _text("user", question), _text("assistant", texts.answer(rng, service.domain))


def _agent(service: Service, static: Static, session: Arrival, rng: Random) -> Iterator[tuple[Block, Block]]:
    """A task, then one tool call and its result a turn, and an answer in the end."""
    asked = _text("user", texts.question(rng, service.domain))
    for number in range(1, len(session.turns_ms) + 1):
        answer = _tool_call(static, rng)
        if number == len(session.turns_ms):
            answer = _text("assistant", texts.answer(rng, service.domain))
        yield asked, answer
        asked = Block(
            "tool_result", "user", (Piece(texts.rows(rng, service.domain, rng.randint(3, 6))),), ref=answer.ref
        )


def _tool_call(static: Static, rng: Random) -> Block:
    tool = rng.choice(static.tools)
    arguments = texts.arguments(rng, tool.text)
    return Block("tool_call", "assistant", (Piece(arguments),), name=tool.name, ref=f"{rng.getrandbits(96):024x}")
