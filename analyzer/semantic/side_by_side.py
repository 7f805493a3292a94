"""Calls beside each other as plain data: false-match candidates, changed answers, hits of a cache in use."""

from collections import Counter
from typing import Any, Final

from prefixscope.analyzer.semantic import guards
from prefixscope.analyzer.semantic.analysis import Analysis
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.findings import is_risky
from prefixscope.analyzer.semantic.freshness import AGES_S

MOST_CANDIDATES: Final = 50


def candidates(found: Analysis, *, with_text: bool) -> list[dict[str, Any]]:
    """The pairs that a threshold alone would have joined although they should not be, then those nobody has judged."""
    told = found.told_threshold
    ordered = sorted(
        found.candidates, key=lambda c: (not (is_risky(c) and c.cosine >= told), c.label is not None, -c.usd, c.name)
    )
    return [_candidate(found, c, with_text=with_text) for c in ordered[:MOST_CANDIDATES]]


def _candidate(found: Analysis, candidate: Candidate, *, with_text: bool) -> dict[str, Any]:
    return {
        "pair": candidate.name,
        "cosine": round(candidate.cosine, 4),
        "overlap": round(candidate.overlap, 4),
        "reasons": [{"reason": name, "meaning": guards.REASONS[name]} for name in candidate.reasons],
        "answers": candidate.by_answers,
        "label": candidate.by_hand,
        "risky": is_risky(candidate),
        "calls": candidate.calls,
        "usd_at_stake": round(candidate.usd, 10),
    } | _sides(found, candidate.call, candidate.source, with_text=with_text)


def _sides(found: Analysis, call: int, earlier: int | None, *, with_text: bool) -> dict[str, Any]:
    """A call and the one whose answer it would have got, or got; that one is left out where it is not known."""
    sides = {"call": call} | ({} if earlier is None else {"earlier": earlier})
    return {side: _call(found, number, with_text=with_text) for side, number in sides.items()}


def _call(found: Analysis, call: int, *, with_text: bool) -> dict[str, Any]:
    asked = found.questions
    names = ("call_id", "response_id", "trace_id", "file", "line", "service", "model")
    texts = {"question": asked.question(call), "answer": asked.answer(call)} if with_text else {}
    return {name: asked.calls[name][call] for name in names} | texts


def freshness(found: Analysis, *, with_text: bool) -> dict[str, Any]:
    """The same question again: how soon its answer changes, with the quickest changes."""
    fresh = found.fresh
    ages = {name: fresh.within(age) for name, age in AGES_S.items()}
    return {
        "repeats": len(fresh.repeats),
        "by_age": [{"up_to": name, "compared": n[0], "changed": n[1]} for name, n in ages.items()],
        "ttl_s": fresh.ttl_s(found.options.budget),
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
