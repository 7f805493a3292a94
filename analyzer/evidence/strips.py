"""Two prompts laid over each other, segment by segment: what a reader compares to see the break."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from prefixscope.analyzer.atoms import LEVELS
from prefixscope.analyzer.baseline import Baseline
from prefixscope.analyzer.ragged import Bools

_MOST = 60  # segments shown of one prompt; the rest is one segment more
_GONE_ON = "further segments"


def strips(base: Baseline, hit: Bools) -> Mapping[str, Any] | None:
    """One of the calls and the one before it, as lists of segments; None where no call has one before it.

    A segment has level, kind, role, bytes, tokens, and of these tokens ``shared`` (in front of the break) and
    ``stranded`` (behind it, though the other prompt holds the same).
    """
    at = np.flatnonzero(hit & (base.breaks.before >= 0) & base.traffic.known)
    if not len(at):
        return None
    call = int(at[len(at) // 2])
    before = int(base.breaks.before[call])
    ids = base.traffic.calls["call_id"]
    return {
        "before": {"call_id": ids[before], "segments": _segments(base, before, call, call)},
        "call": {"call_id": ids[call], "segments": _segments(base, call, before, call)},
    }


def _segments(base: Baseline, call: int, other: int, compared: int) -> list[dict[str, Any]]:
    rows, traffic = base.traffic.rows, base.traffic
    start, end = int(rows.offsets[call]), int(rows.offsets[call + 1])
    depth = int(base.breaks.depth[compared])
    theirs = rows.atom[int(rows.offsets[other]) + depth : int(rows.offsets[other + 1])]
    place = np.arange(end - start)
    shared = place < depth
    stranded = ~shared & np.isin(rows.atom[start:end], theirs)
    block, tokens = rows.block[start:end], rows.tokens[start:end]
    size = traffic.contents.atom_bytes[rows.atom[start:end]]
    first = np.flatnonzero(np.diff(block, prepend=-1))
    segment = traffic.prompts.segment[traffic.prompts.offsets[call] + block[first]]
    sums = [np.add.reduceat(values, first) for values in (size, tokens, tokens * shared, tokens * stranded)]
    found = [
        {
            "level": LEVELS[int(rows.level[start + row])],
            "kind": traffic.contents.kind[int(content)],
            "role": traffic.contents.role[int(content)],
            **dict(zip(("bytes", "tokens", "shared", "stranded"), map(round, figures), strict=True)),
        }
        for row, content, *figures in zip(first.tolist(), segment.tolist(), *(s.tolist() for s in sums), strict=True)
    ]
    return found if len(found) <= _MOST else [*found[:_MOST], _rest(found[_MOST:])]


def _rest(segments: list[dict[str, Any]]) -> dict[str, Any]:
    sums = {name: sum(segment[name] for segment in segments) for name in ("bytes", "tokens", "shared", "stranded")}
    return {"level": segments[-1]["level"], "kind": _GONE_ON, "role": "", **sums}
