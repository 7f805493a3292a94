"""Transcripts of Claude Code and the Agent SDK: the prompt of each answer is the conversation before it."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest_samples as samples
from prefixscope.analyzer.ingest import Observed, Rejected, read, reading
from prefixscope.analyzer.ingest.claude_code import NOT_FINAL, ClaudeCode
from prefixscope.analyzer.ingest.claude_entries import API
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, SegmentPrint

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "transcripts"
recorded = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data is not part of the project")
SESSION = "7acd37a8-2745-4b58-a8a9-46164b22ad9e"
MODEL = "claude-opus-4-6"


def usage(uncached: int = 3, read_: int = 0, m5: int = 0, h1: int = 0, output: int = 9) -> dict[str, Any]:
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": read_,
        "cache_creation_input_tokens": m5 + h1,
        "cache_creation": {"ephemeral_5m_input_tokens": m5, "ephemeral_1h_input_tokens": h1},
        "output_tokens": output,
    }


class Talk:
    """Writes entries, a second apart, each following the one before unless it is told whom it follows."""

    def __init__(self, session: str = SESSION, *, names: str = "", first_second: int = 0) -> None:
        self.lines: list[dict[str, Any]] = []
        self._session, self._names, self._second = session, names, first_second

    def entry(self, kind: str, *, after: str | None = "last", **more: Any) -> str:
        last = self.lines[-1]["uuid"] if self.lines else None
        uuid = f"{self._names}{len(self.lines)}"
        stamp = f"2026-02-12T20:{self._second // 60:02}:{self._second % 60:02}.000Z"
        line = {"parentUuid": last if after == "last" else after, "sessionId": self._session, "type": kind}
        self.lines.append({**line, "uuid": uuid, "timestamp": stamp, "version": "2.1.39", **more})
        self._second += 1
        return uuid

    def user(self, content: Any, **more: Any) -> str:
        return self.entry("user", message={"role": "user", "content": content}, **more)

    def answer(self, name: str, *content: Mapping[str, Any] | str, use: Any = None, **more: Any) -> str:
        blocks = [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]
        message = {"id": name, "model": more.pop("model", MODEL), "role": "assistant", "content": blocks}
        message |= {"usage": use or usage(), "stop_reason": more.pop("stop", "end_turn")}
        return self.entry("assistant", message=message, requestId=f"req_{name}", **more)

    def bytes(self) -> bytes:
        return samples.lines(*self.lines)


def tool(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Read", "input": {"path": name}}


def result(name: str, text: str = "the text of the file") -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": name, "content": text}]


def records(tmp_path: Path, *talks: Talk) -> dict[str, CallRecord]:
    """The calls in a project with a file for each talk, by response id (or line, of those that have none)."""
    folder = tmp_path / "project"
    folder.mkdir()
    for number, talk in enumerate(talks):
        (folder / f"{number}.jsonl").write_bytes(talk.bytes())
    found = list(read([folder], Fingerprinter(samples.KEY)))
    assert not [f for f in found if isinstance(f, Rejected)]
    return {f.record.usage.response_id or str(f.line): f.record for f in found if isinstance(f, Observed)}


def segments(record: CallRecord) -> tuple[SegmentPrint, ...]:
    assert record.fingerprint is not None
    return record.fingerprint.segments


def shape(record: CallRecord) -> list[str]:
    return [f"{s.role} {s.kind}".strip() for s in segments(record)]


def extends(later: CallRecord, earlier: CallRecord) -> bool:
    return segments(later)[: len(segments(earlier))] == segments(earlier)


def test_a_prompt_is_the_conversation_before_the_answer(tmp_path: Path) -> None:
    """It begins with what a transcript does not hold; so its places are not exact, and it says so."""
    talk = Talk()
    talk.user("read a")
    talk.answer("m1", "I will", tool("t1"))
    talk.user(result("t1"))
    talk.answer("m2", "done")
    calls = records(tmp_path, talk)
    assert shape(calls["m1"]) == ["unrecorded", "user text"]
    assert shape(calls["m2"]) == [
        *("unrecorded", "user text", "assistant text", "assistant tool_call", "user tool_result")
    ]
    assert extends(calls["m2"], calls["m1"])
    front = segments(calls["m1"])[0]
    assert (front.level, front.size, [p.size for p in front.pieces]) == ("system", 0, [0])
    assert all(set(c.fingerprint.settings) == {"history"} for c in calls.values() if c.fingerprint)


def test_every_field_of_a_call_is_taken(tmp_path: Path) -> None:
    """The request was sent when the last message of its prompt was written; the answer's last block ended it."""
    talk = Talk()
    talk.user("hello")
    talk.answer("m1", "one", use=usage(3, 100, m5=20, h1=7, output=1), stop=None)
    talk.answer("m1", "two", use=usage(3, 100, m5=20, h1=7, output=441))
    record = records(tmp_path, talk)["m1"]
    assert (record.service, record.provider, record.api) == ("claude-code", "anthropic", "anthropic.messages")
    assert (record.model, record.session_id, record.request_id) == (MODEL, SESSION, "req_m1")
    assert (record.instrumentation, record.duration_ms, record.status) == ("claude_code", 2000.0, None)
    told = record.usage
    assert (told.state, told.uncached, told.read, told.write_5m, told.write_1h) == ("reported", 3, 100, 20, 7)
    assert (told.output, told.notes) == (441, ())


