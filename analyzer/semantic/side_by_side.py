"""Calls beside each other as plain data: false-match candidates, changed answers, hits of a cache in use."""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from prefixscope.analyzer.semantic import guards
from prefixscope.analyzer.semantic.analysis import Analysis
from prefixscope.analyzer.semantic.bound import FEWEST
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.differences import details
from prefixscope.analyzer.semantic.embedding import known_words
from prefixscope.analyzer.semantic.findings import is_risky
from prefixscope.analyzer.semantic.freshness import AGES_S

MOST_CANDIDATES: Final = 50
common_words = cache(known_words)


def candidates(found: Analysis, *, with_text: bool) -> list[dict[str, Any]]:
    """The pairs that a threshold alone would have joined although they should not be, then those nobody has judged.

    Of the first, those that are known to be wrong come before those that a guard refuses and nobody has judged.
    """
    told = found.told_threshold
    ordered = sorted(found.candidates, key=lambda c: _order(c, told))
    return pairs(found, ordered[:MOST_CANDIDATES], with_text=with_text)


def _order(candidate: Candidate, told: float) -> tuple[bool, bool, float, str]:
    risky = is_risky(candidate) and candidate.cosine >= told
    later = candidate.label is None if risky else candidate.label is not None
    return not risky, later, -candidate.usd, candidate.name


def pairs(found: Analysis, chosen: Sequence[Candidate], *, with_text: bool) -> list[dict[str, Any]]:
    """Those pairs with both calls, their reasons and who says whether one answer does for both."""
    return [_candidate(found, candidate, with_text=with_text) for candidate in chosen]


def _candidate(found: Analysis, candidate: Candidate, *, with_text: bool) -> dict[str, Any]:
    return {
        "pair": candidate.name,
        "cosine": round(candidate.cosine, 4),
        "overlap": round(candidate.overlap, 4),
        "reasons": _reasons(found, candidate, with_text=with_text),
        "answers": candidate.by_answers,
        "label": candidate.by_hand,
        "risky": is_risky(candidate),
        "status": {True: "right", False: "wrong", None: "not_judged"}[candidate.label],
        "calls": candidate.calls,
        "usd_at_stake": round(candidate.usd, 10),
    } | _sides(found, candidate.call, candidate.source, with_text=with_text)


def _reasons(found: Analysis, candidate: Candidate, *, with_text: bool) -> list[dict[str, str]]:
    """The reasons with what they mean and, where words may be shown, which words differ ("" = none to name)."""
    texts = found.questions.question(candidate.call), found.questions.question(candidate.source)
    words = details(*texts, common_words().__contains__) if with_text and candidate.reasons else {}
    return [
        {"reason": name, "meaning": guards.REASONS[name], "detail": words.get(name, "")} for name in candidate.reasons
    ]


def _sides(found: Analysis, call: int, earlier: int | None, *, with_text: bool) -> dict[str, Any]:
    """A call and the one whose answer it would have got, or got; that one is left out where it is not known."""
    sides = {"call": call} | ({} if earlier is None else {"earlier": earlier})
    return {side: _call(found, number, with_text=with_text) for side, number in sides.items()}


def _call(found: Analysis, call: int, *, with_text: bool) -> dict[str, Any]:
    asked = found.questions
    names = ("call_id", "response_id", "trace_id", "file", "line", "service", "model")
    texts: dict[str, Any] = {"question": asked.question(call), "answer": asked.answer(call)} if with_text else {}
    if with_text and asked.previous(call):
        texts["previous"] = [{"role": role, "text": text} for role, text in asked.previous(call)]
    return {name: asked.calls[name][call] for name in names} | texts


def freshness(found: Analysis, *, with_text: bool) -> dict[str, Any]:
    """The same question again: how soon its answer changes, with the quickest changes.

    ``verdict``: "kept" (``ttl_s`` keeps the budget), "too_few" repeats to say so, or "too_wrong". ``replayed``: the
    same at the lifetime of the policy that was replayed.
    """
    fresh = found.fresh
    ages = {name: fresh.within(age) for name, age in AGES_S.items()}
    compared, changed = fresh.within(found.policy.ttl_s)
    return {
        "repeats": len(fresh.repeats),
        "by_age": [{"up_to": name, "compared": n[0], "changed": n[1]} for name, n in ages.items()],
        "ttl_s": fresh.ttl_s(found.options.budget),
        "verdict": fresh.verdict(found.options.budget),
        "fewest": FEWEST,
        "span_s": round(fresh.span_s, 3),
        "replayed": {
            "ttl_s": found.policy.ttl_s,
            "compared": compared,
            "changed": changed,
            "rate": changed / compared if compared else None,
        },
        "changed": [
            {"age_s": round(r.age_s, 3)} | _sides(found, r.call, r.source, with_text=with_text) for r in fresh.changed()
        ],
    }


def existing(found: Analysis, *, with_text: bool) -> dict[str, Any]:
    """What a cache in use has served, with the hits that are suspect."""
    hits = found.hits
    suspect = [hit for hit in hits if hit.reasons]
    return {
        "caches": dict(Counter(hit.cache for hit in hits)),
        "hits": len(hits),
        "exact": sum(hit.exact for hit in hits),
        "by_similarity": sum(hit.semantic is True for hit in hits),
        "source_unknown": sum(hit.source is None for hit in hits),
        "suspect": len(suspect),
        "examples": [
            {"similarity": hit.similarity, "semantic": hit.semantic, "cache": hit.cache, "reasons": list(hit.reasons)}
            | _sides(found, hit.call, hit.source, with_text=with_text)
            for hit in suspect[:MOST_CANDIDATES]
        ],
    }
