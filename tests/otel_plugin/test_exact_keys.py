"""Keys that an exact response cache would go by: what has the same, what another, and what goes with them."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exchanges import SSE, chat, completion, exchange, sse
from prefixscope.otel_plugin import segments
from prefixscope.otel_plugin.answers import Answer
from prefixscope.otel_plugin.asked import Asked, Keys
from prefixscope.otel_plugin.calls import Reader
from prefixscope.otel_plugin.canonical import canonical
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.record import UNKNOWN, Reuse

KEY = b"key"
TOOL = {"type": "function", "function": {"name": "a", "parameters": {"type": "object", "title": "A"}}}
OTHER_TOOL = {"type": "function", "function": {"name": "b"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "x", "strict": True}}
CALL = {"id": "1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
TURNS: list[dict[str, Any]] = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "1", "content": "found it"},
]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def asked(request: Mapping[str, Any], key: bytes = KEY) -> Asked:
    prompt = segments.parse(request)
    assert prompt is not None
    return Keys(key).asked(prompt, request)


def turned(value: Any) -> Any:
    """``value`` with the keys of all objects in the opposite order."""
    if isinstance(value, dict):
        return {name: turned(value[name]) for name in reversed(value)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def conversation(*turns: Any, user: Any = "And now?") -> dict[str, Any]:
    return chat() | {"messages": [*chat()["messages"], *turns, {"role": "user", "content": user}]}


PLAIN = chat("You are helpful.", "Where is my order?", temperature=0, tools=[TOOL, OTHER_TOOL], response_format=FORMAT)
SAME: dict[str, Mapping[str, Any]] = {
    "case and white space": chat(" you ARE\n\nhelpful. ", "where  is my ORDER?", **{
        name: PLAIN[name] for name in ("temperature", "tools", "response_format")
    }),
    "another form of the same letters": PLAIN | {"messages": [
        {"role": "system", "content": "You are helpful."}, {"role": "user", "content": "\uff37here is my order?"}
    ]},
    "parts instead of a text": PLAIN | {"messages": [
        {"role": "system", "content": "You are helpful."},
        {"role": "user", "content": [{"type": "text", "text": "Where is my"}, {"type": "text", "text": "order?"}]},
    ]},
    "keys of objects in another order": turned(PLAIN),
    "tools in another order": PLAIN | {"tools": [OTHER_TOOL, TOOL]},
    "streamed or not": PLAIN | {"stream": True, "stream_options": {"include_usage": True}},
    "who asks, and notes": PLAIN | {"user": "u1", "metadata": {"note": "x"}, "store": True},
    "a key that routes": PLAIN | {"prompt_cache_key": "k"},
}  # fmt: skip
DIFFERENT: dict[str, Mapping[str, Any]] = {
    "the model": PLAIN | {"model": "gpt-5"},
    "the question": PLAIN | {"messages": chat("You are helpful.", "Where is my orders?")["messages"]},
    "the system prompt": PLAIN | {"messages": chat("You are kind.", "Where is my order?")["messages"]},
    "a tool": PLAIN | {"tools": [TOOL]},
    "a setting": PLAIN | {"tool_choice": "none"},
    "the temperature": PLAIN | {"temperature": 1},
    "the temperature left out": {name: value for name, value in PLAIN.items() if name != "temperature"},
    "the most that may be said": PLAIN | {"max_tokens": 5},
    "whose it is": PLAIN | {"metadata": {"tenant_id": "t1"}},
    "a turn before": PLAIN | {"messages": conversation(user="Where is my order?")["messages"]},
    "who said it": PLAIN | {"messages": [*chat("You are helpful.", "Where is my order?")["messages"][:1], {
        "role": "assistant", "content": "Where is my order?"}]},
    "an image beside it": PLAIN | {"messages": [*chat("You are helpful.")["messages"][:1], {
        "role": "user", "content": [{"type": "text", "text": "Where is my order?"}, IMAGE]}]},
    "digits set high": PLAIN | {"messages": chat("You are helpful.", "Where is my order²?")["messages"]},
}  # fmt: skip


@pytest.mark.parametrize("request_", SAME.values(), ids=SAME)
def test_the_same_request_in_another_spelling(request_: Mapping[str, Any]) -> None:
    """Has the same key."""
    assert asked(request_).key == asked(PLAIN).key


def test_every_difference_that_counts_is_one() -> None:
    """No two of these have the same key."""
    keys = {name: asked(request).key for name, request in DIFFERENT.items()} | {"none": asked(PLAIN).key}
    assert len(set(keys.values())) == len(keys), keys


def test_a_key_depends_on_the_secret() -> None:
    """Without it nobody can test a guess; no part of a key is that of plain BLAKE2b."""
    assert asked(PLAIN).key != asked(PLAIN, b"another").key
    assert len(asked(PLAIN).key) == 16


def test_what_was_seen_before_changes_nothing() -> None:
    """Texts that are remembered have the keys that they had."""
    keys, requests = Keys(KEY, memory=2000), [*SAME.values(), *DIFFERENT.values()] * 3
    for request in requests:
        prompt = segments.parse(request)
        assert prompt is not None
        assert keys.asked(prompt, request) == asked(request)


def test_arguments_of_a_call_are_json() -> None:
    """Of a tool call in the conversation the order of keys does not count; what it returned counts as text."""
    plain, other = conversation(*TURNS), conversation({**TURNS[0], "tool_calls": [turned(CALL)]}, TURNS[1])
    assert asked(plain).key == asked(other).key
    assert asked(plain).key != asked(conversation(TURNS[0], TURNS[1] | {"content": "found nothing"})).key


def test_images_are_compared_to_the_byte() -> None:
    """Case counts in base64."""
    small = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}
    texts = [conversation(user=[{"type": "text", "text": "What is it?"}, image]) for image in (IMAGE, small)]
    before = [conversation({"role": "user", "content": [image]}, *TURNS) for image in (IMAGE, small)]
    assert asked(texts[0]).key != asked(texts[1]).key
    assert asked(before[0]).key != asked(before[1]).key


FACTS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "nothing asked for": (chat(), {"temperature": None, "choices": 1, "live_tools": False, "tool_step": False}),
    "temperature 0": (chat(temperature=0), {"temperature": 0.0}),
    "the hottest counts": (chat(temperature=0.2, generationConfig={"temperature": 0.9}), {"temperature": 0.9}),
    "no number": (chat(temperature="warm"), {"temperature": None}),
    "several choices": (chat(n=3), {"choices": 3}),
    "a search by the provider": (chat(web_search_options={"x": 1}), {"live_tools": True}),
    "a tool of the provider": (chat(tools=[{"type": "web_search_preview"}]), {"live_tools": True}),
    "a stream": (chat(stream=True), {"streamed": True}),
    "a tool's result at the end": (chat() | {"messages": [*chat()["messages"], *TURNS]}, {"tool_step": True}),
    "a tenant": (chat(organization_id="o1"), {"tenant": "o1"}),
}


@pytest.mark.parametrize(("request_", "facts"), FACTS.values(), ids=FACTS)
def test_what_decides_is_told(request_: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    """Whether the answer may be kept at all."""
    found = asked(request_)
    assert {name: getattr(found, name) for name in facts} == facts


def reuse(request: Any, *answer: bytes, **more: Any) -> Reuse:
    """What is kept of an exchange."""
    reader = Reader(Fingerprinter(KEY), Guard(reraise=True), keys=Keys(KEY))
    call = reader.read(exchange(request, *answer, **more))
    assert call is not None
    return call.record.reuse


def body(message: Mapping[str, Any], finish: str = "stop") -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps(completion() | {"choices": [choice]}).encode()


def deltas(*words: str, finish: str | None = "stop") -> bytes:
    chunks = [{"choices": [{"index": 0, "delta": {"content": word}, "finish_reason": None}]} for word in words]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    return sse([*chunks, last, completion() | {"choices": []}])


HELLO = Keys(KEY).answer_key(Answer("hello there"))
ENDS: dict[str, tuple[bytes, Mapping[str, Any], str, str]] = {
    "whole": (body({"content": "Hello  there"}), {}, "whole", HELLO),
    "streamed": (deltas("Hel", "lo", " there"), {"headers": SSE}, "whole", HELLO),
    "cut off": (body({"content": "Hello there"}, "length"), {}, "cut", HELLO),
    "a stream that broke off": (deltas("Hello there", finish=None), {"headers": SSE}, "cut", HELLO),
    "filtered": (body({"content": "Hello there"}, "content_filter"), {}, "refused", HELLO),
    "a refusal": (body({"content": None, "refusal": "No."}), {}, "refused", ""),
    "a tool call": (body({"content": "Let me see", "tool_calls": [CALL]}, "tool_calls"), {}, "tool_call", ""),
    "an error": (b'{"error": {"type": "overloaded_error"}}', {"status": 529}, "", ""),
    "no JSON": (b"<html>", {}, "", ""),
    "larger than what is kept": (deltas(*"Hello there" * 99), {"headers": SSE, "response_cap": 2000}, "", ""),
}


@pytest.mark.parametrize(("answer", "more", "kind", "key"), ENDS.values(), ids=ENDS)
def test_an_answer_has_a_key_and_an_end(answer: bytes, more: Mapping[str, Any], kind: str, key: str) -> None:
    """The same words have the same key, streamed or not; an action has none, since no cache may repeat it."""
    found = reuse(chat(), answer, **more)
    assert (found.answer_kind, found.answer_key) == (kind, key)
    assert found.exact_key == asked(chat()).key.hex()


def test_without_a_fingerprint_there_is_no_key() -> None:
    """Where the body is not at hand, where conversations are sampled out, where keys are switched off."""
    lost = exchange(chat(), body({"content": "hello"}))
    lost.request_body = None
    for reader, found in (
        (Reader(Fingerprinter(KEY), Guard(reraise=True), keys=Keys(KEY)), lost),
        (Reader(Fingerprinter(KEY), Guard(reraise=True), keys=Keys(KEY), fingerprint_share=0.0), exchange(chat())),
        (Reader(Fingerprinter(KEY), Guard(reraise=True)), exchange(chat())),
        (Reader(None, Guard(reraise=True), keys=Keys(KEY)), exchange(chat())),
    ):
        call = reader.read(found)
        assert call is not None
        assert call.record.reuse is UNKNOWN


@given(st.text())
def test_one_spelling_is_found_once(text: str) -> None:
    """White space and case never count, and the ways to write a letter count only where code is quoted."""
    found = canonical(text)
    assert canonical(f"  {text}\t\n") == found
    assert found == " ".join(found.split())
    if text.isascii() and "```" not in text:
        assert canonical(text.upper()) == canonical(text.lower()) == found
