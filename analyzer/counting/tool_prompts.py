"""Tokens of the prompt that a provider adds by itself where a request has tools, behind its system prompt.

Recorded calls to Claude with tools, on Bedrock and through OpenRouter, are billed some 330 tokens that no request
holds. They stand behind the breakpoint at the end of the system prompt, in front of the messages: calls whose last
breakpoint is the system prompt's tell how many they are.
"""

from dataclasses import dataclass

import numpy as np

from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.traffic import Traffic, model_name, numbered, tool_prompt_rows

_SHORTEST, _LONGEST = 150.0, 1000.0  # about half and three times what was recorded
_DOMINANT = 2.0  # times the recorded text behind the breakpoint: less could be a rate that is off


@dataclass(frozen=True, slots=True)
class Tail:
    """What stands behind the last breakpoint of each call."""

    sizes: Floats  # (calls, MATTERS): weights of its recorded text
    tokens: Floats  # reported, frames left out
    known: Bools  # calls whose last breakpoint stands in front of the messages, and that told where it is


def of_calls(traffic: Traffic, tail: Tail, rates: Floats) -> Floats:
    """Tokens of the added prompt of each call; 0 where there is none, or nothing tells of it.

    Args:
        traffic: The calls.
        tail: What is known of their ends.
        rates: (calls, MATTERS): tokens for each weight, as far as is known.
    """
    rows = traffic.rows
    has_one = np.zeros(len(traffic), dtype=np.bool_)
    has_one[rows.call[tool_prompt_rows(traffic)]] = True
    told = np.flatnonzero(has_one & tail.known)
    found = np.zeros(len(traffic))
    if not len(told):
        return found
    text = (tail.sizes[told] * rates[told]).sum(axis=1)
    left = tail.tokens[told] - text
    model = numbered(traffic.calls.select("provider", model=model_name()))
    for one in np.unique(model[told]):
        mine = model[told] == one
        tokens, beside = float(np.median(left[mine])), float(np.median(text[mine]))
        if _SHORTEST <= tokens <= _LONGEST and tokens >= _DOMINANT * beside:
            found[has_one & (model == one)] = tokens
    return found
