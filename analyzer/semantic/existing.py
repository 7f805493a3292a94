"""Hits of a response cache that is in use already, audited the same way: what was served, to what question.

The question that an answer was first given to is found by the answer: an earlier call of the scope with the same text.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from prefixscope.analyzer.semantic import guards
from prefixscope.analyzer.semantic.matches import reasons_between
from prefixscope.analyzer.semantic.questions import Questions
from prefixscope.analyzer.semantic.words import canonical


@dataclass(frozen=True, slots=True)
class ServedHit:
    """One call that a cache answered."""

    call: int
    cache: str
    semantic: bool | None  # matched by similarity, as the cache recorded it; None: it did not
    similarity: float | None  # as the cache recorded it
    source: int | None  # the call whose answer it got; None: not in this traffic
    exact: bool  # the same question
    reasons: tuple[str, ...]  # why it should not have got it


def audit(questions: Questions, known: Callable[[str], bool]) -> list[ServedHit]:
    """Every marked hit, in time order."""
    givers: dict[tuple[int, str], list[int]] = defaultdict(list)
    found = []
    for call, content in enumerate(questions.contents):
        if content is None or not content.answer or not content.answer.text:
            continue
        place = int(questions.scope[call]), canonical(content.answer.text)
        if content.hit:
            found.append(_hit(call, givers[place], questions, known))
        else:
            givers[place].append(call)
    return found


def _hit(call: int, givers: list[int], questions: Questions, known: Callable[[str], bool]) -> ServedHit:
    content = questions.contents[call]
    assert content is not None
    assert content.hit is not None
    before = [giver for giver in givers if questions.ended[giver] <= questions.started[call]]
    same = [giver for giver in before if questions.key[giver] == questions.key[call]]
    source = next(reversed(same or before), None)
    reasons: tuple[str, ...] = ()
    if source is not None and not same and questions.text[call] >= 0 and questions.text[source] >= 0:
        texts = questions.texts[questions.text[call]], questions.texts[questions.text[source]]
        reasons = reasons_between(call, source, guards.compare(*texts, known).reasons, questions)
    mark = content.hit
    return ServedHit(call, mark.cache, mark.semantic, mark.similarity, source, bool(same), reasons)
