"""What a finding rests on, in facts and in one line, and what to do about it in another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer import fixes, ragged
from prefixscope.analyzer.families import Families, opening
from prefixscope.analyzer.prompts import TOOLS
from prefixscope.analyzer.ragged import Bools, Ints
from prefixscope.analyzer.replay import Outcome
from prefixscope.analyzer.traffic import Traffic

_UNKNOWN = "dynamic text"  # that no shape knows


@dataclass(frozen=True, slots=True)
class Case:
    """One family and one of its fixes: what evidence and texts are made from."""

    traffic: Traffic
    families: Families
    family: int
    base: Outcome
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
    static = opening(traffic, case.families).static & case.members[rows.call]
    kinds = traffic.contents.atom_kinds.gather(rows.atom[moved]).replace("", _UNKNOWN)
    counts = dict(kinds.value_counts(sort=True).iter_rows())
    first = _first_of_call(moved, rows.call, len(traffic))
    some = first < len(moved)
    before = ragged.running_sums(rows.tokens, rows.offsets) - rows.tokens
    size = traffic.contents.atom_bytes[rows.atom]
    behind = np.where(static & (np.arange(len(static)) > first[rows.call]), rows.tokens, 0.0)
    stranded = ragged.group_sums(behind, rows.offsets)
    level = _place(case, first[some])
    where = {
        "segment": int(np.median(rows.block[first[some]])) + 1,
        "level": level,
        "byte": int(np.median(_byte_in_block(rows.call, rows.block, size)[first[some]])),
        "token": int(np.median(before[first[some]])),
    }
    facts = {
        "kinds": counts,
        "breaks_at": where,
        "static_tokens_behind": int(np.median(stranded[case.members])),
        "distinct_values": int(len(np.unique(rows.atom[first[some]]))),
        "family_calls": int(case.members.sum()),
    }
    kind = next(iter(counts)).replace("_", " ")
    steady = fixes.steady_rows(traffic, moved)
    headline = (
        f"{kind} at byte {where['byte']:,} of segment {where['segment']} ({level}), {facts['distinct_values']:,} values in "
        f"{facts['family_calls']:,} calls: {facts['static_tokens_behind']:,} static tokens behind it are never reused"
    )
    if 2 * np.count_nonzero(steady) > np.count_nonzero(moved):  # it stays the same for a session
        target = "to the end of the system prompt, or into the first message"
    else:
        target = "to the end of the last message"
    if (traffic.prompts.marker_ms[np.isin(ragged.owners(traffic.prompts.offsets), np.flatnonzero(case.members))] > 0).any():
        target += ", and let the cache breakpoint stand in front of it"
    fix = f"Move the {kind} behind the static text: {target}."
    return Told(headline, fix, facts)


def of_tools(case: Case) -> Told:
    """How many orders the same set of tools was sent in."""
    prompts, contents = case.traffic.prompts, case.traffic.contents
    call = ragged.owners(prompts.offsets)
    chosen = case.members[call] & (contents.level[prompts.segment] == TOOLS)
    frame = pl.DataFrame(
        {"call": call[chosen], "tool": prompts.segment[chosen], "canonical": contents.canonical[prompts.segment[chosen]]}
    )
    sent = frame.group_by("call", maintain_order=True).agg("tool", pl.col("canonical").sort())
    tools = int(sent["canonical"].list.len().median())  # type: ignore[arg-type]
    facts = {
        "tools": tools,
        "orders": sent["tool"].n_unique(),
        "sets": sent["canonical"].n_unique(),
        "family_calls": int(case.members.sum()),
    }
    headline = (
        f"{facts['sets']:,} set{'s' if facts['sets'] > 1 else ''} of {tools} tools sent in {facts['orders']:,} orders in "
        f"{facts['family_calls']:,} calls: the prefix breaks inside the tools"
    )
    return Told(headline, "Send the tools in one fixed order (sort them by name), with their keys in one order.", facts)


def of_ttl(case: Case) -> Told:
    """Pauses of the calls that found their prefix expired, against the time to live."""
    traffic = case.traffic
    hit = np.flatnonzero(case.hit)
    gaps = _pauses_ms(traffic, case.members)[hit] / 60_000
    has_markers = bool((traffic.prompts.marker_ms > 0).any())
    marked = traffic.rows.marker_ms[np.isin(traffic.rows.call, hit)]
    now_ms = int(marked[marked > 0].min(initial=2**40)) if has_markers and (marked > 0).any() else int(traffic.ttl_ms[hit].min(initial=0))
    longest = int(fixes.longest_ttl_ms(traffic)[hit].max(initial=0))
    facts = {
        "ttl_seconds": now_ms // 1000,
        "offered_ttl_seconds": longest // 1000,
        "pause_minutes_median": round(float(np.median(gaps)), 1) if len(gaps) else None,
        "lapses": len(hit),
        "family_calls": int(case.members.sum()),
    }
    headline = (
        f"{len(hit):,} of {facts['family_calls']:,} calls came after their prefix had expired: median pause "
        f"{facts['pause_minutes_median']} min against a TTL of {_duration(now_ms)}"
    )
    fix = f"Cache this prompt for {_duration(longest)} instead of {_duration(now_ms)}; other prompts may keep theirs."
    return Told(headline, fix, facts)


def _pauses_ms(traffic: Traffic, members: Bools) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
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


def _byte_in_block(call: Ints, block: Ints, size: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ints:
    """Byte at which each row begins within its block."""
    begins = np.ones(len(block), dtype=np.bool_)
    begins[1:] = (block[1:] != block[:-1]) | (call[1:] != call[:-1])
    before = np.cumsum(size) - size
    return (before - np.maximum.accumulate(np.where(begins, before, 0))).astype(np.int64)


def _place(case: Case, at: Ints) -> str:
    levels = case.traffic.rows.level[at]
    return ("tools", "system", "messages")[int(np.median(levels))] if len(levels) else ""
