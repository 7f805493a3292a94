"""RECOMMEND: what the response caches would save, and where a semantic one would answer wrongly.

``exact_duplicate`` and ``semantic_opportunity`` are disjoint: a call has one tier. ``false_match_risk`` saves nothing:
it names the money that a threshold alone would have "saved" with answers that differ.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np

from prefixscope.analyzer.report.wording import counted
from prefixscope.analyzer.semantic.alone import Alone
from prefixscope.analyzer.semantic.candidates import Candidate
from prefixscope.analyzer.semantic.questions import Bools, Floats, Ints, Questions
from prefixscope.analyzer.semantic.tiers import EXACT, SEMANTIC, Policy, Served

_EXAMPLES: Final = 5
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause in the calls of one service and model. Dollars are over the data's window; ranges are (low, high)."""

    id: str
    cause: str
    service: str
    provider: str
    model: str
    calls: int
    confidence: str  # B: recorded answers or labels bear it out; C: nobody has looked
    saving: Range
    at_stake: float  # false_match_risk: what the answers cost that would have been replaced
    headline: str
    fix: str
    evidence: Mapping[str, Any]
    examples: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """What findings are made of."""

    questions: Questions
    scope: Sequence[str]  # what is the same where answers are shared
    policy: Policy
    served: Served
    usd: Floats  # of each call; NaN = not known
    agreed: Mapping[int, bool | None]  # served call -> whether its answer would have been right; None: nobody knows
    doubt: str  # why the threshold is not to be trusted yet; "" where judged pairs bear it out
    looked_up: Bools  # calls whose question is embedded
    usd_per_lookup: float
    key: bytes


def find(case: Case, alone: Alone | None, threshold: float) -> list[Finding]:
    """Findings, dearest first.

    Args:
        case: what was replayed.
        alone: a cache that goes by the cosine alone, None where nothing was embedded.
        threshold: the cosine whose false matches are told.
    """
    groups = _groups(case.questions)
    found = [
        finding
        for name, members in groups
        for finding in (
            _deflected(case, name, members, EXACT),
            _deflected(case, name, members, SEMANTIC),
            _risk(case, name, members, alone, threshold),
        )
        if finding is not None
    ]
    return sorted(found, key=lambda f: (-f.saving[1], -f.at_stake, f.id))


_Name = tuple[str, str, str]  # service, provider, model


def _groups(questions: Questions) -> Iterator[tuple[_Name, Bools]]:
    names = list(questions.calls.select("service", "provider", "model").iter_rows())
    for name in sorted(set(names)):
        yield name, np.array([n == name for n in names], dtype=np.bool_)


def _fix(case: Case, tier: int) -> tuple[str, str]:
    """Cause, and what to do."""
    same = f"only among calls with the same {', '.join(case.scope)}"
    if tier == EXACT:
        key = "the whole prompt (case and white space aside)"
        return "exact_duplicate", f"Keep this service's answers under {key} and serve repeats from there, {same}."
    what = f"erve alike questions from a semantic cache at {case.policy.told}, {same}."
    return "semantic_opportunity", f"Judge more pairs first (--review FILE). Then s{what}" if case.doubt else f"S{what}"


def _deflected(case: Case, name: _Name, members: Bools, tier: int) -> Finding | None:
    hit = np.flatnonzero(members & (case.served.tier == tier))
    if not len(hit):
        return None
    cause, fix = _fix(case, tier)
    lookups = case.usd_per_lookup * int((members & case.looked_up).sum()) if tier == SEMANTIC else 0.0
    right, wrong = (np.array([case.agreed.get(int(call)) is said for call in hit]) for said in (True, False))
    high = max(float(np.nansum(case.usd[hit][~wrong])) - lookups, 0.0)
    low = max(float(np.nansum(case.usd[hit][right])) - lookups, 0.0)
    share = len(hit) / int(members.sum())
    doubt = f"; {case.doubt}" if tier == SEMANTIC and case.doubt else ""
    what = "repeat an earlier prompt word for word" if tier == EXACT else "ask what was asked before in other words"
    return _finding(
        case,
        (cause, *name),
        hit,
        saving=(min(low, high), high),
        headline=f"{len(hit):,} of {int(members.sum()):,} calls ({share:.0%}) {what}; {_sure(right, wrong)}{doubt}",
        fix=fix,
        evidence={
            "calls": len(hit),
            "share": round(share, 6),
            "answers_agree": int(right.sum()),
            "answers_differ": int(wrong.sum()),
            "unpriced_calls": int(np.isnan(case.usd[hit]).sum()),
            "lookup_usd": round(lookups, 10),
        },
        confidence="B" if right.any() and not doubt else "C",
    )


