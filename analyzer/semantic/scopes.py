"""Who may share an answer: the scopes that are compared, the one that is chosen, and wider ones as an option.

Two scopes are safe to choose by ourselves: the default one, and the narrower one that keeps users apart too. Of those
that keep the budget the one that saves most is taken; where neither keeps it, the narrower. Wider ones are told, never
chosen: they put together what somebody kept apart, and the risk is theirs to take. Scopes that mix tenants, accounts,
system prompts or tools are not even told: their answers may hold what another must not see, or what another program
cannot use.

What a scope adds to the next narrower one is judged by itself, by the pairs that reach across what that one keeps
apart, exact repeats included: in the whole traffic their wrong answers would hide among the right ones. Half of the
pairs have a say in what is chosen; the figures that are told come from the others.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from prefixscope.analyzer.semantic import candidates
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.questions import DEFAULT_SCOPE, SCOPE_FIELDS, Ints, Questions
from prefixscope.analyzer.semantic.threshold import Measured, chooses
from prefixscope.analyzer.semantic.tiers import Reach
from prefixscope.analyzer.semantic.trial import Trial

Fields = tuple[str, ...]
Verdict = Literal["chosen", "saves_less", "too_wrong", "option", "not_judged"]

RISKS: Final = {
    "settings": "an answer may come in another format, length or temperature than was asked for",
    "service": "one service answers with the words of another",
    "model": "who pays for one model may get the answer of another",
}
"""What a wider scope no longer keeps apart, and what that may do."""

VERDICTS: Final = {
    "chosen": "replayed: the safe scope that saves most within the budget, or the strictest if none keeps it",
    "saves_less": "keeps the budget, but saves no more than the one that was replayed",
    "too_wrong": "does not keep the budget",
    "option": "keeps the budget and saves more, if you may share answers that far",
    "not_judged": "would save more, but of no pair that it adds is it known whether one answer does for both",
}


def _without(*names: str) -> Fields:
    return tuple(name for name in DEFAULT_SCOPE if name not in names)


SAFE: Final[tuple[Fields, ...]] = (DEFAULT_SCOPE, SCOPE_FIELDS)
WIDER: Final[tuple[Fields, ...]] = (*map(_without, RISKS), _without(*RISKS))


@dataclass(frozen=True, slots=True)
class Added:
    """Pairs that a scope serves and the next narrower one does not."""

    chose: Measured  # labelled ones that have a say
    checked: Measured  # labelled ones that have none
    unknown: int  # of which nobody knows whether one answer does for both


@dataclass(frozen=True, slots=True)
class Tried:
    """A scope that was compared. ``added`` is None for the narrowest."""

    fields: Fields
    verdict: Verdict
    trial: Trial
    added: Added | None

    @property
    def dropped(self) -> Fields:
        """What the default scope keeps apart, and this one does not."""
        return tuple(name for name in DEFAULT_SCOPE if name not in self.fields)


def compare(
    default: Trial, ask: Callable[[Fields], Questions], attempt: Callable[[Fields, Questions], Trial]
) -> list[Tried]:
    """Every scope that makes a difference to this traffic, the chosen one first.

    Args:
        default: the default scope, tried already.
        ask: gives the questions of a scope.
        attempt: tries a scope.
    """
    different = _Different(default.asked, ask)
    narrow = [(attempt(*found), None) for found in different(SAFE[1:])]
    base = default, _added(default, narrow[0][0].asked) if narrow else None
    worth_a_try = WIDER if _keeps(*base) else ()  # they serve all that the default scope serves wrongly
    wider = [attempt(*found) for found in different(worth_a_try)]
    tried = [base, *narrow, *((trial, _added(trial, default.asked)) for trial in wider)]
    chosen = _chosen([base, *narrow])
    found = [Tried(trial.scope, _verdict(trial, added, chosen), trial, added) for trial, added in tried]
    return sorted(found, key=lambda t: t.verdict != "chosen")


def _chosen(safe: Sequence[tuple[Trial, Added | None]]) -> Trial:
    """Of the safe scopes, the strictest last, the one to replay."""
    kept = [found for found in safe if _keeps(*found)] or [safe[-1]]
    return max((trial for trial, _ in kept), key=lambda trial: (trial.saved_usd, trial.deflected))


class _Different:
    """Tells scopes that make a difference from those that part the calls like one before."""

    def __init__(self, default: Questions, ask: Callable[[Fields], Questions]) -> None:
        self._ask, self._seen = ask, [_parts(default)]

    def __call__(self, scopes: Iterable[Fields]) -> Iterator[tuple[Fields, Questions]]:
        for fields in scopes:
            asked = self._ask(fields)
            parts = _parts(asked)
            if not any(np.array_equal(parts, known) for known in self._seen):
                self._seen.append(parts)
                yield fields, asked


def _parts(asked: Questions) -> Ints:
    """Which calls that may be served share a scope: numbers in the order of first appearance."""
    _, first, part = np.unique(asked.scope[asked.exact], return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[part], dtype=np.int64)


def _keeps(trial: Trial, added: Added | None) -> bool:
    """Judged by the pairs that have a say; where none is labelled, nothing speaks against it."""
    assert trial.choice is not None
    kept = trial.choice.policy is not None or not trial.choice.labels
    return kept and (added is None or added.chose.keeps(trial.choice.budget))


def _verdict(trial: Trial, added: Added | None, chosen: Trial) -> Verdict:
    assert trial.choice is not None
    if trial is chosen:
        return "chosen"
    if not _keeps(trial, added) or (added and not added.checked.keeps(trial.choice.budget)):
        return "too_wrong"
    if (trial.saved_usd, trial.deflected) <= (chosen.saved_usd, chosen.deflected):
        return "saves_less"
    return "option" if added and added.checked.served else "not_judged"


def _added(trial: Trial, narrower: Questions) -> Added:
    """What the trial serves from beyond the narrower scope."""
    assert trial.ground is not None
    source = trial.served.source
    beyond = (source >= 0) & (narrower.scope != narrower.scope[source])
    pair = np.array([_pair(trial, call) if beyond[call] else -1 for call in range(len(source))], dtype=np.int64)
    far = Reach(np.where(beyond, source, -1), pair, trial.served.cosine)
    ground = replace(trial.ground, by_hand={})  # a label by hand is about two questions, not about who asks them
    pairs = candidates.collect([far], ground, repeats=True)
    say, rest = [c for c in pairs if chooses(c.name)], [c for c in pairs if not chooses(c.name)]
    return Added(_measured(say), _measured(rest), sum(c.label is None for c in pairs))


def _pair(trial: Trial, call: int) -> int:
    """The pair in ``Matches`` that joined a served call to its source; -1: the same words."""
    assert trial.matches is not None
    text, other = int(trial.asked.text[call]), int(trial.asked.text[trial.served.source[call]])
    if text == other:
        return -1
    return next(pair for pair in trial.matches.of_text(text) if trial.matches.other(pair, text) == other)


def _measured(pairs: Sequence[Candidate]) -> Measured:
    known = [pair for pair in pairs if pair.label is not None]
    wrong = [pair for pair in known if not pair.label]
    return Measured(len(known), len(wrong), sum(c.calls for c in known), sum(c.calls for c in wrong))
