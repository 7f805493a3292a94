"""What a finding rests on, in facts and in one line, and what to do about it in another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer import fixes, ragged
from prefixscope.analyzer.atoms import LEVELS
from prefixscope.analyzer.families import Families, opening
from prefixscope.analyzer.prompts import TOOLS
from prefixscope.analyzer.ragged import Bools, Floats, Ints
from prefixscope.analyzer.traffic import Traffic

_UNKNOWN = "dynamic text"  # that no shape knows


@dataclass(frozen=True, slots=True)
class Case:
    """One family and one of its fixes: what evidence and texts are made from."""

    traffic: Traffic
    families: Families
    family: int
    members: Bools  # calls of the family
    hit: Bools  # calls of the family with this cause


@dataclass(frozen=True, slots=True)
class Told:
    headline: str
    fix: str
    facts: Mapping[str, Any]


def of_volatile(case: Case) -> Told:
    """Where dynamic text stands, of what kind it is, and how much static text it strands."""
    traffic, rows = case.traffic, case.traffic.rows
    moved = fixes.volatile_rows(traffic, case.families) & case.members[rows.call]
    kinds = traffic.contents.atom_kinds.gather(rows.atom[moved]).replace("", _UNKNOWN)
    counts = dict(kinds.value_counts(sort=True).iter_rows())
    first = _first_of_call(moved, rows.call, len(traffic))
    breaks = first[first < len(moved)]
    where = _place(case, breaks)
    facts = {
        "kinds": counts,
        "breaks_at": where,
        "static_tokens_behind": _static_behind(case, first),
        "distinct_values": len(np.unique(rows.atom[breaks])),
        "family_calls": int(case.members.sum()),
    }
    kind = next(iter(counts)).replace("_", " ")
    headline = (
        f"{kind} at byte {where['byte']:,} of segment {where['segment']} ({where['level']}), "
        f"{facts['distinct_values']:,} values in {facts['family_calls']:,} calls: {_stranded(facts)} are never reused"
    )
    return Told(headline, f"Move the {kind} behind the static text: {_target(case, moved)}.", facts)


def _stranded(facts: Mapping[str, Any]) -> str:
    if facts["static_tokens_behind"]:
        return f"{facts['static_tokens_behind']:,} static tokens behind it"
    return f"the {facts['breaks_at']['token']:,} tokens that share its cache breakpoint"


def _place(case: Case, breaks: Ints) -> dict[str, Any]:
    """Where the prefix breaks, the median over the calls: segment (from 1), level, byte in the segment, token."""
    rows = case.traffic.rows
    size = case.traffic.contents.atom_bytes[rows.atom]
    before = ragged.running_sums(rows.tokens, rows.offsets) - rows.tokens
    return {
        "segment": int(np.median(rows.block[breaks])) + 1,
        "level": LEVELS[int(np.median(rows.level[breaks]))],
        "byte": int(np.median(_byte_in_block(rows.call, rows.block, size)[breaks])),
        "token": int(np.median(before[breaks])),
    }


def _static_behind(case: Case, first: Ints) -> int:
    """Static tokens behind the first dynamic row, the median over the family's calls."""
    rows = case.traffic.rows
    static = opening(case.traffic, case.families).static & (np.arange(len(rows.atom)) > first[rows.call])
    tokens = ragged.group_sums(np.where(static, rows.tokens, 0.0), rows.offsets)
    return int(np.median(tokens[case.members]))


def _target(case: Case, moved: Bools) -> str:
    """Where dynamic text can go: what stays the same for a session may stay in front of the conversation."""
    steady = fixes.steady_rows(case.traffic, moved)
    if 2 * np.count_nonzero(steady) > np.count_nonzero(moved):
        target = "to the end of the system prompt, or into the first message"
    else:
        target = "to the end of the last message"
    marked = case.traffic.rows.marker_ms[case.members[case.traffic.rows.call]] > 0
    return f"{target}, and let the cache breakpoint stand in front of it" if marked.any() else target


def of_tools(case: Case) -> Told:
    """How many orders the same set of tools was sent in."""
    prompts, contents = case.traffic.prompts, case.traffic.contents
    call = ragged.owners(prompts.offsets)
    chosen = case.members[call] & (contents.level[prompts.segment] == TOOLS)
    tool = prompts.segment[chosen]
    frame = pl.DataFrame({"call": call[chosen], "tool": tool, "canonical": contents.canonical[tool]})
    sent = frame.group_by("call", maintain_order=True).agg("tool", pl.col("canonical").sort())
    facts = {
        "tools": int(np.median(sent["tool"].list.len().to_numpy())),
        "orders": sent["tool"].n_unique(),
        "sets": sent["canonical"].n_unique(),
        "family_calls": int(case.members.sum()),
    }
    sets = "1 set" if facts["sets"] == 1 else f"{facts['sets']:,} sets"
    headline = (
        f"{sets} of {facts['tools']} tools sent in {facts['orders']:,} orders in {facts['family_calls']:,} calls: "
        "the prefix breaks inside the tools"
    )
    return Told(headline, "Send the tools in one fixed order (sort them by name), with their keys in one order.", facts)


def of_ttl(case: Case) -> Told:
    """Pauses of the calls that found their prefix expired, against the time to live."""
    traffic = case.traffic
    hit = np.flatnonzero(case.hit)
    pauses = _pauses_ms(traffic, case.members)[hit] / 60_000
    marked = traffic.rows.marker_ms[case.hit[traffic.rows.call]]
    now_ms = int((marked[marked > 0] if marked.any() else traffic.ttl_ms[hit]).min(initial=2**40))
    longest_ms = int(fixes.longest_ttl_ms(traffic)[hit].max(initial=0))
    facts = {
        "ttl_seconds": now_ms // 1000,
        "offered_ttl_seconds": longest_ms // 1000,
        "pause_minutes_median": round(float(np.median(pauses)), 1),
        "lapses": len(hit),
        "family_calls": int(case.members.sum()),
    }
    now, longest = _duration(now_ms), _duration(longest_ms)
    headline = (
        f"{len(hit):,} of {facts['family_calls']:,} calls came after their prefix had expired: "
        f"median pause {facts['pause_minutes_median']} min against a lifetime of {now}"
    )
    return Told(headline, f"Cache this prompt for {longest} instead of {now}; other prompts may keep theirs.", facts)


def _pauses_ms(traffic: Traffic, members: Bools) -> Floats:
    """Time since the family's call before, ms."""
    at = np.flatnonzero(members)
    pauses = np.zeros(len(members))
    pauses[at[1:]] = np.diff(traffic.at_ms[at])
    return pauses


def _duration(ms: int) -> str:
    minutes = ms / 60_000
    return f"{minutes:g} min" if minutes < 60 else f"{minutes / 60:g} h"


def _first_of_call(flags: Bools, call: Ints, calls: int) -> Ints:
    """For each call its first flagged row, or a number behind all rows."""
    first = np.full(calls, len(flags), dtype=np.int64)
    at = np.flatnonzero(flags)
    np.minimum.at(first, call[at], at)
    return first


def _byte_in_block(call: Ints, block: Ints, size: Floats) -> Ints:
    """Byte at which each row begins within its block."""
    begins = np.ones(len(block), dtype=np.bool_)
    begins[1:] = (block[1:] != block[:-1]) | (call[1:] != call[:-1])
    before = np.cumsum(size) - size
    return (before - np.maximum.accumulate(np.where(begins, before, 0))).astype(np.int64)
