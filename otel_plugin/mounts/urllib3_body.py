"""Taps the body of a urllib3 response, for the libraries that hand it on: botocore and requests.

The response becomes an instance of a subclass of its own class. So it stays the same object, with all its attributes,
and whatever reads it, ``stream``, iteration, ``json`` or ``readline``, goes through the methods below.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from prefixscope.otel_plugin.exchange import Exchange


def tap(response: Any, exchange: Exchange) -> None:
    """Report to ``exchange`` what is read of ``response`` from now on, and how that ends.

    Raises:
        AttributeError, TypeError: ``response`` is of a kind that cannot be tapped (a test's double without attributes).
    """
    kind: type = type(response)
    response.__dict__.update(_prefixscope_exchange=exchange, _prefixscope_reading=False)
    if kind not in _kinds:
        mixed_in = _TappedWithRead1 if hasattr(kind, "read1") else _Tapped
        _kinds[kind] = type(kind.__name__, (mixed_in, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    response.__class__ = _kinds[kind]


_kinds: dict[type, type] = {}  # class of a response -> the same, tapped


class _Tapped:
    """What is mixed into the class of the response. Parameters and results are those of urllib3 2."""

    _prefixscope_exchange: Exchange
    _prefixscope_reading: bool  # urllib3 closes a response when reading it fails: that is no close by the application
    decode_content: bool

    def read(self, amt: int | None = None, decode_content: bool | None = None, *args: Any, **kwargs: Any) -> Any:
        data = self._prefixscope_read(super().read, amt, decode_content, *args, **kwargs)  # type: ignore[misc]
        self._prefixscope_seen(data, decodes=self.decode_content if decode_content is None else decode_content)
        if amt is None or amt < 0 or (amt and not data):
            self._prefixscope_exchange.finish("ended")
        return data

    def read_chunked(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        with closing(super().read_chunked(amt, decode_content)) as chunks:  # type: ignore[misc]
            while (data := self._prefixscope_read(next, chunks, None)) is not None:
                self._prefixscope_seen(data, decodes=bool(decode_content))
                yield data
        self._prefixscope_exchange.finish("ended")

    def close(self) -> None:
        if not self._prefixscope_reading:
            self._prefixscope_exchange.finish("closed")
        super().close()  # type: ignore[misc]

    def __del__(self) -> None:
        self._prefixscope_exchange.finish("dropped")
        super().__del__()  # type: ignore[misc]

    def _prefixscope_read(self, read: Any, *args: Any, **kwargs: Any) -> Any:
        self._prefixscope_reading = True
        try:
            return read(*args, **kwargs)
        except BaseException as error:
            self._prefixscope_exchange.failed(error)
            raise
        finally:
            self._prefixscope_reading = False

    def _prefixscope_seen(self, data: bytes | None, *, decodes: bool) -> None:
        if data:
            self._prefixscope_exchange.decoded = decodes
            self._prefixscope_exchange.chunk(data)


class _TappedWithRead1(_Tapped):
    """For an urllib3 that has ``read1``: a response of an older one must not seem to have it."""

    def read1(self, amt: int | None = None, decode_content: bool | None = None) -> Any:
        data = self._prefixscope_read(super().read1, amt, decode_content)  # type: ignore[misc]
        self._prefixscope_seen(data, decodes=self.decode_content if decode_content is None else decode_content)
        if not data and amt != 0:
            self._prefixscope_exchange.finish("ended")
        return data
