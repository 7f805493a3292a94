"""From calls and their texts to what a response cache would have done with them: runs the stages in their order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer import audit, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.semantic import candidates as candidate_pairs
from prefixscope.analyzer.semantic import (
    existing,
    findings,
    freshness,
    matches,
    neighbours,
    questions,
    tiers,
    unit_cost,
)
from prefixscope.analyzer.semantic.agreement import verdict
from prefixscope.analyzer.semantic.cacheable import Content
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.embedding import DEFAULT, embedder, known_words, timed
from prefixscope.analyzer.semantic.existing import ServedHit
from prefixscope.analyzer.semantic.findings import Finding
from prefixscope.analyzer.semantic.freshness import Freshness
from prefixscope.analyzer.semantic.matches import Matches
from prefixscope.analyzer.semantic.questions import DEFAULT_SCOPE, Bools, Floats, Questions
from prefixscope.analyzer.semantic.threshold import Choice, choose
from prefixscope.analyzer.semantic.tiers import Policy, Reach, Served
from prefixscope.analyzer.semantic.unit_cost import Option
from prefixscope.analyzer.store import Store

NAIVE = 0.92  # the threshold whose false matches are told where the user names none: what caches are shipped with


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    policy: Policy = field(default_factory=Policy)
    threshold_given: bool = False
    budget: float = 0.01
    scope: Sequence[str] = DEFAULT_SCOPE
    embedder: str = DEFAULT
    usd_per_million: float = 0.0  # of embedded tokens
    max_temperature: float = 0.0
    labels: Mapping[str, bool] = field(default_factory=dict)
    selection: audit.Selection = field(default_factory=audit.Selection)


@dataclass(frozen=True, slots=True)
class Point:
    """One threshold of the curve. Shares are of all calls; wrong ones are known by label or by answers."""

    threshold: float
    alone: int  # calls that cosine alone would serve, exact repeats included
    alone_wrong: int
    alone_right: int
    guarded: int
    guarded_wrong: int
    guarded_right: int


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything the report tells."""

    options: Options
    questions: Questions
    priced: pl.DataFrame
    usd: Floats  # of each call; NaN = not known
    policy: Policy  # the one that was replayed
    told_threshold: float  # the cosine whose false matches are told
    choice: Choice | None
    served: Served
    exact_alone: Bools  # what an exact cache would serve with no semantic one behind it
    curve: tuple[Point, ...]
    candidates: tuple[Candidate, ...]
    fresh: Freshness
    hits: tuple[ServedHit, ...]
    unit_cost: tuple[Option, ...]
    findings: tuple[Finding, ...]
    embedded_by: str  # "" = nothing was embedded
    ms_per_question: float
    usd_per_lookup: float
    rejected: pl.DataFrame


def run(store: Store, text_of: Callable[[Mapping[str, Any]], Content | None], key: bytes, options: Options) -> Analysis:
    """Replays the calls of ``store``, whose texts ``text_of`` finds, through the hierarchy of caches."""
    chosen = {
        "service": options.selection.service,
        "since": options.selection.since,
        "until": options.selection.until,
    }
    calls = store.frame("analysis/calls", **chosen)
    prompts = store.arrow("analysis/prompts", **chosen)
    asked = questions.of_calls(
        calls,
        prompts.column("segments"),
        text_of,
        key,
        scope_fields=options.scope,
        max_temperature=options.max_temperature,
    )
    priced = _billed(audit.with_costs(calls), asked)
    usd = _usd(priced)
    semantic = _semantic(asked, usd, key, options) if asked.with_text and asked.texts else None
    policy = semantic.policy if semantic else replace(options.policy, threshold=None)
    served = tiers.replay(asked, semantic.matches if semantic else None, policy)
    found = semantic.candidates if semantic else ()
    exact_alone = tiers.replay(asked, None, replace(policy, threshold=None)).tier == tiers.EXACT
    case = findings.Case(
        asked, served, usd, _agreed(asked, served, found), semantic.usd_per_lookup if semantic else 0.0, key
    )
    told_threshold = options.policy.threshold if options.threshold_given and options.policy.threshold else NAIVE
    told = findings.find(case, found, told_threshold)
    loaded = traffic.load(calls, prompts, contents_of(store.arrow("analysis/contents"))) if len(asked) else None
    return Analysis(
        options=options,
        questions=asked,
        priced=priced,
        usd=usd,
        policy=policy,
        told_threshold=told_threshold,
        choice=semantic.choice if semantic else None,
        served=served,
        exact_alone=exact_alone,
        curve=semantic.curve if semantic else (),
        candidates=found,
        fresh=freshness.of_questions(asked),
        hits=tuple(existing.audit(asked, semantic.known if semantic else lambda _: False)),
        unit_cost=tuple(unit_cost.table(loaded, priced, _options(asked, served, exact_alone, case))) if loaded else (),
        findings=tuple(told),
        embedded_by=semantic.embedded_by if semantic else "",
        ms_per_question=semantic.ms_per_question if semantic else 0.0,
        usd_per_lookup=case.usd_per_lookup,
        rejected=store.frame("analysis/quarantine"),
    )


