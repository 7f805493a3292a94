"""Question pairs of which it is known whether one answer does for both, and the half that nothing was tuned on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from prefixscope.analyzer.semantic import guards
from prefixscope.analyzer.semantic.embedding import MiniLM, known_words
from prefixscope.analyzer.semantic.threshold import Labelled
from prefixscope.analyzer.semantic.words import canonical

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "semantic"
_FOW = DATA / "fow" / "fow_cache" / "data"


class Pair(NamedTuple):
    """Two questions; ``same``: one answer does for both."""

    name: str
    one: str
    other: str
    same: bool


def pairs() -> list[Pair]:
    """The pairs of fow-cache (CC BY 4.0)."""
    return [Pair(row["id"], row["a"], row["b"], row["same_answer"]) for row in _rows(_FOW / "pairs.jsonl")]


class Talks(NamedTuple):
    """Pairs of conversations, by the same names: their last messages, and what the user said before."""

    last: list[Pair]
    before: list[Pair]
    equal: set[str]  # names of those that come after one and the same conversation


def conversations() -> Talks:
    """The conversation pairs of fow-cache."""
    rows = [row for file in sorted(_FOW.glob("conv-*/*.jsonl")) for row in _rows(file)]
    last = [Pair(row["id"], row["a"][-1]["content"], row["b"][-1]["content"], row["same_answer"]) for row in rows]
    before = [Pair(row["id"], _asked(row["a"]), _asked(row["b"]), row["same_answer"]) for row in rows]
    return Talks(last, before, {row["id"] for row in rows if _before(row["a"]) == _before(row["b"])})


def _asked(turns: Sequence[dict[str, str]]) -> str:
    return "\n".join(turn["content"] for turn in turns[:-1] if turn["role"] == "user")


def _before(turns: Sequence[dict[str, str]]) -> list[tuple[str, str]]:
    return [(turn["role"], canonical(turn["content"])) for turn in turns[:-1]]


def judged(found: Sequence[Pair]) -> list[Labelled]:
    """The pairs with their cosine and what the guards say."""
    embedder, known = MiniLM(), known_words()
    left, right = embedder.embed([p.one for p in found]), embedder.embed([p.other for p in found])
    cosines = (left * right).sum(axis=1).tolist()
    compared = [guards.compare(p.one, p.other, known.__contains__) for p in found]
    return [
        Labelled(p.name, cosine, c.overlap, c.reasons, same=p.same)
        for p, cosine, c in zip(found, cosines, compared, strict=True)
    ]


class Split(NamedTuple):
    """Pairs that choose and check a threshold, and those that judge it."""

    known: list[Labelled]
    held: list[Labelled]


def families(found: Sequence[Pair]) -> dict[str, str]:
    """Pair -> the first of those that it is linked to by the questions they share."""
    first: dict[str, str] = {}  # question -> pair
    linked: dict[str, str] = {}

    def root(name: str) -> str:
        while linked[name] != name:
            name = linked[name]
        return name

    for pair in found:
        linked[pair.name] = pair.name
        for question in map(canonical, (pair.one, pair.other)):
            linked[root(pair.name)] = root(first.setdefault(question, pair.name))
    return {name: root(name) for name in linked}


def splits(found: Sequence[Labelled], family: Mapping[str, str], count: int) -> Iterator[Split]:
    """Random splits, the same in every run: a third of the families is held out.

    The others get names under which the halves that choose and check are drawn anew, families together.
    """
    names = sorted({family[pair.name] for pair in found})
    for seed in range(count):
        random = Random(seed)
        held = set(random.sample(names, len(names) // 3))
        known = [replace(p, name=f"{seed} {family[p.name]}") for p in found if family[p.name] not in held]
        yield Split(known, [p for p in found if family[p.name] in held])


def best_alone(found: Sequence[Labelled], rate: float) -> int:
    """The most that any single threshold serves rightly at no higher rate of wrong answers."""
    right = most = wrong = 0
    ordered = sorted(found, key=lambda pair: -pair.cosine)
    for at, pair in enumerate(ordered):
        right, wrong = right + pair.same, wrong + (not pair.same)
        tied = at + 1 < len(ordered) and ordered[at + 1].cosine == pair.cosine
        if not tied and wrong <= rate * (right + wrong):
            most = max(most, right)
    return most


@cache
def judged_pairs() -> Sequence[Labelled]:
    """``judged(pairs())``, once in a run."""
    return tuple(judged(pairs()))


def halves(found: Sequence[Labelled]) -> tuple[list[Labelled], list[Labelled]]:
    """The half that word lists and thresholds may be tuned on, and the half that is kept for judging them."""
    tuned = [p for p in found if _is_tuned(p.name)]
    return tuned, [p for p in found if not _is_tuned(p.name)]


def _is_tuned(name: str) -> bool:
    return sha256(name.encode()).digest()[0] % 2 == 0


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)
