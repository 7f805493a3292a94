"""The same question asked again: how soon its answer changes, and how long an answer may be kept.

An exact repeat needs no embedding, and its two recorded answers show what a cache would have got wrong by keeping the
first. Answers also differ because models word them anew: only a difference in facts counts (``agreement``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from prefixscope.analyzer.semantic.agreement import Verdict, verdict
from prefixscope.analyzer.semantic.bound import FEWEST
from prefixscope.analyzer.semantic.questions import Questions

AGES_S: Final[Mapping[str, float]] = {
    "5 minutes": 300, "1 hour": 3600, "6 hours": 21_600, "12 hours": 43_200, "1 day": 86_400, "7 days": 604_800,
    "30 days": 2_592_000
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
    span_s: float  # from the first call to the last: nothing is known of older answers

    def within(self, age_s: float) -> tuple[int, int]:
        """(repeats with answers of at most this age whose verdict is clear, those of them with another answer)."""
        clear = [r for r in self.repeats if r.age_s <= age_s and r.answers != "unclear"]
        return len(clear), sum(r.answers == "different" for r in clear)

    def ttl_s(self, budget: float) -> float | None:
        """The longest of the common lifetimes at which at most ``budget`` of the repeats have another answer.

        None where ``verdict`` is another than "kept". Never longer than the traffic, nor one that no repeat speaks for:
        each lifetime needs ``FEWEST`` repeats, and one of them as old as only this lifetime allows.
        """
        kept = [age for age in self._seen() if (n := self.within(age))[1] <= budget * n[0]]
        return max(kept, default=None)

    def verdict(self, budget: float) -> Literal["kept", "too_few", "too_wrong"]:
        """Whether a lifetime can be recommended; if not, whether too few repeats or too many changes are the reason."""
        if not self._seen():
            return "too_few"
        return "kept" if self.ttl_s(budget) else "too_wrong"

    def _seen(self) -> list[float]:
        """Lifetimes of which the repeats say something."""
        counts = [0, *(self.within(age)[0] for age in AGES_S.values())]
        return [
            age
            for age, before, count in zip(AGES_S.values(), counts, counts[1:], strict=False)
            if age <= self.span_s and count >= FEWEST and count > before
        ]

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
    span = int(questions.started.max() - questions.started.min()) / _NS if len(questions) else 0.0
    return Freshness(tuple(found), span)


def compared(questions: Questions, one: int, other: int) -> Verdict | None:
    """What the recorded answers of two calls are to each other; None where one has none.

    Of keys alone it can be told that two answers are the same, not what differs in them.
    """
    texts = questions.answer(one), questions.answer(other)
    if all(texts):
        return verdict(*texts, None)
    same = questions.same_answer(one, other)
    return None if same is None else "same" if same else "unclear"
