"""Questions as words: what is compared of them, in lower case, contractions spelled out, with stems and numbers.

Pure. The word lists are guards.toml (closed classes) and wordnet.toml (synonyms, antonyms); both are English.
"""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from prefixscope.analyzer.semantic.extra import missing
from prefixscope.otel_plugin.canonical import canonical as spelled_alike

_TOKEN = re.compile(
    r"https?://\S+|[\w.+-]+@[\w-]+\.[\w.]+"  # links and addresses, whole
    r"|[£$€¥₹]|\d+(?:[.,:]\d+)*|%|°[cf]"  # numbers and the signs around them
    r"|[^\W\d_]+(?:'[^\W\d_]+)*"  # words, with their apostrophes
)
_CODE = re.compile(r"```.*?```|`[^`]+`|\b\w+(?:_\w+)+\b|\b\w+\([^)]*\)|\b[a-z]+[A-Z]\w*\b|(?:/[\w.-]+){2,}", re.DOTALL)
canonical = lru_cache(maxsize=512)(spelled_alike)  # a system prompt comes again and again
_QUOTES = str.maketrans(dict.fromkeys("\u2019\u2018\u02bc`", "'"))  # apostrophes as people type them


@dataclass(frozen=True, slots=True)
class Word:
    """One word, number or sign of a question."""

    text: str  # lower case
    stem: str  # what it is compared by
    capital: bool  # written with a capital although it does not begin a sentence, or all in capitals
    number: bool = False


@dataclass(frozen=True, slots=True)
class Lexicon:
    """guards.toml and wordnet.toml as loaded; every word in them by its stem."""

    contractions: Mapping[str, str]
    function: frozenset[str]  # by text, not by stem: "being" is one, "be" of "bees" is not
    negators: frozenset[str]
    negative_prefixes: tuple[str, ...]
    opposites: Mapping[str, frozenset[str]]
    synonyms: Mapping[str, frozenset[int]]  # stem -> groups of one meaning
    verbs: frozenset[str]  # stems
    quantifiers: frozenset[str]
    dates: frozenset[str]
    units: Mapping[str, str]  # text -> name of the unit
    numerals: Mapping[str, int]
    scales: Mapping[str, int]
    direction: frozenset[str]
    asks: Mapping[str, tuple[str, ...]]
    modals: Mapping[str, tuple[str, ...]]
    personal: frozenset[str]


@cache
def lexicon() -> Lexicon:
    """The packaged word lists."""
    lists, net = _toml("guards.toml"), _toml("wordnet.toml")
    functions = lists["function_words"]
    return Lexicon(
        contractions=lists["contractions"],
        function=frozenset(" ".join(functions.values()).split()),
        negators=frozenset(lists["negation"]["words"].split()),
        negative_prefixes=tuple(lists["negation"]["prefixes"]),
        opposites=_opposites(lists["opposites"]["pairs"], net["antonyms"]),
        synonyms=_synonyms(net["synonyms"] + lists["synonyms"]["groups"]),
        verbs=frozenset(map(stem, net["verbs"].split())),
        quantifiers=frozenset(lists["quantifiers"]["words"].split()),
        dates=frozenset(lists["dates"]["words"].split()),
        units={word: row.split()[0] for row in lists["units"]["names"] for word in row.split()},
        numerals=_numerals(lists["numerals"]),
        scales=lists["numerals"]["scales"],
        direction=frozenset(lists["direction"]["words"].split()),
        asks={kind: tuple(phrases) for kind, phrases in lists["asks"].items()},
        modals={kind: tuple(phrases) for kind, phrases in lists["modals"].items()},
        personal=frozenset(lists["personal"]["words"].split()),
    )


def _toml(name: str) -> Any:
    return tomllib.loads((resources.files(__package__) / name).read_text("utf-8"))


def _groups(text: str) -> list[list[str]]:
    return [row.split() for line in text.splitlines() for row in line.split(";") if row.strip()]


def _opposites(*lists: str) -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for left, right in (pair for text in lists for pair in _groups(text)):
        found[stem(left)].add(stem(right))
        found[stem(right)].add(stem(left))
    return {word: frozenset(others) for word, others in found.items()}


def _synonyms(text: str) -> Mapping[str, frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for number, group in enumerate(_groups(text)):
        for word in group:
            found[stem(word)].add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


def _numerals(lists: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {word: value for value, word in enumerate(lists["words"].split())}
    found |= {word: 10 * place for place, word in enumerate(lists["tens"].split(), 2)}
    return {word: value for word, value in found.items() if word not in lists["not_numbers"]}


@cache
def _stemmer() -> Any:
    try:
        import snowballstemmer  # type: ignore[import-untyped]  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error.name) from error
    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """What is left of a word without its inflection (Snowball's English stemmer)."""
    return str(_stemmer().stemWord(word))


def words_of(text: str) -> tuple[Word, ...]:
    """The words of a question in order."""
    return tuple(_words(text.translate(_QUOTES)))


def _words(text: str) -> Iterator[Word]:
    contractions, end = lexicon().contractions, 0
    for match in _TOKEN.finditer(text):
        token, gap = match[0], text[end : match.start()]
        starts, end = not end or bool(re.search(r"[.!?:\n]", gap)), match.end()
        if token[0].isdecimal():
            yield Word(_plain_number(token), _plain_number(token), capital=False, number=True)
            continue
        capital = token[0].isupper() and (not starts or (token.isupper() and len(token) > 1)) and not text.isupper()
        for part in _spelled_out(token.lower(), contractions):
            yield Word(part, stem(part), capital=capital and part[0] == token[0].lower())


def _spelled_out(token: str, contractions: Mapping[str, str]) -> list[str]:
    """A contraction in full; the possessive is dropped."""
    if token in contractions:
        return contractions[token].split()
    if token.endswith("n't"):
        return [token[:-3], "not"]
    base, apostrophe, tail = token.rpartition("'")
    if not apostrophe:
        return [token]
    full = {"re": "are", "ve": "have", "ll": "will", "d": "would", "m": "am"}.get(tail)
    if full is None and tail == "s" and base in {"what", "who", "where", "when", "how", "that", "there", "it", "here"}:
        full = "is"
    return [base, full] if full else [base] if tail in {"", "s"} else [base + tail]


def _plain_number(token: str) -> str:
    """12,000 and 12000 are one number; 9:15 and 9.15 are not numbers of the same kind and stay apart."""
    return token.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", token) else token.lstrip("0") or "0"


def code_in(text: str) -> frozenset[str]:
    """Identifiers, paths, calls and quoted code, as written."""
    return frozenset(match.strip("`").strip() for match in _CODE.findall(text))
