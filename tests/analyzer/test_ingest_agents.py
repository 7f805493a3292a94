"""Transcripts of other coding agents: pi's sessions and Codex' rollouts."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest_samples as samples
from prefixscope.analyzer.ingest import Observed, Rejected, read, reading
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Usage

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
recorded = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data is not part of the project")


def records(tmp_path: Path, *documents: Any) -> list[CallRecord]:
    calls, rejected = samples.read_bytes(tmp_path, samples.lines(*documents), "session.jsonl")
    assert not rejected
    return [call.record for call in calls]


def shape(record: CallRecord) -> list[str]:
    assert record.fingerprint is not None
    return [f"{s.role} {s.kind}".strip() for s in record.fingerprint.segments]


def ids(record: CallRecord) -> list[int]:
    assert record.fingerprint is not None
    return [segment.content_id for segment in record.fingerprint.segments]


# --- pi ---

SESSION = {"type": "session", "id": "s-1", "timestamp": "2026-01-02T10:00:00Z", "cwd": "/w"}
SPENT = {"input": 2, "output": 30, "cacheRead": 400, "cacheWrite": 50, "cost": {"total": 0.01}}
TEXT = [{"type": "text", "text": "yes"}]
CALLED = [{"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}}]


def entry(second: int, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": f"2026-01-02T10:00:{second:02}.500Z", "message": message, **more}


def user(second: int, content: str, **more: Any) -> dict[str, Any]:
    return entry(second, {"role": "user", "content": [{"type": "text", "text": content}]}, **more)


def answer(second: int, content: Any = TEXT, usage: Any = SPENT, stop: str = "stop", **more: Any) -> dict[str, Any]:
    began = {"timestamp": 1_767_348_000_000 + second * 1000}
    message = {"role": "assistant", "content": content, "usage": usage, "stopReason": stop, **began}
    served = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-opus-4-5"}
    return entry(second, {**message, **served}, **more)


def test_an_answer_of_pi_is_a_call_with_the_messages_before_it(tmp_path: Path) -> None:
    """A message has two times: when it was begun, and when its line was written."""
    result = entry(3, {"role": "toolResult", "toolCallId": "t1", "content": [{"type": "text", "text": "aaa"}]})
    first, second = records(tmp_path, SESSION, user(1, "go"), answer(2, CALLED, stop="toolUse"), result, answer(4))
    assert shape(second) == ["unrecorded", "user text", "assistant tool_call", "user tool_result"]
    assert ids(second)[:2] == ids(first)
    assert (first.service, first.provider, first.api) == ("pi", "anthropic", "anthropic.messages")
    assert (first.model, first.session_id, first.instrumentation) == ("claude-opus-4-5", "s-1", "pi")
    assert (first.started_ns, first.duration_ms) == (1_767_348_002 * 10**9, 500.0)
    assert first.usage == Usage("reported", uncached=2, read=400, write_unknown=50, output=30)


def test_a_compaction_of_pi_leaves_its_summary_and_the_last_messages(tmp_path: Path) -> None:
    """The summary stands in front of what was kept."""
    compaction = {"type": "compaction", "summary": "so far", "firstKeptEntryIndex": 3, "tokensBefore": 9}
    last = records(
        tmp_path, SESSION, user(1, "a"), answer(2), user(3, "b"), answer(4), compaction, user(5, "c"), answer(6)
    )[-1]
    assert shape(last) == ["unrecorded", "user summary", "user text", "assistant text", "user text"]


def test_a_tree_of_pi_has_forks(tmp_path: Path) -> None:
    """Newer sessions name the entry that each one follows."""
    ended = {"type": "compaction", "summary": "s", "firstKeptEntryId": "c", "id": "f", "parentId": "d"}
    lines = (
        *(SESSION, user(1, "a", id="a", parentId=None), answer(2, id="b", parentId="a")),
        *(user(3, "c", id="c", parentId="b"), answer(4, id="d", parentId="c")),
        *(user(5, "e", id="e", parentId="b"), answer(6, id="x", parentId="e")),
        *(ended, answer(8, id="g", parentId="f")),
    )
    _, one, other, compacted = records(tmp_path, *lines)
    assert ids(one)[:3] == ids(other)[:3]
    assert ids(one)[3] != ids(other)[3]
    assert shape(compacted) == ["unrecorded", "user summary", "user text", "assistant text"]


def test_a_branch_of_pi_repeats_the_calls_before_it(tmp_path: Path) -> None:
    """Its copies are the same calls, and the new ones go on with the same prefix."""
    lines = user(1, "a"), answer(2)
    parent = records(tmp_path, SESSION, *lines)
    branch = records(tmp_path, {**SESSION, "id": "s-2"}, *lines, user(3, "b"), answer(4))
    assert branch[0].span_id == parent[0].span_id != branch[1].span_id
    assert ids(branch[1])[:2] == ids(parent[0])


def test_zeros_of_an_answer_that_was_broken_off_mean_nothing(tmp_path: Path) -> None:
    """No count had come yet; one that had come stays."""
    none = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0)
    first, second, failed = records(
        tmp_path,
        SESSION,
        user(1, "a"),
        answer(2, [], none, "aborted"),
        answer(3, stop="aborted"),
        answer(4, [], none, "error"),
    )
    assert (first.aborted, first.usage.state) == (True, "missing")
    assert (second.aborted, second.usage.read) == (True, 400)
    assert (failed.aborted, failed.error) == (False, "error")


def test_the_level_of_thinking_is_a_setting_of_pi(tmp_path: Path) -> None:
    """It holds until it is changed."""
    changed = {"type": "thinking_level_change", "timestamp": "2026-01-02T10:00:03Z", "thinkingLevel": "high"}
    start = {**SESSION, "thinkingLevel": "off"}
    calls = records(tmp_path, start, user(1, "a"), answer(2), user(3, "b"), answer(4), changed, user(5, "c"), answer(6))
    first, second, third = (call.fingerprint.settings["thinking"] for call in calls if call.fingerprint)
    assert first == second != third


# --- Codex ---

META = {"id": "c-1", "model_provider": "openai", "base_instructions": {"text": "You are Codex."}}


def item(kind: str, payload: Any, second: int = 0) -> dict[str, Any]:
    return {"timestamp": f"2026-05-13T09:00:{second:02}Z", "type": kind, "payload": payload}


def said(role: str, text: str, second: int = 0) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}, second)


def tokens(input_: int, cached: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": input_,
        "cached_input_tokens": cached,
        "output_tokens": output,
        "total_tokens": input_ + output,
    }


def counted(last: dict[str, int] | None, total: dict[str, int] | None, second: int = 0) -> dict[str, Any]:
    info = {"last_token_usage": last, "total_token_usage": total} if last or total else None
    return item("event_msg", {"type": "token_count", "info": info}, second)


TURN = item("turn_context", {"model": "gpt-5.2-codex", "effort": "high"})


def test_a_count_of_codex_is_a_call_with_the_items_before_its_answer(tmp_path: Path) -> None:
    """Instructions are kept, tools are not; the running total may repeat, and info may be null."""
    usage, more = tokens(1000, 250, 125), tokens(1500, 1000, 5)
    call = {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "t1"}
    first, second = records(
        tmp_path,
        *(item("session_meta", META), TURN, said("user", "go", 1), counted(None, None, 2)),
        *(item("response_item", call, 3), counted(usage, usage, 4), counted(usage, usage, 5)),
        item("response_item", {"type": "function_call_output", "call_id": "t1", "output": "ok"}, 6),
        *(said("assistant", "done", 8), counted(more, tokens(2500, 1250, 130), 9)),
    )
    assert shape(first) == ["unrecorded", "system text", "user text"]
    assert shape(second) == [*shape(first), "tool_call", "tool_result"]
    assert ids(second)[:3] == ids(first)
    assert (first.service, first.provider, first.api, first.model) == (
        "codex",
        "openai",
        "openai.responses",
        "gpt-5.2-codex",
    )
    assert (first.session_id, first.duration_ms, second.duration_ms) == ("c-1", 3000.0, 3000.0)
    assert first.usage == Usage("reported", uncached=750, read=250, output=125)
    assert (second.usage.uncached, second.usage.read) == (500, 1000)
    assert first.fingerprint is not None
    assert set(first.fingerprint.settings) == {"history", "reasoning.effort"}


def test_a_running_total_alone_is_enough(tmp_path: Path) -> None:
    """The call is what was added to it."""
    lines = TURN, counted(None, tokens(1000, 250, 125), 1), counted(None, tokens(3500, 750, 425), 2)
    first, second = records(tmp_path, *lines)
    assert first.usage.input_total == 1000
    assert second.usage == Usage("reported", uncached=2000, read=500, output=300)


def test_a_fork_of_codex_repeats_its_parents_calls(tmp_path: Path) -> None:
    """The copies have other times and the same name, so that the store takes them for what they are."""
    totals = [tokens(n * 100, 0, n) for n in (1, 2, 3)]
    parent = [item("session_meta", META), TURN, *(counted(totals[0], total, at) for at, total in enumerate(totals[:2]))]
    own = {"id": "c-2", "forked_from_id": "c-1"}
    copied = [{**line, "timestamp": "2026-06-01T00:00:00Z"} for line in parent]
    fork = [item("session_meta", own), *copied, counted(totals[0], totals[2], 50)]
    of_fork = records(tmp_path, *fork)
    assert [call.span_id for call in of_fork[:2]] == [call.span_id for call in records(tmp_path, *parent)]
    assert len({call.span_id for call in of_fork}) == 3
    assert {call.session_id for call in of_fork} == {"c-2"}


def test_a_compaction_of_codex_replaces_the_items(tmp_path: Path) -> None:
    """By those it tells, or by a summary and some that it does not tell."""
    one, two, three = (tokens(n * 100, 0, n) for n in (1, 2, 3))
    kept = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "kept"}]}]
    first, told, untold = records(
        tmp_path,
        *(TURN, said("user", "a"), said("assistant", "b"), counted(one, one)),
        *(item("compacted", {"message": "so far", "replacement_history": kept}), counted(one, two)),
        *(item("compacted", {"message": "so far"}), counted(one, three)),
    )
    assert shape(first) == ["unrecorded", "user text"]
    assert shape(told) == ["unrecorded", "user text"]
    assert ids(told)[1] != ids(first)[1]
    assert shape(untold) == ["unrecorded", "unrecorded", "user summary"]


# --- dsh ---


def event(kind: str, at: int, **data: Any) -> dict[str, Any]:
    return {"type": kind, "time": 1_790_000_000_000 + at, "data": data}


def test_dsh_keeps_whole_prompts(tmp_path: Path) -> None:
    """System prompt and tools stand in its header; so its positions are exact."""
    header = {
        "config": {"provider": "deepseek-official", "model": "deepseek-v4-flash"},
        "system": "s",
        "tools": [{"name": "t"}],
    }
    source = {"kind": "model", "provider": "deepseek-official", "model": "deepseek-v4-flash"}
    asked = {"role": "assistant", "content": [{"type": "tool-call", "id": "t1", "name": "t"}], "source": source}
    returned = {"role": "user", "content": [{"type": "tool-result", "toolCallId": "t1", "content": [{"text": "ok"}]}]}
    spent = {"inputTokens": 168, "outputTokens": 25, "cacheReadTokens": 2816, "reasoningTokens": 22}
    first, second = records(
        tmp_path,
        {"type": "session", "id": "d-1", "createdAt": 1, "cwd": "/w", "delegationDepth": 0},
        event("request/header", 0, header=header),
        event("user/message", 1, role="user", content=[{"type": "text", "text": "go"}]),
        event("step/start", 2),
        event("assistant/message", 500, message=asked, usage=spent),
        event("tool/result", 600, message=returned),
        event("step/start", 700),
        event("assistant/message", 900, message={**asked, "content": []}, usage={"inputTokens": 5}),
    )
    assert shape(first) == ["tool", "system text", "user text"]
    assert shape(second) == [*shape(first), "assistant tool_call", "user tool_result"]
    assert first.fingerprint is not None
    assert first.fingerprint.settings == {}
    assert (first.provider, first.model, first.session_id) == ("deepseek", "deepseek-v4-flash", "d-1")
    assert (first.started_ns, first.duration_ms) == (1_790_000_000_002 * 10**6, 498.0)
    assert first.usage == Usage("reported", uncached=168, read=2816, output=25, reasoning=22)
    assert (second.usage.state, second.usage.notes) == ("partial", ("cache_read_not_recorded",))


# --- Open Design ---


def test_a_run_tells_tokens_and_models_and_no_prompts(tmp_path: Path) -> None:
    """An event told again does not count; the total tells what the input contains."""
    inclusive = {"input_tokens": 1000, "output_tokens": 200, "cached_read_tokens": 50, "total_tokens": 1200}
    exclusive = {"input_tokens": 3000, "output_tokens": 400, "cached_read_tokens": 100, "total_tokens": 3500}
    at = {"event": "agent", "timestamp": "2026-06-22T10:00:00.000Z"}
    calls = records(
        tmp_path,
        {**at, "id": "1", "data": {"model": "openai-codex:gpt-5.5"}},
        *({**at, "id": name, "data": {"type": "usage", "usage": inclusive}} for name in "22"),
        {**at, "id": "3", "data": {"type": "status", "model": "glm-5.2"}},
        {**at, "id": "4", "timestamp": 1_782_122_405_000, "data": {"type": "usage", "usage": exclusive}},
    )
    assert [(c.provider, c.model, c.usage.uncached, c.usage.read) for c in calls] == [
        ("openai", "gpt-5.5", 950, 50),
        ("zhipuai", "glm-5.2", 3000, 100),
    ]
    assert all(call.fingerprint is None for call in calls)


# --- What cannot be read, and recorded files ---

WITHOUT_TIME = {
    "pi": [SESSION, {"type": "message", "message": {"role": "assistant", "usage": SPENT}}],
    "codex": [{"type": "event_msg", "payload": counted(tokens(1, 0, 1), tokens(1, 0, 1))["payload"]}],
    "a run": [{"id": "1", "event": "agent", "timestamp": None, "data": {"type": "usage", "usage": {}}}],
}


@pytest.mark.parametrize("lines", WITHOUT_TIME.values(), ids=WITHOUT_TIME)
def test_an_answer_without_a_time_is_rejected(tmp_path: Path, lines: list[Any]) -> None:
    """No pause can be measured without it; the message says what to add."""
    calls, [rejected] = samples.read_bytes(tmp_path, samples.lines(*lines))
    assert not calls
    assert (rejected.line, '"timestamp"' in rejected.reason) == (len(lines), True)


LACKING = {
    "Cursor": ({"role": "user", "message": {"content": []}}, "neither a time nor token counts"),
    "Antigravity": ({"step_index": 0, "source": "MODEL", "type": "x"}, "no token counts"),
}


@pytest.mark.parametrize(("line", "why"), LACKING.values(), ids=LACKING)
def test_transcripts_that_say_too_little_are_told_so(tmp_path: Path, line: dict[str, Any], why: str) -> None:
    """Once a file."""
    calls, [rejected] = samples.read_bytes(tmp_path, samples.lines(line, line))
    assert not calls
    assert why in rejected.reason


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "text", "role"]), inner),
    max_leaves=6,
)
GOOD: dict[str, list[dict[str, Any]]] = {
    "pi": [
        SESSION,
        user(1, "a"),
        answer(2),
        {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 1},
        answer(3),
    ],
    "codex": [
        item("session_meta", META),
        TURN,
        said("user", "a"),
        item("compacted", {}),
        counted(tokens(1, 0, 1), tokens(1, 0, 1)),
    ],
    "dsh": [
        {"type": "session", "id": "d-1", "createdAt": 1, "delegationDepth": 0},
        *(
            event(kind, 1, message={"content": [{"type": "text", "text": "a"}]})
            for kind in ("step/start", "tool/result")
        ),
        event("assistant/message", 2, message={"content": []}, usage={"inputTokens": 5}),
    ],
}


@pytest.mark.parametrize("lines", GOOD.values(), ids=GOOD)
@given(data=st.data())
def test_no_line_makes_a_reader_fail(
    tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Whatever stands in one place of good lines."""
    broken = json.loads(json.dumps(lines))
    holder = data.draw(st.sampled_from(_holders(broken)))
    holder[data.draw(st.sampled_from(sorted(holder)))] = data.draw(JUNK)
    path = tmp_path_factory.mktemp("junk") / "t.jsonl"
    path.write_bytes(samples.lines(*broken))
    found = list(read([path], Fingerprinter(samples.KEY)))
    assert not [f for f in found if isinstance(f, Rejected) and reading.BUG in f.reason]


