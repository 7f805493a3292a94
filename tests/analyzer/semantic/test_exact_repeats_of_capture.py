"""Exact repeats are the same whether the text is in a log or capture kept keys of it alone."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from exchanges import CHAT, JSON, MESSAGES, SSE, chat, exchange, sse
from prefixscope.analyzer import store
from prefixscope.analyzer.semantic import analysis, questions, tiers
from prefixscope.analyzer.semantic.cacheable import BARS, Content
from prefixscope.analyzer.semantic.questions import Questions
from prefixscope.analyzer.semantic.reading import Reader
from prefixscope.otel_plugin import spool
from prefixscope.otel_plugin.answers import Answer
from prefixscope.otel_plugin.asked import Keys
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.settings import Settings

KEY = b"test"
USAGE = {"prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105}
CALL = {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
CLAUDE = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "Where is it?"}]}


def said(words: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """An answer of Chat Completions."""
    message = {"role": "assistant", "content": words, **more}
    return {"model": "gpt-5.1", "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": USAGE}


def claude(words: str) -> dict[str, Any]:
    content = [{"type": "text", "text": words}]
    usage = {"input_tokens": 9, "output_tokens": 3}
    return {"type": "message", "content": content, "stop_reason": "end_turn", "usage": usage}


# Request, answer, and what becomes of it behind an exact cache: which call it repeats, or why it may not be served.
CALLS: list[tuple[dict[str, Any], dict[str, Any], int | str | None]] = [
    (chat(user="Where is my order?"), said("On its way."), None),
    (chat(user="where is  my ORDER?"), said("on its  way."), 0),
    (chat(user="Where is my order?", stream=True), said("It has arrived."), 0),
    (chat(user="Where is my bill?"), said("In your inbox."), None),
    (chat(system="You are kind.", user="Where is my order?"), said("On its way."), None),
    (chat(user="Where is my order?", temperature=0.7), said("On its way."), "varies"),
    (chat(user="Where is my order?", n=2), said("On its way."), "varies"),
    (chat(user="Send it", tools=[{"type": "function", "function": {"name": "a"}}]),
     said(None, "tool_calls", tool_calls=[CALL]), "acts"),
    (chat(user="What is new?", web_search_options={"x": 1}), said("Much."), "live_tools"),
    (chat(user="Tell me all"), said("It began", "length"), "failed"),
    (chat(user="Tell me secrets"), said(None, refusal="No."), "failed"),
    (CLAUDE, claude("Here."), None),
    (CLAUDE, claude("Here."), 11),
    (CLAUDE | {"max_tokens": 10}, claude("Here."), None),
    (chat(user="Where is my order?"), said("On its way."), 0),
]  # fmt: skip


def streamed(answer: Mapping[str, Any], number: int) -> bytes:
    """The same answer, word by word."""
    [choice] = answer["choices"]
    words = choice["message"]["content"].split(" ")
    parts = [word if at == 0 else f" {word}" for at, word in enumerate(words)]
    head = {"id": f"r{number}", "model": answer["model"]}
    chunks = [head | {"choices": [{"index": 0, "delta": {"content": p}, "finish_reason": None}]} for p in parts]
    end = head | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
    return sse([*chunks, end, head | {"choices": [], "usage": USAGE}])


def captured(folder: Path, environment: Mapping[str, str]) -> list[Path]:
    """The spool of all calls."""
    capture = Capture(Settings(spool=str(folder / "spool"), service="shop", spans="off", reraise=True), environment)
    for n, (request, answer, _) in enumerate(CALLS):
        body = streamed(answer, n) if request.get("stream") else json.dumps(answer | {"id": f"r{n}"}).encode()
        at = MESSAGES if (request is not CLAUDE and "claude" in request["model"]) or request is CLAUDE else CHAT
        capture.sinks.take([exchange(request, body, at=at, headers=SSE if request.get("stream") else JSON)])
    capture.close()
    return list(spool.files(folder / "spool"))


def logged(folder: Path) -> list[Path]:
    """The same as a request log."""
    lines = [
        {
            "timestamp": 1_796_000_000 + n,
            "service": "shop",
            "url": "https://api.anthropic.com/v1/messages" if "claude" in request["model"] else None,
            "request": request,
            "response": streamed(answer, n).decode() if request.get("stream") else answer | {"id": f"r{n}"},
        }
        for n, (request, answer, _) in enumerate(CALLS)
    ]
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return [path]


def asked(paths: list[Path], scope: Sequence[str] = questions.DEFAULT_SCOPE) -> Questions:
    """What the analysis makes of files."""
    reader = Reader(KEY)
    everything: dict[str, Any] = {"service": None, "since": None, "until": None}
    with store.opened(None) as opened:
        opened.ingest(reader.read(paths), at=datetime(2026, 11, 30, tzinfo=UTC))
        calls = opened.frame("analysis/calls", **everything)
        prompts = opened.arrow("analysis/prompts", **everything)
    return questions.of_calls(calls, prompts.column("segments"), reader.text_of, KEY, scope_fields=scope)


def outcome(found: Questions) -> dict[int, int | str | None]:
    """Call -> what becomes of it behind an exact cache that keeps answers for ever."""
    served = tiers.replay(found, None, replace(tiers.Policy(threshold=None), ttl_s=1e9))
    number = [int(name[1:]) for name in found.calls["response_id"]]
    return {
        number[call]: found.bar[call] or (number[int(source)] if source >= 0 else None)
        for call, source in enumerate(served.source)
    }


@pytest.fixture
def spooled(tmp_path: Path) -> Questions:
    return asked(captured(tmp_path, {"PREFIXSCOPE_KEY": KEY.decode()}))


def test_repeats_and_bars_are_those_of_the_text(spooled: Questions, tmp_path: Path) -> None:
    """What an exact cache serves, from which call, and what it may not serve."""
    expected = {n: became for n, (_, _, became) in enumerate(CALLS)}
    assert outcome(asked(logged(tmp_path))) == expected
    assert not spooled.with_text
    assert {bar for bar in spooled.bar if bar} <= BARS.keys()
    assert outcome(spooled) == expected


def test_keys_are_those_of_the_text(spooled: Questions, tmp_path: Path) -> None:
    """To the bit, of requests and of answers."""
    texts = asked(logged(tmp_path))
    contents: dict[str, Content | None] = dict(zip(texts.calls["response_id"], texts.contents, strict=True))
    keys = Keys(KEY)
    for row in spooled.calls.iter_rows(named=True):
        found = contents[row["response_id"]]
        assert found is not None
        assert isinstance(found.answer, Answer)
        assert row["exact_key"] == found.key.hex()
        assert (row["answer_key"], row["answer_kind"]) == (keys.answer_key(found.answer), found.answer.kind)
        assert (row["streamed"], row["live_tools"]) == (found.streamed, found.live_tools)


def test_a_changed_answer_is_told(spooled: Questions, tmp_path: Path) -> None:
    """Without a word of either."""
    texts = asked(logged(tmp_path))
    for found in (spooled, texts):
        at = {name: n for n, name in enumerate(found.calls["response_id"])}
        assert found.same_answer(at["r0"], at["r1"]) is True
        assert found.same_answer(at["r0"], at["r2"]) is False
        assert found.same_answer(at["r0"], at["r7"]) is None


def test_a_call_of_a_log_repeats_one_that_capture_saw(tmp_path: Path) -> None:
    """Their keys are made of the same."""
    paths = captured(tmp_path, {"PREFIXSCOPE_KEY": KEY.decode()})
    (log,) = logged(tmp_path)
    again = [json.loads(line) for line in log.read_text().splitlines()]
    for line in again:
        if isinstance(line["response"], dict):
            line["response"]["id"] = line["response"]["id"].replace("r", "9")
    log.write_text("".join(json.dumps(line) + "\n" for line in again if isinstance(line["response"], dict)))
    found = asked([*paths, log])
    keys = pl.DataFrame({"response_id": found.calls["response_id"].str.slice(1), "key": found.key})
    counts = keys.group_by("response_id").agg(pl.col("key").n_unique(), pl.len())
    assert counts.filter(pl.col("len") == 2)["key"].to_list() == [1] * (len(CALLS) - 1)


def test_another_key_is_another_key(tmp_path: Path) -> None:
    """Then nothing can be compared, and nothing is."""
    (tmp_path / "other").mkdir()
    one = captured(tmp_path, {"PREFIXSCOPE_KEY": "one"})
    other = captured(tmp_path / "other", {"PREFIXSCOPE_KEY": "other"})
    keys = [set(asked(paths).calls["exact_key"]) for paths in (one, other)]
    assert not keys[0] & keys[1]


def test_a_scope_without_the_system_prompt_needs_the_text(tmp_path: Path) -> None:
    """Then the same question of two assistants is a repeat; the key of a call without text is made of both."""
    scope = [name for name in questions.DEFAULT_SCOPE if name != "system"]
    assert outcome(asked(logged(tmp_path), scope))[4] == 0
    assert outcome(asked(captured(tmp_path, {"PREFIXSCOPE_KEY": KEY.decode()}), scope))[4] is None


def test_the_whole_analysis_runs_on_keys_alone(tmp_path: Path) -> None:
    """Findings, unit costs and all."""
    paths = captured(tmp_path, {"PREFIXSCOPE_KEY": KEY.decode()})
    reader = Reader(KEY)
    with store.opened(None) as opened:
        opened.ingest(reader.read(paths), at=datetime(2026, 11, 30, tzinfo=UTC))
        found = analysis.run(opened, reader.text_of, KEY, analysis.Options())
    assert found.served.count(tiers.EXACT) == 4
    assert [finding.cause for finding in found.findings] == ["exact_duplicate", "exact_duplicate"]
    evidence = [finding.evidence for finding in found.findings]
    assert [(one["answers_agree"], one["answers_differ"]) for one in evidence] == [(2, 0), (1, 0)]
    assert [repeat.answers for repeat in found.fresh.repeats] == ["same", "different", "same", "different"]
