"""One family and one of its fixes: what evidence and texts are made from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.atoms import LEVELS
from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.breaks import Breaks
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.ragged import Bools, Floats, Ints
from prefixscope.analyzer.traffic import Traffic


@dataclass(frozen=True, slots=True)
class Case:
    """A cause in a family."""

    base: Baseline
    family: int  # -1 = none
    members: Bools  # calls of the family
    hit: Bools  # calls of the family with this cause
    cause: str
    fix: str  # "" = none is claimed

    @property
    def traffic(self) -> Traffic:
        return self.base.traffic

    @property
    def families(self) -> Families:
        return self.base.families

    @property
    def breaks(self) -> Breaks:
        return self.base.breaks

    @property
    def size(self) -> str:
        """``40 of 180 calls``."""
        hit, members = int(self.hit.sum()), int(self.members.sum())
        return f"all {members:,} calls" if hit == members else f"{hit:,} of {members:,} calls"


@dataclass(frozen=True, slots=True)
class Told:
    """Evidence in facts and in one line, and what to do about it in another."""

    headline: str
    fix: str  # "" = none is claimed
    facts: Mapping[str, Any]


def place(case: Case, breaks: Ints) -> dict[str, Any]:
    """Where the prefix breaks, the median over the given rows: segment (from 1), level, byte in the segment, token."""
    rows = case.traffic.rows
    size = case.traffic.contents.atom_bytes[rows.atom]
    before = ragged.running_sums(rows.tokens, rows.offsets) - rows.tokens
    return {
        "segment": int(np.median(rows.block[breaks])) + 1,
        "level": LEVELS[int(np.median(rows.level[breaks]))],
        "byte": int(np.median(_byte_in_block(rows.call, rows.block, size)[breaks])),
        "token": int(np.median(before[breaks])),
    }


def parting(case: Case) -> dict[str, Any]:
    """Where the calls part from the ones before them; empty where none does inside its prompt."""
    rows, breaks = case.traffic.rows, case.breaks
    lengths = np.diff(rows.offsets)
    at = np.flatnonzero(case.hit & (breaks.before >= 0) & (breaks.depth < lengths))
    return {"breaks_at": place(case, rows.offsets[:-1][at] + breaks.depth[at])} if len(at) else {}


def at_place(facts: Mapping[str, Any]) -> str:
    """`` at byte 120 of segment 4 (messages)``, or nothing where it is not known."""
    where = facts.get("breaks_at")
    return f" at byte {where['byte']:,} of segment {where['segment']} ({where['level']})" if where else ""


def median(values: Floats | Ints) -> float:
    """The median, 0 of nothing."""
    return float(np.median(values)) if len(values) else 0.0


def duration(ms: float) -> str:
    """``2 s``, ``5 min``, ``1 h``."""
    if ms < 60_000:
        return f"{ms / 1000:g} s"
    minutes = ms / 60_000
    return f"{minutes:g} min" if minutes < 60 else f"{minutes / 60:g} h"


def _byte_in_block(call: Ints, block: Ints, size: Floats) -> Ints:
    """Byte at which each row begins within its block."""
    begins = np.ones(len(block), dtype=np.bool_)
    begins[1:] = (block[1:] != block[:-1]) | (call[1:] != call[:-1])
    before = np.cumsum(size) - size
    return (before - np.maximum.accumulate(np.where(begins, before, 0))).astype(np.int64)
