"""A cache that goes by the cosine alone: whom it would serve, and which of its answers are wrong, each call once.

It sees the last question and nothing else: no guard refuses, and the conversation before does not count. Both the curve
and the false matches that are told count these calls, so that there is one figure for one threshold.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefixscope.analyzer.semantic.agreement import AS_LABEL, verdict
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.questions import Bools, Floats, Questions
from prefixscope.analyzer.semantic.tiers import Reach

WHY: Final = {
    "conversation": "the same or alike words, after another conversation",
    "words": "the questions differ in a number, a day, a name, a “not” or another word that counts",
    "answers": "nothing in the questions tells: their recorded answers, or a person, say that they differ",
    "not_judged": "a guard finds a difference, and no answer or person has settled it",
}
"""Why a served answer is wrong, or likely wrong, in the order in which it is told."""

_AROUND: Final = frozenset({"conversation", "personal"})  # reasons that are not in the words


@dataclass(frozen=True, slots=True)
class Join:
    """A call and what it would have been served."""

    candidate: Candidate | None  # the pair that joins it; None: an exact repeat
    reasons: tuple[str, ...]
    label: bool | None  # whether the answer is right; None where nobody knows

    @property
    def why(self) -> str:
        """A key of ``WHY``; "" where nothing speaks against it."""
        if self.label or not (self.reasons or self.label is False):
            return ""
        if self.label is None:
            return "not_judged"
        if set(self.reasons) - _AROUND:
            return "words"
        return "conversation" if "conversation" in self.reasons else "answers"


@dataclass(frozen=True, slots=True)
class Alone:
    """What the cache would have done with each call that it could serve at all. ``cosine`` is that of each call."""

    cosine: Floats  # 0 where there is nothing to serve
    joins: Mapping[int, Join]  # by call

    def served(self, threshold: float) -> list[int]:
        """Calls that it serves, exact repeats included."""
        return [call for call in self.joins if self.cosine[call] >= threshold]

    def counted(self, threshold: float) -> tuple[int, int, int]:
        """(calls served, known wrong, known right)."""
        labels = [self.joins[call].label for call in self.served(threshold)]
        return len(labels), labels.count(False), labels.count(True)

    def wrong(self, threshold: float, among: Bools | None = None) -> list[int]:
        """Calls that it serves wrongly, or likely so."""
        return [c for c in self.served(threshold) if self.joins[c].why and (among is None or among[c])]

    def by(self, calls: Sequence[int]) -> dict[str, int]:
        """How many of the calls are wrong for which reason: every key of ``WHY``."""
        found = Counter(self.joins[call].why for call in calls)
        return {why: found[why] for why in WHY}


def of_reach(view: Reach, found: Sequence[Candidate], asked: Questions) -> Alone:
    """Judges every call of the cache in shadow by the pair that joined it.

    A pair is judged once, by the first of its calls; but where the conversation differs, the answers of one pair of
    calls say nothing of another, and each is judged by its own.
    """
    by_pair = {c.pair: c for c in found if c.pair >= 0}
    by_text = {int(asked.text[c.call]): c for c in found if c.pair < 0 and not c.repeat}
    calls = np.flatnonzero(view.source >= 0).tolist()
    return Alone(view.cosine, {call: _join(call, view, by_pair, by_text, asked) for call in calls})


def _join(
    call: int, view: Reach, by_pair: Mapping[int, Candidate], by_text: Mapping[int, Candidate], asked: Questions
) -> Join:
    source, pair = int(view.source[call]), int(view.pair[call])
    elsewhere = asked.context[call] != asked.context[source]
    if pair < 0 and not elsewhere:
        return Join(None, (), label=True)
    candidate = by_pair[pair] if pair >= 0 else by_text[int(asked.text[call])]
    if not elsewhere:
        return Join(candidate, candidate.reasons, candidate.label)
    reasons = candidate.reasons if "conversation" in candidate.reasons else (*candidate.reasons, "conversation")
    label = candidate.by_hand
    if label is None:
        label = AS_LABEL[verdict(asked.answer(call), asked.answer(source), None)]
    return Join(candidate, reasons, label)
