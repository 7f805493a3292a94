"""Fixes: what a team could change, as pure functions from traffic to traffic. Replay tells what each is worth."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from prefixscope.analyzer.families import Families
from prefixscope.analyzer.fixes import breakpoints, history, keys, lifetimes, minimums, tools, volatile
from prefixscope.analyzer.ragged import Bools
from prefixscope.analyzer.traffic import Traffic

Effort = Literal["setting", "code", "design"]


@dataclass(frozen=True, slots=True)
class Fix:
    """A change, and what is known of it before any replay."""

    name: str
    causes: tuple[str, ...]  # what it removes: the first one, unless a call shows the sign of another
    apply: Callable[[Traffic, Families, Bools], Traffic]  # on the calls that the last argument chooses
    effort: Effort  # a setting, a change of code in one place, or one of how prompts are made
    risk: str
    saves_writes: bool = False  # it is worth what is no longer written, not what is read more


_FIXES = (
    Fix("sort_tools", ("tools_reordered",), tools.sort_tools, "code", "none known: models do not rely on the order"),
    Fix(
        "pin_tools",
        ("tools_changed",),
        tools.pin_tools,
        "code",
        "more tools to choose from: say by allowed_tools or tool_choice which a call may use",
    ),
    Fix(
        "keep_history",
        ("history_rewritten", "history_pruned"),
        history.keep_history,
        "design",
        "prompts grow longer: the context window fills sooner, and answers may attend to old text",
    ),
    Fix(
        "pin_settings",
        ("settings_changed",),
        keys.pin_settings,
        "code",
        "all calls behave as those do that have the usual settings",
    ),
    Fix(
        "one_scope",
        ("split_scope",),
        keys.one_scope,
        "setting",
        "rate limits, tenants and regions may be apart on purpose; one key can become a hot spot",
    ),
    Fix(
        "move_volatile",
        ("volatile_prefix",),
        volatile.move_volatile,
        "code",
        "the model reads the moved text at another place: compare answers first",
    ),
    Fix("raise_to_minimum", ("below_minimum",), minimums.raise_to_minimum, "design", "a prompt made longer"),
    Fix("mark_static", ("no_marker", "marker_misplaced"), breakpoints.mark_static, "code", "none known"),
    Fix("mark_last", ("no_marker", "marker_misplaced"), breakpoints.mark_last, "setting", "none known"),
    Fix("mark_both", ("no_marker", "marker_misplaced"), breakpoints.mark_both, "code", "none known"),
    Fix("mark_trail", ("no_marker", "marker_misplaced", "forked"), breakpoints.mark_trail, "code", "none known"),
    Fix(
        "extend_ttl",
        ("ttl_lapse", "ttl_class_switched"),
        lifetimes.extend_ttl,
        "setting",
        "a dearer write where nobody comes back",
    ),
    Fix(
        "keep_alive",
        ("ttl_lapse",),
        lifetimes.keep_alive,
        "design",
        "requests that nobody asked for: they count towards rate limits, and are paid in quiet hours too",
    ),
    Fix(
        "warm_up",
        ("parallel_cold_start",),
        lifetimes.warm_up,
        "code",
        "the calls of a burst wait for the first token of the first one",
    ),
    Fix(
        "keep_static_marker",
        ("write_churn",),
        breakpoints.mark_static,
        "setting",
        "conversations that do go on are not read beyond the static part",
        saves_writes=True,
    ),
    Fix(
        "drop_markers",
        ("write_churn",),
        breakpoints.drop_markers,
        "setting",
        "nothing is read even where somebody does come back",
        saves_writes=True,
    ),
    Fix(
        "shorten_ttl",
        ("write_churn",),
        lifetimes.shorten_ttl,
        "setting",
        "longer pauses than those recorded find nothing",
        saves_writes=True,
    ),
)
FIXES: Mapping[str, Fix] = {fix.name: fix for fix in _FIXES}
"""By name, in the order in which they can be combined: what makes prompts anew first, then what moves their rows."""


def apply(names: Mapping[str, Bools], traffic: Traffic, families: Families) -> Traffic:
    """The traffic with each of the named fixes on the calls it is meant for."""
    for name, fix in FIXES.items():
        if name in names and names[name].any():
            traffic = fix.apply(traffic, families, names[name])
    return traffic


def excludes(name: str, chosen: Iterable[str]) -> bool:
    """Whether a fix is out of the question beside others: it is one of them, or another answer to the same cause."""
    return any(name == other or FIXES[name].causes[0] == FIXES[other].causes[0] for other in chosen)
