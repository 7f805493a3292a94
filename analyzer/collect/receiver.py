"""An OTLP/HTTP receiver for traces and logs, in JSON and protobuf, that writes the calls in them into a store.

What is answered follows opentelemetry.io/docs/specs/otlp/#otlphttp (checked 2026-11-30): the same content type as asked
with, 503 with Retry-After while too much waits, rejected spans as a partial success.
"""

import itertools
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
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

from prefixscope.analyzer.collect import body as collect_body
from prefixscope.analyzer.collect.body import RefusedError
from prefixscope.analyzer.collect.writer import Writer
from prefixscope.analyzer.ingest import Rejected, otlp_http
from prefixscope.analyzer.ingest.otlp_http import Encoding, Signal
from prefixscope.analyzer.ingest.results import Place
from prefixscope.otel_plugin.fingerprint import Fingerprinter

_SIGNALS: Mapping[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_TYPES: Mapping[str, Encoding] = {"application/json": "json", "application/x-protobuf": "protobuf"}
_AT_ONCE: Final = 8  # bodies that are in memory together
_TURN: Final = 10.0  # seconds that a request waits for its turn
_RETRY_AFTER: Final = "5"  # seconds
_IDLE: Final = 30.0  # seconds without a byte after which a connection is closed
_LINGER: Final = 2.0  # seconds that a refused sender may go on without a byte
_MESSAGE: Final = 1000  # characters of reasons in an answer
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

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - http.server's signature
        """A connection that broke is no news; anything else is a bug."""
        error = sys.exception()
        if not isinstance(error, OSError):
            self.tell_once(
                "bug", f"prefixscope failed on a request ({type(error).__name__}: {error}): please report it"
            )


class _Handler(BaseHTTPRequestHandler):
    """One connection; requests come one after the other."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE
    server_version = "prefixscope"
    sys_version = ""

    def do_POST(self) -> None:
        """Takes an export request."""
        receiver = cast("Receiver", self.server)
        encoding: Encoding = "json"
        self._unread = True
        try:
            signal, encoding = self._signal(), self._encoding()
            rejected = self._taken(receiver, signal, encoding)
        except RefusedError as refusal:
            receiver.tell_once(str(refusal.status), f"refused a request to {self.path[:80]!r}: {refusal}")
            self._refuse(refusal, encoding)
        else:
            self._answer(HTTPStatus.OK, encoding, _accepted(signal, encoding, rejected))

    def do_GET(self) -> None:
        """Nothing is to be seen here."""
        body = _refusal("prefixscope takes OTLP by POST to /v1/traces and /v1/logs", "json")
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "json", body, {"Allow": "POST"})

    def log_message(self, *_: object) -> None:
        """Requests are not logged: there are many, and all alike."""

    def _signal(self) -> Signal:
        if self.headers.get("Origin") is not None:
            raise RefusedError(HTTPStatus.FORBIDDEN, "pages in a browser may not write here")
        path = self.path.partition("?")[0].rstrip("/")
        if path not in _SIGNALS:
            hint = " (OTEL_METRICS_EXPORTER=none switches metrics off)" if path == "/v1/metrics" else ""
            raise RefusedError(HTTPStatus.NOT_FOUND, f"only /v1/traces and /v1/logs are taken{hint}")
        return _SIGNALS[path]

    def _encoding(self) -> Encoding:
        told = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if told not in _TYPES:
            known = " or ".join(_TYPES)
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"Content-Type {told[:40]!r}: send {known}")
        return _TYPES[told]

    def _taken(self, receiver: Receiver, signal: Signal, encoding: Encoding) -> list[Rejected]:
        if not receiver.turns.acquire(timeout=_TURN):
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "too many requests at once: try again later")
        try:
            body = collect_body.read(self.rfile, {name.lower(): value for name, value in self.headers.items()})
            self._unread = False
            return receiver.take(body, signal, encoding)
        finally:
            receiver.turns.release()

    def _refuse(self, refusal: RefusedError, encoding: Encoding) -> None:
        headers = {"Retry-After": _RETRY_AFTER} if refusal.status == HTTPStatus.SERVICE_UNAVAILABLE else {}
        if self._unread:
            headers["Connection"] = "close"
        self._answer(refusal.status, encoding, _refusal(str(refusal), encoding), headers)
        if self._unread:
            self._linger()

    def _linger(self) -> None:
        """Reads on for a while: closing with unread data would reset the connection before the answer is read."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(_LINGER)
            left = _DRAINED
            while left > 0 and (piece := self.rfile.read1(1 << 16)):
                left -= len(piece)

    def _answer(
        self, status: HTTPStatus, encoding: Encoding, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", next(name for name, known in _TYPES.items() if known == encoding))
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def _accepted(signal: Signal, encoding: Encoding, rejected: Sequence[Rejected]) -> bytes:
    """The answer to a request that was taken, with what was wrong in it."""
    reasons = "; ".join(dict.fromkeys(one.reason for one in rejected))[:_MESSAGE]
    if encoding == "json":
        name = "rejectedSpans" if signal == "traces" else "rejectedLogRecords"
        partial = {name: str(len(rejected)), "errorMessage": reasons}
        return json.dumps({"partialSuccess": partial} if rejected else {}).encode()
    if not rejected:
        return b""
    if signal == "traces":
        spans = ExportTracePartialSuccess(rejected_spans=len(rejected), error_message=reasons)
        return cast("bytes", ExportTraceServiceResponse(partial_success=spans).SerializeToString())
    records = ExportLogsPartialSuccess(rejected_log_records=len(rejected), error_message=reasons)
    return cast("bytes", ExportLogsServiceResponse(partial_success=records).SerializeToString())


def _refusal(message: str, encoding: Encoding) -> bytes:
    """A google.rpc.Status with a message alone. OTLP's own Status has it in the same field, so it is the same bytes."""
    if encoding == "json":
        return json.dumps({"message": message}).encode()
    return cast("bytes", Status(message=message).SerializeToString())
