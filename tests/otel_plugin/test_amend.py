"""Requests are changed for options that say so, and nowhere else."""

import json
from typing import Any

import pytest
from opentelemetry.context import get_current

from exchanges import CHAT, MESSAGES, chat, completion, exchange
from prefixscope.otel_plugin import attributes
from prefixscope.otel_plugin.amend import Amender
from prefixscope.otel_plugin.record import CallRecord, Usage

RESPONSES = ("api.openai.com", "/v1/responses")
CLAUDE = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}


def amended(amender: Amender, request: Any, at: tuple[str, str] = CHAT, conversation: str = "") -> Any:
    """The members that were added; every byte behind them must be the application's."""
    with attributes(conversation_id=conversation):
        found = exchange(request, at=at, context=get_current())
    body = amender(found)
    if body is None:
        return None
    assert found.request_body is not None
    assert body.endswith(found.request_body[1:])
    new = json.loads(body)
    return {name: new[name] for name in new if name not in json.loads(found.request_body)}


def learnt(amender: Amender, conversation: str, response_id: str) -> None:
    with attributes(conversation_id=conversation):
        found = exchange(chat(), json.dumps(completion()).encode(), context=get_current())
    amender.learn(found, CallRecord(0, usage=Usage(response_id=response_id)))


USAGE: list[tuple[Any, Any]] = [
    (chat(stream=True), {"stream_options": {"include_usage": True}}),
    (chat(), None),
    (chat(stream=False), None),
    (chat(stream=True, stream_options={"include_usage": False}), None),
    (b'  {"stream": true}', None),
    (b"", None),
]


@pytest.mark.parametrize(("request_", "added"), USAGE, ids=str)
def test_usage_is_asked_for(request_: Any, added: Any) -> None:
    """In chat streams that do not say anything of it."""
    assert amended(Amender(include_usage=True, diagnostics=False), request_) == added


def test_only_chat_has_that_option() -> None:
    """Others always tell."""
    assert amended(Amender(include_usage=True, diagnostics=True), CLAUDE | {"stream": True}, MESSAGES) is None


def test_diagnostics_of_anthropic() -> None:
    """On the first turn one opts in, then the last response is named, of the same conversation."""
    amender = Amender(include_usage=False, diagnostics=True)
    assert amended(amender, CLAUDE, MESSAGES) is None
    assert amended(amender, CLAUDE, MESSAGES, "1") == {"diagnostics": {"previous_message_id": None}}
    learnt(amender, "1", "msg_1")
    assert amended(amender, CLAUDE, MESSAGES, "1") == {"diagnostics": {"previous_message_id": "msg_1"}}
    assert amended(amender, CLAUDE, MESSAGES, "2") == {"diagnostics": {"previous_message_id": None}}
    assert amended(amender, CLAUDE | {"diagnostics": None}, MESSAGES, "1") is None
    assert amended(amender, CLAUDE, ("bedrock-gateway.test", "/v1/messages"), "1") is None


@pytest.mark.parametrize(
    ("model", "told"), [("gpt-5.6", True), ("gpt-6-mini", True), ("gpt-5.1", False), ("o3", False)]
)
def test_diagnostics_of_openai(model: str, told: bool) -> None:
    """For models that have them, once there is a response to compare with."""
    amender = Amender(include_usage=False, diagnostics=True)
    request = {"model": model, "input": "hi"}
    assert amended(amender, request, RESPONSES, "1") is None
    learnt(amender, "1", "resp_1")
    added = {"prompt_cache_options": {"comparison_response_id": "resp_1"}}
    assert amended(amender, request, RESPONSES, "1") == (added if told else None)
    assert amended(amender, request | {"prompt_cache_options": {"ttl": "12h"}}, RESPONSES, "1") is None


def test_conversations_are_forgotten() -> None:
    """The oldest first: memory is bounded."""
    amender = Amender(include_usage=False, diagnostics=True)
    for number in range(10_001):
        amender._last[str(number)] = "x"
    learnt(amender, "new", "msg_1")
    assert len(amender._last) == 10_001
    assert "0" not in amender._last
