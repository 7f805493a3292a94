"""Who shares answers under the settings: the scope is the budget's, and neither a threshold nor a label widens it."""

from dataclasses import dataclass, replace

from prefixscope.analyzer.semantic.analysis import NAIVE, Analysis, Options
from prefixscope.dashboard.caches.source import Looked


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was replayed, and the analysis that compared the scopes: often the same."""

    found: Analysis
    compared: Analysis


def replayed(looked: Looked, options: Options) -> Replayed:
    """The analysis of these options, in the scope that the budget chooses with guards.

    A threshold of one's own, or guards that are off, would make the analysis fall back to the default scope, and the
    figures of two settings would differ by who shares, too.
    """
    if not looked.with_text or options.scope_given:
        found = looked.analysed(options)
        return Replayed(found, found)
    choosing = replace(options, threshold_given=False, policy=replace(options.policy, threshold=NAIVE, guarded=True))
    compared = looked.analysed(choosing)
    scope = _never_wider(compared.scope, looked.analysed(replace(choosing, labels={})).scope)
    if choosing == options and scope == compared.scope:
        return Replayed(compared, compared)
    return Replayed(looked.analysed(replace(options, scope=scope, scope_given=True)), compared)


def _never_wider(scope: tuple[str, ...], before: tuple[str, ...]) -> tuple[str, ...]:
    """``scope``, unless it drops what kept calls apart before anybody judged a pair: that is nobody's choice."""
    return scope if set(before) <= set(scope) else before
