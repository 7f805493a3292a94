"""Tables of the page on response caches. Frames are made of the report and hold what is shown, row by row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.analyzer.report.wording import counted, usd
from prefixscope.analyzer.semantic.guards import REASONS
from prefixscope.dashboard import parts, text
from prefixscope.dashboard.caches import chosen, pairs, told

Report = Mapping[str, Any]
EQUATION: Final = "C = M · [L · C_embed + (1 - R) · (T_cached · P_cached + T_new · P_in + T_gen · P_out)]"
_TERMS: Final = (
    ("M", "calls whose cost is known"),
    ("R", "share that a response cache answers"),
    ("L", "share that is looked up by meaning, hit or not"),
    ("C_embed", "what such a look-up costs"),
    ("T_cached, T_new, T_gen", "tokens of a call that the model answers: read from the prompt cache, new, generated"),
    ("P_cached, P_in, P_out", "what such a token costs on average"),
)


def figures(report: Report) -> None:
    """The verdict as figures."""
    both = [row for row in report["tiers"] if row["tier"] != "model"]
    total = max(report["calls"]["total"], 1)
    found = [
        ("Answered by caches", f"{sum(row['calls'] for row in both) / total:.1%}", "Of all calls, as set below"),
        (
            "Saved",
            told.dollars(report, sum(row["saved_usd"] for row in both)),
            "In the time that the calls span, look-ups paid",
        ),
        (
            "Waiting saved",
            _span(sum(row["saved_seconds"] for row in both)),
            "By all callers together; looking a question up takes time too",
        ),
    ]
    alone = report["false_matches"]
    if alone:
        at = f"{alone['threshold']:.2f} alone"
        found[:0] = [
            (
                f"Answered at {at}",
                f"{alone['served'] / total:.1%}",
                "Of all calls, going by similarity and nothing else; exact repeats are among them",
            ),
            (
                f"Wrong at {at}",
                counted(alone["wrong"], "call"),
                "Of those answered: they get another question's answer",
            ),
        ]
    with st.grid(len(found), min_column_width=165, gap="small"):
        for name, value, meaning in found:
            parts.metric(name, value, None, help=meaning)


def _span(seconds: float) -> str:
    return f"{'-' if seconds < 0 else ''}{text.minutes(1000 * abs(seconds))}"


def tiers(report: Report) -> None:
    """Who answers how many calls, and what that saves."""
    rows = [
        {
            "tier": told.TIERS[row["tier"]],
            "calls": row["calls"],
            "share": row["share"],
            "saved": row["saved_usd"] if row["tier"] != "model" and _is_priced(row) else None,
            "lookup": row["lookup_usd"] if row["tier"] == "semantic" else None,
            "waiting": None if row["tier"] == "model" else row["saved_seconds"],
        }
        for row in report["tiers"]
        if row["tier"] != "semantic" or report["curve"]
    ]
    rows = _apart(rows, report["tiers"][-1])
    column, dollars = st.column_config, _dollars(row["saved_usd"] for row in report["tiers"])
    st.dataframe(
        pl.DataFrame(rows, infer_schema_length=None),
        hide_index=True,
        placeholder="",
        column_config={
            "tier": column.TextColumn("Who answers", width=340),
            "calls": column.NumberColumn("Calls", format="%,d"),
            "share": column.ProgressColumn(
                "Of all calls", format="percent", min_value=0.0, max_value=1.0, color="primary"
            ),
            "saved": column.NumberColumn(
                "Saved, $", format=dollars, help="What the model's answers cost, less the look-ups"
            ),
            "lookup": column.NumberColumn(
                "Look-ups, $", format=dollars, help="Embedding each question that is looked up"
            ),
            "waiting": column.NumberColumn("Waiting saved, s", format="%,.0f"),
        },
        alt="Calls, dollars and waiting by who answers",
    )
    if behind := told.behind(report):
        st.caption(text.literal(behind))


def _apart(rows: Sequence[dict[str, Any]], model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Calls that no cache may answer apart from the others of the model, which is the last row."""
    left = model["left_out"]
    if not left:
        return list(rows)
    *caches, last = rows
    each = model["share"] / model["calls"]
    return [
        *caches,
        last | {"calls": model["calls"] - left, "share": (model["calls"] - left) * each},
        last | {"tier": told.left_out(model), "calls": left, "share": left * each},
    ]


def _is_priced(row: Mapping[str, Any]) -> bool:
    return not row["calls"] or bool(row["unpriced_calls"] < row["calls"])


def _dollars(amounts: Iterable[float]) -> str:
    """A format for a column: cents, or more digits where cents would all read alike."""
    return "$%,.2f" if max(map(abs, amounts), default=0.0) >= 20 else "$%,.4f"


