"""Mounts of botocore, aiohttp and requests: on once, off without a trace, and harmless with whatever programs send."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import aiohttp
import aiohttp.client
import botocore.awsrequest  # type: ignore[import-untyped]
import botocore.httpsession  # type: ignore[import-untyped]
import pytest
import requests
import requests.adapters

from fake_provider.plan import Plan, Reply
from fake_provider.server import FakeProvider
from prefixscope.otel_plugin.mounts import Mounts
from recording import Recorder
from sdks import prompts
from sdks.clients import KEY, Clients, headers_of_bedrock

BODY: Any = prompts.CHAT | {"model": "gpt-4.1"}
SENT = json.dumps(BODY)
OWNERS = [
    (aiohttp.ClientSession, "_request"),
    (botocore.httpsession.URLLib3Session, "send"),
    (requests.adapters.HTTPAdapter, "send"),
]


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    found = Recorder(tmp_path / "spool")
    yield found
    found.capture.close()


def _post(provider: FakeProvider, **more: Any) -> requests.Response:
    return requests.post(f"{provider.url}/v1/chat/completions", **({"data": SENT} | more), timeout=20)


@pytest.mark.parametrize(("owner", "name"), OWNERS, ids=lambda value: getattr(value, "__module__", ""))
def test_undone_leaves_no_trace(recorder: Recorder, owner: type, name: str) -> None:
    """The very function that was there before is there again."""
    before = vars(owner)[name]
    with recorder.on():
        assert vars(owner)[name] is not before
        assert vars(owner)[name].__wrapped__ is before
    assert vars(owner)[name] is before


def test_mounted_twice_records_once(recorder: Recorder, provider: FakeProvider) -> None:
    """Auto-instrumentation may activate an instrumentor twice."""
    with recorder.on(), recorder.on():
        _post(provider)
    assert len(recorder.new()) == 1


def test_wrapped_by_others_and_undone(recorder: Recorder, provider: FakeProvider, monkeypatch: Any) -> None:
    """What somebody has put around ours since stays, and calls go through both."""
    calls: list[str] = []

    def around(original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def send(*args: Any, **kwargs: Any) -> Any:
            calls.append("theirs")
            return original(*args, **kwargs)

        return send

    original = requests.adapters.HTTPAdapter.send
    mounts = Mounts(recorder.capture.tap)
    theirs = around(requests.adapters.HTTPAdapter.send)
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", theirs)
    mounts.undo()
    assert requests.adapters.HTTPAdapter.send is theirs
    assert _post(provider).ok
    assert calls == ["theirs"]
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", original)


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        ({"data": SENT}, True),
        ({"data": SENT.encode()}, True),
        ({"json": BODY}, True),
        ({"data": (part.encode() for part in (SENT[:9], SENT[9:]))}, False),
        ({"data": io.BytesIO(SENT.encode())}, False),
    ],
    ids=["text", "bytes", "json", "generator", "file"],
)
def test_bodies_of_requests(recorder: Recorder, provider: FakeProvider, sent: Any, seen: bool) -> None:
    """What can be read once only is left to the library: the call is recorded, its prompt is not."""
    with recorder.on():
        answer = _post(provider, **sent).json()
    (record,) = recorder.new()
    assert record.usage.response_id == answer["id"]
    assert record.usage.state == "reported"
    assert (record.fingerprint is not None) == seen


def test_a_response_that_cannot_be_tapped(recorder: Recorder, monkeypatch: Any) -> None:
    """Tests of applications put doubles in the place of responses: they work as before."""
    recorder.capture.guard.reraise = False

    def double(*_: Any, **__: Any) -> requests.Response:
        response = requests.Response()
        response.status_code, response.raw = 200, io.BytesIO(b"{}")
        return response

    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", double)
    with recorder.on():
        assert requests.post("http://localhost/v1/chat/completions", json=BODY, timeout=1).json() == {}
    (record,) = recorder.new()
    assert (record.status, record.usage.state) == (200, "missing")


@pytest.mark.parametrize("library", ["requests", "aiohttp"])
def test_usage_that_is_asked_for_on_behalf(tmp_path: Path, provider: FakeProvider, library: str) -> None:
    """With the option that says so, a stream is asked for its usage: the only thing in a request that changes."""
    recorder = Recorder(tmp_path / "spool", include_usage=True)
    sent = {"json": BODY | {"stream": True}, "headers": Plan(f"amended {library}").headers}
    url = f"{provider.url}/v1/chat/completions"

    async def post() -> bytes:
        async with aiohttp.ClientSession() as session, session.post(url, **sent) as response:
            return await response.read()

    with recorder.on():
        body = requests.post(url, **sent, timeout=20).content if library == "requests" else asyncio.run(post())
    assert b'"choices":[],' in body
    (record,), (entry,) = recorder.new(), provider.journal(f"amended {library}")
    assert json.loads(entry.body) == {"stream_options": {"include_usage": True}, **BODY, "stream": True}
    assert record.usage.input_total == entry.uncached
    recorder.capture.close()


# --- aiohttp ----------------------------------------------------------------------------------------------------------


async def _parts() -> AsyncIterator[bytes]:
    yield SENT[:9].encode()
    yield SENT[9:].encode()


@pytest.mark.parametrize(
    ("sent", "seen"),
    [
        (lambda: {"data": SENT}, True),
        (lambda: {"data": SENT.encode()}, True),
        (lambda: {"data": bytearray(SENT.encode())}, True),
        (lambda: {"json": BODY}, True),
        (lambda: {"data": aiohttp.BytesPayload(SENT.encode())}, True),
        (lambda: {"data": _parts()}, False),
        (lambda: {"data": io.BytesIO(SENT.encode())}, False),
    ],
    ids=["text", "bytes", "bytearray", "json", "payload", "generator", "file"],
)
def test_bodies_of_aiohttp(recorder: Recorder, provider: FakeProvider, sent: Any, seen: bool) -> None:
    """As with requests; JSON is serialised by the session's own function, and once."""
    serialised: list[Any] = []

    def serialise(value: Any) -> str:
        serialised.append(value)
        return json.dumps(value, indent=1)

    async def post() -> Any:
        async with aiohttp.ClientSession(provider.url, json_serialize=serialise, headers={"x-a": "1"}) as session:
            plan = Plan(f"body {seen}").headers | {"authorization": f"Bearer {KEY}"}
            async with session.post("/v1/chat/completions", **sent(), headers=plan) as response:
                return await response.json()

    with recorder.on():
        answer = asyncio.run(post())
    (record,) = recorder.new()
    assert record.usage.response_id == answer["id"]
    assert (record.fingerprint is not None) == seen
    assert record.account
    assert len(serialised) == (1 if "json" in sent() else 0)
    assert "x-a" in provider.journal(f"body {seen}")[-1].headers


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        ("/v1/chat/completions", {"json": {"model": object()}}),
        ("/v1/chat/completions", {"json": {}, "data": "x"}),
        ("ftp://localhost/v1/chat/completions", {"json": {}}),
        ("http://[", {"json": {}}),
        (None, {"json": {}}),
    ],
    ids=["no json", "json and data", "scheme", "url", "no url"],
)
def test_mistakes_raise_as_before(recorder: Recorder, provider: FakeProvider, url: Any, sent: Any) -> None:
    """The program's mistake is told by aiohttp, in the same words."""

    async def post() -> BaseException | None:
        async with aiohttp.ClientSession(provider.url) as session:
            try:
                await session.post(url, **sent)
            except Exception as error:  # noqa: BLE001 - whatever it is
                return error
            return None

    before = asyncio.run(post())
    with recorder.on():
        after = asyncio.run(post())
    assert before is not None
    assert (type(after), str(after)) == (type(before), str(before))


