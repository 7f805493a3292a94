"""Pairs of calls that a cache would have joined: each with its reasons, its label, and the money at stake."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefixscope.analyzer.semantic.agreement import AS_LABEL, Verdict, verdict
from prefixscope.analyzer.semantic.embedding import Embedder
from prefixscope.analyzer.semantic.labels import pair_name
from prefixscope.analyzer.semantic.matches import Matches, reasons_between
from prefixscope.analyzer.semantic.questions import Floats, Questions
from prefixscope.analyzer.semantic.threshold import Labelled
from prefixscope.analyzer.semantic.tiers import Policy, Reach

_MOST_ANSWERS: Final = 2000  # pairs whose answers are compared by vectors, the most frequent; others stay unclear
_ANSWER_CHARS: Final = 600  # of each: the embedder reads little more
_REPEAT: Final = -2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question and the earlier one whose answer it would have got."""

    name: str
    pair: int  # in Matches; -1: the same words after another conversation
    call: int
    source: int
    cosine: float
    overlap: float
    reasons: tuple[str, ...]
    calls: int  # how many calls of the traffic it stands for
    usd: float  # what the model's answers to them cost
    by_answers: Verdict  # what the recorded answers say
    by_hand: bool | None = None  # what a person said
    repeat: bool = False  # the same words after the same conversation

    @property
    def label(self) -> bool | None:
        """Whether one answer does for both; None where nobody knows."""
        if self.by_hand is not None:
            return self.by_hand
        return AS_LABEL[self.by_answers]


@dataclass(frozen=True, slots=True)
class Ground:
    """What candidates are judged by."""

    questions: Questions
    matches: Matches
    usd: Floats  # what each call cost; NaN where that is not known
    key: bytes  # names pairs
    by_hand: Mapping[str, bool]  # pair name -> label
    embedder: Embedder  # compares answers


def collect(views: Sequence[Reach], ground: Ground, *, repeats: bool = False) -> list[Candidate]:
    """Every pair that one of the views (caches in shadow) joins, the dearest first; with ``repeats`` exact ones too."""
    joined = _joined(views, ground.questions, repeats=repeats)
    answers = _answer_cosines(joined, ground.questions, ground.embedder)
    found = [_candidate(calls, ground, answers.get(calls[0][:2])) for calls in joined]
    return sorted(found, key=lambda c: (-c.usd, -c.calls, c.name))


_Join = tuple[int, int, int]  # call, source, pair


def _joined(views: Sequence[Reach], questions: Questions, *, repeats: bool) -> list[list[_Join]]:
    """The calls of each pair, those after one conversation first; joined twice with one source, a call counts once.

    The same words after different conversations are a pair too (number -1), one for each text; so are exact repeats
    (number -2), one for each prompt, where they are asked for.
    """
    found: dict[tuple[int, int], dict[tuple[int, int], None]] = defaultdict(dict)
    context = questions.context
    for view in views:
        for call in np.flatnonzero(view.source >= 0).tolist():
            source, pair = int(view.source[call]), int(view.pair[call])
            if pair < 0 and context[call] == context[source]:
                pair = _REPEAT
            if pair != _REPEAT or repeats:
                found[pair, _words(pair, call, questions)].setdefault((call, source))
    return [
        sorted(((call, source, pair) for call, source in calls), key=lambda j: context[j[0]] != context[j[1]])
        for (pair, _), calls in sorted(found.items())
    ]


def _words(pair: int, call: int, questions: Questions) -> int:
    """What the calls of a pair that has no number have in common."""
    return 0 if pair >= 0 else int(questions.key[call] if pair == _REPEAT else questions.text[call])


def _candidate(calls: list[_Join], ground: Ground, answers: float | None) -> Candidate:
    call, source, pair = calls[0]
    questions, matches = ground.questions, ground.matches
    name = pair_name(ground.key, questions.question(call), questions.question(source))
    return Candidate(
        name=name,
        pair=pair,
        call=call,
        source=source,
        cosine=float(matches.cosine[pair]) if pair >= 0 else 1.0,
        overlap=float(matches.overlap[pair]) if pair >= 0 else 1.0,
        reasons=reasons_between(call, source, matches.reasons[pair] if pair >= 0 else (), questions),
        calls=len({call for call, _, _ in calls}),
        usd=float(np.nansum([ground.usd[call] for call in {call for call, _, _ in calls}])),
        by_answers=verdict(questions.answer(call), questions.answer(source), answers),
        by_hand=ground.by_hand.get(name) if pair != _REPEAT else None,  # a label is about two questions
        repeat=pair == _REPEAT,
    )


def _answer_cosines(
    joined: list[list[_Join]], questions: Questions, embedder: Embedder
) -> dict[tuple[int, int], float]:
    """(call, source) -> cosine of their answers, of the first calls of the most frequent pairs.

    Answers that are the same word for word, or that differ in facts, need none.
    """
    by_weight = [calls[0][:2] for calls in sorted(joined, key=lambda calls: -len(calls))[:_MOST_ANSWERS]]
    pairs = [p for p in by_weight if verdict(questions.answer(p[0]), questions.answer(p[1]), None) == "unclear"]
    texts = sorted({_head(questions.answer(call)) for pair in pairs for call in pair})
    if not texts:
        return {}
    vectors, row = embedder.embed(texts), {text: n for n, text in enumerate(texts)}
    at = {call: row[_head(questions.answer(call))] for pair in pairs for call in pair}
    return {(call, source): float(vectors[at[call]] @ vectors[at[source]]) for call, source in pairs}


def _head(answer: str) -> str:
    return answer[:_ANSWER_CHARS]


def served_by(candidate: Candidate, policy: Policy) -> bool:
    """Whether a cache of that policy would join the two."""
    if policy.same_context and "conversation" in candidate.reasons:
        return False
    return as_labelled(candidate, same_context=policy.same_context).served(policy)


def as_labelled(candidate: Candidate, *, same_context: bool) -> Labelled:
    """The candidate as a pair to choose a threshold on; without a label it counts as right.

    The conversation before is a reason against it only where it is to be the same.
    """
    reasons = tuple(name for name in candidate.reasons if same_context or name != "conversation")
    same = candidate.label is not False
    return Labelled(candidate.name, candidate.cosine, candidate.overlap, reasons, same=same, calls=candidate.calls)


def labelled(candidates: Sequence[Candidate], *, same_context: bool) -> list[Labelled]:
    """The candidates whose label is known, as pairs to choose a threshold on.

    With ``same_context`` a cache never joins two conversations, so such pairs have no say.
    """
    return [
        as_labelled(c, same_context=same_context)
        for c in candidates
        if c.label is not None and not (same_context and "conversation" in c.reasons)
    ]