def _billed(priced: pl.DataFrame, asked: Questions) -> pl.DataFrame:
    """Without the cost of calls that a cache in use answered: their usage is that of the call they repeat."""
    free = pl.Series([c is not None and c.hit is not None for c in asked.contents], dtype=pl.Boolean)
    names = ("usd_input", "usd_output", "usd_without_cache")
    return priced.with_columns(pl.when(~free).then(pl.col(name)).alias(name) for name in names)


def _usd(priced: pl.DataFrame) -> Floats:
    """What each call cost; NaN where usage or price is not known."""
    total = priced.select((pl.col("usd_input") + pl.col("usd_output")).cast(pl.Float64)).to_series()
    return total.fill_null(float("nan")).to_numpy()


@dataclass(frozen=True, slots=True)
class _Semantic:
    """What tier 2 needs and found."""

    matches: Matches
    policy: Policy
    choice: Choice | None
    curve: tuple[Point, ...]
    candidates: tuple[Candidate, ...]
    embedded_by: str
    ms_per_question: float
    usd_per_lookup: float
    known: Callable[[str], bool]


def _semantic(asked: Questions, usd: Floats, key: bytes, options: Options) -> _Semantic:
    made_by = embedder(options.embedder, _recorded(asked))
    made = timed(made_by, asked.texts)
    vocabulary = known_words()
    known: Callable[[str], bool] = vocabulary.__contains__
    pairs = neighbours.find(made.vectors, asked.text_scope)
    alike = matches.of_pairs(pairs, asked, known)
    base = options.policy
    alone = tiers.reach(asked, alike, replace(base, guarded=False, overlap=0.0, threshold=neighbours.FLOOR))
    anywhere = tiers.reach(asked, alike, replace(base, guarded=False, overlap=0.0, same_context=False))
    guarded = tiers.reach(asked, alike, replace(base, guarded=True, threshold=neighbours.FLOOR))
    ground = candidate_pairs.Ground(asked, alike, usd, key, options.labels, made_by)
    found = candidate_pairs.collect([alone, guarded, anywhere], ground)
    choice = choose(candidate_pairs.labelled(found, same_context=base.same_context), options.budget, base)
    policy = base if options.threshold_given else _policy(choice, base)
    return _Semantic(
        matches=alike,
        policy=policy,
        choice=choice,
        curve=_curve(alone, guarded, found),
        candidates=tuple(found),
        embedded_by=made_by.name,
        ms_per_question=1000 * made.seconds / len(asked.texts),
        usd_per_lookup=_usd_per_lookup(asked, options.usd_per_million),
        known=known,
    )


def _policy(choice: Choice, base: Policy) -> Policy:
    """The chosen one. Without labels the default, guards and all; where none keeps the budget, no semantic cache."""
    if not choice.labels:
        return base
    return choice.policy or replace(base, threshold=None)


