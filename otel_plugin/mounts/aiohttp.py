"""aiohttp clients: ``ClientSession._request``, which all of its methods call. google-genai's async client is one.

Clients of httpx that send through aiohttp are seen by the mount of httpx, and not here.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.mounts import Undo, replace
from prefixscope.otel_plugin.mounts.aiohttp_body import Content
from prefixscope.otel_plugin.tap import Tap


def mount(module: ModuleType, tap: Tap) -> Undo:
    """Shows ``tap`` the calls of ``module``, which is aiohttp."""
    return replace(module.ClientSession, "_request", tap, lambda original: _request(original, tap, module))


def _request(original: Callable[..., Any], tap: Tap, module: ModuleType) -> Callable[..., Any]:
    async def request(session: Any, method: str, str_or_url: Any, **kwargs: Any) -> Any:
        exchange = _begin(tap, session, method, str_or_url, kwargs)
        if exchange is None:
            return await original(session, method, str_or_url, **kwargs)
        try:
            with tap.sending():
                response = await original(session, method, str_or_url, **kwargs)
        except BaseException as error:  # a cancelled task included
            if isinstance(error, module.ClientResponseError):  # raise_for_status: the status is here, the body is lost
                exchange.responded(error.status, error.headers or {})
            exchange.failed(error)
            raise
        _responded(tap, exchange, response, decodes=_decodes(session, kwargs))
        return response

    return request


def _begin(tap: Tap, session: Any, method: str, str_or_url: Any, kwargs: dict[str, Any]) -> Exchange | None:
    """``kwargs`` are the request's; JSON is serialised here in place of there, so that it is done once."""
    if not tap.active or method.upper() != "POST":
        return None
    url = _url(session, str_or_url)
    if url is None:
        return None
    try:
        exchange = tap.begin("POST", url.host or "", url.raw_path, {}, None)
        if exchange is not None:
            exchange.request_headers = _headers(session, kwargs)
            _take_body(tap, exchange, session, kwargs)
    except Exception as error:  # noqa: BLE001 - see guard
        tap.guard.caught("reading a request of aiohttp", error)
        return None
    return exchange


def _url(session: Any, str_or_url: Any) -> Any:
    """The URL with the session's base; None if there is something wrong with it, which aiohttp will tell."""
    try:
        return session._build_url(str_or_url)  # noqa: SLF001 - there is no other way to the base
    except Exception:  # noqa: BLE001 - of whatever kind
        return None


def _take_body(tap: Tap, exchange: Exchange, session: Any, kwargs: dict[str, Any]) -> None:
    if kwargs.get("json") is not None and kwargs.get("data") is None:
        _serialise(session, kwargs)
    tap.sends(exchange, _bytes(kwargs.get("data")))
    if (amended := tap.amended(exchange)) is not None:
        kwargs["data"] = amended


def _serialise(session: Any, kwargs: dict[str, Any]) -> None:
    """As aiohttp does it. JSON that cannot be serialised is left to raise there."""
    payload = import_module("aiohttp.payload")
    to_bytes = getattr(session, "_json_serialize_bytes", None)  # since aiohttp 3.14
    try:
        if to_bytes is not None:
            data = payload.JsonBytesPayload(kwargs["json"], dumps=to_bytes)
        else:
            data = payload.JsonPayload(kwargs["json"], dumps=session.json_serialize)
    except Exception:  # noqa: BLE001 - a serialiser of the application's may raise anything
        return
    kwargs["data"], kwargs["json"] = data, None


def _bytes(data: Any) -> bytes | None:
    """The body as it is sent; None for forms, files and generators, which are read once only."""
    data = getattr(data, "_value", data)  # of a payload
    if isinstance(data, str):
        return data.encode()
    return bytes(data) if isinstance(data, bytes | bytearray | memoryview) else None


def _headers(session: Any, kwargs: dict[str, Any]) -> Any:
    """What the session and the call add; aiohttp's own are in the response's ``request_info``."""
    merged = session.headers.copy()
    merged.update(kwargs.get("headers") or {})
    return merged


def _decodes(session: Any, kwargs: dict[str, Any]) -> bool:
    given = kwargs.get("auto_decompress")
    return bool(session.auto_decompress if given is None else given)


def _responded(tap: Tap, exchange: Exchange, response: Any, *, decodes: bool) -> None:
    try:
        exchange.decoded = decodes
        exchange.request_headers = response.request_info.headers
        exchange.responded(response.status, response.headers)
        body = response._body  # noqa: SLF001 - there if a middleware has read it
        if body is not None:
            exchange.whole(body)
            exchange.decoded = decodes
            exchange.finish("ended")
        else:
            response.content = Content(response.content, exchange)
    except Exception as error:  # noqa: BLE001 - see guard
        exchange.finish("dropped")
        tap.guard.caught("reading a response of aiohttp", error)
