"""Sessions of DeepSeek's dsh -> calls. They hold whole prompts: system prompt and tools as well as messages.

Known from one recorded session only (codeburn's fixtures): a header tells what every request begins with, messages
follow as they are sent, and each answer is a line with its usage.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prefixscope.analyzer.ingest.conversation import Messages
from prefixscope.analyzer.ingest.loose import count, items, mapping, moment, text
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.otel_plugin import providers
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, SegmentPrint, Usage

_SHAPE = "anthropic.messages"  # the shape that messages are put in to be hashed
_NO_TIME = 'an answer without a time: each line needs "time" (ms since 1970)'
_PARTS = {"reasoning": "thinking", "tool-call": "tool_use", "tool-result": "tool_result"}


class Dsh:
    """Reads one session, line by line."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._messages = Messages(printer)
        self._session = ""
        self._header: list[SegmentPrint] = []
        self._sent: list[SegmentPrint] = []
        self._config: Mapping[str, Any] = {}
        self._asked_at: int | None = None  # ns

    @staticmethod
    def is_session(document: Mapping[str, Any]) -> bool:
        """Whether ``document`` begins a session."""
        return document.get("type") == "session" and {"id", "createdAt", "delegationDepth"} <= document.keys()

    def calls(self, document: Mapping[str, Any], place: Place) -> Iterator[Observed | Rejected]:
        """The call that a line answers, if it is an answer."""
        data, at = mapping(document.get("data")), moment(document.get("time"))
        match document.get("type"):
            case "session":
                self._session = text(document.get("id"))
            case "request/header":
                self._begin(mapping(data.get("header")))
            case "step/start":
                self._asked_at = at
            case "user/message":
                self._add(data)
            case "tool/result":
                self._add(mapping(data.get("message")))
            case "assistant/message":
                yield self._call(data, at, place)
                self._add(mapping(data.get("message")))

    def _begin(self, header: Mapping[str, Any]) -> None:
        self._config = mapping(header.get("config"))
        body: dict[str, Any] = {"tools": header.get("tools"), "system": header.get("system"), "messages": []}
        self._header = list(self._messages.prints(body, _SHAPE))

    def _add(self, message: Mapping[str, Any]) -> None:
        content = [_part(part) for part in items(message.get("content"))]
        self._sent += self._messages.prints({"messages": [{"role": message.get("role"), "content": content}]}, _SHAPE)

    def _call(self, data: Mapping[str, Any], at: int | None, place: Place) -> Observed | Rejected:
        started = self._asked_at or at
        if started is None:
            return place.rejected(_NO_TIME)
        source = mapping(mapping(data.get("message")).get("source"))
        model = text(source.get("model")) or text(self._config.get("model"))
        named = text(source.get("provider")).partition("-")[0]
        record = CallRecord(
            started_ns=started,
            service="dsh",
            provider=providers.canonical(named) or providers.identify(model=model),
            model=model,
            usage=_usage(mapping(data.get("usage"))),
            fingerprint=self._messages.fingerprint((*self._header, *self._sent)),
            duration_ms=(at - started) / 1e6 if at is not None and at >= started else None,
            session_id=self._session,
            instrumentation="dsh",
        )
        return place.observed(record)


def _part(part: Any) -> Any:
    kind = mapping(part).get("type")
    return {**part, "type": _PARTS[kind]} if isinstance(kind, str) and kind in _PARTS else part


def _usage(raw: Mapping[str, Any]) -> Usage:
    """Counts of input and of reads are disjoint: 168 and 2,816 follow 2,877 in the session that is known."""
    input_, read = count(raw.get("inputTokens")), count(raw.get("cacheReadTokens"))
    if input_ is None:
        return Usage()
    return Usage(
        state="partial" if read is None else "reported",
        uncached=input_,
        read=read or 0,
        output=count(raw.get("outputTokens")) or 0,
        reasoning=count(raw.get("reasoningTokens")) or 0,
        notes=("cache_read_not_recorded",) if read is None else (),
    )
