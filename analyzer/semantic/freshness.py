"""The same question asked again: how soon its answer changes, and how long an answer may be kept.

An exact repeat needs no embedding, and its two recorded answers show what a cache would have got wrong by keeping the
first. Answers also differ because models word them anew: only a difference in facts counts (``agreement``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefixscope.analyzer.semantic.agreement import Verdict, verdict
from prefixscope.analyzer.semantic.questions import Questions

AGES_S: Final[Mapping[str, float]] = {
    "5 minutes": 300, "1 hour": 3600, "1 day": 86_400, "7 days": 604_800, "30 days": 2_592_000
}  # fmt: skip
_NS: Final = 1e9
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Repeat:
    """One question asked again, and what became of its answer."""

    call: int
    source: int  # the call before with the same question
    age_s: float  # of the answer that a cache would have served
    answers: Verdict


@dataclass(frozen=True, slots=True)
class Freshness:
    """Repeats and what they say about the time to live."""

    repeats: tuple[Repeat, ...]

    def within(self, age_s: float) -> tuple[int, int]:
        """(repeats with answers of at most this age whose verdict is clear, those of them with another answer)."""
        clear = [r for r in self.repeats if r.age_s <= age_s and r.answers != "unclear"]
        return len(clear), sum(r.answers == "different" for r in clear)

    def ttl_s(self, budget: float) -> float | None:
        """The longest of the common lifetimes at which at most ``budget`` of the repeats have another answer.

        None where even the shortest has too many, or where nothing was asked again.
        """
        kept = [age for age in AGES_S.values() if (n := self.within(age))[0] and n[1] <= budget * n[0]]
        return max(kept, default=None)

    def changed(self) -> Sequence[Repeat]:
        """Repeats whose answer is another, the quickest change first."""
        return sorted((r for r in self.repeats if r.answers == "different"), key=lambda r: r.age_s)[:_EXAMPLES]


def of_questions(questions: Questions) -> Freshness:
    """Every exact repeat with a recorded answer, compared with the answer before."""
    last: dict[int, int] = {}
    found = []
    for call in np.flatnonzero(questions.exact).tolist():
        key = int(questions.key[call])
        before = last.get(key)
        if before is not None and questions.ended[before] <= questions.started[call]:
            age = (int(questions.started[call]) - int(questions.ended[before])) / _NS
            answers = compared(questions, before, call)
            if answers == "unclear" and not questions.with_text:
                answers = "different"  # in other words at least: a lifetime too short is better than one too long
            found += [Repeat(call, before, age, answers)] if answers else []
        if compared(questions, call, call):
            last[key] = call
    return Freshness(tuple(found))


def compared(questions: Questions, one: int, other: int) -> Verdict | None:
    """What the recorded answers of two calls are to each other; None where one has none.

    Of keys alone it can be told that two answers are the same, not what differs in them.
    """
    texts = questions.answer(one), questions.answer(other)
    if all(texts):
        return verdict(*texts, None)
    same = questions.same_answer(one, other)
    return None if same is None else "same" if same else "unclear"
