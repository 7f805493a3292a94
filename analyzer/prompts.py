"""Prompts as flat rows: calls -> segments -> atoms. What replay reads and fixes rearrange."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar, get_args

import numpy as np
import polars as pl
import pyarrow as pa

from prefixscope.analyzer import ragged
from prefixscope.analyzer.atoms import Contents
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints
from prefixscope.otel_plugin.record import Kind

TOOLS, SYSTEM, MESSAGES = range(3)  # indices into atoms.LEVELS
_KINDS = get_args(Kind)
_TTL_MS = {"5m": 300_000, "30m": 1_800_000, "1h": 3_600_000, "12h": 43_200_000, "24h": 86_400_000}
_MODEL_ROLES = ("assistant", "model")


@dataclass(frozen=True, slots=True)
class Prompts:
    """Segments of each call in render order. A call whose prompt is not known has none."""

    offsets: Ints  # call -> its segments
    segment: Ints  # content number
    marker_ms: Ints  # TTL of a breakpoint behind the segment; 0 = none


@dataclass(frozen=True, slots=True)
class Rows:
    """Atoms of each call in render order: ``Prompts``, one level finer. There are many: integers are small."""

    offsets: Ints  # call -> its rows
    atom: Ints
    head: Ids  # where a segment begins: hash of its level, kind and role; elsewhere 0
    level: Ints
    block: Ints  # number of the segment within its call
    position: Ints  # number of the block as an explicit cache's lookback counts it
    marker_ms: Ints  # TTL of a breakpoint behind this row; 0 = none
    answer: Bools  # written by the model
    tokens: Floats
    warm: Bools  # the provider had this prefix although no call in the window had sent it before

    @property
    def call(self) -> Ints:
        return ragged.owners(self.offsets)

    def reordered(self, order: Ints) -> "Rows":
        """The same calls, their rows in another order; ``order`` stays within each call."""
        arrays = {f.name: getattr(self, f.name)[order] for f in fields(self) if f.name != "offsets"}
        return replace(self, **arrays)


_T = TypeVar("_T", Prompts, Rows)


def of_calls(found: _T, chosen: Bools) -> _T:
    """The prompts, or rows, of the chosen calls."""
    lengths = np.diff(found.offsets)
    kept = np.repeat(chosen, lengths)
    arrays = {f.name: getattr(found, f.name)[kept] for f in fields(found) if f.name != "offsets"}
    return replace(found, offsets=ragged.offsets_of(lengths[chosen]), **arrays)


def ttl_ms(name: str, default: int = 300_000) -> int:
    """A TTL as written in a request, in ms."""
    return _TTL_MS.get(name, default)


def prompts_of(table: pa.Table) -> Prompts:
    """``queries/analysis/prompts`` as flat arrays."""
    lists = table["segments"].combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    segment = lists.flatten().to_numpy()
    marked = table["marker_at"].combine_chunks()
    at = marked.flatten().to_numpy() + offsets[ragged.owners(marked.offsets.to_numpy().astype(np.int64))]
    names = pl.Series(pl.from_arrow(table["marker_ttl"].combine_chunks().flatten()), dtype=pl.String)
    marker_ms = np.zeros(len(segment), dtype=np.int64)
    marker_ms[at] = names.replace_strict(_TTL_MS, default=ttl_ms(""), return_dtype=pl.Int64).to_numpy()
    return Prompts(offsets, segment, marker_ms)


def rows_of(prompts: Prompts, contents: Contents, lookback_mode: Ints) -> Rows:
    """Takes segments apart into atoms; ``tokens`` are bytes still.

    ``lookback_mode`` says for each call what begins a new lookback position: 0 every block, 1 every block but those
    that go on a run of tool calls or of tool results, 2 a message.
    """
    segment = prompts.segment
    counts = np.diff(contents.offsets)[segment]
    inner = ragged.offsets_of(counts)
    source = ragged.ranges(contents.offsets[:-1][segment], counts)
    owner = ragged.owners(inner)
    offsets = inner[prompts.offsets]
    begins = np.zeros(len(source), dtype=np.bool_)
    begins[inner[:-1][counts > 0]] = True
    marker_ms = np.zeros(len(source), dtype=np.int64)
    marked = np.flatnonzero((prompts.marker_ms > 0) & (counts > 0))
    marker_ms[inner[1:][marked] - 1] = prompts.marker_ms[marked]
    # rig sends Gemini's system instruction under the role "model"
    answer = contents.role.is_in(_MODEL_ROLES).to_numpy() & (contents.level == MESSAGES)
    atom = contents.atom.astype(np.int32)[source]
    return Rows(
        offsets=offsets,
        atom=atom,
        head=np.where(begins, contents.header[segment][owner], np.uint64(0)),
        level=contents.level.astype(np.int8)[segment][owner],
        block=_places(prompts.offsets)[owner],
        position=_positions(prompts, contents, lookback_mode)[owner],
        marker_ms=marker_ms,
        answer=answer[segment][owner],
        tokens=contents.atom_bytes[atom],
        warm=np.zeros(len(source), dtype=np.bool_),
    )


def block_ends(rows: Rows) -> Bools:
    """Rows that are the last of their block."""
    ends = np.ones(len(rows.block), dtype=np.bool_)
    ends[:-1] = rows.block[1:] != rows.block[:-1]
    ends[rows.offsets[1:][np.diff(rows.offsets) > 0] - 1] = True
    return ends


def _positions(prompts: Prompts, contents: Contents, mode: Ints) -> Ints:
    """Numbers the blocks of each call as a lookback counts them."""
    segment = prompts.segment
    kind = contents.kind.cast(pl.Enum(_KINDS)).to_physical().to_numpy()[segment]
    role = contents.role.cast(pl.Categorical).to_physical().to_numpy()[segment]
    level = contents.level[segment]
    of_tools = np.isin(kind[1:], [_KINDS.index("tool_call"), _KINDS.index("tool_result")])
    in_run = (kind[1:] == kind[:-1]) & of_tools
    same_message = (role[1:] == role[:-1]) & (level[1:] == level[:-1])
    mode = np.repeat(mode, np.diff(prompts.offsets))[1:]
    counted = np.ones(len(segment))
    counted[1:] = ~np.where(mode == 2, same_message, (mode == 1) & in_run)
    counted[prompts.offsets[:-1][np.diff(prompts.offsets) > 0]] = 1
    return ragged.running_sums(counted, prompts.offsets).astype(np.int32)


def _places(offsets: Ints) -> Ints:
    """The number of each row within its group."""
    lengths = np.diff(offsets)
    return (np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)).astype(np.int32)
