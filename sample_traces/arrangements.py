"""From conversations to a service's calls: turn by turn, or in ways that take more than a turn at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import assembly
import texts
from assembly import Setup
from planted import Sent, marked
from traffic import Block
from turns import Turn, call, plain_front, text

Conversations = Sequence[Sequence[Turn]]
Arrange = Callable[[Setup, Conversations], list[Sent]]


def in_turn(setup: Setup, conversations: Conversations) -> list[Sent]:
    return [setup.assemble(setup, turn) for turns in conversations for turn in turns]


def together(setup: Setup, conversations: Conversations) -> list[Sent]:
    """Each conversation's turns become questions on its document, each a session of its own, sent at the same time."""
    made = []
    for turns in conversations:
        document = turns[0].messages[0]
        start_ms = turns[0].at_ms
        for turn in turns:
            alone = replace(
                turn,
                session=f"{turn.session}-{turn.number}",
                at_ms=start_ms + 9 * turn.number,
                history=(replace(document, ttl=setup.last_ttl),),
                asked=(text("user", texts.question(turn.random("question"), setup.domain)),),
            )
            made.append(replace(assembly.plain(replace(setup, last_ttl=""), alone), batch=turn.session))
    return made


def with_forks(setup: Setup, conversations: Conversations) -> list[Sent]:
    """Every other session goes on where the one before it stood after its second answer, with many files at hand."""
    made = in_turn(setup, conversations[::2])
    for parent, child in zip(conversations[::2], conversations[1::2], strict=False):
        made += _fork(setup, parent, child)
    return made


def _fork(setup: Setup, parent: Sequence[Turn], child: Sequence[Turn]) -> Iterator[Sent]:
    """The child begins soon after the parent's third call, while the parent's entries are alive."""
    shared = parent[2].history
    files = _files(child[0], setup.domain)
    later_ms = parent[2].at_ms + 90_000 - child[0].at_ms
    for turn in child:
        moved = replace(turn, at_ms=turn.at_ms + later_ms)
        sent = Sent(setup.call(moved, (*setup.front, *shared, *files, *turn.messages)))
        fork_point = len(setup.front) + len(shared) - 2  # where the parent's second call ended
        yield replace(sent, intact=marked(sent.call.blocks, [fork_point, -1], "5m")) if turn.number == 0 else sent


def _files(turn: Turn, domain: str) -> tuple[Block, ...]:
    rng = turn.random("files")
    return tuple(text("user", texts.notes(rng, domain, rng.randint(1, 2))) for _ in range(23))


def with_marked_document(setup: Setup, conversations: Conversations) -> list[Sent]:
    """The system prompt is marked for an hour and the document behind it for five minutes; the question is not."""
    made = []
    for turn in (turn for turns in conversations for turn in turns):
        document = text("user", texts.notes(turn.random("document"), setup.domain, 40))
        blocks = (*plain_front(setup.static, "1h"), replace(document, ttl="5m"), *turn.asked)
        made.append(Sent(call(setup.name, turn, blocks, "anthropic")))
    return made


def with_a_rare_pause(setup: Setup, conversations: Conversations) -> list[Sent]:
    """One session in four pauses for almost an hour after its second call."""
    paused = ([_later(turn, 54 * 60_000) for turn in turns] for turns in conversations[1::4])
    others = (turns for number, turns in enumerate(conversations) if number % 4 != 1)
    return in_turn(setup, [*paused, *others])


def _later(turn: Turn, pause_ms: int) -> Turn:
    return replace(turn, at_ms=turn.at_ms + pause_ms) if turn.number > 1 else turn
