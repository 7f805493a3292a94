"""The page on response caches in words and charts: each status, reason and figure reads as what it is."""

import json
from pathlib import Path
from typing import Any, Final, get_args

import pytest

from caches_page import LINES, figures, log_of, shown, text_of, uploaded
from dashboards import Run
from prefixscope.analyzer.semantic import report, scopes, unit_cost, verdict
from prefixscope.analyzer.semantic.agreement import Verdict
from prefixscope.analyzer.semantic.alone import WHY
from prefixscope.analyzer.semantic.analysis import Analysis, Options
from prefixscope.analyzer.semantic.bench import Bench
from prefixscope.analyzer.semantic.threshold import chooses
from prefixscope.dashboard.caches import chosen, curve, told
from semantic_traffic import line, write


def test_the_example_is_one_that_a_newcomer_sees(found: Analysis) -> None:
    """Known to be wrong, and told apart by its words."""
    shown_ = told.example(report.build(found))
    assert shown_ is not None
    assert {shown_[side]["question"] for side in ("call", "earlier")} == {
        "Is the office open on Monday?",
        "Is the office open on Sunday?",
    }
    assert told.example(report.build(found, with_text=False)) is None


def test_what_was_said_before_is_shown_where_it_makes_the_difference(empty: Path, show: Run) -> None:
    """Two questions in the same words look alike without it."""
    lines = [
        line(
            "How much does it cost?", f"{name} costs {n}.", 100 * n,
            messages=[
                {"role": "user", "content": f"Tell me of {name}."},
                {"role": "assistant", "content": f"{name} is a bicycle."},
                {"role": "user", "content": "How much does it cost?"},
            ],
        )
        for n, name in enumerate(("Rover", "Comet"), start=1)
    ]  # fmt: skip
    words = text_of(shown(uploaded(show(empty, "caches"), log_of(lines))))
    assert "Said before" in words
    assert "Rover is a bicycle." in words
    assert "Comet is a bicycle." in words


def test_the_words_that_differ_are_named() -> None:
    """Beside what it means that they do."""
    reasons = [{"meaning": "days differ", "detail": "Sunday / Monday"}, {"meaning": "names differ", "detail": ""}]
    assert told.reasons({"reasons": reasons}) == ["days differ (Sunday / Monday)", "names differ"]


def test_a_budget_that_nothing_keeps_is_said(tmp_path: Path) -> None:
    """Then no semantic cache is used, and the page says what the least wrong one would do."""
    lines = [
        entry
        for n in range(12)
        for entry in (
            line(f"Where do I buy a ticket for {chr(65 + n)}?", f"At desk {n}.", 200 * n),
            line(f"Where can I buy tickets for {chr(65 + n)}?", f"At desk {n + 50}.", 200 * n + 60),
        )
    ]
    log = write(tmp_path / "log.jsonl", lines)
    written = report.build(Bench({log: "log"}, b"readme").analysed(Options(budget=0.0)))
    if written["policy"]["threshold"] is None:
        assert "No threshold keeps a budget of 0.0% wrong answers" in told.instead(written)
    assert chosen.verdict(written["budget"]).startswith("Goal: at most 0.0% wrong.")


FRESH: Final = {"ttl_s": None, "fewest": 30, "by_age": [{"compared": 2}, {"compared": 5}]}


@pytest.mark.parametrize(
    ("fresh", "expected"),
    [
        ({"verdict": "kept", "ttl_s": 43_200}, "Keep answers for 12 hours at most"),
        ({"verdict": "too_few"}, "5 repeats are too few to recommend a lifetime: it takes 30 at least"),
        ({"verdict": "too_few", "by_age": [{"compared": 1}]}, "1 repeat is too few"),
        ({"verdict": "too_wrong"}, "No lifetime keeps the budget"),
    ],
)
def test_a_lifetime_is_recommended_or_the_reason_said(fresh: dict[str, Any], expected: str) -> None:
    """Too few repeats are another thing than answers that change too fast."""
    assert told.lasts({"freshness": FRESH | fresh}).startswith(expected)


@pytest.mark.parametrize(
    ("changed", "kept", "expected"),
    [
        (1, 43_200, "With answers up to 1 day old: 1 of 200 repeats (0.5%) out of date."),
        (4, 43_200, "out of date, more than your 1.0%; answers up to 12 hours old keep it."),
        (4, None, "out of date, more than your 1.0%; no lifetime is known to keep it."),
    ],
)
def test_the_age_of_what_is_saved_is_told(changed: int, kept: float | None, expected: str) -> None:
    """Beside the savings, with what the budget would allow."""
    replayed = {"ttl_s": 86_400.0, "compared": 200, "changed": changed, "rate": changed / 200}
    fresh, budget = {"replayed": replayed, "ttl_s": kept}, {"wrong_answers": 0.01}
    assert told.age({"freshness": fresh, "budget": budget}).endswith(expected)
    unseen = fresh | {"replayed": replayed | {"compared": 0, "rate": None}}
    assert "no repeat shows" in told.age({"freshness": unseen, "budget": budget})


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("not_proven", "Goal: at most 1.0% wrong. Seen: 0.8%. Could be up to 2.6%. Not proven yet."),
        ("proven", "Goal: at most 1.0% wrong. Seen: 0.8%. Could be up to 2.6%. Proven."),
        ("above", "Goal: at most 1.0% wrong. Seen: 0.8%. Could be up to 2.6%. Not kept."),
    ],
)
def test_the_verdict_is_one_plain_line(status: str, expected: str) -> None:
    """Goal, what was seen, what may be, and whether it is proven."""
    found = {"status": status, "goal": 0.01, "seen": 0.0083, "at_most": 0.0259, "checked": 241, "fewest": 30}
    assert chosen.verdict({"verdict": found}) == expected


