"""The store: one row a call whatever was seen of it, all or nothing, and clear words when a file cannot be opened."""

import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from prefixscope import queries
from prefixscope.analyzer import audit, ingest, store
from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.ingest import Observed, Rejected
from prefixscope.analyzer.report import wording
from prefixscope.analyzer.store import Ingested, Store
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import UNKNOWN, CallRecord, Embedded, Prompt, Reuse, Segment, Usage

AT = datetime(2026, 11, 30, tzinfo=UTC)
START = 1_790_000_000 * 10**9
SECOND = 10**9
TRACE = "0af7651916cd43dd8448eb211c80319c"
REPORTED = Usage(state="reported", uncached=100, read=900, output=20)


def record(**fields: Any) -> CallRecord:
    """A call of one second to gpt-4.1 at ``START``."""
    call = CallRecord(START, service="shop", provider="openai", model="gpt-4.1", duration_ms=1000.0)
    return replace(call, **fields)


def observed(call: CallRecord, *, file: str = "traces.jsonl", line: int = 1) -> Observed:
    return Observed(call, file, line)


def print_of(text: str) -> Any:
    prompt = Prompt("openai.chat", "gpt-4.1", (Segment("system", "text", "system", text),))
    return Fingerprinter(b"a key for tests").fingerprint(prompt)


@contextmanager
def filled(*calls: CallRecord) -> Iterator[Store]:
    """A store with the observations of one ingest."""
    with store.opened(None) as found:
        found.ingest([observed(call, line=n) for n, call in enumerate(calls, 1)], at=AT)
        yield found


def rows(found: Store) -> list[dict[str, Any]]:
    return found.frame("analysis/calls", service=None, since=None, until=None).to_dicts()


# --- One row a call -------------------------------------------------------------------------------------------------


def test_the_same_file_twice_changes_nothing() -> None:
    """The second ingest finds only calls that it knows, of every way a call is named."""
    calls = [
        record(usage=replace(REPORTED, response_id="r1")),
        record(trace_id=TRACE, span_id="b7ad6b7169203331"),
        record(session_id="s", fingerprint=print_of("hello")),
    ]
    with filled(*calls) as found:
        before = rows(found), found.arrow("analysis/contents").to_pylist()
        again = found.ingest([observed(call, line=n) for n, call in enumerate(calls, 1)], at=AT)
        assert again == Ingested(calls=0, duplicates=3, rejected=0)
        assert (rows(found), found.arrow("analysis/contents").to_pylist()) == before


def test_calls_that_differ_only_in_prompt_are_two() -> None:
    """Without response and span id a call is named by everything that was seen of it."""
    with filled(record(fingerprint=print_of("one")), record(fingerprint=print_of("other"))) as found:
        assert len(rows(found)) == 2


WRAPPED = record(
    started_ns=START + SECOND // 10,
    duration_ms=800.0,
    trace_id=TRACE,
    span_id="2" * 16,
    parent_span_id="1" * 16,
    instrumentation="inner",
    usage=replace(REPORTED, response_id="r1", served_model="gpt-4.1-2025-04-14"),
)
WRAPPER = record(trace_id=TRACE, span_id="1" * 16, instrumentation="outer", session_id="s", usage=REPORTED)


@pytest.mark.parametrize("order", [(WRAPPER, WRAPPED), (WRAPPED, WRAPPER)])
@pytest.mark.parametrize("usage", [REPORTED, Usage()], ids=["same usage", "no usage"])
def test_a_wrapper_is_the_call_it_wraps(order: tuple[CallRecord, ...], usage: Usage) -> None:
    """A span around the call, of another instrumentation and without response id, adds what it knows and no tokens."""
    calls = [replace(call, usage=usage) if call is WRAPPER else call for call in order]
    with filled(*calls) as found:
        [row] = rows(found)
    assert (row["uncached"], row["read"], row["output"]) == (100, 900, 20)
    assert (row["session_id"], row["response_id"], row["served_model"]) == ("s", "r1", "gpt-4.1-2025-04-14")


