"""Stands in front of the body of an aiohttp response and reports what the application reads of it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from prefixscope.otel_plugin.exchange import Exchange


class Content:
    """A ``StreamReader`` to whoever asks, with every way of reading it tapped; the rest is forwarded.

    A subclass would not do: aiohttp's parser keeps feeding the reader it has, and readers have no room for attributes.
    """

    __slots__ = ("_exchange", "_reader")

    def __init__(self, reader: Any, exchange: Exchange) -> None:
        object.__setattr__(self, "_reader", reader)
        object.__setattr__(self, "_exchange", exchange)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._reader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._reader, name, value)

    def __repr__(self) -> str:
        return repr(self._reader)

    async def read(self, *args: Any, **kwargs: Any) -> Any:
        return await self._seen(self._reader.read(*args, **kwargs))

    async def readany(self) -> Any:
        return await self._seen(self._reader.readany())

    async def readline(self, **kwargs: Any) -> Any:
        return await self._seen(self._reader.readline(**kwargs))

    async def readuntil(self, *args: Any, **kwargs: Any) -> Any:
        return await self._seen(self._reader.readuntil(*args, **kwargs))

    async def readexactly(self, n: int) -> Any:
        return await self._seen(self._reader.readexactly(n))

    async def readchunk(self) -> Any:
        return await self._seen(self._reader.readchunk())

    def read_nowait(self, *args: Any, **kwargs: Any) -> Any:
        data = self._reader.read_nowait(*args, **kwargs)
        self._report(data)
        return data

    def iter_chunked(self, n: int) -> AsyncIterator[Any]:
        return self._watched(self._reader.iter_chunked(n))

    def iter_any(self) -> AsyncIterator[Any]:
        return self._watched(self._reader.iter_any())

    def iter_chunks(self) -> AsyncIterator[Any]:
        return self._watched(self._reader.iter_chunks())

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._watched(aiter(self._reader))

    def set_exception(self, *args: Any, **kwargs: Any) -> None:
        """Called by aiohttp on a response that the application closes or releases."""
        self._exchange.finish("closed")
        self._reader.set_exception(*args, **kwargs)

    def __del__(self) -> None:
        self._exchange.finish("dropped")

    def _watched(self, chunks: AsyncIterator[Any]) -> AsyncIterator[Any]:
        return _Chunks(chunks, self._exchange, self._report)

    async def _seen(self, reading: Awaitable[Any]) -> Any:
        try:
            data = await reading
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._report(data)
        return data

    def _report(self, data: Any) -> None:
        data = data[0] if isinstance(data, tuple) else data  # of iter_chunks: the bytes, and whether a chunk ends
        if data:
            self._exchange.chunk(data)
        if self._reader.at_eof():
            self._exchange.finish("ended")


class _Chunks:
    """An iterator of aiohttp's, watched."""

    __slots__ = ("_chunks", "_exchange", "_report")

    def __init__(self, chunks: AsyncIterator[Any], exchange: Exchange, report: Callable[[Any], None]) -> None:
        self._chunks = chunks
        self._exchange = exchange
        self._report = report  # keeps the content alive while it is iterated

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> Any:
        try:
            data = await anext(self._chunks)
        except StopAsyncIteration:
            self._exchange.finish("ended")
            raise
        except BaseException as error:
            self._exchange.failed(error)
            raise
        self._report(data)
        return data