def test_an_answer_in_many_lines_is_one_call_and_its_last_usage_counts(tmp_path: Path) -> None:
    """Blocks are lines of their own, results of quick tools come between them, and every line repeats the usage."""
    talk = Talk()
    talk.user("go")
    talk.answer("m1", tool("t1"), use=usage(read_=50, output=8), stop=None)
    talk.user(result("t1"))
    talk.answer("m1", tool("t2"), use=usage(read_=50, output=90), stop=None)
    talk.user(result("t2"))
    talk.answer("m2", "end")
    calls = records(tmp_path, talk)
    assert list(calls) == ["m1", "m2"]
    assert (calls["m1"].usage.read, calls["m1"].usage.output, calls["m1"].usage.notes) == (50, 90, (NOT_FINAL,))
    assert shape(calls["m2"])[2:] == ["assistant tool_call"] * 2 + ["user tool_result"] * 2


def test_results_of_parallel_tools_are_all_in_the_next_prompt(tmp_path: Path) -> None:
    """Each follows the line of its own call, so that only one of them is on the way back."""
    talk = Talk()
    talk.user("go")
    first = talk.answer("m1", tool("t1"), stop=None)
    second = talk.answer("m1", tool("t2"))
    talk.user(result("t1"), after=first)
    talk.user(result("t2"), after=second)
    talk.answer("m2", "end")
    assert shape(records(tmp_path, talk)["m2"])[2:] == ["assistant tool_call"] * 2 + ["user tool_result"] * 2


def test_a_fork_shares_the_conversation_up_to_where_it_left(tmp_path: Path) -> None:
    """Going back and asking anew makes two prompts with one beginning."""
    talk = Talk()
    talk.user("begin")
    fork = talk.answer("m1", "yes")
    talk.user("this way")
    talk.answer("m2", "a")
    talk.user("no, that way", after=fork)
    talk.answer("m3", "b")
    calls = records(tmp_path, talk)
    one, other = segments(calls["m2"]), segments(calls["m3"])
    assert len(one) == len(other) == 4
    assert one[:3] == other[:3]
    assert one[3] != other[3]


def test_a_session_resumed_in_another_file_goes_on_with_the_old_conversation(tmp_path: Path) -> None:
    """It has another session id, one front, and one prefix."""
    old = Talk(names="old")
    old.user("begin")
    end = old.answer("m1", "yes")
    new = Talk("another-session", names="new", first_second=60)
    new.user("again", after=end)
    new.answer("m2", "still yes")
    calls = records(tmp_path, new, old)
    assert extends(calls["m2"], calls["m1"])
    assert (calls["m1"].session_id, calls["m2"].session_id) == (SESSION, "another-session")


def test_lines_that_a_resumed_session_copied_count_once(tmp_path: Path) -> None:
    """They keep their ids."""
    old = Talk()
    old.user("begin")
    old.answer("m1", "yes")
    copy = Talk(first_second=0)
    copy.user("begin")
    copy.answer("m1", "yes")
    copy.user("more")
    copy.answer("m2", "and more")
    calls = records(tmp_path, old, copy)
    assert shape(calls["m2"]) == ["unrecorded", "user text", "assistant text", "user text"]


