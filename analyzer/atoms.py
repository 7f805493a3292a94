"""Atoms: the pieces of all contents, joined wherever they never part.

Two pieces that always stand side by side carry no information apart, so they become one atom. A static prompt of a
thousand lines is one atom; the same prompt with a clock in it is three. Everything behind works on atoms.

Pieces come in units (a line, a sentence). A unit counts as a whole unless texts part next to it: only there is the
break looked for among its pieces.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints

LEVELS = ("tools", "system", "messages")
# Tokens a byte of volatile spans against English Markdown, measured with o200k_base on 300 random spans of each kind.
DENSITY = {
    "timestamp": 2.3,
    "uuid": 2.5,
    "hash": 2.3,
    "epoch": 1.6,
    "random_id": 2.5,
    "counter": 1.5,
    "address": 2.1,
}
_REFERRING = ("tool_call", "tool_result")  # kinds of segments that name the call they are of
_REFERENCE = np.uint64(0x7265666572)
_IDS = ("random_id", "uuid", "hash")
# An image counts by its pixels, not by the bytes of its file: (w·h)/750 and at most 1,600 tokens at Anthropic, 85 and
# 170 a tile at OpenAI, 258 a tile at Gemini. A larger file weighs as a thousand tokens of prose.
_IMAGE_WEIGHT = 4000.0


@dataclass(frozen=True, slots=True)
class Contents:
    """Distinct segments by number, and the atoms each is made of."""

    level: Ints  # index into LEVELS
    kind: pl.Series
    role: pl.Series
    header: Ids  # hash of level, kind and role: what makes equal text in another place another content
    canonical: Ids  # equal for tools that differ in key order only
    offsets: Ints  # content -> its rows in ``atom``
    atom: Ints  # number of the atom
    atom_ids: Ids  # atom -> a 64-bit id that depends on its text and the key alone
    atom_marks: Ids  # atom -> its longest part, which an atom that is cut in two hands on to one of them
    atom_kinds: pl.Series  # atom -> its volatile kind, "" = static text, or text of several kinds
    atom_bytes: Floats
    atom_weight: Floats  # bytes, counted higher where they make more tokens than prose does; references left out
    reference_weight: Floats  # content -> the same of the id that joins a tool's call and its result; 0 = none


@dataclass(frozen=True, slots=True)
class _Items:
    """Parts of contents, row by row: pieces, units or atoms."""

    offsets: Ints  # content -> its rows
    ids: Ids
    size: Floats
    weight: Floats
    kind: Ints  # index into the names of volatile kinds; 0 = static text, or text of several kinds


def contents_of(table: pa.Table) -> Contents:
    """Joins the pieces of ``queries/analysis/contents`` into atoms."""
    frame = pl.DataFrame(pl.from_arrow(table.select(["level", "kind", "role", "canonical_id"])))
    begins_unit = ~_flat(table, "piece_continues").astype(np.bool_)
    pieces, kinds = _pieces(table)
    refers = _references(pieces, kinds, frame["kind"].is_in(_REFERRING).to_numpy())
    reference_weight = ragged.group_sums(np.where(refers, pieces.weight, 0.0), pieces.offsets)
    pieces = replace(
        pieces,
        weight=np.where(refers, 0.0, pieces.weight),
        ids=np.where(refers, ragged.mix(pieces.ids ^ _REFERENCE), pieces.ids),  # another piece than the id in a text
    )
    parts = _parts(pieces, begins_unit, kinds)
    del pieces
    _, number = ragged.factorize(parts.ids)
    starts = _atom_starts(number, parts.offsets)
    atoms = _grouped(parts, starts)
    ids, atom = ragged.factorize(atoms.ids)
    example = np.zeros(len(ids), dtype=np.int64)
    example[atom] = np.arange(len(atom))
    weight = _of_pixels(atoms, (frame["kind"] == "image").to_numpy())
    header = frame.select(pl.concat_str(["level", "kind", "role"], separator="\0")).to_series()
    return Contents(
        level=frame["level"].cast(pl.Enum(LEVELS)).to_physical().cast(pl.Int64).to_numpy(),
        kind=frame["kind"],
        role=frame["role"],
        header=header.hash(seed=7).to_numpy(),
        canonical=frame["canonical_id"].to_numpy(),
        offsets=atoms.offsets,
        atom=atom,
        atom_ids=ids,
        atom_marks=_marks(parts, starts)[example],
        atom_kinds=kinds.gather(atoms.kind[example]),
        atom_bytes=atoms.size[example],
        atom_weight=weight[example],
        reference_weight=reference_weight,
    )


def _of_pixels(items: _Items, is_image: Bools) -> Floats:
    """Weights, with those of large images brought down."""
    whole = ragged.group_sums(items.weight, items.offsets)
    scale = np.where(is_image & (whole > _IMAGE_WEIGHT), _IMAGE_WEIGHT / np.maximum(whole, 1.0), 1.0)
    return items.weight * scale[ragged.owners(items.offsets)]


def _references(pieces: _Items, kinds: pl.Series, refers: Bools) -> Bools:
    """Which pieces are the first id of a tool's call or of its result, which joins the two.

    What it weighs is not told by its bytes: a template may render it or leave it out.
    """
    owner = ragged.owners(pieces.offsets)
    ids = np.flatnonzero(kinds.is_in(_IDS).to_numpy()[pieces.kind] & refers[owner])
    found = np.zeros(len(owner), dtype=np.bool_)
    found[ids[np.flatnonzero(np.diff(owner[ids], prepend=-1))]] = True
    return found


def _pieces(table: pa.Table) -> tuple[_Items, pl.Series]:
    """The pieces, and the names of their volatile kinds, "" the first."""
    encoded = table["piece_kinds"].combine_chunks().flatten().dictionary_encode()
    found = pl.Series(pl.from_arrow(encoded.dictionary), dtype=pl.String)
    kinds = pl.concat([pl.Series([""]), found.filter(found != "")])
    code = np.array([kinds.index_of(name) for name in found], dtype=np.int8)
    kind = code[encoded.indices.to_numpy()] if len(code) else np.zeros(0, dtype=np.int8)
    density = np.array([DENSITY.get(name, 1.0) for name in kinds])
    size = _flat(table, "piece_bytes").astype(np.float64)
    offsets = table["piece_ids"].combine_chunks().offsets.to_numpy().astype(np.int64)
    return _Items(offsets, _flat(table, "piece_ids"), size, size * density[kind], kind), kinds


def _flat(table: pa.Table, name: str) -> Any:
    return table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)


def _parts(pieces: _Items, begins_unit: Bools, kinds: pl.Series) -> _Items:
    """Units as wholes, but those next to which texts part in their pieces.

    Such a piece is named together with the piece in front of it: a few words by themselves are everywhere.
    """
    units = _grouped(pieces, begins_unit)
    _, number = ragged.factorize(units.ids)
    apart = _beside_a_parting(number, units.offsets)[number][np.cumsum(begins_unit) - 1]
    in_front = np.roll(_context(pieces, kinds), 1)
    named = ragged.mix(pieces.ids ^ ragged.mix(np.where(begins_unit, np.uint64(1), in_front)))
    return _grouped(replace(pieces, ids=np.where(apart, named, pieces.ids)), begins_unit | apart)


def _context(pieces: _Items, kinds: pl.Series) -> Ids:
    """What a piece is to the one behind it: a volatile one is its kind, since its value says nothing."""
    return np.where(pieces.kind > 0, kinds.hash(seed=3).to_numpy()[pieces.kind], pieces.ids)


def _grouped(items: _Items, begins: Bools) -> _Items:
    """Runs of items as one each; ``begins`` says where. Its id is a hash of their ids in their order."""
    at = np.flatnonzero(begins)
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(begins)])[items.offsets]
    if not len(at):
        return replace(items, offsets=offsets)
    place = (np.arange(len(begins)) - np.repeat(at, np.diff(np.append(at, len(begins))))).astype(np.uint64)
    ids = np.add.reduceat(ragged.mix(items.ids ^ ragged.mix(place + np.uint64(1))), at)
    alone = np.diff(np.append(at, len(begins))) == 1
    return _Items(
        offsets=offsets,
        ids=ragged.mix(ids),
        size=np.add.reduceat(items.size, at),
        weight=np.add.reduceat(items.weight, at),
        kind=np.where(alone, items.kind[at], np.int8(0)),
    )


def _marks(parts: _Items, starts: Bools) -> Ids:
    """For each run of parts the longest one: 16 bits of its size and 48 of its id."""
    size = np.minimum(parts.size, 0xFFFF).astype(np.uint64)
    marks = size << np.uint64(48) | parts.ids >> np.uint64(16)
    at = np.flatnonzero(starts)
    return np.maximum.reduceat(marks, at) if len(at) else marks[:0]


def _edges(offsets: Ints, rows: int) -> tuple[Bools, Bools]:
    """Which rows are the first, and which are the last, of their content."""
    some = np.diff(offsets) > 0
    first, last = np.zeros(rows, dtype=np.bool_), np.zeros(rows, dtype=np.bool_)
    first[offsets[:-1][some]] = True
    last[offsets[1:][some] - 1] = True
    return first, last


def _partings(number: Ints, offsets: Ints) -> tuple[Bools, Bools, Ints]:
    """Items behind which texts part, items in front of which they do, and the rows that have one in front of them."""
    items = int(number.max(initial=-1)) + 1
    first, last = _edges(offsets, len(number))
    behind = np.flatnonzero(~first)
    parts_behind = _several_partners(number[behind - 1], number[behind], items)
    parts_before = _several_partners(number[behind], number[behind - 1], items)
    ends, starts = np.zeros(items, dtype=np.bool_), np.zeros(items, dtype=np.bool_)
    ends[number[last]] = True
    starts[number[first]] = True
    goes_on, comes_after = np.zeros(items, dtype=np.bool_), np.zeros(items, dtype=np.bool_)
    goes_on[number[behind - 1]] = True
    comes_after[number[behind]] = True
    return parts_behind | (ends & goes_on), parts_before | (starts & comes_after), behind


def _several_partners(of: Ints, partner: Ints, items: int) -> Bools:
    """Items that were seen with more than one partner."""
    seen = np.full(items, -1, dtype=np.int64)
    seen[of] = partner
    several = np.zeros(items, dtype=np.bool_)
    several[of[seen[of] != partner]] = True
    return several


def _beside_a_parting(number: Ints, offsets: Ints) -> Bools:
    """Items that somewhere stand behind or in front of a place where texts part."""
    parts_behind, parts_before, behind = _partings(number, offsets)
    found = np.zeros(len(parts_behind), dtype=np.bool_)
    left, right = number[behind - 1], number[behind]
    found[right[parts_behind[left]]] = True
    found[left[parts_before[right]]] = True
    return found


def _atom_starts(number: Ints, offsets: Ints) -> Bools:
    """Which rows begin an atom: all but those that always follow one and the same item which they alone follow."""
    parts_behind, parts_before, behind = _partings(number, offsets)
    begins = np.ones(len(number), dtype=np.bool_)
    begins[behind] = parts_behind[number[behind - 1]] | parts_before[number[behind]]
    return begins
