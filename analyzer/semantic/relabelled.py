"""An analysis under other labels, without a look at the calls: what whoever judges pairs is told after each one."""

from collections.abc import Mapping
from dataclasses import replace

from prefixscope.analyzer.semantic.analysis import Analysis
from prefixscope.analyzer.semantic.candidates import labelled
from prefixscope.analyzer.semantic.threshold import choose


def relabelled(found: Analysis, labels: Mapping[str, bool]) -> Analysis:
    """``found`` with these labels by hand, and the threshold chosen anew on them.

    What was replayed, the curve and the findings stay those of the labels that ``found`` was made with: they take a
    look at the calls.

    Args:
        found: an analysis.
        labels: pair name -> whether one answer does for both; all of them, earlier ones too.
    """
    options = replace(found.options, labels=labels)
    candidates = tuple(replace(candidate, by_hand=labels.get(candidate.name)) for candidate in found.candidates)
    if found.choice is None:
        return replace(found, options=options, candidates=candidates)
    base = options.policy
    choice = choose(labelled(candidates, same_context=base.same_context), options.budget, base)
    return replace(found, options=options, candidates=candidates, choice=choice)
