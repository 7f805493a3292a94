"""EXPLAIN: the one cause of each call's missed tokens, decided by the first rule that fits.

Causes that have a fix are proven: replayed with the fix, the call reads more. The rest says why nothing is claimed.
"""

from dataclasses import dataclass

import numpy as np

from prefixscope.analyzer.families import Families
from prefixscope.analyzer.fixes import EXTEND_TTL, MOVE_VOLATILE, SORT_TOOLS
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.replay import Outcome
from prefixscope.analyzer.savings import Plan
from prefixscope.analyzer.traffic import Traffic

CAUSE_OF_FIX = {SORT_TOOLS: "tools_reordered", MOVE_VOLATILE: "volatile_prefix", EXTEND_TTL: "ttl_lapse"}
HEALTHY = ""


@dataclass(frozen=True, slots=True)
class Causes:
    """Per call: the cause ("" = nothing was missed) and the tokens that could have been read but were not.

    ``claimed`` calls are those that a fix which pays makes read more; others have a cause, but nothing is promised.
    """

    cause: np.ndarray[tuple[int], np.dtype[np.str_]]
    missed: Floats
    claimed: Bools


def explain(traffic: Traffic, families: Families, base: Outcome, plan: Plan) -> Causes:
    """Decides rule by rule; a call keeps the first cause it gets."""
    cause = np.full(len(traffic), HEALTHY, dtype="<U24")
    missed = np.zeros(len(traffic))
    reported = traffic.calls["read"].to_numpy().astype(np.float64)
    total = traffic.input_total.astype(np.float64)
    tolerance = np.maximum(traffic.per_card("granularity"), np.maximum(16.0, 0.02 * total))
    open_ = np.ones(len(traffic), dtype=np.bool_)

    def settle(name: str, where: Bools, tokens: Floats) -> None:
        chosen = open_ & where
        cause[chosen] = name
        missed[chosen] = tokens[chosen]
        open_[chosen] = False

    reached = np.maximum(base.read, reported)
    usage_known = (traffic.calls["usage_state"] == "reported").to_numpy()
    settle("unknown_usage", ~usage_known, np.zeros(len(traffic)))
    settle("unknown_prompt", ~traffic.known, np.zeros(len(traffic)))
    for fix, rises, potential in _proven(families, plan, reached, tolerance):
        settle(CAUSE_OF_FIX[fix], rises, potential - reported)
    claimed = ~open_ & np.isin(cause, list(CAUSE_OF_FIX.values()))
    settle("unexplained", base.read - reported > tolerance, base.read - reported)
    settle("ttl_lapse", base.shared - np.maximum(base.unexpired, reached) > tolerance, base.shared - reached)
    settle("parallel_cold_start", base.unexpired - reached > tolerance, base.unexpired - reached)
    minimum = traffic.min_tokens
    settle("below_minimum", (total < minimum) & (base.shared <= reached + tolerance), total)
    settle("first_seen", total - reached > np.maximum(tolerance, 0.5 * total), total - reported)
    return Causes(cause, np.maximum(missed, 0.0), claimed)


def _proven(families: Families, plan: Plan, reached: Floats, tolerance: Floats) -> list[tuple[str, Bools, Floats]]:
    """For each fix that its family has chosen: the calls it makes read more, and what they would read in the end."""
    family = families.of_call
    full = [frozenset(names) for names in plan.chosen]
    potential = reached.copy()
    for fix_set, outcome in plan.outcomes.items():
        member = np.isin(family, [f for f, chosen in enumerate(full) if chosen == fix_set and fix_set])
        potential[member] = outcome.read[member]
    found = []
    for fix in CAUSE_OF_FIX:
        owners = np.isin(family, [f for f, chosen in enumerate(full) if fix in chosen])
        if owners.any():
            alone = plan.outcomes[frozenset({fix})].read
            found.append((fix, owners & (alone - reached > tolerance), potential))
    # what only a combination brings belongs to the first fix of it
    for fix in CAUSE_OF_FIX:
        owners = np.isin(family, [f for f, chosen in enumerate(full) if fix in chosen])
        found.append((fix, owners & (potential - reached > tolerance), potential))
    return found
