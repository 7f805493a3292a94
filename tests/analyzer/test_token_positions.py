"""Where tokens stand in a prompt: what is known of them beside the total."""

from collections.abc import Sequence

import numpy as np
import pytest

import auditing
from prefixscope.analyzer import families, ragged, store, tokens, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.ingest import Observed
from prefixscope.analyzer.traffic import Traffic
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Level, Prompt, Segment, Usage

START_NS = 1_795_000_000 * 10**9


def _counted(prompts: Sequence[tuple[tuple[Segment, ...], Usage]]) -> Traffic:
    """Calls to Claude, a second apart, counted in tokens."""
    printer, everything = Fingerprinter(b"test"), {"service": None, "since": None, "until": None}
    calls = [
        CallRecord(
            started_ns=START_NS + number * 10**9,
            provider="anthropic",
            api="anthropic.messages",
            model="claude-sonnet-4-6",
            usage=usage,
            fingerprint=printer.fingerprint(Prompt("anthropic.messages", "claude-sonnet-4-6", segments)),
        )
        for number, (segments, usage) in enumerate(prompts)
    ]
    with store.opened(None) as opened:
        opened.ingest((Observed(call, "test", 1 + i) for i, call in enumerate(calls)), at=auditing.AT)
        frame, prompts_table = (
            opened.frame("analysis/calls", **everything),
            opened.arrow("analysis/prompts", **everything),
        )
        loaded = traffic.load(frame, prompts_table, contents_of(opened.arrow("analysis/contents")))
    return tokens.calibrated(loaded, families.find(loaded))


def _text(level: Level, role: str, text: str, marker: str = "") -> Segment:
    return Segment(level, "text", role, text, marker=marker)


def test_the_last_breakpoint_stands_where_reads_and_writes_end() -> None:
    """Dense text behind a breakpoint does not shift it: what was cached is what stands in front."""
    system = _text("system", "system", "Answer in one short sentence. " * 200, "1h")
    found = _counted(
        [
            ((system, _text("messages", "user", "0x1f9e 88a1 " * 40)), Usage("reported", uncached=400, write_1h=1200)),
            ((system, _text("messages", "user", "77c0 0xee12 " * 40)), Usage("reported", uncached=400, read=1200)),
        ]
    )
    rows = found.rows
    ends = ragged.running_sums(rows.tokens, rows.offsets)
    assert ends[rows.marker_ms > 0] == pytest.approx(1200, rel=0.01)


def test_an_image_weighs_by_its_pixels() -> None:
    """A picture of 100 kB that is followed by text leaves the text in front of it its tokens."""
    question = _text("messages", "user", "What is in the picture? Be brief, and name the colours. " * 40)
    picture = Segment("messages", "image", "user", "iVBORw0KGgo" * 10_000)
    found = _counted([((question, picture, _text("messages", "user", "Thank you.")), Usage("reported", uncached=1500))])
    ends = ragged.running_sums(found.rows.tokens, found.rows.offsets)
    question_tokens = ends[np.flatnonzero(found.rows.block == 0)[-1]]
    assert 300 < question_tokens < 900


def test_a_system_prompt_under_the_models_role_is_no_answer() -> None:
    """Gemini's system instruction may say role = model; the opening does not end there."""
    found = _counted(
        [((_text("system", "model", "Be kind."), _text("messages", "model", "Hi.")), Usage("reported", 9))]
    )
    assert found.rows.answer.tolist() == [level == 2 for level in found.rows.level]
