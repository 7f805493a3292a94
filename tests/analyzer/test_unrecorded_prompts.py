"""Which prompts with holes are analysed, and what is taken when a call was observed with and without them."""

from collections.abc import Iterable
from typing import Any

import pytest

import auditing
from prefixscope.analyzer import store
from prefixscope.analyzer.ingest import Observed
from prefixscope.analyzer.ingest.conversation import Messages
from prefixscope.otel_plugin import segments
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, Usage

PRINTER = Fingerprinter(b"test")
BODY: dict[str, Any] = {"model": "claude-opus-4-6", "messages": [{"role": "user", "content": "Where is it?"}]}
ALL = {"service": None, "since": None, "until": None}


def _from_transcript() -> Fingerprint:
    messages = Messages(PRINTER)
    found = messages.fingerprint((messages.unrecorded("session"), *messages.prints(BODY, "anthropic.messages")))
    assert found is not None
    return found


def _from_body(**more: Any) -> Fingerprint:
    prompt = segments.parse({"system": "Answer.", **BODY, **more}, api="anthropic.messages")
    assert prompt is not None
    return PRINTER.fingerprint(prompt)


def _observed(print_: Fingerprint, instrumentation: str, line: int, answer: str = "msg_1") -> Observed:
    record = CallRecord(
        started_ns=1_790_000_000 * 10**9,
        provider="anthropic",
        api="anthropic.messages",
        model="claude-opus-4-6",
        usage=Usage("reported", uncached=9, output=3, response_id=answer),
        fingerprint=print_,
        instrumentation=instrumentation,
    )
    return Observed(record, "calls", line)


def _kinds(observed: Iterable[Observed]) -> list[list[str] | None]:
    """Of each call that is analysed the kinds of its segments, None where its prompt is not known."""
    with store.opened(None) as opened:
        opened.ingest(observed, at=auditing.AT)
        kind = opened.frame("analysis/contents")["kind"].to_list()
        lists = opened.arrow("analysis/prompts", **ALL)["segments"].to_pylist()
    return [None if found is None else [kind[number] for number in found] for found in lists]


def test_a_transcript_shows_its_prompts() -> None:
    """From what is not recorded to the last message."""
    assert _kinds([_observed(_from_transcript(), "claude_code", 1)]) == [["unrecorded", "text"]]


def test_a_history_that_the_provider_keeps_is_no_prompt() -> None:
    """Its request shows the end alone, and nothing tells where the rest would stand."""
    kept = _from_body(thread={"type": "continue", "previous_message_id": "m"})
    assert segments.HISTORY in kept.settings
    both = [_observed(kept, "request_log", 1), _observed(_from_transcript(), "claude_code", 2, answer="msg_2")]
    assert sorted(_kinds(both), key=str) == sorted([None, ["unrecorded", "text"]], key=str)


@pytest.mark.parametrize("elsewhere", ["prefixscope", "request_log", "opentelemetry.instrumentation.anthropic"])
@pytest.mark.parametrize("transcript_first", [True, False])
def test_a_complete_prompt_is_preferred(elsewhere: str, *, transcript_first: bool) -> None:
    """Whoever else observed the call, and whatever was read first."""
    lines = (1, 2) if transcript_first else (2, 1)
    both = [_observed(_from_transcript(), "claude_code", lines[0]), _observed(_from_body(), elsewhere, lines[1])]
    assert _kinds(sorted(both, key=lambda found: found.line)) == [["text", "text"]]
