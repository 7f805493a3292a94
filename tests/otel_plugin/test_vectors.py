"""Vectors of questions: only where they are switched on, and whatever goes wrong with them costs them alone."""

import json
import math
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import context
from opentelemetry.instrumentation.utils import is_instrumentation_enabled

from exchanges import SEEN, chat, completion, exchange, lengths
from prefixscope.analyzer.ingest import Observed, read
from prefixscope.otel_plugin import PrefixscopeInstrumentor, embedding, flush, instrument, uninstrument
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.metrics import ERRORS
from prefixscope.otel_plugin.record import CallRecord, Embedded
from prefixscope.otel_plugin.settings import Settings

ANSWER = json.dumps(completion()).encode()


def captured(folder: Path, embed: Any, *requests: Any) -> tuple[list[CallRecord], dict[str, int]]:
    """The calls as the audit reads them from the spool, and how often something failed."""
    SEEN.clear()
    capture = Capture(Settings(spool=str(folder), spans="off", embed=embed), {"PREFIXSCOPE_KEY": "key"})
    capture.sinks.take([exchange(request, ANSWER) for request in requests])
    errors = dict(capture.guard.errors)
    capture.close()
    found = [one for one in read([folder], Fingerprinter(b"another key")) if isinstance(one, Observed)]
    assert len(found) == len(requests)
    return [one.record for one in found], errors


def numbers(found: Embedded | None) -> list[float]:
    assert found is not None
    return list(struct.unpack(f"<{len(found.vector) // 2}e", found.vector))


def test_nothing_is_embedded_unless_it_is_wanted(tmp_path: Path) -> None:
    """Off by default."""
    (call,), errors = captured(tmp_path, "", chat())
    assert (call.embedded, errors, Settings().embed) == (None, {}, "")


@pytest.mark.parametrize("named", [lengths, "exchanges:lengths"], ids=["function", "name"])
def test_questions_are_embedded_together(tmp_path: Path, named: Any) -> None:
    """All of a batch at once; what is kept is of length 1, with keys of what must be the same to share an answer."""
    calls, errors = captured(tmp_path, named, chat(user="abc"), chat("Be kind.", user="abcdefgh"), chat(user="x y"))
    assert (errors, SEEN) == ({}, [["abc", "abcdefgh", "x y"]])
    one, kind, other = (call.embedded for call in calls)
    assert numbers(one) == pytest.approx([3 / math.sqrt(10), 1 / math.sqrt(10)], abs=1e-3)
    assert one is not None
    assert kind is not None
    assert other is not None
    assert (one.scope_key, one.vector) == (other.scope_key, other.vector)
    assert one.scope_key != kind.scope_key
    assert (one.context_key, one.made_by) == ("", "exchanges:lengths")
    assert [call.reuse.exact_key != "" for call in calls] == [True] * 3


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
BESIDE_THE_POINT = {
    "too long": chat(user="x" * 1001),
    "no words": chat(user=""),
    "an image beside it": chat(user=[{"type": "text", "text": "What is it?"}, IMAGE]),  # type: ignore[arg-type]
    "searched for by the provider": chat(web_search_options={"x": 1}),
    "a tool's result": chat() | {"messages": [{"role": "tool", "tool_call_id": "1", "content": "x"}]},
}  # fmt: skip


@pytest.mark.parametrize("request_", BESIDE_THE_POINT.values(), ids=BESIDE_THE_POINT)
def test_what_words_do_not_tell_is_not_embedded(tmp_path: Path, request_: Any) -> None:
    """The function does not even see it."""
    (call,), errors = captured(tmp_path, lengths, request_)
    assert (call.embedded, errors, SEEN) == (None, {}, [])


def failing(_: list[str]) -> Sequence[Sequence[float]]:
    raise RuntimeError("m4rk3r")


FAILURES: dict[str, tuple[Any, dict[str, int]]] = {
    "it raises": (failing, {"making vectors of questions": 1}),
    "it gives too few": (lambda questions: lengths(questions)[1:], {"making vectors of questions": 1}),
    "it gives nothing": (lambda _: None, {"making vectors of questions": 1}),
    "zeros": (lambda questions: [[0.0, 0.0] for _ in questions], {"keeping a vector": 2}),
    "no numbers": (lambda questions: [["a"] for _ in questions], {"keeping a vector": 2}),
    "not finite": (lambda questions: [[math.nan, 1.0] for _ in questions], {"keeping a vector": 2}),
    "endless": (lambda questions: [[1.0] * 5000 for _ in questions], {"keeping a vector": 2}),
    "there is none": ("no.such:function", {"finding the function that makes vectors": 1}),
    "it is none": ("math:pi", {"finding the function that makes vectors": 1}),
}


@pytest.mark.parametrize(("embed", "errors"), FAILURES.values(), ids=FAILURES)
def test_a_failure_costs_the_vectors(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, embed: Any, errors: dict[str, int]
) -> None:
    """And is counted; the calls are kept, and the log has no word of a question."""
    calls, counted = captured(tmp_path, embed, chat(user="m4rk3r"), chat(user="m4rk3r too"))
    assert counted == errors
    assert [(call.embedded, call.usage.state) for call in calls] == [(None, "reported")] * 2
    assert "m4rk3r" not in caplog.text + "".join(path.read_text() for path in tmp_path.iterdir())


def test_one_bad_vector_costs_itself(tmp_path: Path) -> None:
    """The others are kept."""
    calls, errors = captured(tmp_path, lambda qs: [[0.0 if q == "bad" else 1.0] for q in qs], chat(user="bad"), chat())
    assert ([call.embedded is None for call in calls], errors) == ([True, False], {"keeping a vector": 1})


def test_what_the_function_sends_is_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model may make the vectors; the application's request is over by then, and only that is a call."""
    monkeypatch.setenv("PREFIXSCOPE_KEY", "key")
    suppressed = []

    def asks(questions: list[str]) -> list[list[float]]:
        suppressed.append(not is_instrumentation_enabled())
        with httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=completion()))) as inner:
            inner.post("https://api.openai.com/v1/chat/completions", json=chat())
        return lengths(questions)

    instrument(spool=str(tmp_path), spans="off", embed=asks, http_spans=False)
    capture = PrefixscopeInstrumentor().capture
    assert capture is not None
    try:
        with httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, json=completion()))) as client:
            client.post("https://api.openai.com/v1/chat/completions", json=chat(user="Where?"))
        assert flush(10)
        assert capture.sums()[ERRORS] == {}
    finally:
        uninstrument()
    (found,) = [one for one in read([tmp_path], Fingerprinter(b"x")) if isinstance(one, Observed)]
    assert found.record.embedded is not None
    assert suppressed == [True]
    assert is_instrumentation_enabled()
    assert context.get_current() == {}


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50).filter(lambda v: math.fsum(x * x for x in v) > 1e-12))
def test_a_vector_keeps_its_direction(vector: list[float]) -> None:
    """To the precision of 16 bits, as text and back."""
    data = embedding.decoded(embedding.encoded(embedding.packed(vector)))
    kept = struct.unpack(f"<{len(vector)}e", data)
    length = math.sqrt(math.fsum(x * x for x in vector))
    assert kept == pytest.approx([x / length for x in vector], abs=1e-3)