def unit_costs(report: Report) -> None:
    """What a call costs with each of the caches, with the formula to unfold."""
    if not report["unit_cost"][0]["terms"]["M"]:
        st.text("The cost of no call is known: its model has no price, or its usage is missing.")
        return
    costs = [row for row in report["unit_cost"] if report["curve"] or row["option"] != "all three"]
    billed = next(row["usd_per_call"] for row in costs if row["option"] == "as is")
    rows = [
        {
            "option": told.OPTIONS[row["option"]],
            "per_thousand": 1000 * row["usd_per_call"],
            "total": row["usd"],
            "change": 100 * (row["usd_per_call"] / billed - 1) if billed else None,
            "served": row["terms"]["R"],
            "cached": row["terms"]["T_cached"],
            "new": row["terms"]["T_new"],
            "generated": row["terms"]["T_gen"],
        }
        for row in costs
    ]
    st.dataframe(
        pl.DataFrame(rows, infer_schema_length=None),
        hide_index=True,
        column_config={
            "option": st.column_config.TextColumn("Caches", width=250),
            "change": st.column_config.NumberColumn("Against the bill", format="%+.1f%%"),
            "served": st.column_config.NumberColumn(
                "Answered by a cache", format="percent", help="R: the calls that a response cache answers"
            ),
        }
        | parts.numbers(
            {
                "per_thousand": ("$ per 1,000 calls", "$%.4f"),
                "total": ("In all, $", _dollars(row["total"] for row in rows)),
                "cached": ("Cached tokens", "%,.0f"),
                "new": ("uncached", "%,.0f"),
                "generated": ("output", "%,.0f"),
            }
        ),
        alt="What a call costs with each of the caches",
    )
    with st.expander("The formula with its numbers"):
        st.code(EQUATION, language=None)
        st.markdown("  \n".join(f"**{name}** {meaning}" for name, meaning in _TERMS).replace("_", r"\_"))
        for row in costs:
            st.caption(told.OPTIONS[row["option"]])
            st.code(f"{row['formula']} = {usd(row['usd'])}", language=None, wrap_lines=True)


def choice(budget: Mapping[str, Any]) -> None:
    """How the threshold came about."""
    st.markdown(f"**{text.literal(chosen.verdict(budget))}**")
    for name, value in chosen.steps(budget):
        st.markdown(f":small[:gray[{name}]]  \n{text.literal(value)}")


def scopes(report: Report, used: Sequence[str]) -> None:
    """Scopes that were compared: who may share an answer with whom. ``used``: the fields of the one in use."""
    rows = [
        {
            "scope": told.scope(row),
            "calls": row["calls"],
            "saved": row["saved_usd"],
            "added": row["added"]["served"] if row["added"] else None,
            "wrong": row["added"]["wrong"] if row["added"] else None,
            "verdict": told.scope_verdict(row, used),
            "risk": "; ".join(risk["risk"] for risk in row["risks"]),
        }
        for row in report["scopes"]
    ]
    column = st.column_config
    st.dataframe(
        pl.DataFrame(rows, infer_schema_length=None),
        hide_index=True,
        placeholder="",
        column_order=[name for name in rows[0] if name != "risk" or any(row["risk"] for row in rows)],
        column_config={
            "scope": column.TextColumn("The same must be", width=250),
            "calls": column.NumberColumn("Answered", format="%,d"),
            "saved": column.NumberColumn("Saved, $", format=_dollars(row["saved"] for row in rows)),
            "added": column.NumberColumn(
                "Extra pairs this allows", format="%,d", help="Judged pairs that the next narrower one keeps apart"
            ),
            "wrong": column.NumberColumn("of these wrong", format="%,d"),
            "verdict": column.TextColumn("Verdict", width=200),
            "risk": column.TextColumn("What it risks", width="large"),
        },
        alt="Scopes with what each would answer, save and answer wrongly",
    )


def freshness(report: Report) -> None:
    """The same question again: how soon another answer is right, and what lifetime that suggests."""
    fresh = report["freshness"]
    if not fresh["repeats"]:
        st.text("No question was asked again word for word, or no answer is recorded.")
        return
    st.markdown(f"**{text.literal(told.lasts(report))}**")
    st.dataframe(
        pl.DataFrame(
            [row | {"rate": row["changed"] / row["compared"] if row["compared"] else None} for row in fresh["by_age"]],
            infer_schema_length=None,
        ),
        hide_index=True,
        placeholder="–",
        column_config={
            "up_to": "Answers not older than",
            "rate": st.column_config.NumberColumn("Out of date", format="percent"),
        }
        | parts.numbers({"compared": ("Repeats compared", "%,d"), "changed": ("With another answer", "%,d")}),
        alt="Repeats by the age of the answer, and those whose answer had changed",
    )
    if fresh["changed"]:
        with st.expander("The quickest changes"):
            pairs.listed(fresh["changed"], key="caches_stale", head=_changed)


def _changed(row: Mapping[str, Any]) -> None:
    st.badge(f"answer {text.minutes(1000 * row['age_s'])} old", color="orange")


def in_use(report: Report) -> None:
    """Hits of a cache that is in use already, audited the same way."""
    found = report["existing"]
    names = ", ".join(f"{name} {count:,}" for name, count in found["caches"].items())
    kinds = {
        "the very same question": found["exact"],
        "suspect": found["suspect"],
        "whose first question is not here": found["source_unknown"],
    }
    kinds["alike, and nothing speaks against them"] = found["hits"] - sum(kinds.values())
    told_ = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    st.markdown(text.literal(f"{counted(found['hits'], 'call')} came from a cache ({names}): {told_}."))
    if found["examples"]:
        with st.expander(f"The suspect ones: {len(found['examples']):,}"):
            pairs.listed(found["examples"], key="caches_in_use", head=_hit, named=pairs.GIVEN)


def _hit(row: Mapping[str, Any]) -> None:
    similar = "" if row["similarity"] is None else f"similarity {row['similarity']:.3f}"
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for name in filter(None, (row["cache"], similar)):
            st.badge(text.literal(name), color="gray")
    reasons = "; ".join(REASONS.get(name, name) for name in row["reasons"])
    st.markdown(f"{text.literal(reasons.capitalize())}.")


def left_out(rows: Sequence[Mapping[str, Any]]) -> None:
    """Calls that no response cache, or no semantic one, may answer."""
    st.dataframe(
        pl.DataFrame(list(rows)),
        hide_index=True,
        column_order=["calls", "meaning"],
        column_config={
            "calls": st.column_config.NumberColumn("Calls", format="%,d", width=80),
            "meaning": st.column_config.TextColumn("Why", width=900),
        },
        alt="Calls that are left out, by reason",
    )
