"""Vectors without texts: how many calls a semantic cache would have served at most.

Capture can keep vectors of questions instead of their words. They tell which questions lie near each other; whether a
number, a name or a negation differs they do not, so no guard can look, and nothing here is ever called a safe hit.
"""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
import polars as pl

from prefixscope.analyzer.semantic import matches, neighbours, tiers
from prefixscope.analyzer.semantic.embedding import of_length_one
from prefixscope.analyzer.semantic.questions import Bools, Ints, Questions
from prefixscope.analyzer.semantic.tiers import Policy
from prefixscope.analyzer.store import Store

THRESHOLDS: Final = (0.80, 0.85, 0.90, 0.92, 0.95, 0.98)


@dataclass(frozen=True, slots=True)
class AtMost:
    """Calls that cosine alone would have served from an earlier answer, exact repeats included."""

    made_by: str  # what made the vectors
    calls: int  # that have one, and may be served at all
    left_out: int  # with a vector that something else made
    served: tuple[tuple[float, int], ...]  # threshold, calls


def at_most(  # noqa: PLR0913 - which calls, and how the cache decides
    store: Store,
    asked: Questions,
    policy: Policy,
    *,
    service: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> AtMost | None:
    """The upper bound for calls without text, None where none has a vector.

    Args:
        store: holds the calls.
        asked: the same calls (``queries/analysis/calls`` of this selection) as questions.
        policy: TTL, and whether the conversation before counts; guards and threshold do not.
        service: only calls of this service.
        since: only calls from then on (UTC).
        until: only calls before (UTC).
    """
    rows = store.frame("analysis/vectors", service=service, since=since, until=until)
    may = np.array([not bar for bar in asked.bar], dtype=np.bool_) & (asked.scope >= 0)
    may &= rows["vector"].is_not_null().to_numpy() & (asked.text < 0)
    made = Counter(_kind(rows, np.flatnonzero(may)))
    if not made:
        return None
    (kind, calls), *_ = made.most_common(1)
    chosen = may.copy()
    chosen[may] = [one == kind for one in _kind(rows, np.flatnonzero(may))]
    numbered, vectors = _numbered(asked, rows, chosen)
    pairs = neighbours.find(of_length_one(vectors), numbered.text_scope)
    alike = matches.of_pairs(pairs, numbered, lambda _: False)
    shadow = replace(policy, guarded=False, overlap=0.0, threshold=neighbours.FLOOR)
    reach = tiers.reach(numbered, alike, shadow)
    served = tuple((threshold, reach.count(threshold)) for threshold in THRESHOLDS)
    return AtMost(kind[0], calls, made.total() - calls, served)


def _kind(rows: pl.DataFrame, calls: Ints) -> list[tuple[str, int]]:
    """What made the vectors, and how many bytes each has: others cannot be compared."""
    chosen = rows[calls.tolist()]
    return list(zip(chosen["embedded_by"], map(len, chosen["vector"]), strict=True))


def _numbered(asked: Questions, rows: pl.DataFrame, chosen: Bools) -> tuple[Questions, np.ndarray]:
    """``asked`` with a vector's number as that of its text, and the vectors by number, as they were first asked."""
    calls = np.flatnonzero(chosen).tolist()
    vectors, scopes, contexts = (rows[name].to_list() for name in ("vector", "scope_key", "context_key"))
    scope = _dense((int(asked.scope[call]), scopes[call]) for call in calls)
    text = _dense((scope[at], vectors[call]) for at, call in enumerate(calls))
    context = _dense(contexts[call] for call in calls)
    first = np.unique(text, return_index=True)[1]
    distinct = b"".join(vectors[calls[at]] for at in first)
    numbered = replace(
        asked,
        scope=_placed(asked, calls, scope),
        text=_placed(asked, calls, text),
        context=_placed(asked, calls, context),
        texts=("",) * len(first),
        text_scope=scope[first],
    )
    return numbered, np.frombuffer(distinct, dtype="<f2").reshape(len(first), -1).astype(np.float32)


def _dense(values: Iterable[Hashable]) -> Ints:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values], dtype=np.int64)


def _placed(asked: Questions, calls: list[int], values: Ints) -> Ints:
    """``values`` of those calls, and -1 of all others."""
    found = np.full(len(asked), -1, dtype=np.int64)
    found[calls] = values
    return found
