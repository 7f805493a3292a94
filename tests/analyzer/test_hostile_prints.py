"""Fingerprints come from outside as well: a damaged one costs its span, not the audit."""

import json
from pathlib import Path
from typing import Any

import pytest

import ingest_samples
from prefixscope.otel_plugin import codec
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import Prompt, Segment

SYSTEM = Segment("system", "text", "system", "It is 2026-11-30 12:00:00. " + "Answer briefly. " * 20)


def packed(**changes: Any) -> str:
    """A print of a system prompt with a clock and of one message, with some fields of its JSON changed."""
    prompt = Prompt("openai.chat", "gpt-4.1", (SYSTEM, Segment("messages", "text", "user", "hello")))
    return json.dumps(json.loads(codec.pack(Fingerprinter(b"key").fingerprint(prompt))) | changes)


def span(fingerprint: str) -> dict[str, Any]:
    usage = {"prefixscope.usage.state": "reported", "prefixscope.usage.uncached": 100}
    return ingest_samples.otlp({"prefixscope.fingerprint": fingerprint, "gen_ai.request.model": "gpt-4.1"} | usage)


def test_a_sound_print_is_read(tmp_path: Path) -> None:
    """The changes below are what breaks it."""
    call = ingest_samples.one_call(tmp_path, span(packed()))
    assert call.record.fingerprint is not None
    assert call.record.fingerprint.segments[0].size == len(SYSTEM.text)


@pytest.mark.parametrize(
    "changes",
    [
        {"v": 2},
        {"vk": ["<b>\x1b[31m"]},
        {"vk": [7]},
        {"m": [[0, 9]]},
        {"m": [[99, "5m"]]},
        {"set": [1, 2]},
        {"set": {"tool_choice": {"a": 1}}},
        {"k": {}},
        {"am": 7},
        {"ck": ["x"]},
        {"sk": [[0, 2**70]]},
        {"c": [[0, -1]]},
        {"n": [2**62, 5]},
        {"n": [1.5, 5]},
        {"n": [-1, 5]},
        {"n": [10, 5]},
        {"h": [["attic", "text", "system"], ["messages", "text", "user"]]},
        {"h": []},
        {"i": "AAAA"},
        {"p": ["no base64 ö", ""]},
    ],
    ids=json.dumps,
)
def test_a_damaged_print_is_rejected_with_its_span(tmp_path: Path, changes: dict[str, Any]) -> None:
    """The reason says so, and what comes behind is read."""
    content = ingest_samples.lines(span(packed(**changes)), span(packed()))
    calls, [rejected] = ingest_samples.read_bytes(tmp_path, content)
    assert len(calls) == 1
    assert rejected.line == 1
    assert rejected.reason.startswith("a damaged prefixscope span")
