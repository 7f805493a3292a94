"""Real SDKs, called in every way, with every encoding: the program sees the same, the record is the provider's word."""

import pytest

from bench_of_capture import Bench, check_record
from fake_provider.plan import Reply
from sdks import generated, various
from sdks.ways import ENCODINGS, Way

pytestmark = [
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),  # google-genai
]

WAYS = [*generated.ways(), *various.ways()]
DECODING = [way for way in WAYS if way.encodings]
# Every SDK, API and kind of call undoes every encoding; of the other ways to read an answer, each undoes one.
ENCODED = [
    (way, encoding)
    for number, way in enumerate(DECODING)
    for encoding in (ENCODINGS if "streamed" not in way.name and "raw" not in way.name else [ENCODINGS[number % 4]])
]


STREAMED = [way for way in WAYS if way.streams]
SMALL = [way for way in STREAMED if " create stream" in way.name]


def _named(value: object) -> str | None:
    return value.name if isinstance(value, Way) else None


def _check(bench: Bench, way: Way, reply: Reply) -> None:
    found = bench.compare(way, reply)
    found.check_app_is_unaffected(bounds=way.bounds)
    assert found.tapped.seen[-1] == "returned"
    (record,), (entry,) = found.records, found.tapped.journal
    if way.reads:
        check_record(record, entry)
    else:
        assert (record.status, record.usage.state, record.aborted) == (200, "missing", True)


@pytest.mark.parametrize("way", WAYS, ids=_named)
def test_every_way_to_call(bench: Bench, way: Way) -> None:
    """One record a call, with the provider's counts; nothing else is different."""
    _check(bench, way, Reply())


@pytest.mark.parametrize(("way", "encoding"), ENCODED, ids=_named)
def test_every_encoding(bench: Bench, way: Way, encoding: str) -> None:
    """Compressed bodies, cut at odd places, are read as well."""
    _check(bench, way, Reply(encoding=encoding, split=61))


@pytest.mark.parametrize("way", STREAMED, ids=_named)
def test_streams_cut_anywhere(bench: Bench, way: Way) -> None:
    """Chunks end within characters and within line ends, which are CRLF here."""
    _check(bench, way, Reply(split=7, crlf=True))


@pytest.mark.parametrize("way", SMALL, ids=_named)
def test_streams_byte_by_byte(bench: Bench, way: Way) -> None:
    """The smallest chunks there are, compressed."""
    _check(bench, way, Reply(split=1, encoding="gzip", words=2))


def test_the_number_of_scenarios() -> None:
    """Every SDK, API and kind of client is among them; ``pytest -rP`` prints how many there are."""
    names = ("ways to call", "compressed", "cut anywhere", "byte by byte")
    counts = dict(zip(names, (len(WAYS), len(ENCODED), len(STREAMED), len(SMALL)), strict=True))
    print(f"{sum(counts.values())} scenarios:", ", ".join(f"{count} {name}" for name, count in counts.items()))
    sdks = {way.name.split()[0] for way in WAYS}
    assert sdks == {"openai", "anthropic", "groq", "google", "mistral", "bedrock", "requests", "aiohttp"}
    assert {encoding for _, encoding in ENCODED} == set(ENCODINGS)
