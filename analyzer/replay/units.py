"""Caches of whole units that the provider chooses (DeepSeek).

A unit ends where a prompt ends, where the answer to it ends, and where the prefix ends that a call has in common with
an earlier one, which serves the third. Answers are not recorded. But a prompt that goes on behind an earlier one with
what the model wrote holds that answer, unless the program has changed it: this is assumed. Answers with reasoning in
front are taken up again only if they call a tool (DeepSeek's guide to thinking mode: the reasoning of other turns is
left out of the context), so that their unit is not in the next prompt.
"""

from typing import NamedTuple

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.replay import automatic, entries
from prefixscope.analyzer.replay.automatic import owners
from prefixscope.analyzer.replay.entries import Lookups, Touches
from prefixscope.analyzer.replay.nodes import NodeSet, chosen_rows
from prefixscope.analyzer.replay.touches import Depths
from prefixscope.analyzer.traffic import Traffic

_WHOLE, _WITHOUT_REASONING = np.uint64(0x616E73776572), np.uint64(0x74657874)


class _Answers(NamedTuple):
    """What the model wrote, as later prompts hold it: runs of rows."""

    before: Ints  # the row in front
    last: Ints
    calls_tool: Bools


def depths(traffic: Traffic, chain: Ids, chosen: Bools) -> Depths:
    """The deepest unit of each chosen call that is alive, that has not expired, and that was ever there."""
    touches = _touches(traffic, chain, chosen)
    units = NodeSet(touches.node)
    rows = [at[units.holds(chain[at]) | traffic.rows.warm[at]] for at, _ in chosen_rows(traffic, chosen)]
    row = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    answers = _answers(traffic, chosen)
    salt = np.where(answers.calls_tool, _WHOLE, _WITHOUT_REASONING)
    behind = _behind(chain[answers.before], traffic.level_salt[owners(traffic, answers.before), 2], salt)
    node = np.concatenate([chain[row], behind])
    row = np.concatenate([row, answers.last])
    order = np.argsort(row, kind="stable")
    call = owners(traffic, row[order])
    return entries.depths(Lookups(row[order], call, node[order], traffic.ttl_ms[call]), touches, traffic)


def _touches(traffic: Traffic, chain: Ids, chosen: Bools) -> Touches:
    starts, stops = traffic.rows.offsets[:-1], traffic.rows.offsets[1:]
    common = automatic.depths(traffic, chain, chosen).unexpired
    calls = np.flatnonzero(chosen & (stops > starts))
    again = calls[common[calls] > 0]
    plain = calls[traffic.calls["reasoning"].to_numpy()[calls] == 0]
    call = np.concatenate([calls, again, calls, plain])
    salt = np.repeat([_WHOLE, _WITHOUT_REASONING], [len(calls), len(plain)])
    answered = call[len(calls) + len(again) :]
    node = np.concatenate(
        [
            chain[stops[calls] - 1],
            chain[starts[again] + common[again] - 1],
            _behind(chain[stops[answered] - 1], traffic.level_salt[answered, 2], salt),
        ]
    )
    return Touches(call, node, traffic.ttl_ms[call])


def _behind(prompt: Ids, level_salt: Ids, salt: Ids) -> Ids:
    """The unit that ends with the answer to a prompt; an answer is of the messages, whatever the prompt ends with."""
    with np.errstate(over="ignore"):
        return ragged.mix((prompt + level_salt) ^ salt)


def _answers(traffic: Traffic, chosen: Bools) -> _Answers:
    """Runs of rows that the model wrote and that something stands in front of, in the chosen calls' prompts."""
    contents, rows = traffic.contents, traffic.rows
    calls_tool = np.unique(contents.header[(contents.kind == "tool_call").to_numpy()])
    found = [_Answers(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_))]
    for at, call in chosen_rows(traffic, chosen):
        answer = rows.answer[at]
        apart = np.ones(len(at) + 1, dtype=np.bool_)  # between which rows no run goes on
        apart[1:-1] = (call[1:] != call[:-1]) | ~answer[1:] | ~answer[:-1]
        start, stop = np.flatnonzero(answer & apart[:-1]), np.flatnonzero(answer & apart[1:])
        tools = np.concatenate([[0], np.cumsum(np.isin(rows.head[at], calls_tool))])
        behind = (start > 0) & (call[start] == call[start - 1])
        start, stop = start[behind], stop[behind]
        found.append(_Answers(at[start] - 1, at[stop], tools[stop + 1] > tools[start]))
    return _Answers(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
