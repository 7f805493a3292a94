"""An exchange -> the call it was. All parsing happens here: pure but for the fingerprinter's memory."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opentelemetry import trace

from prefixscope.otel_plugin import account, decoding, eventstream, naming, providers, segments, sse, usage
from prefixscope.otel_plugin.account import FACTS
from prefixscope.otel_plugin.exchange import Exchange, Headers
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.json_memo import JsonMemo
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, Prompt, Usage
from prefixscope.otel_plugin.wire import apis

Json = dict[str, Any]

_DECODED_LIMIT = 256 << 20  # bytes that a body may have after decompression
_LAST_EVENT = re.compile(FACTS["stream"]["last_event"].encode())
_LAST_BYTES = 4096  # of a stream, in which its last event is looked for
_ERROR_TYPE = re.compile(r"[\w.:/-]{1,80}")  # a name, and no sentence that may quote the prompt
_WANTED = re.compile(usage.telling().pattern + rb'|"error"\s*:\s*\{|"type"\s*:\s*"error"')


class Call(NamedTuple):
    """What an exchange was. ``request`` and ``response`` are the texts, and empty unless content is captured."""

    record: CallRecord
    request: str = ""
    response: str = ""


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a response body says."""

    usage: Usage = field(default_factory=Usage)
    error: str = ""
    complete: bool = False  # the provider's last event was seen
    text: bytes = b""


class Reader:
    """Reads exchanges. Not thread safe, as the fingerprinter is not.

    Args:
        fingerprinter: makes the fingerprints; None = there is no key, so prompts are not fingerprinted.
        guard: takes the errors of the parsers; what they should have told is then missing from the record.
        service: of calls that name none.
        content: keep the texts.
        fingerprint_share: of conversations whose prompts are fingerprinted.
        memory: bytes of request bodies that are held, so as not to parse them again.
    """

    def __init__(  # noqa: PLR0913 - its settings
        self,
        fingerprinter: Fingerprinter | None,
        guard: Guard,
        *,
        service: str = "",
        content: bool = False,
        fingerprint_share: float = 1.0,
        memory: int = 16 << 20,
    ) -> None:
        self._fingerprinter = fingerprinter
        self._guard = guard
        self.service = service
        self._content = content
        self._share = fingerprint_share
        self._prompt = guard.runs("reading a prompt", self._prompt_of)
        self._bodies = JsonMemo(memory)
        self._answer = guard.runs("reading a response", _answer)
        self._print = guard.runs("fingerprinting a prompt", self._fingerprinted)

    def read(self, exchange: Exchange) -> Call | None:
        """The call that ``exchange`` was; None if its body shows that it was none."""
        headers = plain(exchange.request_headers)
        prompt = self._prompt(exchange, headers)
        if _is_no_call(exchange, prompt):
            return None
        model = prompt.model if prompt else apis.model_in(exchange.path)
        api = prompt.api if prompt else exchange.api
        provider = providers.identify(host=exchange.host, path=exchange.path, model=model, api=api)
        answer = self._answer(exchange, provider) or _Answer()
        names = naming.names(exchange.context)
        session = names.conversation_id or account.first(headers, FACTS["session"]["headers"])
        session = session or (prompt.session if prompt else "")
        place = _place(exchange)
        drawn_by = session or place.get("trace_id") or str(exchange.started_ns)
        record = CallRecord(
            started_ns=exchange.started_ns,
            service=names.service or self.service,
            provider=provider,
            api=api,
            model=model or answer.usage.served_model,
            usage=answer.usage,
            fingerprint=self._print(prompt, drawn_by) if prompt else None,
            status=exchange.status,
            error=exchange.error or answer.error,
            account=self._keyed(account.identity(headers, exchange.host, exchange.path)),
            region=account.region(exchange.host, exchange.path),
            session_id=session,
            request_id=account.first(plain(exchange.response_headers), FACTS["request_id"]),
            instrumentation="prefixscope",
            aborted=exchange.outcome != "ended" and exchange.status is not None and not answer.complete,
            retries=_count(account.first(headers, FACTS["retries"])),
            prompt_name=names.prompt_name,
            **_times(exchange),
            **place,
        )
        return Call(record, *self._texts(exchange, answer))

    def _prompt_of(self, exchange: Exchange, headers: Mapping[str, str]) -> Prompt | None:
        request = _read_json(self._bodies.loads, exchange.request_body or b"")
        if not isinstance(request, dict):
            return None
        for header, member in FACTS["body"].items():
            if value := headers.get(header):
                request.setdefault(member, [part.strip() for part in value.split(",")] if "," in value else value)
        return segments.parse(request, api=exchange.api, path=exchange.path)

    def _fingerprinted(self, prompt: Prompt, drawn_by: str) -> Fingerprint | None:
        if self._fingerprinter is None or not prompt.segments or not self._sampled(drawn_by):
            return None
        return self._fingerprinter.fingerprint(prompt)

    def _sampled(self, drawn_by: str) -> bool:
        """Conversations are in or out as a whole: prefixes are compared among their calls."""
        return self._share >= 1 or int(self._keyed(drawn_by), 16) < self._share * 2**64

    def _keyed(self, text: str) -> str:
        return self._fingerprinter.keyed(text) if self._fingerprinter else ""

    def _texts(self, exchange: Exchange, answer: _Answer) -> tuple[str, str]:
        if not self._content:
            return "", ""
        return (exchange.request_body or b"").decode("utf-8", "replace"), answer.text.decode("utf-8", "replace")


