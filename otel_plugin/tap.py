"""Where the mounts report to. A mount knows one HTTP library; everything else lies behind this.

A mount forwards what it sees and interprets nothing::

    exchange = tap.begin("POST", host, path, headers, body)  # None: no call to a model, leave it alone
    if exchange is None:
        return original(...)
    try:
        with tap.sending():      # what this library sends through another one is not seen twice
            response = original(...)
    except BaseException as error:
        exchange.failed(error)
        raise
    exchange.responded(response.status, response.headers)
    ...                        # wrap the body below its decoding and report to the exchange:
    exchange.chunk(raw_bytes)  # each piece, as it passes by, still compressed
    exchange.finish("ended")   # or "closed", "dropped", or exchange.failed(error)

Where the library has read and decoded the whole body by itself: ``exchange.whole(body)`` and ``finish("ended")``.

The request thread keeps references and puts them into a queue: decompressing, parsing, hashing and writing are the
worker's business.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

from opentelemetry.context import get_current

from prefixscope.otel_plugin.endpoints import Endpoints
from prefixscope.otel_plugin.exchange import Exchange, Headers
from prefixscope.otel_plugin.guard import Guard

_SENDING: Final[ContextVar[bool]] = ContextVar("prefixscope_sending", default=False)
"""Set while a request is being sent: a library that sends through another one must not be seen twice."""


class Tap:
    """Decides which requests are calls to a model and hands each finished one to ``deliver``, exactly once.

    The methods of an exchange may be called from any thread, task or finaliser. None of them raises or blocks.

    Args:
        endpoints: tells calls to models from other requests.
        deliver: takes a finished exchange; must not block.
        guard: takes our own errors.
        request_cap: bytes of a request body that are kept; a larger one is not.
        response_cap: bytes of a response body that are kept.
        amend: gives a body to send instead, for options that say so; None = never.
    """

    def __init__(  # noqa: PLR0913 - its collaborators
        self,
        endpoints: Endpoints,
        deliver: Callable[[Exchange], None],
        guard: Guard,
        *,
        request_cap: int,
        response_cap: int,
        amend: Callable[[Exchange], bytes | None] | None = None,
    ) -> None:
        self.active = True
        self.guard = guard
        self._endpoints = endpoints
        self._deliver = deliver
        self._request_cap = request_cap
        self._response_cap = response_cap
        self._amend = amend
        self._open: dict[int, Exchange] = {}

    def begin(self, method: str, host: str, path: str, headers: Headers, body: object) -> Exchange | None:
        """A request is about to be sent.

        Args:
            method: the HTTP method.
            host: the host called, without port.
            path: the path as sent; a query may follow.
            headers: the request's. They are read after the request was sent, so headers added on the way are seen.
            body: the whole body as it will be sent; anything but bytes means that it is not at hand.

        Returns:
            Whom to report to; None for everything that is no call to a model.
        """
        if method != "POST" or not self.active or _SENDING.get():
            return None
        try:
            api = self._endpoints.api(host, path)
            return None if api is None else self._opened(api, host, path, headers, body)
        except Exception as error:  # noqa: BLE001 - see guard
            self.guard.caught("capture of a request", error)
            return None

    def sends(self, exchange: Exchange, body: object) -> None:
        """The body, for a mount that has it only after ``begin``; as there."""
        exchange.request_body = self._kept(body)

    def amended(self, exchange: Exchange) -> bytes | None:
        """The body to send instead of the application's. None, always, unless an option that says so is on."""
        if self._amend is None:
            return None
        try:
            body = self._amend(exchange)
        except Exception as error:  # noqa: BLE001 - see guard
            self.guard.caught("changing a request", error)
            return None
        if body is not None:
            exchange.request_body = body
        return body

    @staticmethod
    def sending() -> "Sending":
        """A context manager around the library's own sending: other mounts below it see nothing of the call."""
        return Sending()

    def exit(self) -> None:
        """The process ends: what is still open is reported as it stands."""
        for exchange in list(self._open.values()):
            exchange.finish("exited")

    def forget(self) -> None:
        """After a fork: what was open then is the parent's to report."""
        self._open = {}

    def _opened(self, api: str, host: str, path: str, headers: Headers, body: object) -> Exchange:
        exchange = Exchange(
            api=api,
            host=host,
            path=path,
            request_headers=headers,
            request_body=self._kept(body),
            context=get_current(),
            cap=self._response_cap,
            claim=self._claim,
            deliver=self._delivered,
        )
        self._open[id(exchange)] = exchange
        return exchange

    def _kept(self, body: object) -> bytes | None:
        return body if isinstance(body, bytes) and len(body) <= self._request_cap else None

    def _claim(self, exchange: Exchange) -> bool:
        """True for the first who asks: taking an item out of a dictionary is atomic."""
        return self._open.pop(id(exchange), None) is not None

    def _delivered(self, exchange: Exchange) -> None:
        try:
            self._deliver(exchange)
        except Exception as error:  # noqa: BLE001 - see guard
            self.guard.caught("handing over a call", error)


class Sending:
    """Marks the current context as sending."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _SENDING.set(True)

    def __exit__(self, *_: object) -> None:
        _SENDING.reset(self._token)
