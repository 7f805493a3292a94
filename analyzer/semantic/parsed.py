"""One question taken apart: its words, numbers with units, negations, code, and what it asks for. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from prefixscope.analyzer.semantic.words import Lexicon, Word, code_in, lexicon, words_of


@dataclass(frozen=True, slots=True)
class Parsed:
    """One question, taken apart once."""

    words: tuple[Word, ...]
    content: tuple[Word, ...]  # without function words
    numbers: tuple[tuple[str, str], ...]  # value, unit ("" = none), sorted
    negations: int
    code: frozenset[str]
    directed: frozenset[tuple[str, str]]  # direction word, stem of what it stands before
    ask: str
    modal: str


@lru_cache(maxsize=1 << 16)
def parsed(text: str) -> Parsed:
    """Takes a question apart; the last ones are remembered."""
    lists, words = lexicon(), words_of(text)
    numbers, rest = _numbers(words, lists)
    content = tuple(word for word in rest if word.text not in lists.function)
    plain = f" {' '.join(word.text for word in words)} "
    return Parsed(
        words=words,
        content=content,
        numbers=numbers,
        negations=sum(word.text in lists.negators for word in words),
        code=code_in(text),
        directed=frozenset(_directed(words, lists)),
        ask=_kind(plain, lists.asks),
        modal=_kind(plain, lists.modals),
    )


def _numbers(words: tuple[Word, ...], lists: Lexicon) -> tuple[tuple[tuple[str, str], ...], list[Word]]:
    """Numbers with their units, and the words that are no part of them."""
    found: list[tuple[str, str]] = []
    rest: list[Word] = []
    at = 0
    while at < len(words):
        value, after = _number_at(words, at, lists)
        if value is None:
            rest.append(words[at])
            at += 1
            continue
        unit = ""
        if rest and rest[-1].text in "£$€¥₹":
            unit = lists.units.get(rest.pop().text, "")
        elif after < len(words) and (name := lists.units.get(words[after].text)):
            unit, after = name, after + 1
        found.append((value, unit))
        at = after
    return tuple(sorted(found)), rest


def _number_at(words: tuple[Word, ...], at: int, lists: Lexicon) -> tuple[str | None, int]:
    """The number that begins there, in digits, and where it ends: 100, a hundred and fifty, 2 million, 3rd."""
    value: Decimal | None = None
    text = words[at].text
    if words[at].number:
        if not text.replace(".", "", 1).isdecimal():
            return text, at + 1  # a time of day, a version
        value, at = Decimal(text), at + 1
        if at < len(words) and words[at].text in {"st", "nd", "rd", "th"}:
            at += 1
    while at < len(words) and not words[at].number:
        word = words[at].text
        if word in lists.scales and value is not None:
            value *= lists.scales[word]
        elif word in lists.numerals:
            value = lists.numerals[word] + (value if value is not None and value >= 20 else Decimal(0))
        else:
            break
        at += 1
    return (None, at) if value is None else (_plain(value), at)


def _plain(value: Decimal) -> str:
    """All digits of a number, without zeros that say nothing: 12.50 is 12.5."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _directed(words: tuple[Word, ...], lists: Lexicon) -> Iterator[tuple[str, str]]:
    """Each direction word with the next word that has a meaning of its own."""
    for at, word in enumerate(words):
        if word.text in lists.direction:
            ahead = words[at + 1 : at + 4]
            target = next((w.stem for w in ahead if w.number or w.text not in lists.function), "")
            if target:
                yield word.text, target


def _kind(plain: str, kinds: Mapping[str, tuple[str, ...]]) -> str:
    """The kind whose phrase comes first, "" where there is none."""
    starts = [(plain.find(f" {phrase} "), kind) for kind, phrases in kinds.items() for phrase in phrases]
    return min(((at, kind) for at, kind in starts if at >= 0), default=(0, ""))[1]


def is_personal(text: str) -> bool:
    """Whether the speaker means what is his alone."""
    return any(word.text in lexicon().personal for word in parsed(text).words)