def plain(headers: Headers | None) -> dict[str, str]:
    """Headers by lower-case name."""
    pairs = headers.items() if headers is not None else ()
    return {_text(name).lower(): _text(value) for name, value in pairs}


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _is_no_call(exchange: Exchange, prompt: Prompt | None) -> bool:
    """A path may be a web application's own; then its body is no prompt."""
    if prompt is None:
        return not exchange.api
    return not prompt.segments and not prompt.model


def _answer(exchange: Exchange, provider: str) -> _Answer:
    headers = plain(exchange.response_headers)
    chunks = [*exchange.chunks, *(exchange.tail or ())]
    encoding = "" if exchange.decoded else headers.get("content-encoding", "")
    data = decoding.decode(chunks, encoding, limit=_DECODED_LIMIT)
    kind = headers.get("content-type", "")
    error = _error_name(headers.get("x-amzn-errortype", "").partition(":")[0])
    if eventstream.CONTENT_TYPE in kind:
        return _of_events(list(eventstream.decode(data)), data, provider, error)
    if "text/event-stream" in kind or data[:6].startswith((b"data:", b"event:")):
        return _of_events(list(sse.decode(data, wanted=_WANTED)), data, provider, error)
    body = _read_json(json.loads, data)
    if isinstance(body, list):  # Gemini's stream without alt=sse is one array
        return _of_events([event for event in body if isinstance(event, dict)], data, provider, error)
    if not isinstance(body, dict):
        return _Answer(error=error, text=data)
    return _Answer(usage.from_body(body, provider=provider), error or _error_type(body), complete=True, text=data)


def _of_events(events: list[Json], data: bytes, provider: str, error: str) -> _Answer:
    found = usage.from_events(events, provider=provider)
    error = error or next(filter(None, map(_error_type, events)), "")
    complete = found.state == "reported" or bool(_LAST_EVENT.search(data[-_LAST_BYTES:]))
    return _Answer(found, error, complete=complete, text=data)


def _error_type(body: Json) -> str:
    """The provider's name for what went wrong; never its message."""
    inner = body.get("response")
    error = body.get("error") or (inner.get("error") if isinstance(inner, dict) else None)
    holders: Iterable[Any] = (
        (error.get("type"), error.get("status"), error.get("code")) if isinstance(error, dict) else ()
    )
    own = body.get("code") if body.get("type") == "error" else None  # OpenAI Responses, in the stream
    return next(filter(None, map(_error_name, [*holders, own, body.get("__type")])), "")


def _error_name(value: Any) -> str:
    return value if isinstance(value, str) and _ERROR_TYPE.fullmatch(value) else ""


def _read_json(loads: Callable[[bytes], Any], data: bytes) -> Any:
    try:
        return loads(data) if data else None
    except (ValueError, RecursionError):  # no JSON, or nested beyond reason
        return None


def _times(exchange: Exchange) -> dict[str, Any]:
    """Durations. A body that nobody read to its end is over with its last byte, not when it was closed or lost."""
    first, last, ended = exchange.first_byte, exchange.last_byte, exchange.ended
    over = last if last is not None and exchange.outcome not in {"ended", "failed"} else ended
    return {
        "duration_ms": (over - exchange.started) / 1e6 if over is not None else None,
        "ttft_ms": (first - exchange.started) / 1e6 if first is not None else None,
    }


def _place(exchange: Exchange) -> dict[str, Any]:
    """Where in a trace the request was sent."""
    around = trace.get_current_span(exchange.context).get_span_context()
    if not around.is_valid:
        return {}
    return {"trace_id": f"{around.trace_id:032x}", "parent_span_id": f"{around.span_id:016x}"}


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
