"""Recorded answers of every wire format, whole and streamed, and what of a call may be kept."""

import json
from typing import Any

import pytest

from prefixscope.analyzer.ingest.span import Span
from prefixscope.analyzer.semantic.answers import Answer, of_response, of_span
from prefixscope.analyzer.semantic.cacheable import BARS, Reducer, bar
from prefixscope.otel_plugin import segments

ANSWER = Answer("It is open.")
ACT = Answer("", acts=True)


def _chat(message: dict[str, Any], finish: str = "stop") -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}]}


def _sse(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def _delta(text: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text} if text else {}, "finish_reason": finish}]}


WHOLE = {
    "chat": _chat({"content": "It is open."}),
    "chat parts": _chat({"content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "open."}]}),
    "completions": {"choices": [{"index": 0, "text": "It is open.", "finish_reason": "stop"}]},
    "chat stream": _sse(_delta("It is "), _delta("open."), _delta(None, "stop")),
    "responses": {
        "status": "completed",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hidden"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "It is open."}]},
        ],
    },
    "responses stream": _sse(
        {"type": "response.output_text.delta", "delta": "It is"},
        {
            "type": "response.completed",
            "response": {
                "status": "completed",
                "output": [{"type": "message", "content": [{"type": "output_text", "text": "It is open."}]}],
            },
        },
    ),
    "messages": {
        "type": "message",
        "content": [{"type": "thinking", "thinking": "hidden"}, {"type": "text", "text": "It is open."}],
        "stop_reason": "end_turn",
    },
    "messages stream": [
        {"type": "message_start", "message": {"content": [], "usage": {}}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "It is open."}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ],
    "gemini": {
        "candidates": [
            {"content": {"parts": [{"text": "hm", "thought": True}, {"text": "It is open."}]}, "finishReason": "STOP"}
        ]
    },
    "gemini stream": [
        {"candidates": [{"content": {"parts": [{"text": "It is "}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "open."}]}, "finishReason": "STOP"}]},
    ],
    "converse": {"output": {"message": {"content": [{"text": "It is open."}]}}, "stopReason": "end_turn"},
    "converse stream": [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockDelta": {"delta": {"text": "It is open."}}},
        {"messageStop": {"stopReason": "end_turn"}},
    ],
    "cohere": {"message": {"content": [{"type": "text", "text": "It is open."}]}, "finish_reason": "COMPLETE"},
    "json text": json.dumps(_chat({"content": "It is open."})),
}
ACTING = {
    "chat": _chat({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls"),
    "responses": {"status": "completed", "output": [{"type": "function_call", "name": "f"}]},
    "messages": {"content": [{"type": "tool_use", "name": "f"}], "stop_reason": "tool_use"},
    "gemini": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}]},
    "converse": {"output": {"message": {"content": [{"toolUse": {"name": "f"}}]}}, "stopReason": "tool_use"},
    "converse stream": [{"contentBlockStart": {"start": {"toolUse": {"name": "f"}}}}],
}
CUT = {
    "chat": _chat({"content": "It is"}, "length"),
    "refusal": _chat({"content": None, "refusal": "No."}, "stop"),
    "stream that broke off": _sse(_delta("It is")),
    "responses": {"status": "incomplete", "output": [{"type": "message", "content": [{"text": "I"}]}]},
    "messages": {"content": [{"type": "text", "text": "It"}], "stop_reason": "max_tokens"},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "It"}]}, "finishReason": "SAFETY"}]},
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_the_text_is_what_was_said(name: str) -> None:
    """Thoughts and tool calls are no part of it, and a stream gives the same as a body."""
    assert of_response(WHOLE[name]) == ANSWER


@pytest.mark.parametrize("name", ACTING)
def test_an_answer_that_acts_is_told(name: str) -> None:
    """A request to run a tool is an action, whatever API it comes from."""
    found = of_response(ACTING[name])
    assert found is not None
    assert found.acts


@pytest.mark.parametrize("name", CUT)
def test_a_cut_or_refused_answer_is_not_whole(name: str) -> None:
    """It must not be served again."""
    found = of_response(CUT[name])
    assert found is not None
    assert not found.whole


@pytest.mark.parametrize("response", [None, {}, [], "", {"error": {"type": "overloaded"}}, [1, "x"], "data: x\n\n", 7])
def test_what_is_no_answer_is_none(response: Any) -> None:
    """Errors, empty bodies and noise give no answer, and nothing raises."""
    found = of_response(response)
    assert found is None or not found.text


