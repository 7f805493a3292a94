"""One HTTP request to a model and its answer, as a mount saw them on the wire. Holds references, interprets nothing."""

from collections import deque
from collections.abc import Callable, Iterable
from time import perf_counter_ns, time_ns
from typing import Any, Literal, Protocol

from opentelemetry.context import Context

Outcome = Literal["ended", "closed", "failed", "dropped", "exited"]
"""How a body came to its end: read to its end; closed by the application; an exception, a cancelled task included;
neither closed nor read to its end before it was garbage; still open when the process exited."""


class Headers(Protocol):
    """What every HTTP library's headers can do. Read later and on another thread, so hand over what is not changed."""

    def items(self) -> Iterable[tuple[Any, Any]]: ...


class Exchange:
    """Created by ``Tap.begin``; a mount reports to it and forwards everything to the application unchanged.

    In order: ``responded`` once there are a status and headers, ``chunk`` for each piece of the body or ``whole`` for
    all of it, and one of ``finish`` and ``failed``. Only the first of these last two counts, so a mount may call both,
    and from any thread or finaliser. No method raises, blocks or keeps more than the cap.
    """

    __slots__ = (
        "_claim",
        "_deliver",
        "_half",
        "api",
        "chunks",
        "context",
        "decoded",
        "ended",
        "error",
        "first_byte",
        "host",
        "kept",
        "last_byte",
        "outcome",
        "path",
        "request_body",
        "request_headers",
        "response_headers",
        "size",
        "started",
        "started_ns",
        "status",
        "tail",
        "weight",
    )

    def __init__(  # noqa: PLR0913 - what is known when a request starts
        self,
        *,
        api: str,
        host: str,
        path: str,
        request_headers: Headers,
        request_body: bytes | None,
        context: Context,
        cap: int,
        claim: Callable[["Exchange"], bool],
        deliver: Callable[["Exchange"], None],
    ) -> None:
        self.started_ns = time_ns()  # UTC, Unix epoch
        self.started = perf_counter_ns()  # durations are differences of this clock
        self.api = api  # as the path tells it; "" = the shape of the body must
        self.host = host
        self.path = path
        self.request_headers = request_headers
        self.request_body = request_body
        self.context = context
        self.status: int | None = None
        self.response_headers: Headers | None = None
        self.first_byte: int | None = None
        self.last_byte: int | None = None
        self.chunks: list[bytes] = []  # the beginning of the body
        self.tail: deque[bytes] | None = None  # beyond half of the cap: the latest pieces
        self.size = 0  # bytes of the body, kept or not
        self.kept = 0  # bytes of the body that are held
        self.decoded = False  # the chunks are without Content-Encoding
        self.ended: int | None = None
        self.outcome: Outcome = "ended"
        self.error = ""  # class of the exception that ended it
        self.weight = 0  # bytes that it keeps alive, once it is finished
        self._half = cap // 2
        self._claim = claim
        self._deliver = deliver

    def responded(self, status: int, headers: Headers) -> None:
        """The status line and the headers of the response are there."""
        self.status = status
        self.response_headers = headers

    def chunk(self, data: bytes) -> None:
        """A piece of the body as it came from the wire, still compressed."""
        if self.ended is not None or not data:
            return
        self.last_byte = perf_counter_ns()
        if self.first_byte is None:
            self.first_byte = self.last_byte
        self.size += len(data)
        if self.tail is None and self.size <= self._half:
            self.chunks.append(data)
            self.kept = self.size
        else:
            self._keep_last(data)

    def whole(self, data: bytes) -> None:
        """The body of a response that the library has read and decoded by itself."""
        self.decoded = True
        self.size = len(data)
        if self.size <= 2 * self._half:  # an answer of one piece is of no use in parts
            self.chunks.append(data)
            self.kept = self.size

    def finish(self, outcome: Outcome, error: str = "") -> None:
        """The body has ended, one way or another; told a second time, this does nothing."""
        if self._claim(self):
            self.ended = perf_counter_ns()
            self.outcome = outcome
            self.error = error
            self.weight = len(self.request_body or b"") + self.kept
            self._deliver(self)

    def failed(self, error: BaseException) -> None:
        """The request or its body ended with ``error``, which goes on to the application."""
        self.finish("failed", type(error).__name__)

    def shed(self) -> None:
        """Lets go of the request's body, when there is no room: its usage matters more than its prompt."""
        self.request_body = None
        self.weight = self.kept

    @property
    def cut(self) -> bool:
        """Whether a part of the body was over the cap and is missing."""
        return self.size > self.kept

    def _keep_last(self, data: bytes) -> None:
        """Streams tell their usage at the end: when the beginning is full, the latest chunks are kept."""
        if self.tail is None:
            self.tail = deque()
        self.tail.append(data)
        self.kept += len(data)
        while self.kept > 2 * self._half and self.tail:
            self.kept -= len(self.tail.popleft())


def plain(headers: Headers | None) -> dict[str, str]:
    """Headers by lower-case name."""
    pairs = headers.items() if headers is not None else ()
    return {_text(name).lower(): _text(value) for name, value in pairs}


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
