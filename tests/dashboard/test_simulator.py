"""The simulator: what is claimed of one session and of the store's own traffic follows from the rule cards."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from dashboards import Run, choice
from prefixscope.analyzer import audit, store
from prefixscope.dashboard import session_model, what_if
from prefixscope.dashboard.session_model import BUCKETS, Session
from prefixscope.dashboard.what_if import Rules

AT = datetime(2026, 11, 20, 8, tzinfo=UTC)
CLAUDE = Session("anthropic", "claude-sonnet-4-5", static=8000, question=300, answer=600, turns=8, pause_minutes=3)
GPT = replace(CLAUDE, provider="openai", model="gpt-5.1")


def turns(session: Session) -> pl.DataFrame:
    return session_model.turns(session, AT)


def usd(session: Session) -> float:
    return float(turns(session)["usd"].sum())


@pytest.mark.parametrize("session", [CLAUDE, GPT])
def test_buckets_make_up_the_prompt(session: Session) -> None:
    """Each turn adds a question and an answer, and every token is in one bucket."""
    found = turns(session)
    expected = [8300 + 900 * n for n in range(8)]
    assert found["input"].to_list() == pytest.approx(expected)
    assert found.select(pl.sum_horizontal(BUCKETS)).to_series().to_list() == pytest.approx(expected)


def test_the_first_turn_writes_and_the_others_read() -> None:
    """With a breakpoint at the end, all but what is new is read."""
    found = turns(CLAUDE)
    assert found["read"][0] == 0
    assert found["write_5m"][0] == pytest.approx(8300)
    assert (found["read"][1:] > 0.88 * found["input"][1:]).all()
    assert found["uncached"].sum() == pytest.approx(0, abs=1)


def test_an_automatic_cache_reads_in_steps() -> None:
    """OpenAI's in 128 tokens, without a write."""
    found = turns(GPT)
    assert (found["read"] % 128 == 0).all()
    assert found.select("write_5m", "write_1h").sum().row(0) == (0.0, 0.0)


def test_a_clock_costs_more_than_no_cache() -> None:
    """Everything is written at a premium and never read."""
    found = turns(replace(CLAUDE, clock=True))
    assert found["read"].sum() == 0
    assert found["usd"].sum() == pytest.approx(1.25 * float(found["usd_uncached"].sum()))


def test_pauses_beyond_the_lifetime_lose_it() -> None:
    """Seven minutes against five; an hour's lifetime keeps it."""
    slow = replace(CLAUDE, pause_minutes=7)
    assert turns(slow)["read"].sum() == 0
    assert turns(replace(slow, ttl="1h"))["read"].sum() > 0
    assert usd(CLAUDE) < usd(replace(slow, ttl="1h")) < usd(slow)


def test_a_compaction_loses_the_history_once() -> None:
    """The static part is still read in the turn behind it."""
    found = turns(replace(CLAUDE, compact_every=4))
    behind = found.row(4, named=True)
    assert 7500 < behind["read"] < 8300
    assert found["input"][4] < found["input"][3]


def test_a_model_without_a_price_is_unknown() -> None:
    """Not free."""
    assert turns(replace(CLAUDE, model="claude-of-tomorrow", provider="nobody"))["usd"].is_null().all()


@pytest.fixture(scope="module")
def loaded(sample_once: Path) -> what_if.Loaded:
    with store.opened(sample_once, read_only=True) as opened:
        found = what_if.load(what_if.fetch(opened, None))
    assert found is not None
    return found


def test_all_fixes_together_save_what_the_audit_promises(loaded: what_if.Loaded, sample_once: Path) -> None:
    """The waterfall ends where the report's upper figure does."""
    with store.opened(sample_once, read_only=True) as opened:
        report = opened.last_report()
    assert report is not None
    steps = what_if.waterfall(loaded, loaded.chosen)
    assert steps["saved"].sum() == pytest.approx(report["recoverable_usd"]["high"], abs=1e-6)
    assert what_if.spent(loaded) == pytest.approx(report["spend_usd"]["input"])
    assert steps["before"][0] == pytest.approx(report["spend_usd"]["input"])
    assert steps["after"].to_list()[:-1] == pytest.approx(steps["before"].to_list()[1:])


def test_a_fix_switched_off_saves_nothing(loaded: what_if.Loaded) -> None:
    """And no fix at all leaves the bill as it is."""
    names = loaded.chosen
    assert what_if.waterfall(loaded, []).is_empty()
    fewer = what_if.waterfall(loaded, names[:-1])["saved"].sum()
    assert 0 < fewer < what_if.waterfall(loaded, names)["saved"].sum()


def test_other_rules_move_tokens_and_keep_their_number(loaded: what_if.Loaded) -> None:
    """Longer lifetimes read more; without breakpoints Anthropic reads nothing; another model has its own price."""
    now = what_if.under(loaded, Rules())
    for rules in (Rules(lifetime="extend_ttl"), Rules(markers="drop_markers"), Rules("openai", "gpt-5.1")):
        found = what_if.under(loaded, rules)
        assert sum(found[b] or 0 for b in what_if.BUCKETS) == pytest.approx(sum(now[b] or 0 for b in what_if.BUCKETS))
    assert (what_if.under(loaded, Rules(lifetime="extend_ttl"))["read"] or 0) > (now["read"] or 0)
    assert (what_if.under(loaded, Rules(markers="drop_markers"))["write_5m"] or 0) == 0
    assert (what_if.under(loaded, Rules("openai", "gpt-5-mini"))["usd"] or 0) < (now["usd"] or 0)
    assert what_if.under(loaded, Rules("nobody", "nothing"))["usd"] is None


def test_the_replay_as_it_is_costs_what_was_billed(loaded: what_if.Loaded) -> None:
    """Within a percent on the sample, so that the comparison starts from the truth."""
    now = what_if.under(loaded, Rules())
    assert now["usd"] == pytest.approx(what_if.spent(loaded), rel=0.01)


def test_a_store_without_prompts_has_nothing_to_replay(empty: Path) -> None:
    """It is told, not replayed as if it were empty prompts."""
    with store.opened(empty, read_only=True) as opened:
        assert what_if.load(what_if.fetch(opened, None)) is None
        assert audit.analyse(opened, audit.Selection()).report["findings"] == []


def test_switching_a_fix_off_redraws(sample: Path, show: Run) -> None:
    """On the page: the sentence below the waterfall changes."""
    app = show(sample, "simulator")
    before = [text.value for text in app.markdown if "in the window" in text.value]
    pills = choice(app, "pills")
    pills.set_value(pills.value[:1]).run()
    assert not app.exception
    after = [text.value for text in app.markdown if "in the window" in text.value]
    assert len(before) == len(after) == 1
    assert before != after