def _holders(value: Any) -> list[dict[str, Any]]:
    """Every object in ``value`` that is not empty."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    below = [holder for part in inner for holder in _holders(part)]
    return [value, *below] if isinstance(value, dict) and value else below


@recorded
def test_recorded_sessions_of_pi_hold_what_they_say() -> None:
    """Every answer is a call; the tokens are those in the file, and only two compactions and an edit break a prompt."""
    found = list(read([DATA / "pi"], Fingerprinter(samples.KEY)))
    assert not [f for f in found if isinstance(f, Rejected)]
    calls = [f for f in found if isinstance(f, Observed)]
    paths = sorted((DATA / "pi").glob("*.jsonl"))
    lines = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
    usages = [u for line in lines if (u := line.get("message", {}).get("usage"))]
    single = json.loads((DATA / "pi" / "assistant-message-with-thinking-code.json").read_text("utf-8"))["usage"]
    assert len(calls) == len(usages) + 1
    assert sum(c.record.usage.read for c in calls) == sum(u["cacheRead"] for u in (*usages, single))
    for path in paths:
        prompts = [ids(c.record) for c in calls if c.file == str(path) and c.record.fingerprint]
        broken = sum(later[: len(earlier)] != earlier for earlier, later in pairwise(prompts))
        assert broken == sum(
            line["type"] == "compaction" for line in map(json.loads, path.read_text("utf-8").splitlines())
        )