def _recorded(asked: Questions) -> dict[str, Sequence[float]]:
    """Question -> the vector recorded beside it."""
    return {
        asked.texts[text]: content.vector
        for text, content in zip(asked.text.tolist(), asked.contents, strict=True)
        if text >= 0 and content is not None and content.vector
    }


def _usd_per_lookup(asked: Questions, usd_per_million: float) -> float:
    """Price of embedding one question; its tokens are estimated at four bytes each."""
    sizes = [len(text.encode("utf-8", "replace")) / 4 for text in asked.texts]
    return usd_per_million * float(np.mean(sizes)) / 1e6 if sizes else 0.0


def _curve(alone: Reach, guarded: Reach, found: Sequence[Candidate]) -> tuple[Point, ...]:
    label = {c.pair: c.label for c in found if c.pair >= 0}
    count = partial(_counted, label)
    return tuple(
        Point(threshold, *count(alone, threshold), *count(guarded, threshold))
        for threshold in (round(0.60 + 0.01 * step, 2) for step in range(41))
    )


def _counted(label: Mapping[int, bool | None], view: Reach, threshold: float) -> tuple[int, int, int]:
    """(calls, known wrong, known right); an exact repeat is right."""
    served = view.source[view.cosine >= threshold] >= 0
    pairs = view.pair[view.cosine >= threshold][served].tolist()
    known = [True if pair < 0 else label.get(pair) for pair in pairs]
    return len(known), known.count(False), known.count(True)


def _agreed(asked: Questions, served: Served, found: Sequence[Candidate]) -> dict[int, bool]:
    """Served call -> whether the answer that it would have got is known to be right."""
    label = {(c.call, c.source): c.label for c in found}
    by_texts = {frozenset((int(asked.text[c.call]), int(asked.text[c.source]))): c.label for c in found}
    agreed = {}
    for call in np.flatnonzero(served.tier > 0).tolist():
        source = int(served.source[call])
        answers = asked.answer(source), asked.answer(call)
        if served.tier[call] == tiers.EXACT:
            agreed[call] = bool(answers[1]) and verdict(*answers, None) == "same"
        else:
            texts = frozenset((int(asked.text[call]), int(asked.text[source])))
            agreed[call] = label.get((call, source), by_texts.get(texts)) is True
    return agreed


def _options(asked: Questions, served: Served, exact_alone: Bools, case: findings.Case) -> unit_cost.Served:
    looked_up = asked.semantic & (served.tier != tiers.EXACT)
    if not served.count(tiers.SEMANTIC):
        looked_up = np.zeros(len(asked), dtype=np.bool_)  # what serves nobody is not put up
    return unit_cost.Served(exact_alone, served.tier != tiers.MODEL, looked_up, case.usd_per_lookup)


def unjudged(analysis: Analysis) -> int:
    """Pairs that the replayed policy joins and of which nobody knows whether one answer does for both."""
    return sum(c.label is None and candidate_pairs.served_by(c, analysis.policy) for c in analysis.candidates)


def _urgency(policy: Policy, c: Candidate) -> tuple[bool, bool, bool, float]:
    """What a person should judge first: what is served and not known, then what is alike and not known."""
    return c.by_hand is not None, c.label is not None, not candidate_pairs.served_by(c, policy), -c.cosine


def review_rows(analysis: Analysis) -> list[dict[str, object]]:
    """The candidates as rows of the review queue, the most urgent first."""
    asked = analysis.questions
    return [
        {
            "pair": c.name,
            "same_answer": {True: "yes", False: "no", None: ""}[c.by_hand],
            "suggested": c.by_answers,
            "cosine": round(c.cosine, 4),
            "overlap": round(c.overlap, 4),
            "reasons": " ".join(c.reasons),
            "calls": c.calls,
            "usd": round(c.usd, 6),
            "question": asked.question(c.call),
            "earlier_question": asked.question(c.source),
            "answer": asked.answer(c.call),
            "earlier_answer": asked.answer(c.source),
        }
        for c in sorted(analysis.candidates, key=partial(_urgency, analysis.policy))
    ]