@pytest.mark.parametrize("before", ["1", "an entry that was never written"])
def test_a_compaction_leaves_its_summary_behind_the_same_front(tmp_path: Path, before: str) -> None:
    """The old conversation is gone; tools, system prompt and settings are not."""
    talk = Talk()
    talk.user("begin", thinkingMetadata={"maxThinkingTokens": 31999})
    talk.answer("m1", "yes")
    talk.entry("system", after=None, subtype="compact_boundary", logicalParentUuid=before)
    talk.user("what happened so far", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    talk.answer("m2", "on we go")
    calls = records(tmp_path, talk)
    assert shape(calls["m2"]) == ["unrecorded", "user summary"]
    assert segments(calls["m2"])[0] == segments(calls["m1"])[0]
    assert calls["m1"].fingerprint is not None
    assert calls["m2"].fingerprint is not None
    assert calls["m1"].fingerprint.settings == calls["m2"].fingerprint.settings


def test_results_that_were_cleared_are_no_longer_known(tmp_path: Path) -> None:
    """From the clearing on something else stands in their place; the prompts before had them."""
    talk = Talk()
    talk.user("begin")
    talk.answer("m1", tool("t1"), tool("t2"))
    talk.user(result("t1"))
    talk.user(result("t2"))
    talk.answer("m2", "read")
    talk.entry("system", subtype="microcompact_boundary", microcompactMetadata={"compactedToolIds": ["t1"]})
    talk.user("next")
    talk.answer("m3", "yes")
    calls = records(tmp_path, talk)
    assert shape(calls["m2"])[4:] == ["user tool_result"] * 2
    assert shape(calls["m3"])[4:] == ["unrecorded", "user tool_result", "assistant text", "user text"]


def test_an_agent_that_goes_on_with_its_parents_conversation_shares_its_prefix(tmp_path: Path) -> None:
    """So are compactions summed up; an agent with a task of its own has tools and a system prompt of its own."""
    parent = Talk(names="p")
    parent.user("begin")
    last = parent.answer("m1", "yes")
    agent = Talk(names="a")
    agent.user("sum up", after=last, isSidechain=True, agentId="acompact-1")
    agent.answer("m2", "a summary", isSidechain=True, agentId="acompact-1")
    agent.user("a task", after=None, isSidechain=True, agentId="a2")
    agent.answer("m3", "done", isSidechain=True, agentId="a2")
    folder = tmp_path / "p"
    (folder / SESSION / "subagents").mkdir(parents=True)
    (folder / SESSION / "subagents" / "agent-acompact-1.jsonl").write_bytes(agent.bytes())
    (folder / f"{SESSION}.jsonl").write_bytes(parent.bytes())
    calls = [f for f in read([folder], Fingerprinter(samples.KEY)) if isinstance(f, Observed)]
    by_id = {c.record.usage.response_id: c.record for c in calls}
    assert by_id["m2"].session_id == f"{SESSION}/acompact-1"
    assert extends(by_id["m2"], by_id["m1"])
    assert shape(by_id["m2"])[2:] == ["assistant text", "user text"]
    assert segments(by_id["m3"])[0] != segments(by_id["m1"])[0]


def test_an_answer_of_a_sub_agent_without_its_file_counts(tmp_path: Path) -> None:
    """Its parent's file relays it: what it cost is known, what was sent is not."""
    talk = Talk()
    talk.user("begin")
    message = {"id": "m1", "role": "assistant", "model": MODEL, "content": [], "usage": usage(read_=70)}
    relayed = {"message": message, "timestamp": "2026-02-12T20:05:00Z", "requestId": "req_m1"}
    for _ in range(2):
        talk.entry("progress", data={"type": "agent_progress", "agentId": "a1", "message": relayed})
    [call], _ = samples.read_bytes(tmp_path, talk.bytes(), "alone.jsonl")
    assert (call.record.usage.read, call.record.session_id) == (70, f"{SESSION}/a1")
    assert call.record.fingerprint is None
    assert "give the folder of its session" in call.prompt_lost
    own = Talk(names="a")
    own.user("task", agentId="a1")
    own.answer("m1", "yes", use=usage(read_=70), agentId="a1")
    assert shape(records(tmp_path, talk, own)["m1"]) == ["unrecorded", "user text"]


def test_how_much_a_model_was_to_think_is_a_setting(tmp_path: Path) -> None:
    """It breaks the prefix of the messages; it holds until it is set anew, and which words set it does not matter."""
    talk = Talk()
    told = [
        {"level": "high", "disabled": False, "triggers": [{"start": at, "text": word}]}
        for at, word in ((1, "a"), (2, "b"))
    ]
    talk.user("begin", thinkingMetadata=told[0])
    for number, thinking in enumerate([{}, told[1], told[1] | {"triggers": []}]):
        talk.answer(f"m{number}", "yes")
        talk.user("more", **({"thinkingMetadata": thinking} if thinking else {}))
    talk.answer("m3", "yes")
    calls = records(tmp_path, talk).values()
    settings = [dict(call.fingerprint.settings) for call in calls if call.fingerprint]
    assert {"thinking", "history"} == settings[0].keys()
    assert settings[0] == settings[1] == settings[2]
    assert settings[3]["thinking"] != settings[0]["thinking"]


FAILURES: dict[str, tuple[dict[str, Any], tuple[int | None, str]]] = {
    "said in its text": (
        {"text": 'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"secret"}}'},
        (529, "overloaded_error"),
    ),
    "said in fields": ({"text": "secret", "apiErrorStatus": 429, "error": "rate_limit"}, (429, "rate_limit")),
    "hardly said": ({"text": "secret"}, (None, "api_error")),
}


@pytest.mark.parametrize(("said", "expected"), FAILURES.values(), ids=FAILURES)
def test_a_request_that_failed_is_a_call(tmp_path: Path, said: dict[str, Any], expected: tuple[Any, str]) -> None:
    """With its prompt, without usage, and without the message."""
    talk = Talk()
    talk.user("begin")
    text = said.pop("text")
    talk.answer("e1", text, model="<synthetic>", isApiErrorMessage=True, **said)
    [record] = records(tmp_path, talk).values()
    assert (record.status, record.error) == expected
    assert record.usage.state == "missing"
    assert shape(record) == ["unrecorded", "user text"]
    assert "secret" not in repr(record)


def test_a_retry_is_a_call_and_no_part_of_the_conversation(tmp_path: Path) -> None:
    """The client notes each request that it sends again."""
    talk = Talk()
    talk.user("begin")
    talk.answer("m1", "yes")
    talk.user("more")
    error = {"status": 529, "error": {"type": "error", "error": {"type": "overloaded_error", "message": "secret"}}}
    talk.entry("system", subtype="api_error", error=error, retryAttempt=1)
    talk.answer("m2", "and more")
    calls = records(tmp_path, talk)
    retry = calls["4"]
    assert (retry.status, retry.error, retry.model) == (529, "overloaded_error", MODEL)
    assert segments(retry) == segments(calls["m2"])


def test_what_the_client_writes_in_the_models_name_is_no_call(tmp_path: Path) -> None:
    """Texts such as "No response requested." were never billed."""
    talk = Talk()
    talk.user("begin")
    talk.answer("s1", "No response requested.", model="<synthetic>")
    assert records(tmp_path, talk) == {}


OTHERS = {
    "aws": ("msg_bdrk_01", "claude-opus-4-6", "aws"),
    "google": ("msg_vrtx_01", "claude-opus-4-6", "google"),
    "another vendor": ("m1", "gpt-5.1", "openai"),
    "a model nobody knows": ("m1", "house-model", "anthropic"),
}


@pytest.mark.parametrize(("name", "model", "provider"), OTHERS.values(), ids=OTHERS)
def test_the_provider_is_who_served_the_model(tmp_path: Path, name: str, model: str, provider: str) -> None:
    """Bedrock and Vertex name answers in their own way."""
    talk = Talk()
    talk.user("begin")
    talk.answer(name, "yes", model=model)
    assert records(tmp_path, talk)[name].provider == provider


def test_a_circle_of_parents_ends(tmp_path: Path) -> None:
    """Damaged files have them."""
    talk = Talk()
    talk.user("begin", after="1")
    talk.answer("m1", "yes")
    assert shape(records(tmp_path, talk)["m1"]) == ["unrecorded", "user text"]


def test_a_conversation_whose_beginning_is_elsewhere_is_read_from_there_on(tmp_path: Path) -> None:
    """Its front is unknown anyway."""
    talk = Talk()
    talk.user("go on", after="not-here")
    talk.answer("m1", "yes")
    assert shape(records(tmp_path, talk)["m1"]) == ["unrecorded", "user text"]


def test_the_stream_of_the_sdk_has_no_times(tmp_path: Path) -> None:
    """Only results of tools carry one: an answer before the first cannot be placed, and the message says what to do."""
    returned = {"role": "user", "content": result("t1")}
    last = {"id": "m2", "model": MODEL, "content": [{"type": "text", "text": "b"}], "usage": usage()}
    stream: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s", "uuid": "0", "model": MODEL},
        {"type": "assistant", "session_id": "s", "uuid": "1", "message": {"id": "m1", "content": [tool("t1")]}},
        {"type": "user", "session_id": "s", "uuid": "2", "timestamp": "2026-02-12T20:00:00Z", "message": returned},
        {"type": "assistant", "session_id": "s", "uuid": "3", "message": last},
        {"type": "result", "session_id": "s", "uuid": "4", "usage": usage()},
    ]
    for document in (samples.lines(*stream), samples.lines({"messages": _both_ways(stream)})):
        [call], [rejected] = samples.read_bytes(tmp_path, document)
        assert shape(call.record) == ["unrecorded", "assistant tool_call", "user tool_result"]
        assert call.record.usage.state == "reported"
        assert "~/.claude/projects" in rejected.reason


