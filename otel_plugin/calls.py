"""An exchange -> the call it was. Pure but for what fingerprinter, keys and parsed bodies are remembered by."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry import trace

from prefixscope.otel_plugin import account, naming, providers, response, segments
from prefixscope.otel_plugin.account import FACTS
from prefixscope.otel_plugin.asked import Asked, Keys
from prefixscope.otel_plugin.exchange import Exchange, plain
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.json_memo import JsonMemo
from prefixscope.otel_plugin.record import UNKNOWN, CallRecord, Fingerprint, Prompt, Reuse
from prefixscope.otel_plugin.response import Json, Response, read_json
from prefixscope.otel_plugin.wire import apis


class Call(NamedTuple):
    """What an exchange was. ``request`` and ``response`` are the texts, and empty unless content is captured.

    ``asked`` holds the question; it is there where exact keys are made, and leaves the process on no way.
    """

    record: CallRecord
    request: str = ""
    response: str = ""
    asked: Asked | None = None


class _Sent(NamedTuple):
    """A request body and the prompt in it."""

    body: Json
    prompt: Prompt


class Reader:
    """Reads exchanges. Not thread safe, as the fingerprinter is not.

    Args:
        fingerprinter: makes the fingerprints; None = there is no key, so prompts are not fingerprinted.
        guard: takes the errors of the parsers; what they should have told is then missing from the record.
        service: of calls that name none.
        content: keep the texts.
        fingerprint_share: of conversations whose prompts are fingerprinted.
        memory: bytes of request bodies that are held, so as not to parse them again.
        keys: makes the keys that response caches would go by, of calls with a fingerprint; None = they are not wanted.
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
        keys: Keys | None = None,
    ) -> None:
        self._fingerprinter = fingerprinter
        self._guard = guard
        self.service = service
        self._content = content
        self._share = fingerprint_share
        self._keys = keys
        self._sent = guard.runs("reading a prompt", self._sent_in)
        self._bodies = JsonMemo(memory)
        self._answer = guard.runs("reading a response", response.read)
        self._print = guard.runs("fingerprinting a prompt", self._fingerprinted)
        self._keyed_call = guard.runs("making exact keys", self._keys_of)

    def read(self, exchange: Exchange) -> Call | None:
        """The call that ``exchange`` was; None if its body shows that it was none."""
        headers = plain(exchange.request_headers)
        sent = self._sent(exchange, headers)
        prompt = sent.prompt if sent else None
        if _is_no_call(exchange, prompt):
            return None
        model = prompt.model if prompt else apis.model_in(exchange.path)
        api = prompt.api if prompt else exchange.api
        provider = providers.identify(host=exchange.host, path=exchange.path, model=model, api=api)
        answer = self._answer(exchange, provider) or Response()
        names = naming.names(exchange.context)
        session = names.conversation_id or account.first(headers, FACTS["session"]["headers"])
        session = session or (prompt.session if prompt else "")
        place = _place(exchange)
        drawn_by = session or place.get("trace_id") or str(exchange.started_ns)
        print_ = self._print(prompt, drawn_by) if prompt else None
        reuse, asked = (self._keyed_call(sent, exchange, answer) if sent and print_ else None) or (UNKNOWN, None)
        record = CallRecord(
            started_ns=exchange.started_ns,
            service=names.service or self.service,
            provider=provider,
            api=api,
            model=model or answer.usage.served_model,
            usage=answer.usage,
            fingerprint=print_,
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
            reuse=reuse,
            **_times(exchange),
            **place,
        )
        return Call(record, *self._texts(exchange, answer), asked)

    def _sent_in(self, exchange: Exchange, headers: Mapping[str, str]) -> _Sent | None:
        request = read_json(self._bodies.loads, exchange.request_body or b"")
        if not isinstance(request, dict):
            return None
        for header, member in FACTS["body"].items():
            if value := headers.get(header):
                request.setdefault(member, [part.strip() for part in value.split(",")] if "," in value else value)
        prompt = segments.parse(request, api=exchange.api, path=exchange.path)
        return _Sent(request, prompt) if prompt else None

    def _keys_of(self, sent: _Sent, exchange: Exchange, answer: Response) -> tuple[Reuse, Asked] | None:
        if self._keys is None:
            return None
        failed = exchange.cut or bool(answer.error) or (exchange.status or 500) >= 400
        asked = self._keys.asked(sent.prompt, sent.body)
        return self._keys.reuse(asked, None if failed else answer.said()), asked

    def _fingerprinted(self, prompt: Prompt, drawn_by: str) -> Fingerprint | None:
        if self._fingerprinter is None or not prompt.segments or not self._sampled(drawn_by):
            return None
        return self._fingerprinter.fingerprint(prompt)

    def _sampled(self, drawn_by: str) -> bool:
        """Conversations are in or out as a whole: prefixes are compared among their calls."""
        return self._share >= 1 or int(self._keyed(drawn_by), 16) < self._share * 2**64

    def _keyed(self, text: str) -> str:
        return self._fingerprinter.keyed(text) if self._fingerprinter else ""

    def _texts(self, exchange: Exchange, answer: Response) -> tuple[str, str]:
        if not self._content:
            return "", ""
        return (exchange.request_body or b"").decode("utf-8", "replace"), answer.text.decode("utf-8", "replace")


def _is_no_call(exchange: Exchange, prompt: Prompt | None) -> bool:
    """A path may be a web application's own; then its body is no prompt."""
    if prompt is None:
        return not exchange.api
    return not prompt.segments and not prompt.model


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
