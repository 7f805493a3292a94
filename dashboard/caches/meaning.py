"""What takes texts: the curve, the threshold, false and stale matches, the cache in use, and pairs to judge."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from prefixscope.analyzer.semantic.analysis import Analysis
from prefixscope.dashboard import parts
from prefixscope.dashboard.caches import curve, pairs, review, tables, told

Report = Mapping[str, Any]


def draw(found: Analysis, report: Report) -> None:
    """All of it. ``report`` is that of ``found``, with texts or without."""
    _threshold(report)
    if len(report["scopes"]) > 1:
        with parts.card("Who may share an answer", "What has to be the same before one call gets another one's answer"):
            tables.scopes(report)
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
    points, marks = curve.points(report), told.marks(report)
    left, right = st.columns([3, 2], gap="medium")
    with left, parts.card("Over the threshold", "The lower it is, the more is answered, and the more of it wrongly"):
        st.altair_chart(curve.answered(points, marks), alt="Calls answered over the threshold")
        wrong = curve.wrong(points, marks, report["budget"]["wrong_answers"])
        st.altair_chart(wrong, alt="Wrong answers over the threshold")
    with right, parts.card("The threshold that your budget allows", "Chosen on half of the judged pairs"):
        tables.choice(report["budget"])


def _false_matches(report: Report) -> None:
    naive = f"{report['told_threshold']:.2f}"
    about = f"What a similarity of {naive} alone would have served. At stake: what the model's own answers cost"
    with parts.card("False matches", about):
        risky = told.risky(report)
        if risky:
            pairs.listed(risky, key="caches_false", head=pairs.false_match)
        else:
            st.text("No two questions that should have different answers are as alike as that.")
