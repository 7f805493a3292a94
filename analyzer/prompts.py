"""Prompts as flat rows: calls -> segments -> atoms. What replay reads and fixes rearrange."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar, get_args

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
_MODEL_KINDS = ("tool_call", "thinking")  # items of the Responses API have no role


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
    position: Ints  # number of the block as an explicit cache's lookback counts it; 0 = it looks at none here
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


def taken(found: _T, call: Ints, lengths: Ints) -> _T:
    """The prompts, or rows, of the calls with the given numbers, which may repeat; of each the first ``lengths``."""
    at = ragged.ranges(found.offsets[call], lengths)
    arrays = {f.name: getattr(found, f.name)[at] for f in fields(found) if f.name != "offsets"}
    return replace(found, offsets=ragged.offsets_of(lengths), **arrays)


def portion(found: _T, begin: int, end: int) -> _T:
    """The prompts, or rows, of the calls from ``begin`` to ``end``; nothing is copied."""
    offsets = found.offsets[begin : end + 1]
    at = slice(offsets[0], offsets[-1])
    arrays = {f.name: getattr(found, f.name)[at] for f in fields(found) if f.name != "offsets"}
    return replace(found, offsets=offsets - at.start, **arrays)


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
    marker_ms = np.zeros(len(segment), dtype=np.int32)
    marker_ms[at] = names.replace_strict(_TTL_MS, default=ttl_ms(""), return_dtype=pl.Int64).to_numpy()
    return Prompts(offsets, segment, marker_ms)


def rows_of(prompts: Prompts, contents: Contents, lookback_mode: Ints) -> Rows:
    """Takes segments apart into atoms; ``tokens`` are bytes still.

    ``lookback_mode`` says for each call what a lookback position is: 0 a block, 1 a block or a run of tool calls or of
    tool results, 2 all up to the end of an eligible message.
    """
    places = list(ragged.slices(prompts.offsets)) or [(0, 0)]
    atoms = np.diff(contents.offsets)
    parts = [portion(prompts, begin, end) for begin, end in places]
    lengths = [ragged.group_sums(atoms[part.segment], part.offsets) for part in parts]
    offsets = ragged.offsets_of(np.concatenate(lengths))
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for (begin, end), part in zip(places, parts, strict=True):
        found = _rows_of_portion(part, contents, lookback_mode[begin:end])
        for f in fields(found)[1:]:
            values = getattr(found, f.name)
            whole = arrays.setdefault(f.name, np.empty(offsets[-1], dtype=values.dtype))
            whole[offsets[begin] : offsets[end]] = values
    return Rows(offsets=offsets, **arrays)


def _rows_of_portion(prompts: Prompts, contents: Contents, lookback_mode: Ints) -> Rows:
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
    by_model = contents.role.is_in(_MODEL_ROLES) | contents.kind.is_in(_MODEL_KINDS)
    answer = by_model.to_numpy() & (contents.level == MESSAGES)
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
    ends = _last_of_group(rows.offsets)
    ends[:-1] |= rows.block[1:] != rows.block[:-1]
    return ends


def _positions(prompts: Prompts, contents: Contents, mode: Ints) -> Ints:
    """Numbers the blocks of each call as a lookback counts them.

    In mode 2 a number ends where an eligible message does, and blocks behind the last of those have none: 0.
    """
    lengths = np.diff(prompts.offsets)
    tool_run, eligible = _runs_of_tools(contents)[prompts.segment], _eligible_groups(contents)[prompts.segment]
    begins = np.ones(len(prompts.segment), dtype=np.int32)
    begins[1:] = (tool_run[1:] != tool_run[:-1]) | (tool_run[1:] == 0) | np.repeat(mode != 1, lengths)[1:]
    by_message = np.repeat(mode == 2, lengths)
    ends = (eligible > 0) & by_message
    ends[:-1] &= (eligible[1:] != eligible[:-1]) | _last_of_group(prompts.offsets)[:-1]
    begins[1:] = np.where(by_message[1:], ends[:-1], begins[1:])
    begins[prompts.offsets[:-1][lengths > 0]] = 1
    found = ragged.running_sums(begins, prompts.offsets)
    last = np.repeat(ragged.group_sums(ends.astype(np.int32), prompts.offsets), lengths)
    return np.where(by_message & (found > last), 0, found).astype(np.int32)


def _runs_of_tools(contents: Contents) -> Ints:
    """Content -> what of which a run can be one lookback position: 1 tool calls, 2 tool results, 0 = nothing."""
    found = [contents.kind == "tool_call", contents.kind == "tool_result"]
    return np.select([flags.to_numpy() for flags in found], [1, 2], 0).astype(np.int8)


def eligible_segments(contents: Contents) -> Bools:
    """Contents behind which an implicit breakpoint can stand."""
    return _eligible_groups(contents) > 0


def markable_segments(contents: Contents) -> Bools:
    """Contents that can carry a breakpoint: thinking and empty text cannot (Anthropic)."""
    size = ragged.group_sums(contents.atom_bytes[contents.atom], contents.offsets)
    return (contents.kind != "thinking").to_numpy() & (size > 0)


def last_segments(prompts: Prompts, chosen: Bools) -> Ints:
    """For each call its last segment that is one of the chosen contents, -1 = it has none."""
    at = np.flatnonzero(chosen[prompts.segment])
    owner = np.searchsorted(prompts.offsets, at, side="right") - 1
    found = np.full(len(prompts.offsets) - 1, -1, dtype=np.int64)
    found[owner] = at  # of several, numpy keeps the last
    return found


def last_rows(rows: Rows, chosen: Bools) -> Ints:
    """For each call the last of its chosen rows, -1 = it has none."""
    at = np.flatnonzero(chosen)
    found = np.full(len(rows.offsets) - 1, -1, dtype=np.int64)
    found[np.searchsorted(rows.offsets, at, side="right") - 1] = at  # of several, numpy keeps the last
    return found


def _eligible_groups(contents: Contents) -> Ints:
    """Content -> what it is a part of, if that is an eligible message: 0 = of none.

    1 is the developer messages that a prompt begins with, 2 a group of tool results, 3 a message of the user (OpenAI,
    "Prompt caching", GPT-5.6 and later).
    """
    in_messages = contents.level == MESSAGES
    of_tool = in_messages & (contents.kind == "tool_result").to_numpy()
    of_user = in_messages & (contents.role == "user").to_numpy()
    return np.select([contents.level == SYSTEM, of_tool, of_user], [1, 2, 3], 0).astype(np.int8)


def _last_of_group(offsets: Ints) -> Bools:
    found = np.zeros(int(offsets[-1]), dtype=np.bool_)
    found[offsets[1:][np.diff(offsets) > 0] - 1] = True
    return found


def _places(offsets: Ints) -> Ints:
    """The number of each row within its group."""
    lengths = np.diff(offsets)
    return (np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)).astype(np.int32)
