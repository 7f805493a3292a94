"""What differs between two questions, in their own words: what a guard's reason points at. Pure."""

from collections.abc import Callable, Iterable
from typing import Final

from prefixscope.analyzer.semantic.guards import compare, left_over
from prefixscope.analyzer.semantic.parsed import Parsed, parsed
from prefixscope.analyzer.semantic.words import Word, lexicon

_Words = Callable[[Parsed, list[Word]], Iterable[str]]


def details(one: str, other: str, known: Callable[[str], bool] = lambda _: False) -> dict[str, str]:
    """Reason -> what differs, ``Sunday / Saturday``; – where only the other has something. In the order of the two.

    Args:
        one: a question.
        other: another one.
        known: says whether a word is a common one, as in ``guards.compare``.
    """
    sides = tuple(zip(map(parsed, (one, other)), left_over(one, other, known), strict=True))
    found = {}
    for reason in compare(one, other, known).reasons:
        words = [dict.fromkeys(_OF[reason](*side)) for side in sides]
        texts = [", ".join(word for word in mine if word not in theirs) for mine, theirs in (words, words[::-1])]
        if any(texts):
            found[reason] = " / ".join(text or "–" for text in texts)
    return found


def _written(word: Word) -> str:
    return word.text.capitalize() if word.capital else word.text


def _things(_: Parsed, rest: list[Word]) -> Iterable[str]:
    return [_written(word) for word in rest if word.text not in lexicon().function]


def _dates(_: Parsed, rest: list[Word]) -> Iterable[str]:
    return [_written(word) for word in rest if word.text in lexicon().dates]


def _names(_: Parsed, rest: list[Word]) -> Iterable[str]:
    return [_written(word) for word in rest if word.capital and word.text not in lexicon().function]


def _quantifiers(_: Parsed, rest: list[Word]) -> Iterable[str]:
    return [word.text for word in rest if word.text in lexicon().quantifiers]


def _negators(question: Parsed, _: list[Word]) -> Iterable[str]:
    return [word.text for word in question.words if word.text in lexicon().negators]


def _numbers(question: Parsed, _: list[Word]) -> Iterable[str]:
    return [f"{value} {unit}".strip() for value, unit in question.numbers]


def _directed(question: Parsed, _: list[Word]) -> Iterable[str]:
    written = {word.stem: _written(word) for word in reversed(question.words)}
    return sorted(f"{word} {written[target]}" for word, target in question.directed)


_OF: Final[dict[str, _Words]] = {
    "number": _numbers,
    "unit": _numbers,
    "date": _dates,
    "negation": _negators,
    "opposite": _things,
    "direction": _directed,
    "quantifier": _quantifiers,
    "name": _names,
    "code": lambda question, _: sorted(question.code),
    "subject": _things,
    "narrower": _things,
    "ask": lambda question, _: [question.ask],
    "modal": lambda question, _: [question.modal],
}
