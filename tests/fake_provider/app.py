"""The provider as an ASGI application."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from fake_provider import errors, framing, plan, prompts
from fake_provider.answers import Answer, answer
from fake_provider.cache import Cache
from fake_provider.journal import Entry
from fake_provider.plan import Reply

_HOLD_SECONDS = 20.0  # a held response goes on by itself: a test that waits for it fails, and does not hang

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(slots=True)
class _Scope:
    """What the server keeps of one scope."""

    caches: defaultdict[str, Cache] = field(default_factory=lambda: defaultdict(Cache))
    journal: list[Entry] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)


class App:
    """Answers model calls; ``GET /journal/<scope>`` and ``POST /release/<scope>`` are for the test."""

    def __init__(self) -> None:
        self._scopes: defaultdict[str, _Scope] = defaultdict(_Scope)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await _body(receive)
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        control, _, name = scope["path"].strip("/").partition("/")
        if control == "journal":
            entries = [asdict(entry) for entry in self._scopes[name].journal]
            await _send_whole(send, 200, {}, framing.dump(entries).encode())
        elif control == "release":
            self._scopes[name].released.set()
            await _send_whole(send, 200, {}, b"{}")
        else:
            await self._call(scope["path"], headers, body, send)

    async def _call(self, path: str, headers: dict[str, str], body: bytes, send: Send) -> None:
        request = prompts.parse(path, json.loads(body)) if body else None
        if request is None:
            await _send_whole(send, 404, {}, b'{"error":{"message":"no such endpoint"}}')
            return
        asked = plan.parse(headers.get(plan.HEADER, ""))
        scope = self._scopes[asked.scope]
        reply = asked.reply(len(scope.journal))
        entry = Entry.of(request, reply, path, headers, body, ordinal=len(scope.journal))
        scope.journal.append(entry)
        await asyncio.sleep(reply.delay)
        if reply.status >= 400:
            await _refuse(send, entry, reply)
            return
        account = _account(headers)
        cache = scope.caches[f"{request.api} {account}"]
        if asked.warm:
            cache.warm(request)
        outcome = cache.serve(request, reply.at_ms)
        given = answer(request, outcome, account.encode() + body, cache.now_ms, reply.words)
        entry.bill(given)
        await _deliver(send, given, entry, reply, scope.released)


def _account(headers: dict[str, str]) -> str:
    """What identifies who pays; of AWS's signature, the access key."""
    found = headers.get("authorization") or headers.get("x-api-key") or headers.get("x-goog-api-key") or ""
    return found.partition("/")[0]


async def _refuse(send: Send, entry: Entry, reply: Reply) -> None:
    after = {"retry-after": reply.retry_after} if reply.retry_after else {}
    headers = _headers(entry, "application/json", reply) | errors.headers(entry.api, reply.status) | after
    body = framing.dump(errors.body(entry.api, reply.status)).encode()
    encoded = b"".join(framing.encoded([body], reply.encoding))
    await _send_whole(send, reply.status, headers, encoded)


async def _deliver(send: Send, given: Answer, entry: Entry, reply: Reply, released: asyncio.Event) -> None:
    content_type, chunks = _content(given, reply)
    sent = framing.cut(framing.encoded(chunks, reply.encoding), reply.split)
    if reply.abort_after >= 0:
        sent = framing.truncated(sent, reply.abort_after)
    await send(_start(200, _headers(entry, content_type, reply)))
    for number, chunk in enumerate(sent, 1):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await _wait(number, reply, released)
    if reply.abort_after < 0:  # else the application returns in the middle of a body: the server closes the connection
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        entry.ended = True


async def _wait(number: int, reply: Reply, released: asyncio.Event) -> None:
    if number == reply.hold_after:
        await asyncio.wait_for(released.wait(), _HOLD_SECONDS)
    await asyncio.sleep(reply.pause)


def _content(given: Answer, reply: Reply) -> tuple[str, Iterator[bytes]]:
    """The content type and the body, a chunk an event."""
    if not given.request.streams:
        return "application/json", iter([framing.dump(given.document).encode()])
    events = given.events
    if reply.fail_after >= 0:
        events = [*events[: reply.fail_after], errors.event(given.request.api)]
    if given.request.api.startswith("bedrock."):
        return framing.EVENT_STREAM, (framing.aws(event) for event in events)
    return "text/event-stream; charset=utf-8", (framing.sse(event, crlf=reply.crlf) for event in events)


def _headers(entry: Entry, content_type: str, reply: Reply) -> dict[str, str]:
    encoding = {"content-encoding": reply.encoding} if reply.encoding else {}
    named = {entry.request_id_header: entry.request_id} if entry.request_id_header else {}
    return {"content-type": content_type} | encoding | named


def _start(status: int, headers: dict[str, str]) -> Message:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http.response.start", "status": status, "headers": raw}


async def _send_whole(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    whole = {"content-type": "application/json", "content-length": str(len(body))} | headers
    await send(_start(status, whole))
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)
