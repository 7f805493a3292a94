"""Amazon Bedrock through boto3: ``URLLib3Session.send``, which every attempt of a call goes through."""

from collections.abc import Callable
from io import BytesIO
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.mounts import Undo, replace, urllib3_body
from prefixscope.otel_plugin.tap import Tap


def mount(module: ModuleType, tap: Tap) -> Undo:
    """Shows ``tap`` the calls of ``module``, which is botocore.httpsession."""
    return replace(module.URLLib3Session, "send", tap, lambda original: _send(original, tap))


def _send(original: Callable[..., Any], tap: Tap) -> Callable[..., Any]:
    def send(session: Any, request: Any) -> Any:
        exchange = _begin(tap, request)
        if exchange is None:
            return original(session, request)
        try:
            with tap.sending():
                response = original(session, request)
        except BaseException as error:
            exchange.failed(error)
            raise
        _responded(tap, exchange, response, streams=request.stream_output)
        return response

    return send


def _begin(tap: Tap, request: Any) -> Exchange | None:
    if not tap.active:
        return None
    try:
        url = urlsplit(request.url)
        return tap.begin(request.method, url.hostname or "", url.path, request.headers, _bytes(request.body))
    except Exception as error:  # noqa: BLE001 - see guard
        tap.guard.caught("reading a request of botocore", error)
        return None


def _responded(tap: Tap, exchange: Exchange, response: Any, *, streams: bool) -> None:
    """Botocore reads what is no stream by itself, and decodes nothing."""
    try:
        exchange.responded(response.status_code, response.headers)
        if streams:
            urllib3_body.tap(response.raw, exchange)
        else:
            exchange.whole(response.content)
            exchange.decoded = False
            exchange.finish("ended")
    except Exception as error:  # noqa: BLE001 - see guard
        exchange.finish("dropped")
        tap.guard.caught("reading a response of botocore", error)


def _bytes(body: Any) -> bytes | None:
    """The body as it is sent; None for a file, which can be read once only, by botocore."""
    if isinstance(body, str):
        return body.encode()
    if isinstance(body, BytesIO):
        return body.getvalue()
    return bytes(body) if isinstance(body, bytes | bytearray) else None
