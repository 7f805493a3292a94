"""Fingerprints come from outside as well: a damaged one costs its span, not the audit."""

import json
from pathlib import Path
from typing import Any

import pytest

import ingest_samples
from prefixscope.otel_plugin import codec
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import Embedded, Prompt, Reuse, Segment

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


KEYED = {
    "prefixscope.exact.key": "ab" * 16,
    "prefixscope.exact.answer": "cd" * 16,
    "prefixscope.embedding.vector": "ADwAAA==",
    "prefixscope.embedding.scope": "ef" * 16,
    "prefixscope.embedding.made_by": "module:function",
}


def keyed(**changes: Any) -> dict[str, Any]:
    """A span with keys of a response cache, some of its attributes changed."""
    usage = {"prefixscope.usage.state": "reported", "prefixscope.usage.uncached": 100}
    return ingest_samples.otlp(KEYED | usage | {name.replace("__", "."): value for name, value in changes.items()})


def test_sound_keys_are_read(tmp_path: Path) -> None:
    """The changes below are what breaks them."""
    more = {"prefixscope__exact__answer_kind": "whole", "gen_ai__request__temperature": 1}
    call = ingest_samples.one_call(tmp_path, keyed(**more))
    assert call.record.reuse == Reuse("ab" * 16, "cd" * 16, "whole", temperature=1)
    assert call.record.embedded == Embedded("module:function", b"\x00<\x00\x00", "ef" * 16, "")


@pytest.mark.parametrize(
    "changes",
    [
        {"prefixscope__exact__key": "AB" * 16},
        {"prefixscope__exact__key": "ab"},
        {"prefixscope__exact__key": 7},
        {"prefixscope__exact__answer": "the answer itself"},
        {"prefixscope__exact__answer": "cd" * 16 + "\n"},
        {"prefixscope__exact__answer_kind": "<b>"},
        {"gen_ai__request__temperature": -1.0},
        {"gen_ai__request__temperature": "warm"},
        {"gen_ai__request__choice__count": -1},
        {"gen_ai__request__choice__count": 1.5},
        {"gen_ai__request__choice__count": 2**60},
        {"prefixscope__embedding__vector": "where is my order?"},
        {"prefixscope__embedding__vector": ""},
        {"prefixscope__embedding__vector": "ADwA"},
        {"prefixscope__embedding__vector": "AHwAAA=="},
        {"prefixscope__embedding__vector": 7},
        {"prefixscope__embedding__vector": "ADw8" * 4000},
        {"prefixscope__embedding__scope": "where is my order?"},
        {"prefixscope__embedding__context": 7},
        {"prefixscope__embedding__made_by": 7},
        {"prefixscope__embedding__made_by": "m" * 300},
    ],
    ids=json.dumps,
)
def test_damaged_keys_are_rejected_with_their_span(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A store holds nothing that is not a key where keys belong."""
    [rejected] = ingest_samples.read_bytes(tmp_path, ingest_samples.lines(keyed(**changes)))[1]
    assert rejected.reason.startswith("a damaged prefixscope span")
