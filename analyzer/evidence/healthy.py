"""What is told of causes that no fix removes, or none that pays."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.evidence.case import Case, at_place, duration, median, parting
from prefixscope.analyzer.ragged import Floats

Facts = dict[str, Any]


def of_provider(case: Case) -> tuple[str, Facts]:
    """Reads that the rules promise, or any rules would, and that did not come."""
    gaps = _gaps_ms(case)
    facts: Facts = {"minutes_since_the_call_before_median": round(median(gaps) / 60_000, 1)}
    if (case.traffic.per_card("cache")[case.hit] == "unknown").all():
        headline = (
            f"{case.size} read less than they repeat of what the same provider was sent "
            f"{duration(round(median(gaps), -3))} before (median); the rules of its cache are not known"
        )
        return headline, facts | {"rules": "unknown"}
    headline = (
        f"{case.size} read less than the cache's rules predict, though their text went on from an earlier call "
        f"{duration(round(median(gaps), -3))} before (median) with the same settings and scope"
    )
    return headline, facts


def of_lapse(case: Case) -> tuple[str, Facts]:
    """Pauses that no lifetime on offer covers at a gain."""
    gaps = _gaps_ms(case)
    facts = {"pause_minutes_median": round(median(gaps) / 60_000, 1)}
    return f"{case.size} came after their prefix had expired: median pause {facts['pause_minutes_median']} min", facts


def of_first(case: Case) -> tuple[str, Facts]:
    """Prompts that nobody had sent before."""
    tokens = round(median(case.traffic.input_total[case.hit]))
    return f"{case.size} had little in common with any call before (median prompt {tokens:,} tokens)", {
        "prompt_tokens_median": tokens
    }


def of_short(case: Case) -> tuple[str, Facts]:
    """Prompts under the minimum."""
    minimum = int(case.traffic.per_card("min_tokens")[case.hit].max(initial=0))
    tokens = round(median(case.traffic.input_total[case.hit]))
    return (
        f"{case.size} are shorter than the {minimum:,} tokens that are cached at the least (median {tokens:,})",
        {"minimum_tokens": minimum, "prompt_tokens_median": tokens},
    )


def of_edit(case: Case) -> tuple[str, Facts]:
    """Changes of the system prompt, or of tools, that are made once and not per call."""
    facts = parting(case)
    return f"{case.size} are the first after a change{at_place(facts)}: each version is paid for once", facts


def of_conversation(case: Case) -> tuple[str, Facts]:
    """Compactions and forks: prompts before and after."""
    total = case.traffic.input_total
    earlier = total[np.maximum(case.breaks.before, 0)][case.hit]
    sessions = case.traffic.calls.filter(pl.Series(case.hit))["session_id"].n_unique()
    facts = {"sessions": sessions} | {
        "tokens_before_median": round(median(earlier)),
        "tokens_median": round(median(total[case.hit])),
    }
    before, now = facts["tokens_before_median"], facts["tokens_median"]
    if case.cause == "compacted":
        return f"{case.size} sum up their conversation: from {before:,} to {now:,} tokens (median)", facts
    return f"{case.size} begin a session with another one's conversation ({now:,} tokens, median)", facts


def of_unknown(case: Case) -> tuple[str, Facts]:
    """Calls of which the trace does not tell enough."""
    states = dict(case.traffic.calls.filter(pl.Series(case.hit))["usage_state"].value_counts(sort=True).iter_rows())
    facts: Facts = {"usage": states}
    if case.cause == "unknown_usage":
        return f"the trace does not hold the usage of {case.size}", facts
    inside = int((case.hit & case.traffic.known).sum())
    if not inside:
        return f"the trace does not hold the prompt of {case.size}", facts
    headline = f"the trace does not hold all of the prompt of {case.size}: {inside:,} read no more than what is missing"
    return headline, facts | {"read_only_unrecorded_text": inside}


def of_any(case: Case) -> tuple[str, Facts]:
    """A cause with a fix that does not pay here."""
    facts = parting(case)
    return f"{case.size} could have read more{at_place(facts)}", facts


HEALTHY: Mapping[str, Callable[[Case], tuple[str, Facts]]] = {
    "provider_side": of_provider,
    "ttl_lapse": of_lapse,
    "ttl_class_switched": of_lapse,
    "first_seen": of_first,
    "below_minimum": of_short,
    "system_edited": of_edit,
    "tools_changed": of_edit,
    "compacted": of_conversation,
    "forked": of_conversation,
    "unknown_usage": of_unknown,
    "unknown_prompt": of_unknown,
}
"""By cause; others are told by ``of_any``."""


def _gaps_ms(case: Case) -> Floats:
    """Time since the call that each is compared with, ms; of the calls that have one."""
    at = np.flatnonzero(case.hit & (case.breaks.before >= 0))
    return (case.traffic.at_ms[at] - case.traffic.at_ms[case.breaks.before[at]]).astype(np.float64)