@pytest.mark.parametrize(
    "other",
    [
        replace(WRAPPER, trace_id="f" * 32),
        replace(WRAPPER, usage=replace(REPORTED, output=21)),
        replace(WRAPPER, model="gpt-5"),
        replace(WRAPPER, duration_ms=500.0),
        replace(WRAPPER, instrumentation="inner", span_id="3" * 16),
    ],
    ids=["another trace", "other tokens", "another model", "ends earlier", "a sibling of the same instrumentation"],
)
def test_what_does_not_wrap_a_call_is_another_call(other: CallRecord) -> None:
    """Enclosing alone proves nothing: model, trace and tokens must agree."""
    with filled(other, WRAPPED) as found:
        assert len(rows(found)) == 2


def test_one_response_id_from_two_instrumentations_is_one_call() -> None:
    """Usage comes from the observation that reports most, the prompt from the one closest to the wire."""
    theirs = record(
        instrumentation="openinference",
        fingerprint=print_of("rebuilt"),
        usage=Usage(state="partial", uncached=1000, output=20, response_id="r1"),
    )
    ours = record(instrumentation="prefixscope", fingerprint=print_of("sent"), usage=Usage(response_id="r1"))
    full = record(instrumentation="vendor", status=200, usage=replace(REPORTED, response_id="r1"))
    for order in itertools.permutations((theirs, ours, full)):
        with filled(*order) as found:
            [row] = rows(found)
            [prompt] = found.arrow("analysis/prompts", service=None, since=None, until=None)["segments"].to_pylist()
            contents = {content["content"]: content for content in found.arrow("analysis/contents").to_pylist()}
        assert (row["usage_state"], row["uncached"], row["read"], row["status"]) == ("reported", 100, 900, 200)
        assert row["instrumentation"] == "prefixscope"
        assert [contents[number]["bytes"] for number in prompt] == [len("sent")]


def test_what_response_caches_go_by_comes_from_whoever_has_it() -> None:
    """As one piece: what another observation says of the same call is not mixed into it."""
    keyed = Reuse(exact_key="ab" * 16, answer_kind="cut", temperature=0.5, choices=2, streamed=True, live_tools=True)
    ours = record(instrumentation="prefixscope", reuse=keyed, usage=Usage(response_id="r1"))
    full = replace(ours, reuse=replace(keyed, answer_key="cd" * 16, answer_kind="whole"), instrumentation="vendor")
    theirs = record(fingerprint=print_of("rebuilt"), usage=replace(REPORTED, response_id="r1"))
    for calls, expected in ([theirs, ours], keyed), ([theirs, ours, full], full.reuse), ([theirs, theirs], UNKNOWN):
        for order in itertools.permutations(calls):
            with filled(*order) as found:
                [row] = rows(found)
            assert {name: row[name] for name in asdict(expected)} == asdict(expected)


def test_a_vector_comes_from_whoever_has_it() -> None:
    """With the keys beside it."""
    vector = Embedded("module:function", b"\x00<\x00\x00", "ab" * 16, "cd" * 16)
    ours = record(instrumentation="prefixscope", embedded=vector, usage=Usage(response_id="r1"))
    theirs = record(fingerprint=print_of("rebuilt"), usage=replace(REPORTED, response_id="r1"))
    for order in ([ours], [ours, theirs], [theirs, ours]):
        with filled(*order) as found:
            [row] = found.frame("analysis/vectors", service=None, since=None, until=None).to_dicts()
        assert row == {"embedded_by": vector.made_by} | {n: v for n, v in asdict(vector).items() if n != "made_by"}


def test_a_later_file_completes_a_call() -> None:
    """Merging works across ingests as within one."""
    with filled(record(usage=Usage(response_id="r1"), fingerprint=print_of("sent"))) as found:
        later = found.ingest([observed(record(usage=replace(REPORTED, response_id="r1")))], at=AT)
        assert later == Ingested(calls=0, duplicates=1, rejected=0)
        [row] = rows(found)
        assert (row["usage_state"], row["read"], row["prompt_known"]) == ("reported", 900, True)


