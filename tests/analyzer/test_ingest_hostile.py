"""Damaged and hostile files: what is wrong is said with file and line, and the rest is read."""

import gzip
import json
import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ingest_samples as samples
from prefixscope.analyzer.ingest import Observed, framing, read, reading
from prefixscope.analyzer.ingest.documents import read as read_document
from prefixscope.analyzer.ingest.results import Place, Rejected
from prefixscope.otel_plugin.fingerprint import Fingerprinter

GOOD = samples.lines(samples.ENTRY)
RANDOM = random.Random(7).randbytes(5000)

BAD_LINES = {
    "half a line": (GOOD[: len(GOOD) // 2] + b"\n", "not JSON"),
    "invalid UTF-8": (GOOD.replace(b"hello", b"\xff\xfe"), "not UTF-8"),
    "nested deeply": (b'{"request":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", "nested too deeply"),
    "a number": (b"17\n", "unknown format: a int instead of an object"),
    "a list of junk": (b'[1, "x", null]\n', "unknown format"),
    "an empty object": (b"{}\n", "unknown format: an empty object"),
    "a web server's log": (
        b'{"time": "2026-09-21T14:13:20Z", "request": "GET / HTTP/1.1", "status": 200}\n',
        "unknown format: an object with the keys time, request, status",
    ),
    "a proxy's log": (
        b'{"time": "2026-09-21T14:13:20Z", "request": {"method": "GET"}, "response": {"status": 200}}\n',
        "is this a log of model calls?",
    ),
    "another log": (b'{"level": "info", "msg": "hi"}\n', "unknown format: an object with the keys level, msg"),
    "no time": (samples.lines({"request": samples.ENTRY["request"]}), 'add "timestamp"'),
    "a number of 10,000 digits": (
        GOOD.replace(b'"prompt_tokens": 12', b'"prompt_tokens": ' + b"9" * 10_000),
        "not JSON",
    ),
    "zero bytes": (bytes(3000) + b"\n", "not JSON"),
    "a span without a start": (
        samples.lines(samples.otlp(samples.raw_span(samples.CALL, startTimeUnixNano="0"))),
        "without a start time",
    ),
}


@pytest.mark.parametrize(("line", "why"), BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_costs_that_line(tmp_path: Path, line: bytes, why: str) -> None:
    """The calls before and after it are read."""
    calls, [rejected] = samples.read_bytes(tmp_path, GOOD + line + GOOD, "traffic.jsonl")
    assert [c.line for c in calls] == [1, 3]
    assert rejected.file == str(tmp_path / "traffic.jsonl")
    assert rejected.line == 2
    assert why in rejected.reason


ODD_LINES = {
    "NaN": GOOD.replace(b'"prompt_tokens": 12', b'"prompt_tokens": NaN'),
    "infinity": GOOD.replace(b'"prompt_tokens": 12', b'"prompt_tokens": 1e999'),
    "a number of 40 digits": GOOD.replace(b'"prompt_tokens": 12', b'"prompt_tokens": ' + b"9" * 40),
    "half a surrogate pair": GOOD.replace(b"hello", b"\\ud800"),
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
def test_what_only_a_strict_parser_refuses_is_read(tmp_path: Path, line: bytes) -> None:
    """Orjson refuses some of it; a value that is no token count is not one, and the call stays."""
    calls, rejected = samples.read_bytes(tmp_path, GOOD + line + GOOD)
    assert (len(calls), rejected) == (3, [])
    if b"prompt_tokens" in line and b"hello" in line:
        assert calls[1].record.usage.state != "reported"


def test_of_a_key_given_twice_the_last_value_counts(tmp_path: Path) -> None:
    """As in every JSON parser in use, and as the provider would have read it."""
    line = GOOD.replace(b'"timestamp":', b'"timestamp": 5, "timestamp":')
    calls, rejected = samples.read_bytes(tmp_path, line)
    assert (len(calls), rejected) == (1, [])


BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n \n", "the file is empty"),
    "blank for long": (b"\n" * 100_000 + b"x", "unknown format"),
    "text in brackets": (b"[INFO] hello\n[INFO] bye\n", "unknown format"),
    "random": (RANDOM, "unknown format"),
    "a table": (b"TIMESTAMP,ContextTokens\n1,2\n", "unknown format: begins with 'TIMESTAMP,"),
    "Parquet": (b"PAR1" + RANDOM, "export it as JSON lines"),
    "a zip archive": (b"PK\x03\x04" + RANDOM, "unpack it"),
    "UTF-16": (("\ufeff" + GOOD.decode()).encode("utf-16-le"), "write it as UTF-8"),
    "a PNG image": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "unknown format: a PNG image, not a log. Expected"),
    "bytes": (b"\x80\x00\x01\x02", "unknown format: begins with bytes that are no text"),
    "a DuckDB file": (bytes(8) + b"DUCK" + bytes(100), "give it as the store"),
    "a log of another program": (b'{"level": "info"}\n' * 5000, "and 4,999 more like it"),
    "empty inside gzip": (gzip.compress(b""), "the file is empty"),
}


@pytest.mark.parametrize(("content", "why"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_cannot_be_read_is_said_once(tmp_path: Path, content: bytes, why: str) -> None:
    """One clear sentence, and the next file is read."""
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "b").write_bytes(GOOD)
    rejected, call = list(read([tmp_path], Fingerprinter(samples.KEY)))
    assert isinstance(rejected, Rejected)
    assert why in rejected.reason
    assert isinstance(call, Observed)


def compressed(kind: str, data: bytes) -> bytes:
    return gzip.compress(data) if kind == "gzip" else zstandard.ZstdCompressor().compress(data)


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize(("harm", "why"), [("cut", "ends too early"), ("damage", "is damaged")])
def test_what_stands_before_the_damage_is_kept(tmp_path: Path, kind: str, harm: str, why: str) -> None:
    """A file that is still being written, or a broken download."""
    numbered = samples.lines(*({**samples.ENTRY, "request_id": RANDOM[i : i + 40].hex()} for i in range(0, 4000, 2)))
    whole = compressed(kind, numbered)
    first = compressed(kind, GOOD * 3)
    content = whole[: len(whole) // 2] if harm == "cut" else first + whole[:4] + b"\xff" * 40 + whole[44:]
    calls, [rejected] = samples.read_bytes(tmp_path, content)
    assert len(calls) > 2
    assert why in rejected.reason
    assert rejected.line == calls[-1].line


def test_a_message_that_is_cut_off_is_rejected(tmp_path: Path) -> None:
    """The last message of a protobuf file that is still being written."""
    message = json.dumps(samples.otlp(samples.CALL)).encode()
    content = (struct.pack(">I", len(message)) + message) * 2
    calls, [rejected] = samples.read_bytes(tmp_path, content[:-10])
    assert (len(calls), rejected.line) == (1, 2)
    assert "ends inside a message" in rejected.reason


@pytest.mark.parametrize("body", [b"\x0a" + RANDOM[:500], b"\x28\xb5\x2f\xfd" + RANDOM[:500], b"{" + RANDOM[:500]])
def test_a_damaged_message_costs_that_message(tmp_path: Path, body: bytes) -> None:
    """Its length tells where the next one begins."""
    good = json.dumps(samples.otlp(samples.CALL)).encode()
    content = b"".join(struct.pack(">I", len(m)) + m for m in (good, body, good))
    calls, [rejected] = samples.read_bytes(tmp_path, content)
    assert [c.line for c in calls] == [1, 3]
    assert rejected.line == 2


def test_a_pretty_printed_file_that_is_cut_off(tmp_path: Path) -> None:
    """The values before the end are read."""
    content = json.dumps([samples.ENTRY, samples.ENTRY], indent=2).encode()
    calls, [rejected] = samples.read_bytes(tmp_path, content[:-30])
    assert len(calls) == 1
    assert "ends inside a JSON value" in rejected.reason


JUNK_BETWEEN = {
    "words": ("[\n{0},\nwords\n{0}\n]", "text here that is no JSON object"),
    "a bracket too many": ("{0}\n}}\n{0}\n", "closed that was never opened"),
    "a broken value": ("[\n{0},\n{{nothing: 1}},\n{0}\n]", "not JSON"),
    "words at the end": ("[{0},\n{0}\n]\nwords", "text here that is no JSON object"),
}


@pytest.mark.parametrize(("layout", "why"), JUNK_BETWEEN.values(), ids=JUNK_BETWEEN)
def test_junk_between_values_is_rejected(tmp_path: Path, layout: str, why: str) -> None:
    """And the values around it are read."""
    entry = json.dumps(samples.ENTRY, indent=1)
    calls, [rejected] = samples.read_bytes(tmp_path, layout.format(entry).encode())
    assert len(calls) == 2
    assert why in rejected.reason


LARGE = {
    "a line": b"%s" + b'{"x": "' + b"a" * 50_000 + b'"}\n' + b"%s",
    "a value of many parts": b"[\n%s," + b'{"x": [' + b"[1],\n" * 20_000 + b"[1]]},\n%s]",
    "a value with one long string": b"[\n%s," + b'{"x": "' + b'{[\\\\\\"' * 10_000 + b'"},\n%s]',
}


@pytest.mark.parametrize("chunk", [100, 1 << 20])
@pytest.mark.parametrize("layout", LARGE.values(), ids=LARGE)
def test_a_document_over_the_limit_is_passed_over(
    tmp_path: Path, layout: bytes, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit holds for lines, values and messages; reading goes on behind them."""
    monkeypatch.setattr(framing, "MAX_DOCUMENT", 20_000)
    monkeypatch.setattr(framing, "HEAD", 1000)
    monkeypatch.setattr("prefixscope.analyzer.ingest.unpack.CHUNK", chunk)
    calls, [rejected] = samples.read_bytes(tmp_path, layout % (GOOD, GOOD))
    assert len(calls) == 2
    assert "is larger than" in rejected.reason
    assert "split it" in rejected.reason


def test_a_message_over_the_limit_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that is only large when decompressed."""
    monkeypatch.setattr(framing, "MAX_DOCUMENT", 20_000)
    good = json.dumps(samples.otlp(samples.CALL)).encode()
    bomb = zstandard.ZstdCompressor().compress(bytes(10 << 20))
    content = b"".join(struct.pack(">I", len(m)) + m for m in (good, b"{" * 30_000, bomb, good))
    calls, rejected = samples.read_bytes(tmp_path, content)
    assert [c.line for c in calls] == [1, 4]
    assert [r.line for r in rejected] == [2, 3]
    assert "larger than" in rejected[0].reason
    assert "when decompressed" in rejected[1].reason


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_decompression_bomb_needs_no_memory(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """256 MB of one letter in a few kB: one line that is too large, read past in pieces."""
    monkeypatch.setattr(framing, "MAX_DOCUMENT", 1 << 20)
    content = compressed(kind, GOOD + b"{" + b"a" * (256 << 20) + b"\n" + GOOD)
    assert len(content) < 300_000
    tracemalloc.start()
    calls, [rejected] = samples.read_bytes(tmp_path, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(calls) == 2
    assert rejected.line == 2
    assert peak < 64 << 20


def test_junk_in_an_array_costs_that_element(tmp_path: Path) -> None:
    """Also where the whole array stands in one line."""
    content = json.dumps([samples.ENTRY, {"level": "info"}, 5, samples.ENTRY]).encode()
    calls, [rejected] = samples.read_bytes(tmp_path, content)
    assert len(calls) == 2
    assert "the keys level (and 1 more like it)" in rejected.reason


def test_an_export_without_spans_has_no_bytes(tmp_path: Path) -> None:
    """Collectors write them; nothing is wrong with them."""
    good = json.dumps(samples.otlp(samples.CALL)).encode()
    content = b"".join(struct.pack(">I", len(m)) + m for m in (good, b"", good))
    calls, rejected = samples.read_bytes(tmp_path, content)
    assert (len(calls), rejected) == (2, [])


def test_a_file_without_end_of_rejections_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million bad lines would fill the store; calls among them are all kept."""
    monkeypatch.setattr(reading, "MAX_REJECTED", 10)
    calls, rejected = samples.read_bytes(tmp_path, (b"{broken\n" + GOOD) * 100)
    assert (len(calls), len(rejected)) == (100, 11)
    assert rejected[-1].reason == "90 more rejections like those before"


def test_a_file_that_may_not_be_opened_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights are the user's to mend; the other files are read."""
    (tmp_path / "a").write_bytes(GOOD)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    [rejected] = read([tmp_path / "a"], Fingerprinter(samples.KEY))
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "cannot be read: Permission denied"


def test_a_bug_of_ours_costs_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said and not swallowed."""

    def fail(*_: Any) -> None:
        raise KeyError("x")

    monkeypatch.setattr("prefixscope.analyzer.ingest.request_log.observed", fail)
    calls, rejected = samples.read_bytes(tmp_path, GOOD + samples.lines(samples.otlp(samples.CALL)))
    assert len(calls) == 1
    assert [reading.BUG in r.reason for r in rejected] == [True]


names = st.sampled_from(
    [
        *("resourceSpans", "scopeSpans", "spans", "attributes", "resource", "scope", "key", "value", "events"),
        *("stringValue", "intValue", "arrayValue", "kvlistValue", "values", "traceId", "spanId", "startTimeUnixNano"),
        *("resourceLogs", "scopeLogs", "logRecords", "body", "observations", "metadata", "usageDetails", "type"),
        *("context", "trace_id", "data", "processes", "tags", "traceID", "spanID", "spanContext", "startTime"),
        *("timestamp", "request", "response", "usage", "messages", "model", "input", "url", "error", "status"),
        *("role", "content", "parts", "tools", "tool_calls", "gen_ai.operation.name", "gen_ai.input.messages"),
        *("gen_ai.usage.raw", "gen_ai.request.model", "llm.input_messages.0.message.role", "llm.tools.0.tool"),
        *("prefixscope.fingerprint", "input.value", "gen_ai.prompt.0", "gen_ai.prompt.0.role", "server.address"),
    ]
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["chat", "2026-09-21T14:13:20Z", "[", "http://[", '{"messages": [{"role": 1}]}', '{"v": 1}', "%"]),
    st.just(samples.START_NS),
)
junk = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6))


@settings(max_examples=400)
@given(junk)
@example({"context": {"trace_id": 0.5}})
@example([[{"context": {"trace_id": 1e30}}]])
def test_no_json_makes_a_reader_fail(document: Any) -> None:
    """Wrong types may stand anywhere: the answer is calls, rejections, or 'no known shape'."""
    place, printer = Place("file", 1), Fingerprinter(samples.KEY)
    strange: list[str] = []
    found = list(read_document(document, b"{}", printer, place, strange.append))
    assert all(isinstance(f, Observed | Rejected) for f in found)
    assert all(strange)


def damaged(document: Any, rng: random.Random, junk_value: Any) -> Any:
    """``document`` with one value, somewhere, replaced."""
    if not isinstance(document, dict | list) or not document or rng.random() < 0.1:
        return junk_value
    copy = document.copy()
    at = rng.choice(list(copy)) if isinstance(copy, dict) else rng.randrange(len(copy))
    copy[at] = damaged(copy[at], rng, junk_value)
    return copy


RICH = samples.otlp(
    samples.CALL
    | {
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]),
        "llm.input_messages.0.message.role": "user",
        "gen_ai.usage.raw": {"input_tokens": 5},
    },
    scope="logfire",
    version="5.4",
)


@settings(max_examples=400)
@given(st.sampled_from([RICH, samples.ENTRY]), st.randoms(use_true_random=False), junk)
def test_one_wrong_value_makes_no_reader_fail(document: Any, rng: random.Random, junk_value: Any) -> None:
    """Nearly right is harder than junk."""
    broken, printer = damaged(document, rng, junk_value), Fingerprinter(samples.KEY)
    found = list(read_document(broken, b"{}", printer, Place("file", 1), lambda _: None))
    assert all(isinstance(f, Observed | Rejected) for f in found)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"{", b"[", b"\x0a", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\0\0\0\x20\x0a"]),
)
def test_no_bytes_make_reading_fail(tmp_path_factory: pytest.TempPathFactory, tail: bytes, head: bytes) -> None:
    """Every file ends in calls or in rejections, and none of them is a bug of ours."""
    calls, rejected = samples.read_bytes(tmp_path_factory.getbasetemp(), head + tail, "fuzz")
    assert not calls
    assert not any(reading.BUG in r.reason for r in rejected)