def test_statuses_that_raise(recorder: Recorder, provider: FakeProvider) -> None:
    """With ``raise_for_status`` the exception has the status, and so has the record."""

    async def post() -> None:
        async with aiohttp.ClientSession(raise_for_status=True) as session:
            plan = Plan("raises", (Reply(status=429),)).headers
            await session.post(f"{provider.url}/v1/chat/completions", json=BODY, headers=plan)

    with recorder.on(), pytest.raises(aiohttp.ClientResponseError, match="429"):
        asyncio.run(post())
    (record,) = recorder.new()
    assert (record.status, record.error) == (429, "ClientResponseError")


def test_bodies_that_stay_compressed(recorder: Recorder, provider: FakeProvider) -> None:
    """A session that decompresses nothing hands on the bytes of the wire."""

    async def post() -> bytes:
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            plan = Plan("compressed", (Reply(encoding="gzip"),)).headers
            async with session.post(f"{provider.url}/v1/chat/completions", json=BODY, headers=plan) as response:
                return await response.read()

    with recorder.on():
        assert asyncio.run(post())[:2] == b"\x1f\x8b"
    (record,) = recorder.new()
    assert record.usage.state == "reported"


def test_middlewares_that_read_the_answer(recorder: Recorder, provider: FakeProvider) -> None:
    """The body is gone from the connection by then, and is taken from where aiohttp keeps it."""

    async def log(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        response = await handler(request)
        await response.read()
        return response

    async def post() -> Any:
        url = f"{provider.url}/v1/chat/completions"
        async with aiohttp.ClientSession(middlewares=(log,)) as session, session.post(url, json=BODY) as response:
            return await response.json()

    with recorder.on():
        answer = asyncio.run(post())
    (record,) = recorder.new()
    assert record.usage.response_id == answer["id"]
    assert not record.aborted


def test_content_is_a_stream_reader(recorder: Recorder, provider: FakeProvider) -> None:
    """Programs ask for its type, set limits on it, and print it."""

    async def post() -> None:
        url = f"{provider.url}/v1/chat/completions"
        async with aiohttp.ClientSession() as session, session.post(url, json=BODY) as response:
            content = response.content
            assert isinstance(content, aiohttp.StreamReader)
            assert "StreamReader" in repr(content)
            content.set_read_chunk_size(1 << 20)
            content.total_compressed_bytes = 7
            assert content.total_raw_bytes == 7
            assert content.at_eof() is False
            await content.read()
            assert content.read_nowait() == b""

    with recorder.on():
        asyncio.run(post())
    (record,) = recorder.new()
    assert record.usage.state == "reported"


# --- botocore ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [str, bytes, bytearray, io.BytesIO])
def test_bodies_of_bedrock(recorder: Recorder, provider: FakeProvider, kind: Any) -> None:
    """The body of InvokeModel is the program's own, in whatever form it has it."""
    text = json.dumps(prompts.INVOKE)
    body = text if kind is str else kind(text.encode())
    client = Clients(provider.url).get("bedrock")
    headers_of_bedrock.set({})
    with recorder.on():
        client.invoke_model(modelId=prompts.CLAUDE_ON_BEDROCK, body=body)["body"].read()
    client.close()
    (record,) = recorder.new()
    assert record.usage.state == "reported"
    assert record.fingerprint is not None
