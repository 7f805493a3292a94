"""Calls that end before their time: streams left, closed and dropped, errors, aborts, cancelled tasks, retries."""

import re

import pytest

from bench_of_capture import Bench, Comparison
from fake_provider import errors
from fake_provider.journal import Entry
from fake_provider.plan import Reply
from prefixscope.otel_plugin.record import CallRecord
from sdks import generated, various
from sdks.seeing import Ending
from sdks.ways import Way

pytestmark = [
    # programs that forget what they have opened get these without capture as well
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),  # google-genai
]

WAYS = {way.name: way for way in (*generated.ways(), *various.ways())}
STOPPING = [way for way in WAYS.values() if way.stops]
PLAIN = [way for way in WAYS.values() if not re.search("streamed|raw|pieces|in a block|iter_lines|response$", way.name)]
STATUSES = (400, 429, 500, 529)
HTTP1 = [way for way in PLAIN if "http2" not in way.name]  # the server cannot break off a stream of HTTP/2


def _named(value: object) -> str | None:
    return value.name if isinstance(value, Way) else None


def _one(found: Comparison) -> tuple[CallRecord, Entry]:
    (record,), (entry,) = found.records, found.tapped.journal
    return record, entry


def check_cut_short(record: CallRecord, entry: Entry) -> None:
    """What was not seen is not in the record, and what is in it is the provider's word."""
    assert (record.status, record.aborted) == (200, True)
    assert record.usage.state in {"missing", "partial"}
    if record.usage.state == "partial" and entry.api in {"anthropic.messages", "bedrock.invoke"}:
        assert (record.usage.read, record.usage.uncached) == (entry.read, entry.uncached)  # it is told at the beginning
        assert record.usage.write == sum(entry.writes.values())
    assert record.fingerprint is not None


@pytest.mark.parametrize("ending", ["close", "drop"])
@pytest.mark.parametrize("way", STOPPING, ids=_named)
def test_streams_left_early(bench: Bench, way: Way, ending: Ending) -> None:
    """The program has the first item while the server still holds the second back: nothing waits for more than it."""
    found = bench.compare(way, Reply(hold_after=1), ending=ending)
    found.check_app_is_unaffected(bounds=way.bounds)
    assert found.tapped.seen[-1] == "returned"
    check_cut_short(*_one(found))


@pytest.mark.parametrize(("way", "status"), [(way, STATUSES[n % 4]) for n, way in enumerate(PLAIN)], ids=_named)
def test_errors_are_calls_too(bench: Bench, way: Way, status: int) -> None:
    """Status and the provider's name for the error; no usage, which is not the same as none."""
    found = bench.compare(way, Reply(status=status))
    found.check_app_is_unaffected(bounds=way.bounds)
    record, entry = _one(found)
    assert (record.status, record.usage.state, record.aborted) == (status, "missing", False)
    assert record.error == errors.name(entry.api, status)


@pytest.mark.parametrize("way", HTTP1, ids=_named)
def test_broken_connections(bench: Bench, way: Way) -> None:
    """The server goes away in the middle of a body: the program gets its exception, the record says so."""
    found = bench.compare(way, Reply(abort_after=150, split=50))
    found.check_app_is_unaffected(bounds=way.bounds)
    assert found.tapped.seen[-1] != "returned"
    record, entry = _one(found)
    if record.status is None:  # the library has read the body by itself, and its exception does not tell the status
        assert not way.streams
        assert record.error
    else:
        check_cut_short(record, entry)


@pytest.mark.parametrize("way", [way for way in PLAIN if way.streams], ids=_named)
def test_errors_within_streams(bench: Bench, way: Way) -> None:
    """A stream that turns into an error has an error and no final usage."""
    found = bench.compare(way, Reply(fail_after=2))
    found.check_app_is_unaffected(bounds=way.bounds)
    record, _ = _one(found)
    assert record.status == 200
    assert record.error
    assert record.usage.state in {"missing", "partial"}
