"""What a finding rests on, in facts and in one line, and what to do about it in another."""

from collections.abc import Callable, Mapping

from prefixscope.analyzer.evidence import keys, text
from prefixscope.analyzer.evidence.case import Case, Told

__all__ = ["TELL", "Case", "Told"]

TELL: Mapping[str, Callable[[Case], Told]] = {
    "sort_tools": text.of_tools,
    "pin_tools": text.of_tool_sets,
    "keep_history": text.of_history,
    "pin_settings": keys.of_settings,
    "one_scope": keys.of_scope,
    "move_volatile": text.of_volatile,
    "raise_to_minimum": keys.of_minimum,
    "mark_static": keys.of_markers,
    "mark_last": keys.of_markers,
    "mark_both": keys.of_markers,
    "mark_trail": keys.of_markers,
    "extend_ttl": keys.of_ttl,
    "keep_alive": keys.of_ttl,
    "warm_up": keys.of_bursts,
    "keep_static_marker": keys.of_writes,
    "drop_markers": keys.of_writes,
    "shorten_ttl": keys.of_writes,
}
"""By fix."""
