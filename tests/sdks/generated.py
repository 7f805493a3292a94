"""openai, anthropic and groq: clients made by the same generator, with the same methods."""

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any

from sdks import prompts
from sdks.clients import Clients
from sdks.prompts import Body
from sdks.seeing import Ending, Seen, entered, headers, items, shown, wait
from sdks.ways import Way

_READS = ("iter_bytes", "iter_text", "iter_lines", "parse", "read")  # of with_streaming_response
_STOPPING = ("create", "create in a block", "raw", "streamed iter_bytes", "helper")


async def _create(resource: Any, body: Body, seen: Seen, ending: Ending) -> None:
    answer = await wait(resource.create(**body))
    if body.get("stream"):
        await items(answer, seen, ending)
    else:
        seen.append(shown(answer))


async def _create_in_a_block(resource: Any, body: Body, seen: Seen, ending: Ending) -> None:
    """The block closes what was not read."""
    async with entered(await wait(resource.create(**body))) as stream:
        await items(stream, seen, "drop" if ending == "close" else ending)


async def _raw(resource: Any, body: Body, seen: Seen, ending: Ending) -> None:
    response = await wait(resource.with_raw_response.create(**body))
    seen += [response.status_code, headers(response.headers)]
    if body.get("stream"):
        await items(await wait(response.parse()), seen, ending)
    else:
        seen += [response.http_response.content, response.elapsed.total_seconds() > 0]
        seen.append(shown(await wait(response.parse())))


async def _streamed(read: str, resource: Any, body: Body, seen: Seen, ending: Ending) -> None:
    async with entered(resource.with_streaming_response.create(**body)) as response:
        seen += [response.status_code, headers(response.headers)]
        if read.startswith("iter_"):
            await items(getattr(response, read)(), seen, ending)
        elif read == "parse" and body.get("stream"):
            await items(await wait(response.parse()), seen, ending)
        elif read:
            seen.append(shown(await wait(getattr(response, read)())))


async def _helper(final: str, resource: Any, body: Body, seen: Seen, ending: Ending) -> None:
    async with entered(resource.stream(**body)) as stream:
        await items(stream, seen, ending)
        if ending == "all":
            seen.append(shown(await wait(getattr(stream, final)())))


def _ways(client: str, resource: str, body: Body, stream: Body, final: str = "") -> Iterator[Way]:
    """The ways of one resource (``chat.completions``…); ``stream`` is what a streamed request has in addition."""
    acts: dict[str, Any] = {"create": _create, "raw": _raw, "streamed, not read": partial(_streamed, "")}
    acts |= {f"streamed {read}": partial(_streamed, read) for read in _READS}
    for is_async in (False, True):
        for name, act in acts.items():
            yield _way(client, resource, name, act, body, is_async=is_async)
            yield _way(client, resource, name, act, body | stream, is_async=is_async, streams=True)
        yield _way(
            client, resource, "create in a block", _create_in_a_block, body | stream, is_async=is_async, streams=True
        )
        if final:
            sent = {key: value for key, value in (body | stream).items() if key != "stream"}
            yield _way(client, resource, "helper", partial(_helper, final), sent, is_async=is_async, streams=True)


def _way(client: str, resource: str, name: str, act: Any, body: Body, *, is_async: bool, streams: bool = False) -> Way:
    async def program(clients: Clients, plan: dict[str, str], seen: Seen, ending: Ending) -> None:
        found = attrgetter(resource)(clients.get(client, is_async=is_async))
        await act(found, body | {"extra_headers": plan}, seen, ending)

    title = f"{client} {resource} {name}{' stream' * streams}{' async' * is_async}"
    stops = streams and name in _STOPPING
    return Way(title, program, streams, is_async, stops, reads="not read" not in name, bounds="aiohttp" not in client)


def _transports() -> Iterator[Way]:
    """The same SDK over other HTTP clients; asynchronously over aiohttp there is no synchronous one."""
    for client in ("openai http2", "openai httpx", "openai aiohttp"):
        for is_async in (False, True) if client != "openai aiohttp" else (True,):
            for name, act in (("create", _create), ("streamed iter_bytes", partial(_streamed, "iter_bytes"))):
                for stream in ({}, prompts.CHAT_STREAM):
                    body = prompts.CHAT | {"model": "gpt-4.1"} | stream
                    yield _way(client, "chat.completions", name, act, body, is_async=is_async, streams=bool(stream))


def ways() -> Iterator[Way]:
    chat, streaming = prompts.CHAT, {"stream": True}
    yield from _ways(
        "openai", "chat.completions", chat | {"model": "gpt-4.1"}, prompts.CHAT_STREAM, "get_final_completion"
    )
    yield from _ways("openai", "responses", prompts.RESPONSES, streaming, "get_final_response")
    claude = prompts.MESSAGES | {"model": "claude-sonnet-4-6"}
    yield from _ways("anthropic", "messages", claude, streaming, "get_final_message")
    yield from _ways("groq", "chat.completions", chat | {"model": "llama-3.3-70b-versatile"}, streaming)
    yield from _transports()
