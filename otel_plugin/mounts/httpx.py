"""``Client.send`` and ``AsyncClient.send`` of httpx and httpx2: where all requests pass, whatever their transport.

The response's stream is wrapped below the decoding, in a class of the module's own kind, which its responses ask for.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from types import ModuleType
from typing import Any

from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.mounts import Undo, replace
from prefixscope.otel_plugin.tap import Tap


def mount(module: ModuleType, tap: Tap) -> Undo:
    """Shows ``tap`` the calls of ``module``, which is httpx or httpx2."""
    sync_body = type("SyncBody", (_SyncBody, module.SyncByteStream), {})
    async_body = type("AsyncBody", (_AsyncBody, module.AsyncByteStream), {})
    undo_sync = replace(module.Client, "send", tap, lambda original: _sync_send(original, tap, sync_body))
    undo_async = replace(module.AsyncClient, "send", tap, lambda original: _async_send(original, tap, async_body))

    def undo() -> None:
        undo_sync()
        undo_async()

    return undo


def _sync_send(original: Callable[..., Any], tap: Tap, body: type) -> Callable[..., Any]:
    def send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _begin(tap, request)
        if exchange is None:
            return original(client, request, *args, **kwargs)
        try:
            with tap.sending():
                response = original(client, request, *args, **kwargs)
        except BaseException as error:
            exchange.failed(error)
            raise
        _responded(tap, exchange, response, body)
        return response

    return send


def _async_send(original: Callable[..., Any], tap: Tap, body: type) -> Callable[..., Any]:
    async def send(client: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        exchange = _begin(tap, request)
        if exchange is None:
            return await original(client, request, *args, **kwargs)
        try:
            with tap.sending():
                response = await original(client, request, *args, **kwargs)
        except BaseException as error:  # a cancelled task included
            exchange.failed(error)
            raise
        _responded(tap, exchange, response, body)
        return response

    return send


def _begin(tap: Tap, request: Any) -> Exchange | None:
    if not tap.active or request.method != "POST":
        return None
    try:
        url = request.url
        exchange = tap.begin("POST", url.host, url.raw_path.decode("ascii"), request.headers, _content(request))
        changed = tap.amended(exchange) if exchange is not None else None
        if changed is not None:
            _change(request, changed)
    except Exception as error:  # noqa: BLE001 - see guard
        tap.guard.caught("reading a request of httpx", error)
        return None
    return exchange


def _content(request: Any) -> bytes | None:
    """The request's body; None if it is a generator, which only the transport may read."""
    try:
        return request.content  # type: ignore[no-any-return]
    except Exception:  # noqa: BLE001 - RequestNotRead, of either module
        return None


def _change(request: Any, body: bytes) -> None:
    """Other bytes in the same request object, which the application may hold."""
    request.stream = type(request.stream)(body)
    request._content = body  # noqa: SLF001 - what Request.content answers
    request.headers["Content-Length"] = str(len(body))


def _responded(tap: Tap, exchange: Exchange, response: Any, body: type) -> None:
    try:
        exchange.responded(response.status_code, response.headers)
        if response.is_closed or response.is_stream_consumed:  # read by httpx, or by an event hook
            exchange.whole(response.content)
            exchange.finish("ended")
        else:
            response.stream = body(response.stream, exchange)
    except Exception as error:  # noqa: BLE001 - see guard
        exchange.finish("dropped")
        tap.guard.caught("reading a response of httpx", error)


class _Body:
    """Forwards a stream and reports it. Read anew, it goes on with the same body, as OpenAI's SDK does to drain it."""

    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    def __getattr__(self, name: str) -> Any:
        """What others look for on a stream, such as ``elapsed``."""
        if name == "_stream":  # a copy that is being made
            raise AttributeError(name)
        return getattr(self._stream, name)

    def __del__(self) -> None:
        self._exchange.finish("dropped")


class _SyncBody(_Body):
    def __iter__(self) -> Iterator[bytes]:
        exchange = self._exchange
        try:
            for chunk in self._stream:
                exchange.chunk(chunk)
                yield chunk
        except GeneratorExit:  # nobody reads on here: closed, dropped, or read on by another iterator
            raise
        except BaseException as error:
            exchange.failed(error)
            raise
        exchange.finish("ended")

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._exchange.finish("closed")


class _AsyncBody(_Body):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        exchange, stream = self._exchange, aiter(self._stream)
        try:
            async for chunk in stream:
                exchange.chunk(chunk)
                yield chunk
        except GeneratorExit:
            raise
        except BaseException as error:  # a cancelled task included
            exchange.failed(error)
            raise
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
        exchange.finish("ended")

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            self._exchange.finish("closed")
