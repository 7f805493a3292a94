"""The family of calls behind a finding: its two sample prompts, its days, its pauses, its provider's own words."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import polars as pl
import streamlit as st

from prefixscope.analyzer.cards import card_for
from prefixscope.dashboard import data, finding_charts, parts, strips, text

Finding = Mapping[str, Any]
_STEPS: Final = {
    1: "< 1 s",
    10: "10 s",
    30: "30 s",
    60: "1 min",
    300: "5 min",
    900: "15 min",
    1800: "30 min",
    3600: "1 h",
    21600: "6 h",
    86400: "24 h",
    None: "longer",
}


@dataclass(frozen=True, slots=True)
class Family:
    """Which calls, and how long an unused prefix of theirs lives (None = not known)."""

    finding: Finding
    name: str
    lifetime_s: float | None

    @classmethod
    def of(cls, finding: Finding) -> Self | None:
        """The family of the finding's examples, None where the store knows it no more."""
        calls = [example["call_id"] for example in finding["examples"]]
        found = data.frame("pages/family_of_call", calls=tuple(calls))
        if found.is_empty():
            return None
        return cls(finding, found["family"][0], _lifetime_s(finding))

    def _params(self) -> dict[str, Any]:
        return {"family": self.name, "service": self.finding["service"], "model": self.finding["model"]}

    def draw_strips(self) -> None:
        """Two calls in a row over each other; which one can be chosen."""
        examples = [example["call_id"] for example in self.finding["examples"]]
        call = examples[0]
        if len(examples) > 1:
            call = st.segmented_control(
                "Call",
                examples,
                default=examples[min(1, len(examples) - 1)],
                required=True,
                format_func=lambda id_: f"Call {1 + examples.index(id_)} · {id_[:8]}",
                label_visibility="collapsed",
            )
        pair = data.frame("pages/two_calls", call_id=call, **self._params())
        if pair.height < 2:
            st.text("This is the first call of its family: there is none before it to compare with.")
            return
        earlier, later = pair.iter_rows(named=True)
        names = (f"{earlier['started_at']:%-d %b %H:%M:%S}", f"{later['started_at']:%-d %b %H:%M:%S}")
        if names[0] == names[1]:
            names = (f"{names[0]} (1)", f"{names[1]} (2)")
        pieces = data.frame("pages/prompt_pieces", calls=(earlier["call_id"], later["call_id"]))
        one, other = (pieces.filter(pl.col("call_id") == row["call_id"]) for row in (earlier, later))
        found = strips.compare(one, other, names)
        st.altair_chart(
            finding_charts.strips(found.blocks, found.breaks_at),
            alt="Two prompts over each other, with their first break",
        )
        st.markdown(text.literal(_told(found, earlier, later)))

    def draw_days(self) -> None:
        days = data.frame("pages/family_days", **self._params())
        st.altair_chart(finding_charts.calls_by_cause(days), alt="Calls of the family over time by cause")

    def lifetime_told(self) -> str:
        """The lifetime that the pauses are held against."""
        if self.lifetime_s is None:
            return "Time since the call before; no lifetime is known for this model"
        return f"Time since the call before, against a lifetime of {text.minutes(1000 * self.lifetime_s)}"

    def draw_pauses(self) -> None:
        rows = data.frame("pages/family_pauses", lifetime_s=self.lifetime_s, **self._params())
        if rows.is_empty():
            st.text("One call has no pause before it.")
            return
        labelled = rows.with_columns(
            label=pl.col("upto_s").map_elements(_STEPS.__getitem__, return_dtype=pl.String, skip_nulls=False)
        )
        st.altair_chart(finding_charts.pauses(labelled, self.lifetime_s), alt="Calls by the pause before them")

    def draw_reasons(self) -> None:
        """What the provider itself said, where it said anything."""
        rows = data.frame("pages/family_reasons", **self._params())
        if rows.is_empty():
            return
        with parts.card("The provider's own diagnosis"):
            st.dataframe(
                parts.named(rows, "miss_reason"),
                hide_index=True,
                column_config={"miss_reason": "Reason"}
                | parts.numbers({"calls": ("Calls", "%,d"), "missed_tokens": ("Tokens missed", "%,d")}),
                alt="Reasons that the provider gave",
            )


def _lifetime_s(finding: Finding) -> float | None:
    """As the evidence has it, else as the provider's rule card does."""
    told = finding["evidence"].get("ttl_seconds")
    if told:
        return float(told)
    day = data.frame("pages/scopes")["last_day"].max()
    card = card_for(finding["provider"], finding["model"], day).card  # type: ignore[arg-type]
    return card.ttl_seconds.get(card.default_ttl)


def _told(found: strips.Comparison, earlier: Mapping[str, Any], later: Mapping[str, Any]) -> str:
    pause = text.minutes(1000 * (later["started_at"] - earlier["started_at"]).total_seconds())
    read = f"{later['read']:,} of its {later['input']:,} prompt tokens"
    usage = f"The later call came {pause} after the earlier one and read {read}."
    if found.breaks_at is None:
        return f"The prompts share their first {found.shared:,} bytes and nothing behind them. {usage}"
    return (
        f"They part at byte {found.breaks_at:,}, in segment {found.segment} ({found.level}): "
        f"{found.stranded:,} bytes behind it are the same in both, and cannot be read. {usage}"
    )
