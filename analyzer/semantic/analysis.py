"""From calls and their texts to what a response cache would have done with them: runs the stages in their order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import polars as pl

from prefixscope.analyzer import audit, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.semantic import candidates as candidate_pairs
from prefixscope.analyzer.semantic import (
    existing,
    findings,
    freshness,
    questions,
    scopes,
    tiers,
    trial,
    unit_cost,
    vectors,
)
from prefixscope.analyzer.semantic.agreement import AS_LABEL
from prefixscope.analyzer.semantic.alone import Alone
from prefixscope.analyzer.semantic.bound import FEWEST
from prefixscope.analyzer.semantic.cacheable import Content
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.embedding import RECORDED, Remembering, embedder, known_words
from prefixscope.analyzer.semantic.existing import ServedHit
from prefixscope.analyzer.semantic.findings import Finding
from prefixscope.analyzer.semantic.freshness import Freshness
from prefixscope.analyzer.semantic.questions import Bools, Floats, Questions
from prefixscope.analyzer.semantic.scopes import Tried
from prefixscope.analyzer.semantic.threshold import Choice, Measured
from prefixscope.analyzer.semantic.tiers import Policy, Served
from prefixscope.analyzer.semantic.trial import Given, Options, Point, Trial
from prefixscope.analyzer.semantic.unit_cost import Option
from prefixscope.analyzer.semantic.vectors import AtMost
from prefixscope.analyzer.semantic.words import canonical
from prefixscope.analyzer.store import Store

__all__ = ["NAIVE", "Analysis", "Options", "Point", "review_rows", "run", "unjudged"]

NAIVE: Final = 0.92  # the threshold whose false matches are told where none is named: what caches are shipped with


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything the report tells."""

    options: Options
    scope: tuple[str, ...]  # the one that was replayed
    scopes: tuple[Tried, ...]  # all that were compared, the replayed one first; empty where the user named one
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
    alone: Alone | None  # the cache that goes by the cosine alone; None where nothing was embedded
    fresh: Freshness
    hits: tuple[ServedHit, ...]
    unit_cost: tuple[Option, ...]
    findings: tuple[Finding, ...]
    embedded_by: str  # "" = nothing was embedded
    ms_per_question: float
    usd_per_lookup: float
    rejected: pl.DataFrame
    at_most: AtMost | None  # by vectors that capture kept instead of texts

    @property
    def looked_up(self) -> Bools:
        """Calls whose question is embedded, hits and misses alike."""
        return trial.looked_up(self.questions, self.served, self.policy)


