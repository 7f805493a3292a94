"""Atoms: the pieces of all contents, joined wherever they never part.

Two pieces that always stand side by side carry no information apart, so they become one atom. A static prompt of a
thousand lines is one atom; the same prompt with a clock in it is three. Everything behind works on atoms.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints

LEVELS = ("tools", "system", "messages")


@dataclass(frozen=True, slots=True)
class Contents:
    """Distinct segments by number, and the atoms each is made of."""

    level: Ints  # index into LEVELS
    kind: pl.Series
    role: pl.Series
    header: Ids  # hash of level, kind and role: what makes equal text in another place another content
    canonical: Ids  # equal for tools that differ in key order only
    offsets: Ints  # content -> its rows in the next three
    atom: Ints  # number of the atom
    size: Floats  # bytes
    volatile: Bools  # made of volatile spans by shape
    atom_ids: Ids  # atom -> a 64-bit id that is the same in every store made with one key
    atom_kinds: pl.Series  # atom -> its volatile kind, "" = none

    @property
    def atom_bytes(self) -> Floats:
        found = np.zeros(len(self.atom_ids))
        found[self.atom] = self.size
        return found


def contents_of(table: pa.Table) -> Contents:
    """Joins the pieces of ``queries/analysis/contents`` into atoms."""
    frame = pl.DataFrame(pl.from_arrow(table.select(["level", "kind", "role", "canonical_id"])))
    pieces = table["piece_ids"].combine_chunks()
    offsets = pieces.offsets.to_numpy().astype(np.int64)
    ids, number = ragged.factorize(pieces.flatten().to_numpy())
    sizes = table["piece_bytes"].combine_chunks().flatten().to_numpy().astype(np.float64)
    kinds = pl.Series(pl.from_arrow(table["piece_kinds"].combine_chunks().flatten()), dtype=pl.String)
    starts = _atom_starts(number, offsets, len(ids))
    at = np.flatnonzero(starts)
    atom_ids, atom = ragged.factorize(number[at])
    kind_of_piece = np.zeros(len(ids), dtype=np.int64)
    kind_of_piece[number] = np.arange(len(number))
    return Contents(
        level=frame["level"].replace_strict({name: i for i, name in enumerate(LEVELS)}, return_dtype=pl.Int64).to_numpy(),
        kind=frame["kind"],
        role=frame["role"],
        header=_hashes(frame.select(pl.concat_str(["level", "kind", "role"], separator="\0")).to_series()),
        canonical=frame["canonical_id"].to_numpy(),
        offsets=np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(starts)])[offsets],
        atom=atom,
        size=np.add.reduceat(sizes, at) if len(at) else sizes,
        volatile=(kinds.gather(at) != "").to_numpy(),
        atom_ids=ids[atom_ids],
        atom_kinds=kinds.gather(kind_of_piece[atom_ids]),
    )


def _atom_starts(number: Ints, offsets: Ints, pieces: int) -> Bools:
    """Which rows begin an atom: all but those that always follow one and the same piece which they alone follow."""
    first = np.zeros(len(number), dtype=np.bool_)
    first[offsets[:-1][np.diff(offsets) > 0]] = True
    pairs = np.flatnonzero(~first)
    left, right = number[pairs - 1], number[pairs]
    follower, follower_mixed = _only_partner(left, right, pieces)
    _, leader_mixed = _only_partner(right, left, pieces)
    ends, begins = np.zeros(pieces, dtype=np.bool_), np.zeros(pieces, dtype=np.bool_)
    ends[number[offsets[1:][np.diff(offsets) > 0] - 1]] = True
    begins[number[first]] = True
    inseparable = ~(ends | follower_mixed)[left] & ~(begins | leader_mixed)[right] & (follower[left] == right)
    first[pairs[~inseparable]] = True
    return first


def _only_partner(of: Ints, partner: Ints, pieces: int) -> tuple[Ints, Bools]:
    """For each piece one partner it was seen with, and whether there were several."""
    seen = np.full(pieces, -1, dtype=np.int64)
    seen[of] = partner
    mixed = np.zeros(pieces, dtype=np.bool_)
    mixed[of[seen[of] != partner]] = True
    return seen, mixed


def _hashes(texts: pl.Series) -> Ids:
    return texts.hash(seed=7).to_numpy()
