"""Data quality: what the figures of the other pages rest on, and what they leave out."""

from typing import Any

import polars as pl
import streamlit as st

from prefixscope.analyzer.report import wording
from prefixscope.dashboard import data, frame, lifecycle, parts, prices, text

report = lifecycle.report()
asked = frame.chosen()
calls = report["calls"]
total = max(calls["total"], 1)

with st.grid(5, min_column_width=165, gap="small"):
    parts.metric("Calls", f"{calls['total']:,}", None)
    parts.metric("With a price", wording.share(calls["priced"] / total), None)
    parts.metric("Usage missing", f"{calls['usage_missing']:,}", None, help="What they cost is unknown, not zero.")
    parts.metric(
        "With a prompt", wording.share(calls["with_prompt"] / total), None, help="Leaks can be seen in these alone."
    )
    parts.metric("Rejected lines", f"{calls['quarantined']:,}", None)

caveats = wording.caveats(report)
with parts.card("What a reader must know", "Of the last analysis as a whole, whatever the filters say"):
    st.markdown("\n".join(f"* {text.literal(line)}" for line in caveats) if caveats else "Nothing is missing.")
    notes = lifecycle.board().notes
    if notes:
        st.text("\n".join(wording.plain(note) for note in notes))

coverage = data.frame("pages/coverage", **asked.in_week())
with parts.card("Coverage", "Shares of the calls of each service and model in the chosen week"):
    shares = coverage.with_columns(
        (pl.col("with_prompt", "usage_missing", "usage_partial", "unpriced") / pl.col("calls")).name.suffix("_share")
    )
    percent: dict[str, Any] = {"min_value": 0.0, "max_value": 1.0, "format": "percent", "width": 130}
    st.dataframe(
        parts.named(shares, "service", "provider", "model"),
        hide_index=True,
        column_order=[
            "service",
            "provider",
            "model",
            "calls",
            "with_prompt_share",
            "usage_missing_share",
            "usage_partial_share",
            "unpriced_share",
        ],
        column_config={
            "service": "Service",
            "provider": "Provider",
            "model": "Model",
            "calls": st.column_config.NumberColumn("Calls", format="%,d"),
            "with_prompt_share": st.column_config.ProgressColumn("With a prompt", color="green", **percent),
            "usage_missing_share": st.column_config.ProgressColumn("Usage missing", color="red", **percent),
            "usage_partial_share": st.column_config.ProgressColumn("No cache counts", color="orange", **percent),
            "unpriced_share": st.column_config.ProgressColumn("No price", color="red", **percent),
        },
        alt="What is known of the calls of each service and model",
    )

with st.grid(2, min_column_width=380, gap="medium"):
    with parts.card("Model check", "Reported reads against those that the replay predicts"):
        check = pl.DataFrame(report["model_check"])
        if check.is_empty():
            st.text("Nothing was predicted.")
        else:
            st.dataframe(
                parts.named(check, "provider", "model"),
                hide_index=True,
                column_config={
                    "provider": "Provider",
                    "model": "Model",
                    "rate": st.column_config.ProgressColumn("Came true", **percent),
                }
                | parts.numbers(
                    {"calls": ("Calls", "%,d"), "predicted": ("Predicted", "%,.0f"), "reported": ("Reported", "%,.0f")}
                ),
                alt="Model check by provider and model",
            )
    with parts.card("Models without a price", "Their calls are in no dollar figure"):
        unpriced = pl.DataFrame(report["unpriced_models"])
        if unpriced.is_empty():
            st.text("Every model has a price.")
        else:
            st.dataframe(
                parts.named(unpriced, "provider", "model"),
                hide_index=True,
                column_config={"provider": "Provider", "model": "Model"} | parts.numbers({"calls": ("Calls", "%,d")}),
                alt="Models without a price",
            )

with parts.card(
    "Prices",
    "$ per million tokens on the last day of data, standard tier, short prompt; each call is priced at its own time",
):
    st.dataframe(
        prices.table(data.frame("pages/scopes")),
        hide_index=True,
        column_config={
            "provider": "Provider",
            "model": "Model",
            "source": st.column_config.TextColumn("Source", width="large"),
            "as_of": "Compared on",
        }
        | parts.numbers({name: (label, "$%.4g") for name, label in prices.SHOWN.items()}),
        alt="Prices by model with their sources",
    )

with parts.card("Files", "Every file that was read into this store"):
    parts.ingests(data.frame("pages/ingests"))
    parts.quarantine(data.frame("analysis/quarantine"))
