"""Question pairs of which it is known whether one answer does for both, and the half that nothing was tuned on."""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
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


def conversations() -> tuple[list[Pair], set[str]]:
    """The last messages of its conversation pairs, and the names of those that come after one and the same talk."""
    rows = [row for file in sorted(_FOW.glob("conv-*/*.jsonl")) for row in _rows(file)]
    found = [Pair(row["id"], row["a"][-1]["content"], row["b"][-1]["content"], row["same_answer"]) for row in rows]
    return found, {row["id"] for row in rows if _before(row["a"]) == _before(row["b"])}


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


def halves(found: Sequence[Labelled]) -> tuple[list[Labelled], list[Labelled]]:
    """The half that word lists and thresholds may be tuned on, and the half that is kept for judging them."""
    tuned = [p for p in found if _is_tuned(p.name)]
    return tuned, [p for p in found if not _is_tuned(p.name)]


def _is_tuned(name: str) -> bool:
    return sha256(name.encode()).digest()[0] % 2 == 0


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_text("utf-8").splitlines():
        yield json.loads(line)
