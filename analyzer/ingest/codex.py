"""Rollouts of the Codex CLI -> calls: items of the conversation, and after each answer an event that counts its tokens.

``token_count`` events repeat: one that leaves the running total as it was tells of no new call. ``info`` may be null.
A fork begins with a copy of its parent's whole history, token counts included and stamped anew (ccusage#1371); so a
call is named by the thread that the history began with and the running total, which are the same in every copy.
Base instructions are kept by newer versions, tools are not.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

from prefixscope.analyzer.ingest.conversation import Messages
from prefixscope.analyzer.ingest.loose import count, hex_id, items, mapping, moment, text
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.otel_plugin import providers
from prefixscope.otel_plugin import usage as wire
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, SegmentPrint, Usage
from prefixscope.otel_plugin.wire.parts import compact

API = "openai.responses"
_TYPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_ANSWERS = frozenset({"reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_NO_TIME = 'a token count without a time: each line needs "timestamp" (ISO 8601)'
_COUNTS = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
    *("output_tokens", "reasoning_output_tokens", "total_tokens"),
)


class Codex:
    """Reads one rollout, line by line."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._messages = Messages(printer)
        self._meta: Mapping[str, Any] = {}
        self._origin = ""  # the thread that the history began with
        self._turn: Mapping[str, Any] = {}
        self._instructions: tuple[SegmentPrint, ...] = ()
        self._sent: list[SegmentPrint] = []
        self._asked: int | None = None  # how many of these were sent before the answer that is being written
        self._asked_at: int | None = None  # ns
        self._total: dict[str, int] = {}  # the last running total

    @staticmethod
    def is_line(document: Mapping[str, Any]) -> bool:
        """Whether ``document`` is a line of a rollout."""
        return isinstance(document.get("payload"), dict) and text(document.get("type")) in _TYPES

    def calls(self, document: Mapping[str, Any], place: Place) -> Iterator[Observed | Rejected]:
        """The call that a line counts the tokens of, if it does."""
        kind, payload = document["type"], mapping(document["payload"])
        at = moment(document.get("timestamp"))
        if kind == "session_meta":
            self._begin(payload)
        elif kind == "turn_context":
            self._turn = payload
        elif kind == "response_item":
            self._item(payload, at)
        elif kind == "compacted":
            self._compacted(payload)
        elif payload.get("type") == "token_count":
            counted = self._counted(mapping(payload.get("info")))
            if counted:
                yield self._call(counted, mapping(payload["info"]), at, place)

    def _begin(self, payload: Mapping[str, Any]) -> None:
        """The header of the rollout, or after it that of a thread whose history was copied."""
        spawned = mapping(mapping(mapping(payload.get("source")).get("subagent")).get("thread_spawn"))
        parent = text(payload.get("forked_from_id")) or text(spawned.get("parent_thread_id"))
        self._origin = parent or text(payload.get("id"))
        if self._meta:
            return
        self._meta = payload
        instructions = text(mapping(payload.get("base_instructions")).get("text"))
        if instructions:
            self._instructions = self._messages.prints({"instructions": instructions, "input": []}, API)

    def _item(self, item: Mapping[str, Any], at: int | None) -> None:
        is_answer = text(item.get("type")) in _ANSWERS or item.get("role") == "assistant"
        if is_answer and self._asked is None:
            self._asked = len(self._sent)
        elif self._asked is None:
            self._asked_at = at
        self._sent += self._messages.prints({"input": [dict(item)]}, API)

    def _compacted(self, payload: Mapping[str, Any]) -> None:
        """The history is replaced; older versions tell the summary only and not which messages stay."""
        kept = items(payload.get("replacement_history"))
        if kept:
            self._sent = list(self._messages.prints({"input": kept}, API))
            return
        summary = self._messages.prints(
            {"input": [{"role": "user", "content": payload.get("message")}]}, API, "summary"
        )
        self._sent = [self._messages.unrecorded(text(self._meta.get("id")), "kept", level="messages"), *summary]

    def _counted(self, info: Mapping[str, Any]) -> dict[str, int]:
        """The tokens of the call that an event is about; {} if it is about none that is new."""
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        before, self._total = self._total, total or self._total
        if total and total == before:
            return {}
        return last or {name: tokens - before.get(name, 0) for name, tokens in total.items()}

    def _call(
        self, counted: Mapping[str, int], info: Mapping[str, Any], at: int | None, place: Place
    ) -> Observed | Rejected:
        sent, asked_at = self._sent[: self._asked], self._asked_at
        self._asked = None
        self._asked_at = at  # a request without a new message follows the answer before it
        started = asked_at if asked_at is not None else at
        if started is None:
            return place.rejected(_NO_TIME)
        model = text(info.get("model")) or text(self._turn.get("model")) or text(self._meta.get("model"))
        named = providers.canonical(text(self._meta.get("model_provider")))
        effort = text(self._turn.get("effort"))
        session = text(self._meta.get("id"))
        front = self._messages.unrecorded(self._origin or place.file)
        record = CallRecord(
            started_ns=started,
            service="codex",
            provider=named or providers.identify(model=model) or "openai",
            api=API,
            model=model,
            usage=_usage(counted),
            fingerprint=self._messages.fingerprint(
                (front, *self._instructions, *sent), {"reasoning.effort": compact(effort)} if effort else {}
            ),
            duration_ms=(at - started) / 1e6 if at is not None and at >= started else None,
            session_id=session,
            trace_id=hex_id(self._origin.replace("-", ""), 32),
            span_id=self._span_id(),
            instrumentation="codex",
        )
        return place.observed(record)

    def _span_id(self) -> str:
        """A name for the call that ended with this running total; "" where there is no total."""
        name = repr((self._origin, sorted(self._total.items())))
        return blake2b(name.encode(), digest_size=8).hexdigest() if self._total else ""


def _counts(raw: Any) -> dict[str, int]:
    return {name: found for name in _COUNTS if (found := count(mapping(raw).get(name))) is not None}


def _usage(counted: Mapping[str, int]) -> Usage:
    """As OpenAI's usage object, from which Codex took it: input contains what was read from cache."""
    given = {name: counted[name] for name in ("input_tokens", "output_tokens", "total_tokens") if name in counted}
    cached = {"cached_tokens": "cached_input_tokens", "cache_write_tokens": "cache_write_input_tokens"}
    details = {name: counted[said] for name, said in cached.items() if said in counted}
    reasoning = {"reasoning_tokens": counted.get("reasoning_output_tokens", 0)}
    return wire.from_usage(
        {**given, "input_tokens_details": details, "output_tokens_details": reasoning}, provider="openai"
    )
