"""What takes texts: the curve, the threshold, false and stale matches, the cache in use, and pairs to judge."""

from collections.abc import Mapping
from typing import Any, Final

import streamlit as st

from prefixscope.analyzer.semantic.analysis import Analysis
from prefixscope.dashboard import parts
from prefixscope.dashboard.caches import curve, pairs, review, tables, told

Report = Mapping[str, Any]
_CURVE: Final = (
    "Each question against the nearest of all recorded answers within their lifetime. Not applied: how many words must "
    "be the same, and, for similarity alone, the conversation before. The caches in use answer fewer also because they "
    "keep no answer of a call that they served. The very same prompt again counts as right."
)


def draw(found: Analysis, report: Report, compared: Report) -> None:
    """All of it. ``report`` is that of ``found``, with texts or without; ``compared`` tells of scopes."""
    _threshold(report)
    if len(compared["scopes"]) > 1:
        about = "What has to be the same before one call gets another one's answer"
        if compared is not report:
            about += "; compared at the threshold that the budget allows, with guards"
        with parts.card("Who may share an answer", about):
            tables.scopes(compared, report["scope"]["fields"])
    _false_matches(report)
    with parts.card("Stale matches", "The same question again, word for word: was the earlier answer still right?"):
        tables.freshness(report)
    if report["existing"]["hits"]:
        with parts.card("The cache that is in use", "Answers that the log marks as a cache's, checked the same way"):
            tables.in_use(report)
    with parts.card(
        "Judge pairs", "Does one answer do for both? Each judgement makes the choice of the threshold surer"
    ):
        review.form(found)


def _threshold(report: Report) -> None:
    points, marks, used = curve.points(report), told.marks(report), told.in_use(report)
    left, right = st.columns([3, 2], gap="medium")
    with left, parts.card("Over the threshold", "The lower it is, the more is answered, and the more of it wrongly"):
        st.altair_chart(curve.answered(points, marks, used), alt="Calls answered over the threshold")
        wrong = curve.wrong(points, marks, report["budget"]["wrong_answers"])
        st.altair_chart(wrong, alt="Wrong answers over the threshold")
        st.caption(_CURVE)
    kept = report["budget"]["policy"] or {"threshold": None}
    aside = "" if report["policy"]["threshold"] == kept["threshold"] else "; not in use: you set your own"
    with right, parts.card("The threshold that your budget allows", f"Chosen on half of the judged pairs{aside}"):
        tables.choice(report["budget"])
        if forbidding := report["budget"]["forbidden_by"]:
            with st.expander("The wrong pairs that no threshold parts"):
                pairs.listed(forbidding, key="caches_forbidding", head=pairs.false_match)


def _false_matches(report: Report) -> None:
    naive = f"{report['told_threshold']:.2f}"
    about = f"What a similarity of {naive} alone would have served wrongly, or served though a guard refuses it"
    with parts.card("False matches", about):
        risky = told.risky(report)
        if risky:
            pairs.listed(risky, key="caches_false", head=pairs.false_match)
        else:
            st.text("No two questions that should have different answers are as alike as that.")
