"""Five long recorded sessions of a coding agent through the whole analysis.

A transcript has neither tools nor the system prompt. What they weigh follows from the reported totals; then nearly
every read is where the rules say, and what is left has one cause each.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import auditing
from prefixscope.analyzer import audit, families, store, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.counting import fronts, tokens
from prefixscope.analyzer.ingest import read
from prefixscope.analyzer.store import Store
from prefixscope.analyzer.traffic import Traffic
from prefixscope.otel_plugin.fingerprint import Fingerprinter

SPOTTER = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts" / "claude_spotter"
pytestmark = pytest.mark.skipif(not SPOTTER.is_dir(), reason="needs ../shared/data/transcripts/claude_spotter")

ALL = {"service": None, "since": None, "until": None}
CALLS = 899  # with a prompt; of five more there is only the usage


def _traffic(opened: Store) -> Traffic:
    contents = contents_of(opened.arrow("analysis/contents"))
    return traffic.load(opened.frame("analysis/calls", **ALL), opened.arrow("analysis/prompts", **ALL), contents)


@cache
def analysed() -> tuple[pl.DataFrame, Traffic]:
    """A row a call: what was reported, what was predicted and why less was read; and the calls counted in tokens."""
    with store.opened(None) as opened:
        opened.ingest(read([SPOTTER], Fingerprinter(b"test")), at=auditing.AT)
        explained = audit.analyse(opened, audit.Selection()).explained
        loaded = _traffic(opened)
    named = loaded.calls.select("call_id", "session_id", "model", "read", "started_at").with_columns(
        total=pl.Series(loaded.input_total), known=pl.Series(loaded.known)
    )
    counted = tokens.calibrated(loaded, families.find(loaded))
    return named.join(explained, on="call_id", maintain_order="left"), counted


def _missed(cause: str) -> pl.DataFrame:
    rows, _ = analysed()
    return rows.filter(pl.col("known") & (pl.col("cause") == cause))


def test_prompts_of_transcripts_are_analysed() -> None:
    """Though they are not recorded from their beginning."""
    rows, _ = analysed()
    assert rows["known"].sum() == CALLS
    assert rows.filter(~pl.col("known"))["cause"].to_list() == ["unknown_prompt"] * 5


def test_what_is_not_recorded_weighs_what_totals_leave() -> None:
    """The first call of a session says little: all but a few tokens of it are tools and system prompt."""
    rows, counted = analysed()
    first = rows.with_columns(front=pl.Series(counted.front_tokens)).filter("known").group_by("session_id").first()
    main = first.filter(~pl.col("session_id").str.contains("/") & (pl.col("total") < 27_000))
    assert main.height >= 6
    assert ((main["total"] - main["front"]) / main["total"]).is_between(0, 0.01).all()


def test_predicted_reads_are_the_reported_ones() -> None:
    """On more than 97 % of the calls, within 2 %."""
    rows, _ = analysed()
    known = rows.filter("known")
    near = (known["predicted_read"] - known["read"]).abs() <= 0.02 * known["read"]
    assert near.sum() > 0.97 * CALLS


CAUSES = {
    "compacted": 5,
    "split_scope": 2,
    "ttl_lapse": 2,
    "unknown_prompt": 5,
    "first_seen": 9,
    "": 876,
}


def test_each_call_has_its_cause() -> None:
    """Counted by hand for compactions, for the model switch and back, for pauses and for reads that fell unseen."""
    rows, _ = analysed()
    found = dict(rows.filter("known")["cause"].value_counts().iter_rows())
    assert found == CAUSES


def test_a_change_that_the_transcript_cannot_show_is_nobodys() -> None:
    """Five reads fell into the text that is not recorded: it may have changed, so neither side is blamed."""
    unseen = _missed("unknown_prompt")
    assert unseen["read"].is_between(18_000, 21_500).all()
    assert (unseen["missed_tokens"] > 7_000).all()
    assert not unseen["claimed"].any()


def test_a_compaction_on_another_model_is_a_switch_and_no_fork() -> None:
    """A session went to a smaller model; the summary of its history was asked of the first one."""
    switch, back = _missed("split_scope").sort("started_at").iter_rows(named=True)
    assert "haiku" in switch["model"]
    assert "opus" in back["model"]
    assert back["session_id"].startswith(f"{switch['session_id']}/")
    assert not switch["claimed"]
    assert not back["claimed"]


def test_only_a_pause_is_claimed() -> None:
    """19 minutes under entries of five; the other pause was of four hours, which no lifetime covers."""
    rows, _ = analysed()
    claimed = rows.filter("claimed")
    assert claimed["cause"].to_list() == ["ttl_lapse"]
    assert _missed("ttl_lapse")["read"].to_list() == [0, 0]


def test_nothing_is_told_of_unrecorded_text_without_totals() -> None:
    """A call whose usage is missing gives no equation."""
    _, counted = analysed()
    silent = counted.calls.with_columns(usage_state=pl.lit("missing"))
    sizes = np.ones((len(counted), counted.tokens_per_byte.shape[1]))
    assert fronts.of_calls(counted, sizes, sizes).any()
    assert not fronts.of_calls(replace(counted, calls=silent), sizes, sizes).any()