def test_every_status_has_words() -> None:
    """One that the analysis adds needs words here."""
    assert {*chosen._STATUS, "too_few"} == set(verdict.STATUSES)


def test_wrong_pairs_as_alike_as_right_ones_are_explained(tmp_path: Path) -> None:
    """Why no threshold keeps the budget, which pairs forbid it, and the ways out."""
    lines = [
        entry
        for n in range(12)
        for entry in (
            line(f"Can I swap a part of kind {chr(65 + n)} for a new one?", "Yes.", 200 * n),
            line(f"Can I swap a part of kind {chr(65 + n)} for a new one please?", "Yes.", 200 * n + 60),
        )
    ]
    bench = Bench({write(tmp_path / "log.jsonl", lines): "log"}, b"readme")
    heard = [c for c in bench.analysed(Options()).candidates if chooses(c.name) and not c.reasons]
    right = min(heard, key=lambda c: (c.cosine, c.overlap)).name  # the wrong ones are more alike than the right one
    labelled = {c.name: c.name == right for c in heard}
    written = report.build(bench.analysed(Options(budget=0.0, labels=labelled)))
    assert not written["budget"]["kept"]
    assert "No threshold keeps a budget of 0.0% wrong answers" in told.instead(written)
    steps = dict(chosen.steps(written["budget"]))
    assert "so no threshold parts them" in steps["Why"]
    assert "use the exact cache alone" in steps[chosen.WAYS]
    assert written["budget"]["forbidden_by"]


def test_unknown_costs_are_not_zero(empty: Path, show: Run) -> None:
    """Models without a price save an unknown amount."""
    app = uploaded(show(empty, "caches"), log_of(LINES).replace(b"gpt-5.1", b"nobody-7"))
    assert not app.exception
    assert figures(app)["Saved"] == "an unknown amount"
    assert app.dataframe[0].value["saved"].isna()[0]
    assert "The cost of no call is known" in shown(app)


def test_every_word_of_the_report_has_its_own() -> None:
    """A verdict, an option or a tier that the analysis adds needs words here."""
    assert set(told.SCOPES) == set(scopes.VERDICTS)
    assert set(told.OPTIONS) == set(unit_cost.OPTIONS)
    assert set(told.ANSWERS) == set(get_args(Verdict))
    assert set(told.WRONG) == set(WHY)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ({"conversation": 2, "answers": 1}, "Wrong at 0.92: 2 after another conversation, 1 told apart by their"),
        ({"words": 2, "not_judged": 1}, "word that differs; and perhaps 1 more that a guard refuses"),
        ({"not_judged": 1}, "Wrong at 0.92: perhaps 1 more that a guard refuses"),
        ({}, ""),
    ],
)
def test_the_counts_of_wrong_answers_add_up(by: dict[str, int], expected: str) -> None:
    """Each reason with its calls; what nobody has judged is not called wrong."""
    every = dict.fromkeys(WHY, 0) | by
    assert expected in told.why_wrong({"false_matches": {"threshold": 0.92, "calls": sum(by.values()), "by": every}})


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(86_400, "1 day"), (604_800, "7 days"), (3600, "1 hour"), (300, "5 minutes"), (1.5, "1 second")],
)
def test_lifetimes_read_well(seconds: float, expected: str) -> None:
    """In the largest unit that divides them."""
    assert told.lifetime(seconds) == expected


def test_the_curve_is_that_of_the_report(found: Analysis) -> None:
    """A point for each threshold and way; what nobody judged has no rate."""
    written = report.build(found)
    points = curve.points(written)
    assert points.height == 2 * len(written["curve"])
    at = points.filter((points["threshold"] == 0.92) & (points["way"] == curve.ALONE))
    expected = written["false_matches"]
    assert at["calls"].item() == expected["served"]
    assert at["rate"].item() == expected["wrong_rate"]


@pytest.mark.parametrize("used", [None, 0.25])
def test_the_two_charts_align(found: Analysis, used: float | None) -> None:
    """Both keep the same room beside the plot, whatever is written there; nothing in them is not a number."""
    written = report.build(found)
    points, marks = curve.points(written), told.marks(written)
    charts = [chart.to_dict() for chart in (curve.answered(points, marks, used), curve.wrong(points, marks, 0.01))]
    extents = [
        [axis["minExtent"] for layer in chart["layer"] if (axis := layer["encoding"].get("y", {}).get("axis"))]
        for chart in charts
    ]
    assert extents[0] == extents[1]
    assert len(extents[0]) == 2
    assert "NaN" not in json.dumps(charts)


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ({"0.92": 0.92}, {"0.92": "left"}),
        ({"0.92": 0.92, "used 0.90": 0.9}, {"0.92": "left", "used 0.90": "right"}),
        ({"0.92": 0.92, "used 0.62": 0.62}, {"0.92": "left", "used 0.62": "left"}),  # no room left of it
    ],
)
def test_names_of_thresholds_do_not_cover_each_other(marks: dict[str, float], expected: dict[str, str]) -> None:
    """Two that are close stand on either side."""
    assert curve._sides(marks) == expected