def _both_ways(stream: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"direction": "recv", "message": message} for message in stream]


def test_projects_are_told_one_after_the_other(tmp_path: Path) -> None:
    """Other files in a session's folder do not part a sub-agent from its parent."""
    for project in ("a", "b"):
        parent, agent = Talk(names="p"), Talk(names="a")
        parent.user(f"begin {project}")
        last = parent.answer("m1", "yes")
        agent.user("sum up", after=last, agentId="x")
        agent.answer("m2", "a summary", agentId="x")
        for name in ("subagents", "tool-results"):
            (tmp_path / project / SESSION / name).mkdir(parents=True)
        (tmp_path / project / SESSION / "subagents" / "agent-x.jsonl").write_bytes(agent.bytes())
        (tmp_path / project / SESSION / "tool-results" / "t1.json").write_bytes(samples.lines(samples.ENTRY))
        (tmp_path / project / f"{SESSION}.jsonl").write_bytes(parent.bytes())
    found = [f for f in read([tmp_path], Fingerprinter(samples.KEY)) if isinstance(f, Observed)]
    calls = [(Path(f.file).relative_to(tmp_path).parts[0], f.record) for f in found if f.record.api == API]
    assert [project for project, _ in calls] == ["a", "a", "b", "b"]
    assert all(extends(calls[at][1], calls[at + 1][1]) for at in (0, 2))
    assert len(found) == 6


