"""The report on response caches as plain data, schema version 1: what every format and page shows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np

from prefixscope.analyzer.semantic import certainty, scopes, side_by_side
from prefixscope.analyzer.semantic.alone import WHY
from prefixscope.analyzer.semantic.analysis import Analysis, Point
from prefixscope.analyzer.semantic.cacheable import BARS
from prefixscope.analyzer.semantic.findings import reasons_of
from prefixscope.analyzer.semantic.scopes import Tried
from prefixscope.analyzer.semantic.tiers import EXACT, SEMANTIC
from prefixscope.analyzer.semantic.unit_cost import Option

SCHEMA_VERSION: Final = 1
Report = Mapping[str, Any]


def build(found: Analysis, *, with_text: bool = True) -> Report:
    """Sums up an analysis. Dollars are floats rounded to 1e-10.

    Keys: schema_version, window, calls, left_out, scope, scopes, policy, told_threshold, embedder, tiers, exact_alone,
    unit_cost, budget, labels, curve, false_matches, candidates, freshness, existing, findings, vectors, notes,
    quarantine. ``with_text`` decides whether questions and answers are in it.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "window": _window(found),
        "calls": _calls(found),
        "left_out": _left_out(found),
        "scope": _scope(found),
        "scopes": [_tried(tried) for tried in found.scopes],
        "policy": certainty.policy(found.policy),
        "told_threshold": found.told_threshold,
        "embedder": {
            "name": found.embedded_by,
            "ms_per_question": round(found.ms_per_question, 3),
            "usd_per_question": found.usd_per_lookup,
        },
        "tiers": _tiers(found),
        "exact_alone": _exact_alone(found),
        "unit_cost": [_option(option) for option in found.unit_cost],
        "budget": certainty.budget(found, found.choice, with_text=with_text) if found.choice else None,
        "labels": certainty.labels(found),
        "curve": [_point(point, len(found.questions)) for point in found.curve],
        "false_matches": _false_matches(found),
        "candidates": side_by_side.candidates(found, with_text=with_text),
        "freshness": side_by_side.freshness(found, with_text=with_text),
        "existing": side_by_side.existing(found, with_text=with_text),
        "findings": [_finding(finding) for finding in found.findings],
        "vectors": asdict(found.at_most) if found.at_most else None,
        "notes": list(_notes(found)),
        "quarantine": found.rejected.to_dicts(),
    }


def _window(found: Analysis) -> dict[str, Any]:
    started = found.questions.calls["started_at"]
    if not len(started):
        return {"from": None, "to": None}
    return {"from": f"{started[0].isoformat()}Z", "to": f"{started[-1].isoformat()}Z"}


def _calls(found: Analysis) -> dict[str, int]:
    asked = found.questions
    turns = asked.multi_turn
    may = asked.semantic
    return {
        "total": len(asked),
        "with_text": sum(content is not None for content in asked.contents),
        "exact_possible": int(asked.exact.sum()),
        "semantic_possible": int(may.sum()),
        "single_turn": int((may & ~turns).sum()),
        "multi_turn": int((may & turns).sum()),
        "streamed": sum(bool(c and c.streamed) for c in asked.contents),
        "unpriced": int(np.isnan(found.usd).sum()),
        "questions": len(asked.texts),
    }


def _left_out(found: Analysis) -> list[dict[str, Any]]:
    """Calls that no response cache, or no semantic one, may serve, by reason; the first that holds counts."""
    counted = Counter(bar for bar in found.questions.bar if bar)
    return [{"reason": name, "calls": counted[name], "meaning": BARS[name]} for name in BARS if counted[name]]


def _scope(found: Analysis) -> dict[str, Any]:
    scope = found.questions.scope[found.questions.scope >= 0]
    sizes = np.unique(scope, return_counts=True)[1]
    return {
        "fields": list(found.scope),
        "scopes": len(sizes),
        "largest": int(sizes.max(initial=0)),
        "of_one_call": int((sizes == 1).sum()),
    }


def _tried(tried: Tried) -> dict[str, Any]:
    """A scope that was compared: what it would serve and save, and whether it keeps the budget."""
    trial, choice = tried.trial, tried.trial.choice
    return {
        "fields": list(tried.fields),
        "verdict": tried.verdict,
        "meaning": scopes.VERDICTS[tried.verdict],
        "safe": tried.fields in scopes.SAFE,
        "calls": trial.deflected,
        "share": round(trial.deflected / max(len(trial.asked), 1), 6),
        "saved_usd": round(trial.saved_usd, 10),
        "policy": certainty.policy(choice.policy) if choice and choice.policy else None,
        "chosen_on": certainty.measured(choice.chosen_on) if choice else None,
        "checked_on": certainty.measured(choice.checked_on) if choice else None,
        "shown": bool(choice and choice.shown),
        "added": certainty.measured(tried.added.checked) | {"unjudged": tried.added.unknown} if tried.added else None,
        "risks": [{"dropped": name, "risk": scopes.RISKS[name]} for name in tried.dropped],
    }


