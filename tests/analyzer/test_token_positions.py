"""Where tokens stand in a prompt: what is known of them beside the total."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import auditing
from prefixscope.analyzer import families, ragged, store, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.counting import tokens
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


_TOOL = Segment("tools", "tool", "", '{"name":"look_up","description":"Looks up an order by its number."}')
_SYSTEM = _text("system", "system", "Answer in one short sentence. " * 200, "5m")


def test_what_a_provider_adds_for_tools_stands_in_front_of_the_messages() -> None:
    """Short questions that cost 350 tokens behind the system prompt's breakpoint: 330 of them are not theirs."""
    found = _counted([
        ((_TOOL, _SYSTEM, _text("messages", "user", f"Where is my order {n}, please? Tell me.")), usage)
        for n, usage in enumerate([Usage("reported", uncached=345, write_5m=1230), Usage("reported", 345, read=1230)])
    ])  # fmt: skip
    rows = found.rows
    assert found.tool_prompt_tokens == pytest.approx([330, 330], abs=8)
    assert ragged.running_sums(rows.tokens, rows.offsets)[rows.marker_ms > 0] == pytest.approx(1230, rel=0.01)


@pytest.mark.parametrize(
    ("segments", "question"),
    [((_SYSTEM,), "Where is my order?"), ((_TOOL, _SYSTEM), "0x1f9e 88a1 " * 40)],
    ids=["no tools", "dense text"],
)
def test_what_text_can_explain_is_not_taken_for_an_added_prompt(segments: tuple[Segment, ...], question: str) -> None:
    """Without tools nothing is added; and 350 tokens of 480 bytes may be the text's own."""
    asked = _text("messages", "user", question)
    found = _counted([((*segments, asked), Usage("reported", uncached=350, write_5m=1230))])
    assert not found.tool_prompt_tokens.any()


def test_few_calls_that_contradict_the_rest_do_not_bend_the_rates() -> None:
    """Three calls read up to the breakpoint; a fourth read less of it, as Nova's recordings do."""
    usages = [Usage("reported", 22, write_5m=1492), *(Usage("reported", 22, read=1492) for _ in range(2))]
    usages.append(Usage("reported", 416, read=1098))
    found = _counted([((_SYSTEM, _text("messages", "user", f"What is in file {n}?")), u) for n, u in enumerate(usages)])
    ends = ragged.running_sums(found.rows.tokens, found.rows.offsets)[found.rows.marker_ms > 0]
    assert ends == pytest.approx(1492, rel=0.01)


def test_an_id_that_joins_call_and_result_need_not_be_rendered() -> None:
    """Results of any length cost a quarter of a token a byte and nothing for their ids: the ids get few tokens."""
    prompts = []
    for n in range(48):
        call = Segment("messages", "tool_call", "assistant", f'{{"id":"call_a81b42c95{n:02}d7","name":"f"}}')
        body = "The parcel is on its way. " * (1 + 5 * (n % 4))
        result = Segment("messages", "tool_result", "user", f'{{"tool_use_id":"call_a81b42c95{n:02}d7"}}\n{body}')
        prompts.append(((_text("messages", "user", "Go on."), call, result), Usage("reported", 30 + len(body) // 4)))
    found = _counted(prompts)
    assert found.contents.reference_weight.max() > 20
    assert (found.tokens_per_byte[:, traffic.REFERENCES] < 0.125).all()


def test_calls_without_a_prompt_are_counted_by_their_totals_alone() -> None:
    """A log of usage alone has no rows to count."""
    found = _counted([((), Usage("reported", 100)) for _ in range(3)])
    assert len(found) == 3
    assert not len(found.rows.tokens)


@pytest.mark.parametrize("times", [0.1, 2.5, 10.0])
def test_a_total_gone_wrong_does_not_bend_the_rates(times: float) -> None:
    """Twenty calls of a quarter of a token a byte, and one with a total that is far off."""
    text = "Answer in one short sentence. " * 40
    prompts = [_text("messages", "user", f"{text}{'So. ' * (20 * n)}") for n in range(20)]
    usages = [Usage("reported", round(len(prompt.text) / 4)) for prompt in prompts]
    usages[7] = Usage("reported", round(usages[7].uncached * times))
    found = _counted([((prompt,), usage) for prompt, usage in zip(prompts, usages, strict=True)])
    assert found.tokens_per_byte[:, 2] == pytest.approx(0.25, rel=0.05)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.floats(0, 4000), min_size=6, max_size=6), min_size=1, max_size=8), st.randoms())
def test_rates_are_the_best_within_their_bounds(rows: list[list[float]], rng: random.Random) -> None:
    """No step of one rate, inwards or outwards within its bounds, comes nearer to the totals."""
    sizes = np.array(rows)
    left = sizes.T @ sizes + np.diag(np.maximum((sizes**2).mean(axis=0), 1.0))
    right = left @ np.array([rng.uniform(-1, 3) for _ in range(6)])
    found = tokens._within_bounds(left, right, np.full(6, 0.25))
    assert (found >= tokens._LOW).all() and (found <= tokens._HIGH).all()  # noqa: PT018
    for step in (-1e-3, 1e-3):
        for rate in range(6):
            other = found.copy()
            other[rate] = np.clip(other[rate] + step, tokens._LOW[rate], tokens._HIGH)
            worth = [x @ left @ x / 2 - right @ x for x in (found, other)]
            assert worth[0] <= worth[1] + 1e-6 * max(abs(worth[0]), 1.0)
