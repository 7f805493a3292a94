"""What makes two questions different although they look alike: reasons why one must not get the other's answer.

Pure. A pair is compared word by word: words that both have are set aside (by stem, spelling variant, synonym or
acronym), and what is left over on either side is looked at. Measured on labelled pairs in ``tests/bench/semantic.py``.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from prefixscope.analyzer.semantic.parsed import Parsed, parsed
from prefixscope.analyzer.semantic.words import Lexicon, Word, lexicon

REASONS: Final = {
    "number": "the numbers differ",
    "unit": "the units differ",
    "date": "days, months or times differ",
    "negation": "only one of them says “not”",
    "opposite": "they say opposite things",
    "direction": "the same things in exchanged parts: from and to, before and after",
    "quantifier": "how many or which of them differs",
    "name": "names differ",
    "code": "code, identifiers or paths differ",
    "subject": "one or two words differ, and all else is the same",
    "narrower": "one of them asks about a special case: it has a word or two more",
    "ask": "they ask for different things: when, where, how much",
    "modal": "one asks what is allowed, the other what is required",
    "conversation": "the conversation before them differs",
    "personal": "about the speaker, and the speakers differ",
}
"""Every reason, in the order in which they are told, and what it says."""


_FEW: Final = 2  # words
_MANY: Final = 40  # words left over on one side: no rewording any more, and comparing all with all would take long


class Comparison(NamedTuple):
    """Why two questions are not the same (empty = no reason known), and the share of words that both have (0..1)."""

    reasons: tuple[str, ...]
    overlap: float


def compare(one: str, other: str, known: Callable[[str], bool] = lambda _: False) -> Comparison:
    """Compares two questions; symmetric.

    ``known`` says whether a word is a common one, so that it is no misspelling of another.
    """
    a, b = parsed(one), parsed(other)
    left, right = _left_over(a, b, known)
    reasons = {reason for reason, differs in _CHECKS.items() if differs(a, b, left, right)}
    return Comparison(tuple(name for name in REASONS if name in reasons), _overlap(a, b, left, right))


# --- Setting aside what both have ---


def left_over(one: str, other: str, known: Callable[[str], bool] = lambda _: False) -> tuple[list[Word], list[Word]]:
    """Words of each question, function words included, that have no counterpart in the other."""
    return _left_over(parsed(one), parsed(other), known)


def _left_over(a: Parsed, b: Parsed, known: Callable[[str], bool]) -> tuple[list[Word], list[Word]]:
    """Words of each question, function words included, that have no counterpart in the other."""
    left, right = _without(a.words, b.words), _without(b.words, a.words)
    if max(len(left), len(right)) <= _MANY:
        for fits in (_same_meaning, lambda x, y: _misspelled(x, y, known)):
            left, right = _matched(left, right, fits)
    return _without_acronyms(left, b), _without_acronyms(right, a)


def _without(words: Iterable[Word], others: Iterable[Word]) -> list[Word]:
    """A word said twice needs no second counterpart."""
    stems = {word.stem for word in others}
    joined = {word.text for word in others}
    return [word for word in words if word.stem not in stems and word.text not in joined]


def _matched(left: list[Word], right: list[Word], fits: Callable[[Word, Word], bool]) -> tuple[list[Word], list[Word]]:
    taken: set[int] = set()
    rest = []
    for word in left:
        partner = next((n for n, other in enumerate(right) if n not in taken and fits(word, other)), None)
        if partner is None:
            rest.append(word)
        else:
            taken.add(partner)
    return rest, [word for n, word in enumerate(right) if n not in taken]


def _same_meaning(one: Word, other: Word) -> bool:
    lists = lexicon()
    if one.number or other.number or other.stem in lists.opposites.get(one.stem, ()):
        return False
    shared = lists.synonyms.get(one.stem, frozenset()) & lists.synonyms.get(other.stem, frozenset())
    return bool(shared) or (one.text in lists.units and lists.units.get(other.text) == lists.units[one.text])


def _misspelled(one: Word, other: Word, known: Callable[[str], bool]) -> bool:
    """One of them is no known word, and it takes few strokes to make it the other."""
    if one.number or other.number or known(one.text) == known(other.text):
        return False
    longest, shortest = max(len(one.text), len(other.text)), min(len(one.text), len(other.text))
    most = 1 if longest < 7 else 2
    return longest >= 4 and longest - shortest <= most and _strokes(one.text, other.text) <= most


def _strokes(one: str, other: str) -> int:
    """Insertions, deletions, exchanges and swaps of neighbours (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        previous, before, row = before, row, [i]
        for j, y in enumerate(other, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == other[j - 2] and one[i - 2] == y:
                best = min(best, previous[j - 2] + 1)
            row.append(best)
    return row[-1]


def _without_acronyms(left: list[Word], other: Parsed) -> list[Word]:
    """Without words that are the initials of words in the other question."""
    initials = "".join(word.text[0] for word in other.words)
    return [word for word in left if not (2 <= len(word.text) <= 6 and word.capital and word.text in initials)]


def _overlap(a: Parsed, b: Parsed, left: list[Word], right: list[Word]) -> float:
    """Share of the words with a meaning of their own, of both questions, that the other one has too."""
    total = len(a.content) + len(b.content) + len(a.numbers) + len(b.numbers)
    content = {*a.content, *b.content}
    missing = sum(word in content for word in (*left, *right))
    return 1.0 - missing / total if total else 1.0


# --- The reasons ---


def _differ(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    return Counter(value for value, _ in a.numbers) != Counter(value for value, _ in b.numbers)


def _units_differ(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    """A unit that only one of them names is no difference; the values are those of ``number``."""
    units = [{value: unit for value, unit in p.numbers if unit} for p in (a, b)]
    return any(units[1].get(value, unit) != unit for value, unit in units[0].items())


def _negated(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    return a.negations % 2 != b.negations % 2


def _opposite(_: Parsed, __: Parsed, left: list[Word], right: list[Word]) -> bool:
    lists = lexicon()
    for one in left:
        against = lists.opposites.get(one.stem, frozenset())
        if any(other.stem in against or _prefixed(one.text, other.text, lists) for other in right):
            return True
    return _negative_prefix(left, right, lists)


def _prefixed(one: str, other: str, lists: Lexicon) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= 3 and any(long == prefix + short for prefix in lists.negative_prefixes)


def _negative_prefix(left: list[Word], right: list[Word], lists: Lexicon) -> bool:
    """Told by the prefix alone, as in "non-refundable", which is two words."""
    return any(word.text in lists.negative_prefixes and word.text in {"non", "un", "anti"} for word in (*left, *right))


def _exchanged(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    """A direction word stands before something else, and both things are in both questions."""
    stems = {word.stem for word in a.words} & {word.stem for word in b.words}
    of_a, of_b = a.directed - b.directed, b.directed - a.directed
    return any(one == other and {target, elsewhere} <= stems for one, target in of_a for other, elsewhere in of_b)


def _any_of(words: Callable[[Lexicon], frozenset[str]]) -> "_Check":
    def differs(_: Parsed, __: Parsed, left: list[Word], right: list[Word]) -> bool:
        return any(word.text in words(lexicon()) for word in (*left, *right))

    return differs


def _dates_differ(a: Parsed, b: Parsed, left: list[Word], right: list[Word]) -> bool:
    courtesy = {"morning", "afternoon", "evening"}
    greeted = [p for p in (a, b) if p.words and p.words[0].text == "good"]
    skipped = courtesy if greeted else set()
    return any(word.text in lexicon().dates and word.text not in skipped for word in (*left, *right))


def _names_differ(_: Parsed, __: Parsed, left: list[Word], right: list[Word]) -> bool:
    return any(word.capital and word.text not in lexicon().function for word in (*left, *right))


def _code_differs(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    return a.code != b.code


def _thing_exchanged(a: Parsed, b: Parsed, left: list[Word], right: list[Word]) -> bool:
    """One or two words that are no verbs stand where the other question has others.

    A verb is often reworded (set up, create), a thing or a quality seldom; where most words differ, it is a rewording.
    """
    lists = lexicon()
    gone, come = _things(left), _things(right)
    few = (
        0 < len(gone) <= _FEW
        and 0 < len(come) <= _FEW
        and len(gone) + len(come) < (len(a.content) + len(b.content)) / 2
    )
    return few and not all(w.stem in lists.verbs for w in gone) and not all(w.stem in lists.verbs for w in come)


def _special_case(_: Parsed, __: Parsed, left: list[Word], right: list[Word]) -> bool:
    """One question has all that the other has, and one or two things or qualities more: flu, flu in babies."""
    gone, come = _things(left), _things(right)
    more = gone or come
    return not (gone and come) and 0 < len(more) <= _FEW and not all(w.stem in lexicon().verbs for w in more)


def _things(words: list[Word]) -> list[Word]:
    return [word for word in words if word.text not in lexicon().function]


def _asks_differ(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    return bool(a.ask and b.ask and a.ask != b.ask)


def _modals_differ(a: Parsed, b: Parsed, *_: list[Word]) -> bool:
    return bool(a.modal and b.modal and a.modal != b.modal)


_Check = Callable[[Parsed, Parsed, list[Word], list[Word]], bool]
_CHECKS: Final[dict[str, _Check]] = {
    "number": _differ,
    "unit": _units_differ,
    "date": _dates_differ,
    "negation": _negated,
    "opposite": _opposite,
    "direction": _exchanged,
    "quantifier": _any_of(lambda lists: lists.quantifiers),
    "name": _names_differ,
    "code": _code_differs,
    "subject": _thing_exchanged,
    "narrower": _special_case,
    "ask": _asks_differ,
    "modal": _modals_differ,
}
