"""Traces of block numbers: prompts whose prefixes are known exactly, and whose text is not."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ingest_samples as samples
from prefixscope.analyzer.ingest import Observed, Rejected, read
from prefixscope.analyzer.ingest.block_hashes import START, BlockHashes
from prefixscope.analyzer.ingest.results import Place
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Piece, Usage

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces"
recorded = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data is not part of the project")
MODEL = "claude-opus-4-5-20251101"


def session(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"id": "trace_1", "block_size": 64, "hash_id_scope": "local", "tool_tokens": 130, "system_tokens": 70}
    return {**head, "requests": list(requests), **more}


def request(at: float, blocks: list[int], tokens: int, **more: Any) -> dict[str, Any]:
    return {"t": at, "model": MODEL, "in": tokens, "out": 5, "hash_ids": blocks, "api_time": 2.5, **more}


def line(blocks: list[int], tokens: int, **more: Any) -> dict[str, Any]:
    return {"timestamp": 27_482, "input_length": tokens, "output_length": 52, "hash_ids": blocks, **more}


def records(tmp_path: Path, *documents: Any) -> list[CallRecord]:
    calls, rejected = samples.read_bytes(tmp_path, samples.lines(*documents))
    assert not rejected
    return [call.record for call in calls]


def pieces(record: CallRecord) -> list[Piece]:
    assert record.fingerprint is not None
    return [piece for segment in record.fingerprint.segments for piece in segment.pieces]


def shape(record: CallRecord) -> list[tuple[str, int]]:
    assert record.fingerprint is not None
    return [(segment.level, segment.size) for segment in record.fingerprint.segments]


def test_blocks_are_pieces_whose_size_is_in_tokens(tmp_path: Path) -> None:
    """Tools and system prompt end with their last full block; what follows the last block is nobody else's."""
    first, second = records(
        tmp_path, session(request(0, [1, 2, 3, 4, 5], 330), request(9, [1, 2, 3, 4, 5, 6, 7], 448, ttft=0.5))
    )
    assert shape(first) == [("tools", 128), ("system", 64), ("messages", 138)]
    assert shape(second) == [("tools", 128), ("system", 64), ("messages", 128), ("messages", 128)]
    assert pieces(first)[:5] == pieces(second)[:5]
    assert [p.size for p in pieces(first)] == [64] * 5 + [10]
    assert pieces(first)[5].content_id not in {p.content_id for p in pieces(second)}


def test_a_message_begins_where_an_earlier_prompt_ended(tmp_path: Path) -> None:
    """There the breakpoints of a growing conversation stand; a fork has its own."""
    last = records(
        tmp_path,
        session(
            *(request(0, [1, 2, 3, 4], 256), request(1, [1, 2, 3, 4, 5, 6], 384), request(2, [1, 2, 3, 4, 9], 320)),
            request(3, [1, 2, 3, 4, 5, 6, 7], 448),
        ),
    )[-1]
    assert [size for level, size in shape(last) if level == "messages"] == [64, 128, 64]


def test_every_field_of_a_request_is_taken(tmp_path: Path) -> None:
    """What was cached is not known, and that is not zero; the day is made up, and a note says so."""
    [record] = records(tmp_path, session(request(9.5, [1, 2, 3, 4], 256, ttft=0.25)))
    assert (record.started_ns, record.duration_ms, record.ttft_ms) == (START + 9_500_000_000, 2500.0, 250.0)
    assert (record.provider, record.model, record.api) == ("anthropic", MODEL, "block_hashes")
    assert (record.session_id, record.instrumentation) == ("trace_1", "block_hashes")
    notes = ("cache_read_not_recorded", "cache_write_not_recorded", "relative_time")
    assert record.usage == Usage("partial", uncached=256, output=5, notes=notes)


def test_lines_have_blocks_of_512_tokens_of_which_the_last_need_not_be_full(tmp_path: Path) -> None:
    """Mooncake counts it; the next prompt has a full one in its place."""
    first, second = records(tmp_path, line([0, 1, 2], 1100), line([0, 1, 3], 1536))
    assert [p.size for p in pieces(first)] == [512, 512, 76]
    assert shape(second) == [("messages", 1536)]
    assert pieces(first)[:2] == pieces(second)[:2]
    assert (first.started_ns, first.usage.output) == (START + 27_482_000_000, 52)