def test_a_bug_costs_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that are told late are as well guarded as those that are told at once."""
    good = ClaudeCode._before
    monkeypatch.setattr(ClaudeCode, "_before", lambda self, entry: good(self, entry) if entry.uuid != "1" else 1 / 0)
    talk = Talk()
    talk.user("begin")
    talk.answer("m1", "yes")
    talk.user("more")
    talk.answer("m2", "yes")
    [call], [rejected] = samples.read_bytes(tmp_path, talk.bytes())
    assert call.record.usage.response_id == "m2"
    assert (rejected.line, reading.BUG in rejected.reason) == (2, True)


ALIKE: dict[str, dict[str, Any]] = {
    "a request log": {**samples.ENTRY, "sessionId": "s", "type": "llm"},
    "a request log with a message": {**samples.ENTRY, "sessionId": "s", "message": {"role": "user"}},
    "an observation of Langfuse": {
        "id": samples.SPAN,
        "traceId": samples.TRACE,
        "type": "GENERATION",
        "sessionId": "s",
        "startTime": "2026-09-21T13:33:20Z",
        "usage": {"input": 2, "output": 3, "total": 5},
    },
}


@pytest.mark.parametrize("document", ALIKE.values(), ids=ALIKE)
def test_other_formats_that_name_sessions_are_no_transcripts(tmp_path: Path, document: dict[str, Any]) -> None:
    """They are read as what they are."""
    assert samples.one_call(tmp_path, document).record.instrumentation != "claude_code"


def test_lines_of_types_that_nobody_knows_are_passed_over(tmp_path: Path) -> None:
    """New versions have new ones; in a file that is no transcript they are told."""
    talk = Talk()
    talk.user("begin")
    talk.answer("m1", "yes")
    calls, rejected = samples.read_bytes(tmp_path, talk.bytes() + samples.lines({"type": "new", "what": 1}))
    assert (len(calls), rejected) == (1, [])
    assert "unknown format" in samples.read_bytes(tmp_path, samples.lines({"type": "new", "what": 1}))[1][0].reason


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "type", "text"]), inner),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        *("type", "uuid", "parentUuid", "timestamp", "message", "sessionId", "logicalParentUuid", "error", "agentId"),
        *("isApiErrorMessage", "microcompactMetadata", "subtype", "isCompactSummary", "requestId", "payload", "usage"),
    ]
)


@given(st.lists(st.dictionaries(FIELDS, JUNK, max_size=6), max_size=6))
def test_no_line_makes_the_reader_fail(tmp_path_factory: pytest.TempPathFactory, lines: list[dict[str, Any]]) -> None:
    """Whatever stands in the fields of good lines."""
    talk = Talk()
    talk.user("begin")
    talk.answer("m1", "yes")
    broken = [{**good, **junk} for junk in lines for good in talk.lines]
    path = tmp_path_factory.mktemp("junk") / "t.jsonl"
    path.write_bytes(talk.bytes() + samples.lines(*broken))
    found = list(read([path], Fingerprinter(samples.KEY)))
    assert not [f for f in found if isinstance(f, Rejected) and reading.BUG in f.reason]
    assert any(isinstance(f, Observed) and f.record.usage.response_id == "m1" for f in found)


# --- Recorded sessions ---


@cache
def _recorded(folder: str) -> list[Observed]:
    return [f for f in read([DATA / folder], Fingerprinter(samples.KEY)) if isinstance(f, Observed)]


@recorded
@pytest.mark.parametrize("folder", ["claude_spotter", "claude_code_log/test"])
def test_every_answer_in_recorded_sessions_is_one_call(folder: str) -> None:
    """Counted by hand: the distinct ids of answers a file; their tokens are those of the last line of each."""
    calls = _recorded(folder)
    last: dict[tuple[str, str], dict[str, Any]] = {}
    relayed: dict[tuple[str, str], dict[str, Any]] = {}
    seen: set[str] = set()
    for path in sorted((DATA / folder).rglob("*.jsonl")):
        for line in map(json.loads, path.read_text("utf-8").splitlines()):
            if not isinstance(line, dict) or line.get("uuid") in seen:
                continue
            seen.add(line.get("uuid", ""))
            if line.get("data", {}).get("type") == "agent_progress":
                told = line["data"]["message"]["message"]
                relayed[told.get("id", ""), told["role"]] = told.get("usage", {})
            if line.get("type") != "assistant":
                continue
            name = line["message"].get("id") or line["uuid"]
            last[str(path), name] = line["message"].get("usage") or last.get((str(path), name), {})
    names = {name for _, name in last}
    last |= {key: used for key, used in relayed.items() if key[1] == "assistant" and key[0] not in names}
    assert len(calls) == len(last)
    for ours, theirs in (
        ("read", "cache_read_input_tokens"),
        ("uncached", "input_tokens"),
        ("output", "output_tokens"),
    ):
        assert sum(getattr(c.record.usage, ours) for c in calls) == sum(u.get(theirs) or 0 for u in last.values())


@recorded
def test_recorded_reads_end_where_an_earlier_prompt_did() -> None:
    """What was put together is what was sent: a call that goes on with an earlier one reads what that had cached."""
    calls = _recorded("claude_spotter")
    ended: dict[tuple[int, ...], CallRecord] = {}
    agreed = []
    for call in sorted((c.record for c in calls if not c.prompt_lost), key=lambda record: record.started_ns):
        found = tuple(segment.content_id for segment in segments(call))
        earlier = next((e for end in range(len(found), 0, -1) if (e := ended.get(found[:end]))), None)
        if earlier and earlier.model == call.model:
            agreed.append(call.usage.read == earlier.usage.read + earlier.usage.write)
        ended[found] = call
    assert len(agreed) > 800
    assert sum(agreed) / len(agreed) > 0.98


@recorded
def test_recorded_prompts_grow_until_they_are_compacted() -> None:
    """In five long sessions only a compaction, which writes a summary, breaks what was sent before."""
    calls = _recorded("claude_spotter")
    by_session: dict[str, list[CallRecord]] = {}
    for call in calls:
        if not call.prompt_lost:
            by_session.setdefault(call.record.session_id, []).append(call.record)
    broken = []
    for session in by_session.values():
        session.sort(key=lambda record: record.started_ns)
        broken += [later for earlier, later in pairwise(session) if not extends(later, earlier)]
    assert len(broken) == 5
    assert all(shape(record)[:2] == ["unrecorded", "user summary"] for record in broken)
