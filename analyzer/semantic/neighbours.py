"""Which questions of one scope are alike: for each its nearest earlier ones, by cosine.

Small scopes are compared all with all; large ones through an HNSW index (usearch), filled in the order of first asking
and searched block by block before the block is added, so that a question finds earlier ones only.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from prefixscope.analyzer.semantic.embedding import Vectors
from prefixscope.analyzer.semantic.extra import missing
from prefixscope.analyzer.semantic.questions import Bools, Floats, Ints

NEAREST: Final = 8
FLOOR: Final = 0.6  # cosine below which nothing is looked at
_ALL_WITH_ALL: Final = 4096
_BLOCK: Final = 1024
_CONNECTIVITY, _EXPANSION_ADD, _EXPANSION_SEARCH = 16, 64, 64


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of alike texts of one scope, each once: ``later`` was first asked after ``earlier``."""

    later: Ints
    earlier: Ints
    cosine: Floats

    def __len__(self) -> int:
        return len(self.later)


def comparable(scope: Ints) -> Bools:
    """Texts that are not alone in their scope."""
    _, place, count = np.unique(scope, return_inverse=True, return_counts=True)
    return np.asarray(count[place] > 1, dtype=np.bool_)


def find(vectors: Vectors, scope: Ints, *, floor: float = FLOOR, nearest: int = NEAREST) -> Pairs:
    """For each text its ``nearest`` earlier ones in its scope whose cosine is at least ``floor``.

    Args:
        vectors: a row a text, in the order of first asking.
        scope: the scope of each text.
        floor: the lowest cosine that counts.
        nearest: how many are kept for each text.
    """
    parts = []
    order = np.argsort(scope, kind="stable")
    starts = np.flatnonzero(np.diff(scope[order], prepend=-1))
    for members in np.split(order, starts[1:]) if len(order) else []:
        if len(members) > 1:
            search = _all_with_all if len(members) <= _ALL_WITH_ALL else _by_index
            later, earlier, cosine = search(vectors[members], floor, nearest)
            parts.append((members[later], members[earlier], cosine))
    if not parts:
        empty = np.zeros(0, dtype=np.int64)
        return Pairs(empty, empty, np.zeros(0))
    later, earlier, cosine = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Pairs(later.astype(np.int64), earlier.astype(np.int64), cosine.astype(np.float64))


_Found = tuple[Ints, Ints, Floats]


def _all_with_all(vectors: Vectors, floor: float, nearest: int) -> _Found:
    parts = [
        _kept(vectors[start : start + _BLOCK] @ vectors[: start + _BLOCK].T, start, floor, nearest)
        for start in range(0, len(vectors), _BLOCK)
    ]
    return _joined(parts)


def _kept(cosines: Any, start: int, floor: float, nearest: int) -> _Found:
    """The best of each row among the columns before it."""
    rows, columns = cosines.shape
    cosines[np.arange(columns)[None, :] >= (start + np.arange(rows))[:, None]] = -np.inf
    width = min(nearest, columns)
    best = np.argpartition(-cosines, width - 1, axis=1)[:, :width]
    value = np.take_along_axis(cosines, best, axis=1)
    row, slot = np.nonzero(value >= floor)
    return row + start, best[row, slot], value[row, slot]


def _by_index(vectors: Vectors, floor: float, nearest: int) -> _Found:
    try:
        from usearch.index import Index  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise missing(error.name) from error
    index = Index(
        ndim=vectors.shape[1],
        metric="cos",
        dtype="f16",
        connectivity=_CONNECTIVITY,
        expansion_add=_EXPANSION_ADD,
        expansion_search=_EXPANSION_SEARCH,
    )
    parts = []
    for start in range(0, len(vectors), _BLOCK):
        block = vectors[start : start + _BLOCK]
        if start:
            parts.append(_searched(index, vectors, start, (floor, nearest)))
        row, column, value = _kept(block @ block.T, 0, floor, nearest)
        parts.append((row + start, column + start, value))
        index.add(np.arange(start, start + len(block), dtype=np.uint64), block)
    return _best(*_joined(parts), nearest)


def _searched(index: Any, vectors: Vectors, start: int, limits: tuple[float, int]) -> _Found:
    """What the index knows of the block that starts there; the cosine is taken from the full vectors."""
    block, (floor, nearest) = vectors[start : start + _BLOCK], limits
    keys = np.asarray(index.search(block, nearest).keys, dtype=np.int64).reshape(len(block), -1)
    value = np.einsum("rd,rkd->rk", block, vectors[keys])
    row, slot = np.nonzero(value >= floor)
    return row + start, keys[row, slot], value[row, slot]


def _joined(parts: list[_Found]) -> _Found:
    later, earlier, cosine = (np.concatenate(column) for column in zip(*parts, strict=True))
    return later, earlier, cosine


def _best(later: Ints, earlier: Ints, cosine: Floats, nearest: int) -> _Found:
    order = np.lexsort((-cosine, later))
    later, earlier, cosine = later[order], earlier[order], cosine[order]
    first = np.searchsorted(later, later)
    kept = np.arange(len(later)) - first < nearest
    return later[kept], earlier[kept], cosine[kept]
