"""The response of an exchange, read: usage, error, and what the model said. Pure."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from prefixscope.otel_plugin import answers, decoding, eventstream, sse, streamed, usage
from prefixscope.otel_plugin.account import FACTS
from prefixscope.otel_plugin.answers import Answer
from prefixscope.otel_plugin.exchange import Exchange, plain
from prefixscope.otel_plugin.record import Usage

Json = dict[str, Any]

_DECODED_LIMIT = 256 << 20  # bytes that a body may have after decompression
_LAST_EVENT = re.compile(FACTS["stream"]["last_event"].encode())
_LAST_BYTES = 4096  # of a stream, in which its last event is looked for
_ERROR_TYPE = re.compile(r"[\w.:/-]{1,80}")  # a name, and no sentence that may quote the prompt
_WANTED = re.compile(usage.telling().pattern + rb'|"error"\s*:\s*\{|"type"\s*:\s*"error"')


@dataclass(frozen=True, slots=True)
class Response:
    """What a response body says."""

    usage: Usage = field(default_factory=Usage)
    error: str = ""
    complete: bool = False  # the provider's last event was seen
    text: bytes = b""
    said: Callable[[], Answer | None] = lambda: None  # puts the answer together, which not everybody needs


def read(exchange: Exchange, provider: str) -> Response:
    """The response of ``exchange``, as far as it was kept."""
    headers = plain(exchange.response_headers)
    chunks = [*exchange.chunks, *(exchange.tail or ())]
    encoding = "" if exchange.decoded else headers.get("content-encoding", "")
    data = decoding.decode(chunks, encoding, limit=_DECODED_LIMIT)
    kind = headers.get("content-type", "")
    error = _error_name(headers.get("x-amzn-errortype", "").partition(":")[0])
    if eventstream.CONTENT_TYPE in kind:
        events = list(eventstream.decode(data))
        return _of_events(events, data, provider, error, lambda: answers.of_events(events))
    if "text/event-stream" in kind or data[:6].startswith((b"data:", b"event:")):
        stream = streamed.take_apart(data)
        return _of_events(list(sse.decode(stream.others, wanted=_WANTED)), data, provider, error, stream.answer)
    body = read_json(json.loads, data)
    if isinstance(body, list):  # Gemini's stream without alt=sse is one array
        events = [event for event in body if isinstance(event, dict)]
        return _of_events(events, data, provider, error, lambda: answers.of_events(events))
    if not isinstance(body, dict):
        return Response(error=error, text=data)
    found = usage.from_body(body, provider=provider)
    error = error or _error_type(body)
    return Response(found, error, complete=True, text=data, said=lambda: answers.of_body(body))


def read_json(loads: Callable[[bytes], Any], data: bytes) -> Any:
    """What ``loads`` makes of ``data``; None where it is no JSON, or nested beyond reason."""
    try:
        return loads(data) if data else None
    except (ValueError, RecursionError):
        return None


def _of_events(
    events: list[Json], data: bytes, provider: str, error: str, said: Callable[[], Answer | None]
) -> Response:
    found = usage.from_events(events, provider=provider)
    error = error or next(filter(None, map(_error_type, events)), "")
    complete = found.state == "reported" or bool(_LAST_EVENT.search(data[-_LAST_BYTES:]))
    return Response(found, error, complete=complete, text=data, said=said)


def _error_type(body: Json) -> str:
    """The provider's name for what went wrong; never its message."""
    inner = body.get("response")
    error = body.get("error") or (inner.get("error") if isinstance(inner, dict) else None)
    holders: Iterable[Any] = (
        (error.get("type"), error.get("status"), error.get("code")) if isinstance(error, dict) else ()
    )
    own = body.get("code") if body.get("type") == "error" else None  # OpenAI Responses, in the stream
    return next(filter(None, map(_error_name, [*holders, own, body.get("__type")])), "")


def _error_name(value: Any) -> str:
    return value if isinstance(value, str) and _ERROR_TYPE.fullmatch(value) else ""