def _sure(right: Bools, wrong: Bools) -> str:
    differ = f", for {int(wrong.sum()):,} they differ, and nothing is claimed for these" if wrong.any() else ""
    return f"for {int(right.sum()):,} of them the recorded answers agree{differ}"


def _risk(case: Case, name: _Name, members: Bools, alone: Alone | None, threshold: float) -> Finding | None:
    wrong = alone.wrong(threshold, members) if alone else []
    if not (alone and wrong):
        return None
    by, reasons = alone.by(wrong), reasons_of(alone, wrong)
    known = len(wrong) - by["not_judged"]
    return _finding(
        case,
        ("false_match_risk", *name),
        np.array(wrong, dtype=np.int64),
        saving=(0.0, 0.0),
        at_stake=float(np.nansum(case.usd[wrong])),
        headline=risk_of(threshold, by),
        fix="Do not serve on similarity alone: refuse where a guard finds a difference, and label the rest by hand.",
        evidence={
            "calls": len(wrong),
            "calls_known_wrong": known,
            "by": by,
            "pairs": len({c.name for call in wrong if (c := alone.joins[call].candidate)}),
            "reasons": reasons,
        },
        confidence="B" if known else "C",
    )


_REFUSED: Final = "that a guard refuses and nobody has judged"
_TOLD: Final = {
    "conversation": "{:,} after another conversation",
    "words": "{:,} with a number, day, name or other word that differs",
    "answers": "{:,} told apart by their answers alone",
    "not_judged": f"{{:,}} {_REFUSED}",
}


def told_by(by: Mapping[str, int]) -> str:
    """Why calls are wrong, in words; the counts add up to the calls."""
    return ", ".join(told.format(by[why]) for why, told in _TOLD.items() if by.get(why))


def risk_of(threshold: float, by: Mapping[str, int]) -> str:
    """What a threshold alone would do, in a sentence without its full stop."""
    known, open_ = sum(by.values()) - by["not_judged"], by["not_judged"]
    start = f"a threshold of {threshold:.2f} alone would give"
    if not known:
        return f"{start} {counted(open_, 'call')} an answer {_REFUSED}"
    more = f", and perhaps {open_:,} more {_REFUSED}" if open_ else ""
    why = told_by({**by, "not_judged": 0})
    return f"{start} {counted(known, 'call')} the answer to another question ({why}){more}"


def reasons_of(alone: Alone, calls: Sequence[int]) -> dict[str, int]:
    """Calls by the first reason of their pair, most first; those that only the answers tell apart are "answers"."""
    found = Counter((*alone.joins[call].reasons, "answers")[0] for call in calls)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def is_risky(candidate: Candidate) -> bool:
    """Whether one answer would not do for both, as far as anybody knows: a label decides, without one the guards."""
    return candidate.label is False or (candidate.label is None and bool(candidate.reasons))


def _finding(  # noqa: PLR0913 - the fields of a finding
    case: Case,
    name: tuple[str, str, str, str],
    hit: Ints,
    *,
    saving: Range,
    headline: str,
    fix: str,
    evidence: Mapping[str, Any],
    confidence: str,
    at_stake: float = 0.0,
) -> Finding:
    cause, service, provider, model = name
    return Finding(
        id=blake2b("\0".join(name).encode(), digest_size=6).hexdigest(),
        cause=cause,
        service=service,
        provider=provider,
        model=model,
        calls=len(hit),
        confidence=confidence,
        saving=saving,
        at_stake=at_stake,
        headline=headline,
        fix=fix,
        evidence=evidence,
        examples=_examples(case, hit),
    )


def _examples(case: Case, hit: Ints) -> tuple[Mapping[str, Any], ...]:
    """A few of the calls, spread over the window, by every name that a reader may find them under."""
    spread: Callable[[int], Ints] = lambda n: np.unique(np.linspace(0, n - 1, _EXAMPLES).astype(np.int64))  # noqa: E731
    chosen = case.questions.calls[hit[spread(len(hit))].tolist()]
    return tuple(chosen.select("call_id", "response_id", "trace_id", "file", "line").iter_rows(named=True))
