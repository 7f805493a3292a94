"""The answer in a stream is the same whether its deltas are told by their form or parsed, each and all."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cassettes
from prefixscope.otel_plugin import answers, sse, streamed, usage
from prefixscope.otel_plugin.answers import Answer
from prefixscope.otel_plugin.record import Usage

Event = Mapping[str, Any]
WORDS = st.text(max_size=12)
COMPACT, SPACED = (",", ":"), (", ", ": ")


def chat(delta: Any, finish: str | None = None, **more: Any) -> Event:
    """A chunk of Chat Completions."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {"id": "c", "model": "m", "choices": [choice | more], "usage": None, "obfuscation": "x"}


def claude(delta: Event, kind: str = "content_block_delta") -> Event:
    return {"type": kind, "index": 0, "delta": delta} if kind == "content_block_delta" else {"type": kind, **delta}


def responses(words: str) -> Event:
    return {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "delta": words, "logprobs": []}


ODD_CHATS: tuple[Event, ...] = (
    chat({"role": "assistant", "content": "", "refusal": None}),
    chat({"content": "with a role", "role": "assistant"}),
    chat({}, "stop"),
    chat({"content": "the end"}, "length"),
    chat({"content": None, "tool_calls": [{"index": 0, "id": "1"}]}),
    chat({"content": None, "refusal": "No."}),
    chat({"content": "another choice"}, index=1),
    chat({"content": [{"type": "text", "text": "parts"}]}),
    chat({"content": 'says "delta": {"content": "x"}'}),
    {"choices": [{"delta": {"content": "no index"}}]},
    {"choices": [{"text": "completions", "index": 0}]},
    {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop", "index": 0}]},
    {"choices": [{"delta": {"content": "index behind"}, "finish_reason": None, "index": 0}]},
    {"choices": [{"delta": {"content": "index behind"}, "finish_reason": None, "index": 2}]},
    {"choices": []},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
)
ODD_CLAUDE: tuple[Event, ...] = (
    claude({"message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}}, "message_start"),
    claude({"index": 0, "content_block": {"type": "text", "text": "begun"}}, "content_block_start"),
    claude({"index": 1, "content_block": {"type": "tool_use", "name": "f"}}, "content_block_start"),
    claude({"type": "thinking_delta", "thinking": "hm"}),
    claude({"type": "input_json_delta", "partial_json": '{"text": "x"}'}),
    claude({"type": "text_delta", "text": "cited", "citations": []}),
    claude({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}, "message_delta"),
    claude({"delta": {"stop_reason": "refusal"}}, "message_delta"),
    {"type": "ping"},
)
BODY = {"status": "completed", "output": [{"type": "message", "content": [{"type": "output_text", "text": "all"}]}]}
ODD_RESPONSES: tuple[Event, ...] = (
    {"type": "response.created", "response": {"id": "r", "output": []}},
    {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
    {"type": "response.function_call_arguments.delta", "delta": "{}"},
    {"type": "response.output_text.delta", "delta": 7},
    {"type": "response.completed", "response": BODY},
    {"type": "response.incomplete", "response": BODY | {"status": "incomplete"}},
)
APIS: dict[str, tuple[Callable[[str], Event], tuple[Event, ...]]] = {
    "chat": (lambda words: chat({"content": words}), ODD_CHATS),
    "claude": (lambda words: claude({"type": "text_delta", "text": words}), ODD_CLAUDE),
    "responses": (responses, ODD_RESPONSES),
}


def stream(
    events: list[Event], separators: tuple[str, str] = COMPACT, *, ascii_: bool = False, end: str = "\n"
) -> bytes:
    """Events on the wire, with their names where they have one."""
    texts = (json.dumps(event, ensure_ascii=ascii_, separators=separators) for event in events)
    named = zip(events, texts, strict=True)
    lines = (f"event: {e['type']}{end}data: {t}" if "type" in e else f"data: {t}" for e, t in named)
    return "".join(f"{line}{end}{end}" for line in (*lines, "data: [DONE]")).encode("utf-8", "surrogatepass")


def billed(data: bytes) -> Usage:
    return usage.from_events(sse.decode(data, wanted=usage.telling()))


def said(data: bytes) -> Answer | None:
    return streamed.take_apart(data).answer()


@pytest.mark.parametrize("api", APIS)
@given(data=st.data())
def test_scanning_is_as_good_as_parsing(api: str, data: st.DataObject) -> None:
    """Whatever stands between the deltas, however JSON is written; and the usage is in the rest."""
    plain, odd = APIS[api]
    events = data.draw(st.lists(WORDS.map(plain) | st.sampled_from(odd), max_size=12))
    style = data.draw(st.sampled_from([COMPACT, SPACED]))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    sent = stream(events, style, ascii_=data.draw(st.booleans()), end=end)
    assert said(sent) == answers.of_events(sse.decode(sent))
    assert billed(streamed.take_apart(sent).others) == billed(sent)


@given(st.lists(WORDS.map(lambda words: chat({"content": words})), max_size=5), st.data())
def test_a_stream_may_break_off_anywhere(events: list[Event], data: st.DataObject) -> None:
    """Then the whole events before count."""
    sent = stream(events)
    cut = sent[: data.draw(st.integers(0, len(sent)))]
    assert said(cut) == answers.of_events(sse.decode(cut))


@given(st.binary(max_size=200))
def test_any_bytes_will_do(data: bytes) -> None:
    """What comes from outside may be anything."""
    assert said(data) == answers.of_events(sse.decode(data))


@pytest.mark.parametrize("api", APIS)
def test_deltas_are_not_parsed(api: str) -> None:
    """All but the first of a hundred: what this is for."""
    plain, odd = APIS[api]
    sent = stream([odd[0], *(plain(f'word {n} ✓ "quoted" \\ ') for n in range(100))])
    found = streamed.take_apart(sent)
    assert len(found.others) < len(sent) / 20
    answer = found.answer()
    assert answer is not None
    assert answer.text.startswith('word 0 ✓ "quoted" \\ word 1 ')


COHERE: list[Event] = [
    {"type": "message-start", "delta": {"message": {"content": [], "role": "assistant"}}},
    {"type": "content-start", "delta": {"message": {"content": {"type": "text", "text": ""}}}},
    {"type": "content-delta", "delta": {"message": {"content": {"thinking": "hm"}}}},
    {"type": "content-delta", "delta": {"message": {"content": {"text": "It is "}}}},
    {"type": "content-delta", "delta": {"message": {"content": {"text": "open."}}}},
    {"type": "content-end", "index": 0},
    {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {}}},
]
ACTS: Event = {"type": "tool-call-start", "delta": {"message": {"tool_calls": {"id": "1"}}}}


def test_coheres_stream_is_an_answer() -> None:
    """Its events have names of their own."""
    assert said(stream([*COHERE])) == Answer("It is open.")
    acting = said(stream([*COHERE[:-1], ACTS, COHERE[-1]]))
    assert acting is not None
    assert acting.acts


@pytest.mark.skipif(not cassettes.CASSETTES.exists(), reason="needs ../shared/data/cassettes")
def test_recorded_streams() -> None:
    """Every one has an answer that ended as it says, the same by its form and parsed."""
    kinds: Counter[str] = Counter()
    for recorded in cassettes.exchanges():
        data = recorded.response_body
        if "event-stream" not in recorded.response_headers.get("content-type", "") or b"data:" not in data[:4096]:
            continue
        found = said(data)
        assert found == answers.of_events(sse.decode(data)), recorded.source
        assert billed(streamed.take_apart(data).others) == billed(data), recorded.source
        kinds[found.kind if found else ""] += 1
    assert kinds.total() > 100
    assert kinds[""] == 0


HOSTILE = {
    "a long line": b'data: {"choices": [{"index": 0, "delta": {"content": "' + b"a" * 1_000_000,
    "many braces": b"data: {" * 100_000,
    "many fields": b'data: {"choices": [{"index": 0, "delta": {"content": "a"' + b', "b": null' * 100_000,
    "many escapes": b'data: {"choices": [{"index": 0, "delta": {"content": "' + b"\\n" * 500_000,
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_stream_takes_no_longer(data: bytes) -> None:
    """Forms are told in one pass: a megabyte that begins like one is over at once."""
    assert said(data) is None
