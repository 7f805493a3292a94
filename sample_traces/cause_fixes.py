"""The fixes of the planted leaks: pure functions from all calls of a service to the calls as they should have been."""

import json
from collections.abc import Sequence
from dataclasses import replace

from planted import Fix, Sent, last_static, level_of, marked
from traffic import Block, Piece, move_volatile, set_ttl, sort_tools


def moved_volatile(calls: Sequence[Sent]) -> list[Sent]:
    """Text that changes stands behind everything else, outside all markers."""
    return [replace(sent, call=move_volatile(sent.call)) for sent in calls]


def moved_behind_static(calls: Sequence[Sent]) -> list[Sent]:
    """Text that is the same for a session goes to the end of the system prompt, so that its later calls can read it."""
    return [sent.with_blocks(_volatile_last(block) for block in sent.call.blocks) for sent in calls]


def _volatile_last(block: Block) -> Block:
    return replace(block, pieces=tuple(sorted(block.pieces, key=lambda piece: piece.volatile)))


def one_order(calls: Sequence[Sent]) -> list[Sent]:
    """Tools sorted by name, the keys of each sorted too."""
    return [_with_sorted_keys(replace(sent, call=sort_tools(sent.call))) for sent in calls]


def _with_sorted_keys(sent: Sent) -> Sent:
    return sent.with_blocks(_canonical(block) if block.kind == "tool" else block for block in sent.call.blocks)


def _canonical(tool: Block) -> Block:
    text = json.dumps(json.loads(tool.text), ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return replace(tool, pieces=(Piece(text),))


def one_order_and_moved_volatile(calls: Sequence[Sent]) -> list[Sent]:
    return moved_volatile(one_order(calls))


def hour_long(calls: Sequence[Sent]) -> list[Sent]:
    """Every marker gets 1h."""
    return [replace(sent, call=set_ttl(sent.call, "1h")) for sent in calls]


def pinned(calls: Sequence[Sent]) -> list[Sent]:
    """Every call has the settings of the first."""
    return [replace(sent, settings=calls[0].settings) for sent in calls]


def one_scope(calls: Sequence[Sent]) -> list[Sent]:
    """Every call goes to the account and region of the first, under its cache key."""
    first = calls[0]
    return [replace(s, account=first.account, region=first.region, cache_key=first.cache_key) for s in calls]


def all_tools(calls: Sequence[Sent]) -> list[Sent]:
    """Every call brings every tool that any call of the service brings, in the order in which they were first seen."""
    tools = {block.name: block for sent in calls for block in sent.call.blocks if block.kind == "tool"}
    return [s.with_blocks((*tools.values(), *(b for b in s.call.blocks if b.kind != "tool"))) for s in calls]


def unchanged(calls: Sequence[Sent]) -> list[Sent]:
    """Every call sends what it would have sent without the planted change.

    Its history is only ever added to, its markers ask for what they asked before, a fork marks where it begins.
    """
    return [sent.with_blocks(sent.intact or sent.call.blocks) for sent in calls]


def first_ahead(calls: Sequence[Sent]) -> list[Sent]:
    """Of requests that are sent together, the others wait until the response to the first has begun."""
    first: dict[str, Sent] = {}
    for sent in sorted(calls, key=lambda one: one.call.at_ms):
        first.setdefault(sent.batch, sent)
    return [_behind(sent, first[sent.batch]) if sent.batch else sent for sent in calls]


def _behind(sent: Sent, first: Sent) -> Sent:
    if sent.id == first.id:
        return sent
    begun_ms = first.call.at_ms + first.call.ttft_ms
    return replace(sent, call=replace(sent.call, at_ms=max(sent.call.at_ms, begun_ms)))


def marked_static(calls: Sequence[Sent]) -> list[Sent]:
    """One marker, behind the last tool or system block."""
    return [sent.with_blocks(marked(sent.call.blocks, [last_static(sent.call.blocks)], "5m")) for sent in calls]


def marked_static_and_last(calls: Sequence[Sent]) -> list[Sent]:
    """Markers behind the last tool or system block and behind the last message."""
    return [sent.with_blocks(marked(sent.call.blocks, [last_static(sent.call.blocks), -1], "5m")) for sent in calls]


def marked_last_two_turns(calls: Sequence[Sent]) -> list[Sent]:
    """Markers behind the last message, and where the call before ended: in front of the last answer."""
    return [sent.with_blocks(marked(sent.call.blocks, _ends(sent.call.blocks), "5m")) for sent in calls]


def _ends(blocks: Sequence[Block]) -> list[int]:
    answers = [n for n, block in enumerate(blocks) if level_of(block) == 2 and block.role == "assistant"]
    return [answers[-1] - 1, -1] if answers else [-1]


def unmarked_documents(calls: Sequence[Sent]) -> list[Sent]:
    """Markers in the messages go; those behind tools and system stay."""
    return [
        sent.with_blocks(replace(b, ttl=b.ttl if level_of(b) < 2 else "") for b in sent.call.blocks) for sent in calls
    ]


FIXES: dict[str, Fix] = {
    "volatile_prefix": moved_volatile,
    "tools_reordered": one_order,
    "ttl_lapse": hour_long,
    "settings_changed": pinned,
    "split_scope": one_scope,
    "tools_changed": all_tools,
    "history_rewritten": unchanged,
    "history_pruned": unchanged,
    "ttl_class_switched": unchanged,
    "forked": unchanged,
    "parallel_cold_start": first_ahead,
    "no_marker": marked_static_and_last,
    "marker_misplaced": marked_static,
    "write_churn": unmarked_documents,
}
"""Cause -> the fix that removes it."""