def test_several_choices_are_counted() -> None:
    """The first one is the answer."""
    body = _chat({"content": "It is open."})
    body["choices"].append({"index": 1, "message": {"content": "Open, it is."}, "finish_reason": "stop"})
    assert of_response(body) == Answer("It is open.", choices=2)


SPANS = {
    "conventions": {
        "gen_ai.output.messages": json.dumps([
            {"role": "assistant", "parts": [{"type": "text", "content": "It is open."}], "finish_reason": "stop"}
        ])
    },
    "body": {"output.value": json.dumps(_chat({"content": "It is open."}))},
    "openinference": {"llm.output_messages.0.message.content": "It is open."},
    "traceloop": {"gen_ai.completion.0.content": "It is open.", "gen_ai.completion.0.finish_reason": "stop"},
    "vercel": {"ai.response.text": "It is open.", "ai.response.finishReason": "stop"},
}  # fmt: skip


@pytest.mark.parametrize("name", SPANS)
def test_spans_hold_answers_in_many_ways(name: str) -> None:
    """The spellings of the common instrumentations give one answer."""
    assert of_span(Span(attributes=SPANS[name])) == ANSWER


def test_a_span_that_acts() -> None:
    """A tool call in the parts of a message or in attributes of its own."""
    parts = [{"role": "assistant", "parts": [{"type": "tool_call", "name": "f"}], "finish_reason": "tool_calls"}]
    for attributes in ({"gen_ai.output.messages": parts}, {"ai.response.toolCalls": "[{}]"}):
        found = of_span(Span(attributes=attributes))
        assert found is not None
        assert found.acts
    assert of_span(Span(attributes={})) is None


def _content(answer: Answer | None = ANSWER, holders: tuple[dict[str, Any], ...] = (), **request: Any) -> Any:
    messages = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Is it open?"}]
    body = {"model": "gpt-5.1", "messages": messages} | request
    prompt = segments.parse(body)
    assert prompt is not None
    return Reducer(b"k").content(prompt, body, answer, holders)


def _bar(**changes: Any) -> str:
    return bar(_content(**changes), failed=False, max_temperature=0.0)


BARRED: dict[str, dict[str, Any]] = {
    "": {},
    "failed": {"answer": Answer("It is", whole=False)},
    "served_already": {"holders": ({"cache_hit": True},)},
    "acts": {"answer": ACT},
    "live_tools": {"tools": [{"type": "web_search_preview"}]},
    "varies": {"temperature": 0.7},
    "no_answer": {"answer": None},
    "tool_step": {
        "messages": [
            {"role": "user", "content": "Is it open?"},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
            {"role": "tool", "tool_call_id": "1", "content": "open"},
        ]
    },
    "too_long": {"messages": [{"role": "user", "content": "Why? " * 300}]},
    "no_question": {"messages": [{"role": "system", "content": "Write a poem."}]},
    "attachment": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": "What is it?"},
                                                  {"type": "image_url", "image_url": {"url": "data:,x"}}]}]
    },
}  # fmt: skip


@pytest.mark.parametrize("reason", BARRED)
def test_what_must_not_be_served_is_told_apart(reason: str) -> None:
    """Each reason by a call that has it; a plain question has none."""
    assert _bar(**BARRED[reason]) == reason
    assert reason in {"", *BARS}


def test_function_tools_temperature_zero_and_failed_requests() -> None:
    """A function is the caller's own; 0 asks for no variation; a failed request is barred whatever it holds."""
    assert _bar(tools=[{"type": "function", "function": {"name": "f"}}], temperature=0) == ""
    assert bar(_content(), failed=True, max_temperature=0.0) == "failed"
    assert bar(_content(temperature=0.7), failed=False, max_temperature=1.0) == ""
    assert bar(None, failed=False, max_temperature=0.0) == "no_content"


def test_the_wording_counts_and_the_case_does_not() -> None:
    """Hashes of system prompts and of the conversation before are those of the canonical text."""
    one = _content(messages=[{"role": "system", "content": "You  HELP."}, {"role": "user", "content": "Is it open?"}])
    assert one.system == _content().system
    assert one.before == b""
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "So?"},
    ]
    assert _content(messages=turns).question == "So?"
    assert _content(messages=turns).before != b""
