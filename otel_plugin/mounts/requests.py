"""The requests library: ``HTTPAdapter.send``, below redirects and before the body is read."""

from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.mounts import Undo, replace, urllib3_body
from prefixscope.otel_plugin.tap import Tap


def mount(module: ModuleType, tap: Tap) -> Undo:
    """Shows ``tap`` the calls of ``module``, which is requests.adapters."""
    return replace(module.HTTPAdapter, "send", tap, lambda original: _send(original, tap))


def _send(original: Callable[..., Any], tap: Tap) -> Callable[..., Any]:
    def send(adapter: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _begin(tap, request)
        if exchange is None:
            return original(adapter, request, *args, **kwargs)
        try:
            with tap.sending():
                response = original(adapter, _amended(tap, exchange, request), *args, **kwargs)
        except BaseException as error:
            exchange.failed(error)
            raise
        _responded(tap, exchange, response)
        return response

    return send


def _begin(tap: Tap, request: Any) -> Exchange | None:
    if not tap.active or request.method != "POST":
        return None
    try:
        url = urlsplit(request.url)
        body = request.body.encode() if isinstance(request.body, str) else request.body
        return tap.begin(request.method, url.hostname or "", url.path, request.headers, body)
    except Exception as error:  # noqa: BLE001 - see guard
        tap.guard.caught("reading a request of requests", error)
        return None


def _amended(tap: Tap, exchange: Exchange, request: Any) -> Any:
    """The request itself, unless the user has asked for more than the application did."""
    body = tap.amended(exchange)
    if body is None:
        return request
    copy = request.copy()
    copy.body = body
    copy.headers["Content-Length"] = str(len(body))
    return copy


def _responded(tap: Tap, exchange: Exchange, response: Any) -> None:
    try:
        exchange.responded(response.status_code, response.headers)
        urllib3_body.tap(response.raw, exchange)
    except Exception as error:  # noqa: BLE001 - see guard
        exchange.finish("dropped")
        tap.guard.caught("reading a response of requests", error)
