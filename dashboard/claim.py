"""A finding's own words and numbers, as the report has them."""

from collections.abc import Mapping
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.analyzer.report import wording
from prefixscope.dashboard import parts, text

Finding = Mapping[str, Any]
_MOST_OPTIONS: Final = 3
_WORTHWHILE: Final = 0.01  # of what the best one saves
_STATUS_COLOURS = {
    "open": "blue",
    "accepted": "violet",
    "fixed": "orange",
    "verified": "green",
    "not_confirmed": "red",
    "regressed": "red",
    "dismissed": "gray",
}


def label(finding: Finding) -> str:
    """How a finding is called in a list."""
    week = text.usd_range(finding["saving_usd_per_week"])
    what = (text.cause(finding["cause"]), text.cell(finding["service"]), text.cell(finding["model"]), finding["id"])
    return f"{week} a week · {' · '.join(what)}"


def banner(finding: Finding) -> None:
    """Cause, state, whose it is, and the claim in one line."""
    status = finding["status"]
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.badge(text.cause(finding["cause"]), color="primary")
        st.badge(status.replace("_", " "), color=_STATUS_COLOURS.get(status, "gray"))  # type: ignore[arg-type]
        st.markdown(
            f":gray[{text.literal(' · '.join((finding['service'], wording.model(finding), 'id ' + finding['id'])))}]"
        )
    st.markdown(f"#### {text.literal(_sentence(finding['headline']))}")
    verdict = finding.get("verdict", "actionable")
    if verdict != "actionable":
        st.info(wording.VERDICTS[verdict].capitalize())


def options(finding: Finding) -> None:
    """The fix; where the report weighs several, those that pay side by side, and the others by name."""
    st.markdown(text.literal(finding["fix"]["text"]))
    found = finding.get("options") or []
    best = max((option["saving_usd"] for option in found), default=0.0)
    paying = [option for option in found if option["saving_usd"] > _WORTHWHILE * best][:_MOST_OPTIONS]
    if not paying:
        return
    with st.grid(len(paying), min_column_width=260, border=True):
        for option in paying:
            with st.container():
                _option(option, chosen=option["action"] == finding["fix"]["action"])
    rest = [text.fix(option["action"]) for option in found if option not in paying]
    if rest:
        st.caption(text.literal(f"Tried as well, and worth less or nothing: {'; '.join(rest)}."))


def _option(option: Mapping[str, Any], *, chosen: bool) -> None:
    name = text.fix(option["action"])
    st.markdown(f"**{text.literal(name)}**" + (" :green-badge[best]" if chosen else ""))
    if option.get("text"):
        st.markdown(text.literal(option["text"]))
    told = [("saves", _usd(option.get("saving_usd"))), ("write premium", _usd(option.get("write_premium_usd")))]
    told += [(name, str(option[name])) for name in ("effort", "risk") if option.get(name)]
    st.markdown("  \n".join(f":gray[{name}] {text.literal(value)}" for name, value in told if value))


def _usd(value: Any) -> str:
    if value is None:
        return ""
    return text.usd_range(value) if isinstance(value, Mapping) else wording.usd(float(value))


def formula(finding: Finding) -> None:
    """Tokens moved, price and dollars by bucket; the sum is what is saved at most."""
    rows = [
        {"bucket": row["bucket"], "tokens": row["tokens"], "price": 1e6 * row["usd"] / row["tokens"], "usd": row["usd"]}
        for row in finding["formula"]
    ]
    st.dataframe(
        pl.DataFrame(rows),
        hide_index=True,
        height="content",
        column_config={"bucket": "Bucket"}
        | parts.numbers(
            {"tokens": ("Tokens moved", "%+,.0f"), "price": ("$ per million", "%.4g"), "usd": ("$", "%+.4f")}
        ),
        alt="Tokens moved between buckets, their price and the dollars",
    )
    saving = finding["saving_usd"]
    share = f", {saving['low'] / saving['high']:.1%} of it" if saving["high"] else ""
    st.markdown(
        f"Saved at most **{text.literal(wording.usd(saving['high']))}**: the sum, with its sign turned. "
        f"At least **{text.literal(wording.usd(saving['low']))}**{text.literal(share)}: "
        "as far as this provider keeps reads that the replay predicts, less what hangs on rounding."
    )


def doubts(finding: Finding, report: Mapping[str, Any]) -> None:
    """What a reader should check before changing anything."""
    alarm = wording.FALSE_ALARM.get(finding["cause"])
    window = report["window"]
    told = (
        f"If {alarm}." if alarm else "",
        f"Confidence {finding['confidence']}: {wording.CONFIDENCE.get(finding['confidence'], 'not rated')}.",
        f"Measured from {text.moment(window['from'])} to {text.moment(window['to'])}; a week to come may differ.",
    )
    st.markdown("\n".join(f"* {text.literal(line)}" for line in told if line))


def examples(finding: Finding) -> None:
    """Some of the calls, by every name that they have."""
    rows = [{name: text.cell(str(value)) for name, value in example.items()} for example in finding["examples"]]
    if not rows:
        st.text("The report names none.")
        return
    st.dataframe(
        pl.DataFrame(rows),
        hide_index=True,
        height="content",
        column_config={
            "call_id": "Call",
            "response_id": "Response",
            "trace_id": "Trace",
            "file": "File",
            "line": "Line",
        },
        alt="Calls to look at",
    )


def _sentence(told: str) -> str:
    return f"{told[:1].upper()}{told[1:]}."