def test_a_prompt_is_told_as_it_was_sent() -> None:
    """Segments refer to contents by number, equal text in an equal place once; breakpoints keep place and TTL."""
    texts = ("static", "dynamic", "static")
    segments = [
        Segment("system", "text", "system", text, marker="1h" if at == 1 else "") for at, text in enumerate(texts)
    ]
    segments.append(Segment("messages", "text", "user", "static"))
    print_ = Fingerprinter(b"a key for tests").fingerprint(Prompt("openai.chat", "gpt-4.1", tuple(segments)))
    with filled(record(fingerprint=print_)) as found:
        [told] = found.arrow("analysis/prompts", service=None, since=None, until=None).to_pylist()
    assert told == {"segments": [0, 1, 0, 2], "marker_at": [1], "marker_ttl": ["1h"]}


# --- What cannot be read --------------------------------------------------------------------------------------------


def test_a_rejection_is_kept_once() -> None:
    """However often its file is read, whether it names a line or the file as a whole."""
    bad = [Rejected("a.jsonl", 7, "no JSON"), Rejected("a.jsonl", None, "cut off")]
    with store.opened(None) as found:
        assert [found.ingest(bad, at=AT).rejected for _ in range(2)] == [2, 2]
        assert found.frame("analysis/quarantine").rows() == [("a.jsonl", None, "cut off"), ("a.jsonl", 7, "no JSON")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interrupted_ingest_leaves_the_store_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    """Nothing of it is there afterwards, and the next one works."""
    path = tmp_path / "calls.duckdb"
    new = observed(record(usage=replace(REPORTED, response_id="new"), fingerprint=print_of("new")))

    def broken() -> Iterator[Observed | Rejected]:
        yield new
        yield Rejected("a.jsonl", 1, "no JSON")
        raise error

    with store.opened(path) as found:
        found.ingest([observed(record(usage=replace(REPORTED, response_id="old")))], at=AT)
        with pytest.raises(error):
            found.ingest(broken(), at=AT)
    with store.opened(path) as found:
        assert [row["response_id"] for row in rows(found)] == ["old"]
        assert found.frame("analysis/quarantine").is_empty()
        assert found.arrow("analysis/contents").num_rows == 0
        assert found.ingest([new], at=AT).calls == 1


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ingest that is written in many batches gives what one batch gives."""
    calls = [
        record(usage=replace(REPORTED, response_id=str(n % 7)), fingerprint=print_of(str(n % 5))) for n in range(20)
    ]
    with filled(*calls) as found:
        at_once = rows(found), found.arrow("analysis/contents").to_pylist()
    monkeypatch.setattr(store, "_BATCH", 3)
    with filled(*calls) as found:
        assert (rows(found), found.arrow("analysis/contents").to_pylist()) == at_once


NOTHING = pl.DataFrame(schema={"call_id": pl.String})


def test_the_last_report_is_the_one_that_was_kept_last() -> None:
    """None before the first."""
    with store.opened(None) as found:
        assert found.last_report() is None
        found.keep({"n": 1}, NOTHING, at=AT)
        found.keep({"n": 2}, NOTHING, at=AT.replace(hour=1))
        assert found.last_report() == {"n": 2}


# --- Files that are no store, or not ours ---------------------------------------------------------------------------


def refusal(path: Path, *, read_only: bool = False) -> str:
    with pytest.raises(StoreError) as caught, store.opened(path, read_only=read_only):
        pytest.fail("it was opened")
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_store_that_another_process_writes_is_told_as_locked(tmp_path: Path) -> None:
    """The message says what to do about it."""
    path = tmp_path / "calls.duckdb"
    with store.opened(path):
        pass
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        assert "another process has it open" in refusal(path)
        other.communicate("")


@pytest.mark.parametrize("name", ["traces.jsonl", "block.duckdb"])
def test_a_file_that_is_no_database_is_told_as_such(tmp_path: Path, name: str) -> None:
    """Whatever it is called; it is not overwritten."""
    path = tmp_path / name
    path.write_text('{"resourceSpans": []}\n' * 1000)
    assert "not a DuckDB file" in refusal(path)
    assert path.stat().st_size == 22_000


def test_a_foreign_database_is_left_alone(tmp_path: Path) -> None:
    """Tables of somebody else make it foreign."""
    path = tmp_path / "theirs.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE calls (name VARCHAR)")
    assert "not a prefixscope store" in refusal(path)
    with duckdb.connect(str(path)) as connection:
        assert connection.execute("SELECT count(*) FROM information_schema.tables").fetchone() == (1,)


def test_a_store_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    """The message says what to update."""
    path = tmp_path / "calls.duckdb"
    with store.opened(path):
        pass
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE store_version SET version = 99")
    assert "written by a newer prefixscope (store version 99); update prefixscope" in refusal(path)


def test_a_store_of_an_older_version_is_brought_up_to_date(tmp_path: Path) -> None:
    """When it is opened for writing; a reader is told how."""
    path = tmp_path / "calls.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(queries.load("schema/001_store"))
    assert f"(store version 1). Bring it up to date with: prefixscope audit --db {path}" in refusal(
        path, read_only=True
    )
    with store.opened(path) as found:
        assert found.frame("store/version").item() == store.VERSION
    with store.opened(path, read_only=True) as found:
        assert found.last_report() is None


def test_calls_of_an_older_store_are_kept(tmp_path: Path) -> None:
    """What was not written down then is unknown, and new calls come beside them."""
    path, new = tmp_path / "calls.duckdb", tmp_path / "new.duckdb"
    with store.opened(new) as found:
        found.ingest([observed(record(usage=replace(REPORTED, response_id="old")))], at=AT)
    with duckdb.connect(str(path)) as connection:
        for script in ("schema/001_store", "schema/002_explained_calls", "schema/003_daily"):
            connection.execute(queries.load(script))
        connection.execute(f"ATTACH '{new}' AS new")
        names = [name for (name,) in connection.execute("SELECT column_name FROM (DESCRIBE calls)").fetchall()]
        connection.execute(f"INSERT INTO calls BY NAME SELECT {', '.join(names)} FROM new.calls")
    keyed = Reuse(exact_key="ab" * 16, answer_key="cd" * 16, answer_kind="whole", temperature=0.0)
    with store.opened(path) as found:
        found.ingest([observed(record(reuse=keyed, usage=replace(REPORTED, response_id="new")), line=2)], at=AT)
        told = {row["response_id"]: {name: row[name] for name in asdict(UNKNOWN)} for row in rows(found)}
        assert told == {"old": asdict(UNKNOWN), "new": asdict(keyed)}
        assert found.ingest([observed(record(usage=replace(REPORTED, response_id="old")))], at=AT).calls == 0


def test_reading_needs_a_store_that_is_there(tmp_path: Path) -> None:
    """A missing file is not made, and an empty one holds no store."""
    assert "there is no such store" in refusal(tmp_path / "missing.duckdb", read_only=True)
    assert not (tmp_path / "missing.duckdb").exists()
    with duckdb.connect(str(tmp_path / "empty.duckdb")):
        pass
    assert "not a prefixscope store" in refusal(tmp_path / "empty.duckdb", read_only=True)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    """DuckDB's own words say which."""
    assert "cannot open the store" in refusal(tmp_path / "no" / "calls.duckdb")


def test_prints_of_two_keys_are_told(tmp_path: Path) -> None:
    """Fingerprints of two keys stand beside each other, and the report says that they cannot be compared."""
    log = tmp_path / "calls.jsonl"
    body = {"model": "gpt-5.1", "input": "Hello"}
    lines = [{"timestamp": 1_790_000_000 + i, "request": body, "usage": {"input_tokens": 9}} for i in range(2)]
    with store.opened(None) as opened:
        for line, key in zip(lines, (b"one", b"other"), strict=True):
            log.write_text(json.dumps(line))
            opened.ingest(ingest.read([log], Fingerprinter(key)), at=datetime(2026, 11, 30, tzinfo=UTC))
        report = audit.analyse(opened, audit.Selection()).report
    assert report["calls"]["fingerprint_keys"] == 2
    assert any("further key" in line for line in wording.caveats(report))
