"""What changed in the text of prompts: volatile spans, tools, histories."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.evidence.case import Case, Told, at_place, median, parting, place
from prefixscope.analyzer.fixes import volatile
from prefixscope.analyzer.prompts import TOOLS
from prefixscope.analyzer.ragged import Bools, Ints

_UNKNOWN = "dynamic text"  # that no shape knows


def of_volatile(case: Case) -> Told:
    """Where dynamic text stands, of what kind it is, and how much static text it strands."""
    traffic, rows = case.traffic, case.traffic.rows
    moved = volatile.volatile_rows(traffic, case.families, case.base.opening) & case.members[rows.call]
    kinds = traffic.contents.atom_kinds.gather(rows.atom[moved]).replace("", _UNKNOWN)
    counts = dict(kinds.value_counts(sort=True).iter_rows())
    first = _first_of_call(moved, rows.call, len(traffic))
    breaks = first[first < len(moved)]
    where = place(case, breaks)
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


def _static_behind(case: Case, first: Ints) -> int:
    """Static tokens behind the first dynamic row, the median over the family's calls."""
    rows = case.traffic.rows
    static = case.base.opening.static & (np.arange(len(rows.atom)) > first[rows.call])
    tokens = ragged.group_sums(np.where(static, rows.tokens, 0.0), rows.offsets)
    return int(np.median(tokens[case.members]))


def _target(case: Case, moved: Bools) -> str:
    """Where dynamic text can go: what stays the same for a session may stay in front of the conversation."""
    steady = volatile.steady_rows(case.traffic, moved)
    if 2 * np.count_nonzero(steady) > np.count_nonzero(moved):
        target = "to the end of the system prompt, or into the first message"
    else:
        target = "to the end of the last message"
    marked = case.traffic.rows.marker_ms[case.members[case.traffic.rows.call]] > 0
    return f"{target}, and let the cache breakpoint stand in front of it" if marked.any() else target


def of_tools(case: Case) -> Told:
    """How many orders the same set of tools was sent in."""
    facts = _tools_sent(case)
    sets = "1 set" if facts["sets"] == 1 else f"{facts['sets']:,} sets"
    headline = (
        f"{sets} of {facts['tools']} tools sent in {facts['orders']:,} orders in {facts['family_calls']:,} calls: "
        "the prefix breaks inside the tools"
    )
    return Told(headline, "Send the tools in one fixed order (sort them by name), with their keys in one order.", facts)


def of_tool_sets(case: Case) -> Told:
    """How many sets of tools were sent."""
    facts = _tools_sent(case) | parting(case)
    headline = (
        f"{facts['sets']:,} sets of tools, {facts['different']} tools in all, sent in {facts['family_calls']:,} calls: "
        f"everything behind the tools is processed anew when the set changes"
    )
    fix = "Send all tools always, in one order, and say by tool_choice or allowed_tools which of them a call may use."
    return Told(headline, fix, facts)


def _tools_sent(case: Case) -> dict[str, Any]:
    prompts, contents = case.traffic.prompts, case.traffic.contents
    call = ragged.owners(prompts.offsets)
    chosen = case.members[call] & (contents.level[prompts.segment] == TOOLS)
    tool = prompts.segment[chosen]
    frame = pl.DataFrame({"call": call[chosen], "tool": tool, "canonical": contents.canonical[tool]})
    sent = frame.group_by("call", maintain_order=True).agg("tool", pl.col("canonical").sort())
    return {
        "tools": int(median(sent["tool"].list.len().to_numpy())),
        "different": frame["canonical"].n_unique(),
        "orders": sent["tool"].n_unique(),
        "sets": sent["canonical"].n_unique(),
        "family_calls": int(case.members.sum()),
    }


def of_history(case: Case) -> Told:
    """How far back earlier messages were changed or dropped, and what that cost."""
    breaks, hit = case.breaks, case.hit
    facts = {
        "calls": int(hit.sum()),
        "sessions": case.traffic.calls.filter(pl.Series(hit))["session_id"].n_unique(),
        "kept_tokens_median": round(median(breaks.shared[hit])),
        "sent_again_tokens_median": round(median(breaks.stranded[hit])),
    } | parting(case)
    pruned = case.cause == "history_pruned"
    done = "older messages were dropped from in front of others" if pruned else "earlier messages were changed in place"
    headline = (
        f"{case.size}: {done}{at_place(facts)}; "
        f"{facts['sent_again_tokens_median']:,} tokens behind them were sent again at full price (median)"
    )
    what = "Drop old messages" if pruned else "Change or clear earlier messages"
    fix = f"{what} seldom and many at once, or not at all: add to the end, so that what was sent stays as it was."
    return Told(headline, fix, facts)


def _first_of_call(flags: Bools, call: Ints, calls: int) -> Ints:
    """For each call its first flagged row, or a number behind all rows."""
    first = np.full(calls, len(flags), dtype=np.int64)
    at = np.flatnonzero(flags)
    np.minimum.at(first, call[at], at)
    return first
