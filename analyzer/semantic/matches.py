"""Pairs of alike questions with everything that is known of them: what the guards say, and whether answers agree."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prefixscope.analyzer.semantic import guards
from prefixscope.analyzer.semantic.neighbours import Pairs
from prefixscope.analyzer.semantic.parsed import is_personal
from prefixscope.analyzer.semantic.questions import Bools, Floats, Ints, Questions


@dataclass(frozen=True, slots=True)
class Matches:
    """Pairs of texts, and for each text the pairs it is part of, the most alike first (``slots`` of ``offsets``)."""

    later: Ints
    earlier: Ints
    cosine: Floats
    overlap: Floats
    reasons: tuple[tuple[str, ...], ...]  # of the questions alone: ``conversation`` and ``personal`` depend on calls
    offsets: Ints  # text -> its first slot
    slots: Ints  # pair of each slot

    def __len__(self) -> int:
        return len(self.later)

    def of_text(self, text: int) -> Sequence[int]:
        """The pairs of a text, the most alike first."""
        found: list[int] = self.slots[self.offsets[text] : self.offsets[text + 1]].tolist()
        return found

    def other(self, pair: int, text: int) -> int:
        """The other text of a pair."""
        return int(self.earlier[pair] if self.later[pair] == text else self.later[pair])

    def passing(self, *, guarded: bool, overlap: float) -> Bools:
        """Pairs that the guards let pass."""
        free = np.array([not found for found in self.reasons], dtype=np.bool_)
        return (free if guarded else np.ones(len(self), dtype=np.bool_)) & (self.overlap >= overlap)


def of_pairs(pairs: Pairs, questions: Questions, known: Callable[[str], bool]) -> Matches:
    """Compares the questions of each pair."""
    texts = questions.texts
    found = [
        guards.compare(texts[a], texts[b], known)
        for a, b in zip(pairs.later.tolist(), pairs.earlier.tolist(), strict=True)
    ]
    ends = np.concatenate([pairs.later, pairs.earlier])
    order = np.lexsort((-np.tile(pairs.cosine, 2), ends))
    return Matches(
        later=pairs.later,
        earlier=pairs.earlier,
        cosine=pairs.cosine,
        overlap=np.array([c.overlap for c in found], dtype=np.float64),
        reasons=tuple(c.reasons for c in found),
        offsets=np.searchsorted(ends[order], np.arange(len(texts) + 1)).astype(np.int64),
        slots=np.tile(np.arange(len(pairs)), 2)[order].astype(np.int64),
    )


def reasons_between(one: int, other: int, pair_reasons: Sequence[str], questions: Questions) -> tuple[str, ...]:
    """The reasons of a pair of calls: those of their questions, and what stands around them."""
    found = list(pair_reasons)
    if questions.context[one] != questions.context[other]:
        found.append("conversation")
    if _speakers_differ(one, other, questions):
        found.append("personal")
    return tuple(name for name in guards.REASONS if name in found)


def _speakers_differ(one: int, other: int, questions: Questions) -> bool:
    users = questions.user(one), questions.user(other)
    text = questions.texts[questions.text[one]]
    return bool(all(users)) and users[0] != users[1] and is_personal(text)


def slot(call: int, text: int, questions: Questions, *, same_context: bool) -> tuple[int, int]:
    """Where an answer to ``text`` would be found by ``call``: by text and, if it counts, by the conversation before."""
    return text, int(questions.context[call]) if same_context else -1


def occurrences(questions: Questions, *, same_context: bool) -> Mapping[tuple[int, int], tuple[list[int], list[int]]]:
    """Slot -> when its answers were there (UTC ns, ascending), and the calls that they belong to."""
    calls = np.flatnonzero(questions.semantic)
    found: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    for call in calls[np.argsort(questions.ended[calls], kind="stable")].tolist():
        key = slot(call, int(questions.text[call]), questions, same_context=same_context)
        ends, owners = found.setdefault(key, ([], []))
        ends.append(int(questions.ended[call]))
        owners.append(call)
    return found
