"""One scope tried: who would have been served by an exact and a semantic cache whose answers are shared that far."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import numpy as np

from prefixscope.analyzer import audit
from prefixscope.analyzer.semantic import alone, candidates, matches, neighbours, tiers
from prefixscope.analyzer.semantic.alone import Alone
from prefixscope.analyzer.semantic.candidates import Candidate, Ground
from prefixscope.analyzer.semantic.embedding import DEFAULT, Embedder, Remembering
from prefixscope.analyzer.semantic.matches import Matches
from prefixscope.analyzer.semantic.neighbours import Pairs
from prefixscope.analyzer.semantic.questions import DEFAULT_SCOPE, Bools, Floats, Questions
from prefixscope.analyzer.semantic.threshold import Choice, Measured, choose, measure
from prefixscope.analyzer.semantic.tiers import Policy, Reach, Served

_CURVE: Final = tuple(round(0.60 + 0.01 * step, 2) for step in range(41))  # thresholds


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    policy: Policy = field(default_factory=Policy)
    threshold_given: bool = False
    budget: float = 0.01
    scope: Sequence[str] = DEFAULT_SCOPE
    scope_given: bool = False
    embedder: str = DEFAULT
    usd_per_million: float = 0.0  # of embedded tokens
    max_temperature: float = 0.0
    labels: Mapping[str, bool] = field(default_factory=dict)
    selection: audit.Selection = field(default_factory=audit.Selection)

    @property
    def chooses_scope(self) -> bool:
        """Whether scopes are compared: not where the user named one, or a threshold to replay as it is."""
        return not self.scope_given and not self.threshold_given and tuple(self.scope) == DEFAULT_SCOPE


@dataclass(frozen=True, slots=True)
class Point:
    """One threshold of the curve, in calls. Wrong and right ones are known by label or by answers."""

    threshold: float
    alone: int  # calls that cosine alone would serve whatever was said before, exact repeats included
    alone_wrong: int
    alone_right: int
    guarded: int
    guarded_wrong: int
    guarded_right: int


@dataclass(frozen=True, slots=True)
class Given:
    """What is the same in every trial."""

    options: Options
    usd: Floats  # what each call cost; NaN where that is not known
    usd_per_lookup: float
    key: bytes  # names pairs
    embedder: Remembering
    known: Callable[[str], bool]  # whether a word is a common one


@dataclass(frozen=True, slots=True)
class Trial:
    """What the caches would have done."""

    scope: tuple[str, ...]
    asked: Questions
    policy: Policy  # the one that was replayed
    served: Served
    exact_alone: Bools  # what an exact cache would serve with no semantic one behind it
    saved_usd: float  # by both, net of looking up
    choice: Choice | None = None
    curve: tuple[Point, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    alone: Alone | None = None  # the cache that goes by the cosine alone; None where nothing was embedded
    matches: Matches | None = None
    ground: Ground | None = None

    @property
    def deflected(self) -> int:
        """Calls that a cache serves."""
        return int((self.served.tier != tiers.MODEL).sum())

    def light(self) -> "Trial":
        """Without what is large and only the comparison itself needs."""
        return replace(self, candidates=(), alone=None, matches=None, ground=None)


def checked(trial: Trial) -> Measured:
    """What judged pairs say of the replayed policy: those that had no say in its choice; all where it was given."""
    if trial.choice is None:
        return Measured(0, 0)
    if trial.policy == trial.choice.policy:
        return trial.choice.checked_on
    return measure(trial.policy, candidates.labelled(trial.candidates, same_context=trial.policy.same_context))


def exact_only(scope: Sequence[str], asked: Questions, usd: Floats, base: Policy) -> Trial:
    """Without a semantic cache: where texts are not known."""
    policy = replace(base, threshold=None)
    served = tiers.replay(asked, None, policy)
    repeats = served.tier == tiers.EXACT
    return Trial(tuple(scope), asked, policy, served, repeats, float(np.nansum(usd[repeats])))


def attempt(given: Given, scope: Sequence[str], asked: Questions) -> Trial:
    """Finds alike questions, chooses the policy for the budget, and replays it."""
    options, base = given.options, given.options.policy
    alike = matches.of_pairs(_pairs(asked, given.embedder), asked, given.known)
    ground = Ground(asked, alike, given.usd, given.key, options.labels, given.embedder)
    views = _views(asked, alike, base)
    found = candidates.collect(views, ground)
    by_cosine = alone.of_reach(views[2], found, asked)
    choice = choose(candidates.labelled(found, same_context=base.same_context), options.budget, base)
    policy = base if options.threshold_given else _policy(choice, base)
    served = tiers.replay(asked, alike, policy)
    return Trial(
        scope=tuple(scope),
        asked=asked,
        policy=policy,
        served=served,
        exact_alone=tiers.replay(asked, None, replace(policy, threshold=None)).tier == tiers.EXACT,
        saved_usd=_saved(asked, served, policy, given),
        choice=choice,
        curve=_curve(by_cosine, views[1], found),
        candidates=tuple(found),
        alone=by_cosine,
        matches=alike,
        ground=ground,
    )


def to_compare(asked: Questions) -> list[str]:
    """The questions that are not alone in their scope: no other needs a vector."""
    return [asked.texts[n] for n in np.flatnonzero(neighbours.comparable(asked.text_scope))]


def _pairs(asked: Questions, embedder: Embedder) -> Pairs:
    numbers = np.flatnonzero(neighbours.comparable(asked.text_scope))
    found = neighbours.find(embedder.embed(to_compare(asked)), asked.text_scope[numbers])
    return Pairs(numbers[found.later], numbers[found.earlier], found.cosine)


def _views(asked: Questions, alike: Matches, base: Policy) -> tuple[Reach, Reach, Reach]:
    """Caches in shadow: by cosine within a conversation, with guards, and by cosine alone."""
    free = replace(base, guarded=False, overlap=0.0, threshold=neighbours.FLOOR)
    return (
        tiers.reach(asked, alike, free),
        tiers.reach(asked, alike, replace(base, guarded=True, threshold=neighbours.FLOOR)),
        tiers.reach(asked, alike, replace(free, same_context=False)),
    )


def _policy(choice: Choice, base: Policy) -> Policy:
    """The chosen one. Without labels the default, guards and all; where none keeps the budget, no semantic cache."""
    if not choice.labels:
        return base
    return choice.policy or replace(base, threshold=None)


def looked_up(asked: Questions, served: Served, policy: Policy) -> Bools:
    """Calls whose question is embedded to look for an alike one, hits and misses alike."""
    if policy.threshold is None:
        return np.zeros(len(asked), dtype=np.bool_)
    return np.asarray(asked.semantic & (served.tier != tiers.EXACT), dtype=np.bool_)


def _saved(asked: Questions, served: Served, policy: Policy, given: Given) -> float:
    hit = served.tier != tiers.MODEL
    looking_up = int(looked_up(asked, served, policy).sum()) * given.usd_per_lookup
    return round(float(np.nansum(given.usd[hit])) - looking_up, 10)  # so that equal savings are equal


def _curve(by_cosine: Alone, guarded: Reach, found: Sequence[Candidate]) -> tuple[Point, ...]:
    label = {c.pair: c.label for c in found if c.pair >= 0}
    count = partial(_counted, label, guarded)
    return tuple(Point(threshold, *by_cosine.counted(threshold), *count(threshold)) for threshold in _CURVE)


def _counted(label: Mapping[int, bool | None], view: Reach, threshold: float) -> tuple[int, int, int]:
    """(calls, known wrong, known right); an exact repeat is right."""
    served = view.source[view.cosine >= threshold] >= 0
    pairs = view.pair[view.cosine >= threshold][served].tolist()
    known = [True if pair < 0 else label.get(pair) for pair in pairs]
    return len(known), known.count(False), known.count(True)