def test_numbers_mean_something_in_their_own_trace_only(tmp_path: Path) -> None:
    """Unless the trace says that they are global."""
    local = records(tmp_path, session(request(0, [1], 64)), session(request(0, [1], 64), id="trace_2"))
    shared = records(tmp_path, *(session(request(0, [1], 64), id=i, hash_id_scope="global") for i in "ab"))
    assert pieces(local[0]) != pieces(local[1])
    assert pieces(shared[0]) == pieces(shared[1])


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no time": (line([1], 512, timestamp=None), '"timestamp" in ms'),
    "no length": (line([1], 512, input_length="many"), '"input_length"'),
    "numbers that are none": (line(["a"], 512), '"hash_ids"'),  # type: ignore[list-item]
    "another block size": (line([1, 2, 3], 40), "3 blocks of 512 tokens are no prompt of 40"),
    "no block size": (session(request(0, [1], 64), block_size=None), 'add "block_size"'),
    "a session's request without a time": (session({"in": 64, "hash_ids": [1]}), '"t" in seconds'),
}


@pytest.mark.parametrize(("document", "why"), BAD.values(), ids=BAD)
def test_a_request_that_cannot_be_is_rejected(tmp_path: Path, document: dict[str, Any], why: str) -> None:
    """The message says what is missing; the other requests are read."""
    calls, [rejected] = samples.read_bytes(tmp_path, samples.lines(document, line([1], 512)))
    assert (len(calls), rejected.line) == (1, 1)
    assert why in rejected.reason


prompts = st.lists(st.integers(0, 3), min_size=1, max_size=6)


@given(st.lists(st.tuples(prompts, st.integers(0, 63)), min_size=1, max_size=6))
def test_sizes_add_up_and_equal_prefixes_are_equal(found: list[tuple[list[int], int]]) -> None:
    """For any prompts: tokens are all there, and pieces agree exactly as far as the numbers do."""
    requests = [request(at, _chained(blocks), 64 * len(blocks) + rest) for at, (blocks, rest) in enumerate(found)]
    reader = BlockHashes(Fingerprinter(samples.KEY))
    calls = [c.record for c in reader.calls(session(*requests), Place("f", 1)) if isinstance(c, Observed)]
    assert len(calls) == len(requests)
    for call, raw in zip(calls, requests, strict=True):
        assert sum(piece.size for piece in pieces(call)) == raw["in"] == call.usage.input_total
        assert call.fingerprint is not None
        assert all(s.size == sum(p.size for p in s.pieces) > 0 for s in call.fingerprint.segments)
        for other, raw_other in zip(calls, requests, strict=True):
            assert _shared(pieces(call), pieces(other)) >= _shared(raw["hash_ids"], raw_other["hash_ids"])


def _chained(blocks: list[int]) -> list[int]:
    """Numbers that name all blocks before them too."""
    return [int("1" + "".join(map(str, blocks[: at + 1]))) for at in range(len(blocks))]


def _shared(one: list[Any], other: list[Any]) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@recorded
def test_recorded_sessions_hold_every_request() -> None:
    """Each session tells its own total; all prompts have a fingerprint, whose sizes are the tokens that it tells."""
    for path in sorted((DATA / "weka_cc").glob("*.json"))[::6]:
        raw = json.loads(path.read_text("utf-8"))
        told = _recorded(path)
        assert [r.usage.input_total for r in told] == [r["in"] for r in raw["requests"]]
        assert sum(r.usage.input_total for r in told) == raw["totals"]["combined_tokens"]["input"]
        assert all(sum(size for _, size in shape(r)) == r.usage.input_total for r in told)


@recorded
def test_recorded_lines_hold_every_request() -> None:
    """One a line."""
    path = DATA / "mooncake" / "synthetic_trace.jsonl"
    told = _recorded(path)
    lengths = [json.loads(line)["input_length"] for line in path.read_text("utf-8").splitlines()]
    assert [r.usage.input_total for r in told] == lengths
    assert all(sum(size for _, size in shape(r)) == r.usage.input_total for r in told)


def _recorded(path: Path) -> list[CallRecord]:
    found = list(read([path], Fingerprinter(samples.KEY)))
    assert not [f for f in found if isinstance(f, Rejected)]
    return [f.record for f in found if isinstance(f, Observed)]
