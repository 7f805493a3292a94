"""An OTLP/HTTP receiver for traces and logs, in JSON and protobuf, that writes the calls in them into a store.

What is answered follows opentelemetry.io/docs/specs/otlp/#otlphttp (checked 2026-11-30): the same content type as asked
with, 503 with Retry-After while too much waits, rejected spans as a partial success.
"""

import itertools
import json
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, cast

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsPartialSuccess, ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from prefixscope.analyzer import collect_body
from prefixscope.analyzer.collect_body import RefusedError
from prefixscope.analyzer.collect_writer import Writer
from prefixscope.analyzer.ingest import Observed, Rejected, otlp_http
from prefixscope.analyzer.ingest.otlp_http import Encoding, Signal
from prefixscope.analyzer.ingest.results import Place
from prefixscope.otel_plugin.fingerprint import Fingerprinter

_SIGNALS: Mapping[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_TYPES: Mapping[str, Encoding] = {"application/json": "json", "application/x-protobuf": "protobuf"}
_AT_ONCE: Final = 8  # bodies that are in memory together
_TURN: Final = 10.0  # seconds that a request waits for its turn
_RETRY_AFTER: Final = "5"  # seconds
_IDLE: Final = 30.0  # seconds without a byte after which a connection is closed
_DRAINED: Final = 64 << 20  # bytes of a refused body that are read and forgotten, so that the refusal is heard


class Receiver(ThreadingHTTPServer):
    """Serves until ``shutdown``.

    Args:
        address: IP address and port to listen on; port 0 = a free one.
        writer: takes the calls.
        printer: makes the fingerprints of prompts whose text is sent.
        tell: takes a message for the user.

    Raises:
        OSError: the address cannot be listened on.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self, address: tuple[str, int], writer: Writer, printer: Fingerprinter, tell: Callable[[str], None]
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.turns = threading.BoundedSemaphore(_AT_ONCE)
        self._writer = writer
        self._printer = printer
        self._printing = threading.Lock()  # a fingerprinter remembers, and is not made for threads
        self._tell = tell
        self._told: set[str] = set()
        self._numbers = itertools.count(1)
        super().__init__(address, _Handler)

    @property
    def url(self) -> str:
        """What exporters are pointed at."""
        host, port = self.server_address[:2]
        name = host.decode() if isinstance(host, bytes | bytearray) else host
        return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"

    def take(self, body: bytes, signal: Signal, encoding: Encoding) -> list[Rejected]:
        """Reads a body and hands its calls to the writer; gives what had to be rejected.

        Raises:
            RefusedError: it cannot be read, or too much waits.
        """
        place = Place(f"collect:{signal}", next(self._numbers))
        try:
            with self._printing:
                found = otlp_http.read(body, signal, encoding, self._printer, place)
        except otlp_http.NotExportError as error:
            raise RefusedError(HTTPStatus.BAD_REQUEST, str(error)) from error
        if not self._writer.put(found, len(body)):
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too much waits to be written: try again later")
        return [one for one in found if isinstance(one, Rejected)]

    def tell_once(self, topic: str, message: str) -> None:
        """A message for the user, the first of its topic."""
        if topic not in self._told:
            self._told.add(topic)
            self._tell(message)

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that broke is no news; anything else is a bug."""
        del request, client_address
        import sys  # noqa: PLC0415

        error = sys.exception()
        if not isinstance(error, OSError):
            self.tell_once("bug", f"prefixscope failed on a request ({type(error).__name__}: {error}): please report it")