def _tiers(found: Analysis) -> list[dict[str, Any]]:
    """What each tier serves, disjoint: deflection, dollars and waiting saved.

    ``left_out`` of the model's calls are those that no cache may serve; a cache in use answered ``served_already`` of
    them.
    """
    asked, served = found.questions, found.served
    waited = asked.calls["duration_ms"].cast(float).fill_null(float("nan")).to_numpy()
    lookups = int(found.looked_up.sum())
    rows = []
    for name, tier in (("exact", EXACT), ("semantic", SEMANTIC), ("model", 0)):
        chosen = served.tier == tier
        lookup_usd = lookups * found.usd_per_lookup if tier == SEMANTIC else 0.0
        lookup_ms = found.ms_per_question * lookups if tier == SEMANTIC else 0.0
        rows.append({
            "tier": name,
            "calls": int(chosen.sum()),
            "share": round(float(chosen.mean()), 6) if len(asked) else 0.0,
            "saved_usd": round(float(np.nansum(found.usd[chosen])) - lookup_usd, 10) if tier else 0.0,
            "lookup_usd": round(lookup_usd, 10),
            "unpriced_calls": int(np.isnan(found.usd[chosen]).sum()),
            "saved_seconds": round((float(np.nansum(waited[chosen])) - lookup_ms) / 1000, 3) if tier else 0.0,
            "evicted": served.evicted if tier == 0 else 0,
            "left_out": 0 if tier else int((~asked.exact).sum()),
            "served_already": 0 if tier else sum(bar == "served_already" for bar in asked.bar),
        })  # fmt: skip
    return rows


def _exact_alone(found: Analysis) -> dict[str, Any]:
    """An exact cache with no semantic one behind it. Behind one it serves less: what is served leaves no answer."""
    chosen = found.exact_alone
    return {
        "calls": int(chosen.sum()),
        "share": round(float(chosen.mean()), 6) if len(chosen) else 0.0,
        "saved_usd": round(float(np.nansum(found.usd[chosen])), 10),
    }


def _option(option: Option) -> dict[str, Any]:
    terms = option.terms()
    formula = (
        f"{terms['M']:,.0f} · [{terms['L']:.4f} · {terms['C_embed']:.3g} + (1 - {terms['R']:.4f}) · "
        f"({terms['T_cached']:,.1f} · {terms['P_cached'] * 1e6:.4g}/M + "
        f"{terms['T_new']:,.1f} · {terms['P_in'] * 1e6:.4g}/M + {terms['T_gen']:,.1f} · {terms['P_out'] * 1e6:.4g}/M)]"
    )
    return {
        "option": option.name,
        "usd": round(option.usd, 10),
        "usd_per_call": round(option.usd_per_call, 12),
        "terms": terms,
        "formula": formula,
    }


def _point(point: Point, calls: int) -> dict[str, Any]:
    return asdict(point) | {
        "alone_share": point.alone / calls if calls else 0.0,
        "guarded_share": point.guarded / calls if calls else 0.0,
        "alone_wrong_rate": _rate(point.alone_wrong, point.alone_right),
        "guarded_wrong_rate": _rate(point.guarded_wrong, point.guarded_right),
    }


def _false_matches(found: Analysis) -> dict[str, Any] | None:
    """What ``told_threshold`` alone would serve wrongly, each call once; None where nothing was embedded.

    ``calls`` are those of ``by``; without ``not_judged`` they are the ``wrong`` of the curve.
    """
    if found.alone is None:
        return None
    threshold = found.told_threshold
    served, wrong, right = found.alone.counted(threshold)
    calls = found.alone.wrong(threshold)
    return {
        "threshold": threshold,
        "calls": len(calls),
        "by": found.alone.by(calls),
        "meanings": dict(WHY),
        "served": served,
        "wrong": wrong,
        "right": right,
        "wrong_rate": _rate(wrong, right),
        "reasons": reasons_of(found.alone, calls),
        "usd_at_stake": round(float(np.nansum(found.usd[calls])), 10),
    }


def _rate(wrong: int, right: int) -> float | None:
    return wrong / (wrong + right) if wrong + right else None


def _finding(finding: Any) -> dict[str, Any]:
    low, high = finding.saving
    return {
        "id": finding.id,
        "cause": finding.cause,
        "service": finding.service,
        "provider": finding.provider,
        "model": finding.model,
        "calls": finding.calls,
        "confidence": finding.confidence,
        "saving_usd": {"low": round(low, 10), "high": round(high, 10)},
        "at_stake_usd": round(finding.at_stake, 10),
        "headline": finding.headline,
        "fix": finding.fix,
        "evidence": dict(finding.evidence),
        "examples": list(finding.examples),
    }


def _notes(found: Analysis) -> Sequence[str]:
    calls, asked, scope = _calls(found), found.questions, _scope(found)
    notes = []
    silent = sum(bar == "no_answer" for bar in asked.bar)
    if silent:
        so = "nothing can be replayed" if not asked.exact.any() else "these cannot be replayed"
        notes.append(f"no answer is recorded of {silent:,} of {len(asked):,} calls, so {so}: log the responses too")
    if len(asked) and not asked.with_text:
        keyed = int((asked.calls["answer_key"] != "").sum())
        what = f"{keyed:,} answers have a key, by which every other wording counts as another answer"
        notes.append(f"no prompt's text is recorded: only exact repeats are told; {what}")
    if (most := found.at_most) is not None:
        counts = ", ".join(f"{calls:,} at {threshold:.2f}" for threshold, calls in most.served)
        notes.append(
            f"{most.calls:,} calls have a vector instead of text ({most.made_by}); by cosine alone a semantic cache "
            f"would serve at most so many of them: {counts}. None of these is safe: a number, a name or a negation may "
            "differ"
        )
    if mixed := [name for name in ("tenant", "account", "system", "tools") if name not in found.scope]:
        notes.append(f"answers may cross what is to be kept apart: the scope leaves out {', '.join(mixed)}")
    if calls["unpriced"]:
        notes.append(f"{calls['unpriced']:,} calls without a known cost are in no dollar figure")
    if scope["scopes"] > 1 and scope["of_one_call"] > scope["scopes"] / 2:
        notes.append(
            f"{scope['of_one_call']:,} of {scope['scopes']:,} scopes hold one call: something in "
            f"{', '.join(scope['fields'])} changes from call to call (a clock in the system prompt?), "
            "so little can be shared"
        )
    return notes
