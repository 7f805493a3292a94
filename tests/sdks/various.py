"""google-genai, mistralai, boto3, requests, aiohttp and litellm."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from aiohttp import StreamReader

from sdks import prompts
from sdks.clients import KEY, Clients, headers_of_bedrock
from sdks.prompts import Body
from sdks.seeing import Ending, Seen, entered, headers, items, shown, wait
from sdks.ways import Way

Plan = dict[str, str]  # headers

# --- google-genai: synchronously over httpx2, asynchronously over aiohttp --------------------------------------------

_GEMINI = "gemini-2.5-flash"


async def _google(clients: Clients, plan: Plan, seen: Seen, ending: Ending, *, streams: bool, is_async: bool) -> None:
    config = {"system_instruction": prompts.SYSTEM, "http_options": {"headers": plan}}
    models = clients.get("google", is_async=is_async).models
    method = models.generate_content_stream if streams else models.generate_content
    answer = await wait(method(model=_GEMINI, contents=prompts.QUESTION, config=config))
    if streams:
        await items(answer, seen, ending)
    else:
        seen.append(shown(answer))


# --- mistralai --------------------------------------------------------------------------------------------------------


async def _mistral(clients: Clients, plan: Plan, seen: Seen, ending: Ending, *, streams: bool, is_async: bool) -> None:
    name = ("stream" if streams else "complete") + ("_async" if is_async else "")
    method = getattr(clients.get("mistral", is_async=is_async).chat, name)
    answer = await wait(method(model="mistral-large-latest", **prompts.CHAT, http_headers=plan))
    if not streams:
        seen.append(shown(answer))
    elif ending == "all":
        async with entered(answer) as stream:
            await items(stream, seen)
    else:
        await items(answer, seen, ending)


# --- boto3 ------------------------------------------------------------------------------------------------------------


async def _bedrock(method: str, clients: Clients, plan: Plan, seen: Seen, ending: Ending) -> None:
    headers_of_bedrock.set(plan)
    client = clients.get("bedrock")
    body = prompts.CONVERSE if "converse" in method else {"body": json.dumps(prompts.INVOKE)}
    answer = getattr(client, method)(modelId=prompts.CLAUDE_ON_BEDROCK, **body)
    seen.append(answer["ResponseMetadata"]["HTTPStatusCode"])
    if method in ("converse_stream", "invoke_model_with_response_stream"):
        await items(answer["stream" if method == "converse_stream" else "body"], seen, ending)
    elif method == "invoke_model":
        seen.append(answer["body"].read())
    else:
        seen.append(shown({key: value for key, value in answer.items() if key != "ResponseMetadata"}))


async def _bedrock_by_pieces(clients: Clients, plan: Plan, seen: Seen, ending: Ending) -> None:
    """A body that is no event stream can be read as one likes."""
    headers_of_bedrock.set(plan)
    answer = clients.get("bedrock").invoke_model(modelId=prompts.CLAUDE_ON_BEDROCK, body=json.dumps(prompts.INVOKE))
    body = answer["body"]
    seen += [body.read(10), next(body.iter_chunks(7)), body.readline()]
    seen += [*body.iter_lines(), body.read()]


# --- HTTP libraries by themselves: what a gateway's or a self-hosted model's users do --------------------------------

_CHAT: Body = prompts.CHAT | {"model": "gpt-4.1"}
_STREAM: Body = _CHAT | prompts.CHAT_STREAM
_AUTHORIZED = {"authorization": f"Bearer {KEY}"}


async def _requests(read: str, clients: Clients, plan: Plan, seen: Seen, ending: Ending) -> None:
    streams = read != "content"
    sent: Any = {"json": _STREAM if streams else _CHAT, "headers": plan | _AUTHORIZED}
    url = f"{clients.url}/v1/chat/completions"
    response = clients.get("requests").post(url, **sent, stream=streams, timeout=20)
    seen += [response.status_code, headers(response.headers), response.elapsed.total_seconds() > 0]
    if read == "content":
        seen += [response.content, response.text, shown(response.json())]
    elif ending != "all":
        raw = response.raw
        seen.append(raw.read1(4) if hasattr(raw, "read1") else raw.read(4))  # the second in urllib3 1
    elif read == "raw":
        response.raw.decode_content = True
        seen += [*response.raw]
    else:
        await items(response if read == "response" else getattr(response, read)(), seen)
    if ending == "close":
        response.close()


async def _aiohttp(read: str, clients: Clients, plan: Plan, seen: Seen, ending: Ending) -> None:
    streams = read not in ("json", "data")
    sent: Any = {"data": json.dumps(_CHAT)} if read == "data" else {"json": _STREAM if streams else _CHAT}
    session = clients.get("aiohttp", is_async=True)
    async with session.post(f"{clients.url}/v1/chat/completions", **sent, headers=plan | _AUTHORIZED) as response:
        seen += [response.status, headers(response.headers)]
        if not streams:
            seen += [await response.read(), await response.json()]
        elif read == "iter_chunks":
            seen += [data async for data, _ in response.content.iter_chunks()]
        else:
            body = response.content if read == "lines" else getattr(response.content, read)()
            await items(body, seen, "drop" if ending == "close" else ending)  # the block closes it


async def _aiohttp_by_pieces(clients: Clients, plan: Plan, seen: Seen, ending: Ending) -> None:
    session = clients.get("aiohttp", is_async=True)
    async with session.post(f"{clients.url}/v1/chat/completions", json=_STREAM, headers=plan | _AUTHORIZED) as response:
        body = response.content
        seen += [await body.readexactly(10), await body.readuntil(b"\n"), await body.readline(), await body.read(5)]
        seen += [await body.read(), body.at_eof(), body.is_eof(), body.exception(), isinstance(body, StreamReader)]


# --- litellm: httpx, and asynchronously httpx over aiohttp ------------------------------------------------------------


_OPENAI = prompts.CHAT | {"model": "openai/gpt-4.1"}
_ANTHROPIC = prompts.MESSAGES | {"model": "anthropic/claude-sonnet-4-6"}


async def _litellm(
    body: Body, clients: Clients, plan: Plan, seen: Seen, ending: Ending, *, streams: bool, is_async: bool
) -> None:
    import litellm  # noqa: PLC0415 - takes seconds

    base = f"{clients.url}/v1" if body is _OPENAI else clients.url
    sent = body | (prompts.CHAT_STREAM if streams else {})
    method = litellm.acompletion if is_async else litellm.completion
    answer = await wait(method(**sent, api_base=base, api_key=KEY, extra_headers=plan, num_retries=0, max_retries=0))
    if not streams:
        seen += [answer.choices[0].message.content, shown(answer.usage)]
    elif is_async:
        seen += [_text_of(chunk) async for chunk in answer]
    else:
        seen += [_text_of(chunk) for chunk in answer]


def _text_of(chunk: Any) -> Any:
    """Without the id and the time, which litellm makes up."""
    return [choice.delta.content for choice in chunk.choices], shown(getattr(chunk, "usage", None))


def litellm_ways() -> Iterator[Way]:
    for vendor, body in (("openai", _OPENAI), ("anthropic", _ANTHROPIC)):
        for streams, is_async in _KINDS:
            program = partial(_litellm, body, streams=streams, is_async=is_async)
            yield Way(_title(f"litellm {vendor}", streams, is_async), program, streams, is_async, encodings=("gzip",))


_KINDS = [(streams, is_async) for streams in (False, True) for is_async in (False, True)]


def _title(name: str, streams: bool, is_async: bool) -> str:
    return f"{name}{' stream' * streams}{' async' * is_async}"


def ways() -> Iterator[Way]:
    for streams, is_async in _KINDS:
        for name, program in (("google", _google), ("mistral", _mistral)):
            act = partial(program, streams=streams, is_async=is_async)
            yield Way(_title(name, streams, is_async), act, streams, is_async, stops=streams)
    yield Way("bedrock converse", partial(_bedrock, "converse"), encodings=())
    yield Way("bedrock invoke_model", partial(_bedrock, "invoke_model"), encodings=())
    yield Way("bedrock invoke_model by pieces", _bedrock_by_pieces, encodings=())
    for method in ("converse_stream", "invoke_model_with_response_stream"):
        yield Way(f"bedrock {method}", partial(_bedrock, method), streams=True, stops=True, encodings=())
    for read in ("content", "iter_content", "iter_lines", "response", "raw"):
        streams = read != "content"
        yield Way(f"requests {read}", partial(_requests, read), streams, stops=streams)
    for read in ("json", "data", "lines", "iter_any", "iter_chunks"):
        streams = read not in ("json", "data")
        stops, bounds = read in ("lines", "iter_any"), not read.startswith("iter")
        yield Way(f"aiohttp {read}", partial(_aiohttp, read), streams, is_async=True, stops=stops, bounds=bounds)
    yield Way("aiohttp by pieces", _aiohttp_by_pieces, streams=True, is_async=True)