def run(
    store: Store,
    text_of: Callable[[Mapping[str, Any]], Content | None],
    key: bytes,
    options: Options,
    *,
    remembered: dict[str, Remembering] | None = None,
) -> Analysis:
    """Replays the calls of ``store`` through the hierarchy of caches.

    Args:
        store: holds the calls.
        text_of: finds the text of a call by its row; None where none is recorded.
        key: what ids are keyed with.
        options: what the user asked for.
        remembered: embedders by name; whoever looks at the same calls again hands in the same one, so that no vector
            is made twice.

    Raises:
        UsageError: there is no such embedder, or its package is not installed.
        InputError: the embedder gave no vectors.
    """
    selection = options.selection
    chosen = {"service": selection.service, "since": selection.since, "until": selection.until}
    calls, prompts = store.frame("analysis/calls", **chosen), store.arrow("analysis/prompts", **chosen)

    def ask(scope: Sequence[str]) -> Questions:
        segments, heat = prompts.column("segments"), options.max_temperature
        return questions.of_calls(calls, segments, text_of, key, scope_fields=scope, max_temperature=heat)

    first = ask(options.scope)
    priced = _billed(audit.with_costs(calls), first)
    usd = _usd(priced)
    made_by = _embedder(options.embedder, first, {} if remembered is None else remembered)
    usd_per_lookup = _usd_per_lookup(first, options.usd_per_million)
    replayed = _replayed(first, ask, Given(options, usd, usd_per_lookup, key, made_by, known_words().__contains__))
    best = replayed.best
    case = _case(replayed, usd, key, options.budget)
    told_threshold = options.policy.threshold if options.threshold_given and options.policy.threshold else NAIVE
    loaded = traffic.load(calls, prompts, contents_of(store.arrow("analysis/contents"))) if len(first) else None
    return Analysis(
        options=options,
        scope=best.scope,
        scopes=replayed.scopes,
        questions=best.asked,
        priced=priced,
        usd=usd,
        policy=best.policy,
        told_threshold=told_threshold,
        choice=best.choice,
        served=best.served,
        exact_alone=best.exact_alone,
        curve=best.curve,
        candidates=best.candidates,
        alone=best.alone,
        fresh=freshness.of_questions(best.asked),
        hits=tuple(existing.audit(best.asked, replayed.known)),
        unit_cost=tuple(unit_cost.table(loaded, priced, _deflected(best, case))) if loaded else (),
        findings=tuple(findings.find(case, best.alone, told_threshold)),
        embedded_by=replayed.embedded_by,
        ms_per_question=replayed.ms_per_question,
        usd_per_lookup=replayed.usd_per_lookup,
        rejected=store.frame("analysis/quarantine"),
        at_most=vectors.at_most(
            store, first, options.policy, service=selection.service, since=selection.since, until=selection.until
        ),
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
class _Replayed:
    """The trial that is told, and what went into it; by default nothing was embedded."""

    best: Trial
    scopes: tuple[Tried, ...] = ()
    embedded_by: str = ""
    ms_per_question: float = 0.0
    usd_per_lookup: float = 0.0
    known: Callable[[str], bool] = lambda _: False


def _replayed(first: Questions, ask: Callable[[Sequence[str]], Questions], given: Given) -> _Replayed:
    """Tries the scope that was asked for, or those there are to choose from; without texts an exact cache alone."""
    if not (first.with_text and first.texts):
        return _Replayed(trial.exact_only(given.options.scope, first, given.usd, given.options.policy))
    sample = trial.to_compare(first) or first.texts[:1]
    given.embedder.embed(sample)
    attempt = partial(trial.attempt, given)
    best = attempt(given.options.scope, first)
    compared = tuple(scopes.compare(best, ask, attempt)) if given.options.chooses_scope else ()
    chosen, spent = compared[0].trial if compared else best, given.embedder.ms_per_text(sample)
    told = tuple(replace(tried, trial=tried.trial.light()) for tried in compared)
    return _Replayed(chosen, told, given.embedder.name, spent, given.usd_per_lookup, given.known)


def _embedder(name: str, asked: Questions, remembered: dict[str, Remembering]) -> Remembering:
    if name == RECORDED:  # they are those of the calls that are looked at, and cost nothing
        return Remembering(embedder(name, _recorded(asked)))
    return remembered.setdefault(name, Remembering(embedder(name)))


def _recorded(asked: Questions) -> dict[str, Sequence[float]]:
    """Question in canonical spelling -> the vector recorded beside it."""
    return {canonical(c.question): c.vector for c in asked.contents if c is not None and c.vector}


def _usd_per_lookup(asked: Questions, usd_per_million: float) -> float:
    """Price of embedding one question; its tokens are estimated at four bytes each."""
    sizes = [len(text.encode("utf-8", "replace")) / 4 for text in asked.texts]
    return usd_per_million * float(np.mean(sizes)) / 1e6 if sizes else 0.0


def _case(replayed: _Replayed, usd: Floats, key: bytes, budget: float) -> findings.Case:
    best = replayed.best
    checked = trial.checked(best)
    return findings.Case(
        questions=best.asked,
        scope=best.scope,
        policy=best.policy,
        served=best.served,
        usd=usd,
        agreed=_agreed(best),
        doubt=_doubt(checked, budget),
        looked_up=trial.looked_up(best.asked, best.served, best.policy),
        usd_per_lookup=replayed.usd_per_lookup,
        key=key,
    )


def _doubt(checked: Measured, budget: float) -> str:
    if checked.served < FEWEST:
        return f"too few judged pairs to trust the threshold: {checked.served:,} were checked, and it takes {FEWEST}"
    if checked.rate > budget:
        return f"of the judged pairs that were checked, {checked.rate:.1%} were wrong"
    return ""


def _agreed(best: Trial) -> dict[int, bool | None]:
    """Served call -> whether the answer that it would have got is right; None where nobody knows."""
    asked, served = best.asked, best.served
    label = {(c.call, c.source): c.label for c in best.candidates}
    by_texts = {frozenset((int(asked.text[c.call]), int(asked.text[c.source]))): c.label for c in best.candidates}
    agreed: dict[int, bool | None] = {}
    for call in np.flatnonzero(served.tier != tiers.MODEL).tolist():
        source = int(served.source[call])
        if served.tier[call] == tiers.EXACT:
            answers = freshness.compared(asked, source, call)
            agreed[call] = AS_LABEL[answers] if answers else None
        else:
            texts = frozenset((int(asked.text[call]), int(asked.text[source])))
            agreed[call] = label.get((call, source), by_texts.get(texts))
    return agreed


def _deflected(best: Trial, case: findings.Case) -> unit_cost.Served:
    looked_up = case.looked_up if best.served.count(tiers.SEMANTIC) else np.zeros_like(case.looked_up)
    # a cache that serves nobody is not put up
    return unit_cost.Served(best.exact_alone, best.served.tier != tiers.MODEL, looked_up, case.usd_per_lookup)


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
