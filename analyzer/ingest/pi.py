"""Sessions of the pi coding agent -> calls. A message an entry, and every answer carries its usage.

Older sessions are a list. In newer ones an entry names its parent and the session is a tree. A compaction leaves its
summary and the entries from ``firstKeptEntryIndex`` (``firstKeptEntryId``) on. Tools and system prompt are not kept.
A branch begins with a copy of what was said before, with the times it was said at: they name calls and conversations.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from prefixscope.analyzer.ingest.conversation import Messages, Prints
from prefixscope.analyzer.ingest.loose import count, mapping, moment, text
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.otel_plugin import providers
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, SegmentPrint, Usage
from prefixscope.otel_plugin.wire.parts import compact

_SHAPE = "anthropic.messages"  # the shape that messages are put in to be hashed, whatever API they were sent to
_APIS = {
    "anthropic-messages": "anthropic.messages",
    "openai-responses": "openai.responses",
    "openai-completions": "openai.chat",
    "google-generative-ai": "gemini.generate_content",
    "bedrock-converse-stream": "bedrock.converse",
}
_NO_TIME = 'an answer without a time: add "timestamp" to the message (ms since 1970) or to the line (ISO 8601)'
_NONE_KEPT = "none"  # a compaction that leaves its summary alone
_CACHE_UNREAD = "cache_read_not_recorded"


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """A line of a session, behind another one."""

    name: str
    parent: "_Entry | None"
    prints: Prints  # what it adds to a prompt
    thinking: str  # the level that is set
    kept: str = ""  # of a compaction: the first entry that is still sent

    def path(self) -> "Iterator[_Entry]":
        """This entry and all before it, newest first."""
        at: _Entry | None = self
        while at:
            yield at
            at = at.parent


class Pi:
    """Reads one session, entry by entry."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._messages = Messages(printer)
        self._session = ""
        self._began = ""  # when the first message was written
        self._names: list[str] = []  # in the order of the file
        self._entries: dict[str, _Entry] = {}
        self._tip: _Entry | None = None  # the last entry of the file, and the prompt up to and with it
        self._prompt: list[SegmentPrint] = []

    @staticmethod
    def is_session(document: Mapping[str, Any]) -> bool:
        """Whether ``document`` begins a session."""
        return document.get("type") == "session" and {"id", "timestamp", "cwd"} <= document.keys()

    @staticmethod
    def is_answer(document: Mapping[str, Any]) -> bool:
        """Whether ``document`` is an answer of a model, by itself or as an entry."""
        message = mapping(document.get("message")) or document
        return message.get("role") == "assistant" and {"input", "cacheRead"} <= mapping(message.get("usage")).keys()

    def calls(self, document: Mapping[str, Any], place: Place) -> Iterator[Observed | Rejected]:
        """The call that an entry answers, if it is an answer."""
        if self.is_session(document):
            self._session = text(document.get("id"))
        message = mapping(document.get("message")) or (document if "role" in document else {})
        if message and not self._began:
            self._began = text(message.get("timestamp")) or text(document.get("timestamp"))
        parent = self._entries.get(text(document.get("parentId"))) if "parentId" in document else self._tip
        before = self._prompt if parent is self._tip else _prompt(parent)
        if message.get("role") == "assistant":
            yield self._call(message, document, before, parent.thinking if parent else "", place)
        self._add(document, message, parent, before)

    def _add(
        self, document: Mapping[str, Any], message: Mapping[str, Any], parent: _Entry | None, before: list[SegmentPrint]
    ) -> None:
        self._tip = entry = _Entry(
            name=text(document.get("id")) or f"{len(self._names)}",
            parent=parent,
            prints=self._prints(document, message),
            thinking=text(document.get("thinkingLevel")) or (parent.thinking if parent else ""),
            kept=self._first_kept(document) if document.get("type") == "compaction" else "",
        )
        before.extend(entry.prints)
        self._prompt = _prompt(entry) if entry.kept else before
        self._names.append(entry.name)
        self._entries[entry.name] = entry

    def _call(
        self,
        message: Mapping[str, Any],
        document: Mapping[str, Any],
        before: list[SegmentPrint],
        thinking: str,
        place: Place,
    ) -> Observed | Rejected:
        written = moment(document.get("timestamp"))
        started = moment(message.get("timestamp")) or written
        if started is None:
            return place.rejected(_NO_TIME)
        prompt = (self._messages.unrecorded(self._began or place.file), *before)
        model = text(message.get("model"))
        usage = _usage(mapping(message.get("usage")), message)
        stopped = text(message.get("stopReason"))
        record = CallRecord(
            started_ns=started,
            service="pi",
            provider=providers.canonical(text(message.get("provider"))) or providers.identify(model=model),
            api=_APIS.get(text(message.get("api")), ""),
            model=model,
            usage=usage,
            fingerprint=self._messages.fingerprint(prompt, {"thinking": compact(thinking)} if thinking else {}),
            duration_ms=(written - started) / 1e6 if written is not None and written >= started else None,
            error="error" if stopped == "error" else "",
            session_id=self._session,
            span_id=blake2b(repr((started, model, usage)).encode(), digest_size=8).hexdigest(),
            instrumentation="pi",
            aborted=stopped == "aborted",
        )
        return place.observed(record)

    def _first_kept(self, document: Mapping[str, Any]) -> str:
        index = count(document.get("firstKeptEntryIndex"))
        if index is not None and index < len(self._names):
            return self._names[index]
        return text(document.get("firstKeptEntryId")) or _NONE_KEPT

    def _prints(self, document: Mapping[str, Any], message: Mapping[str, Any]) -> Prints:
        if text(document.get("type")) in {"compaction", "branch_summary"}:
            return self._messages.prints(_body("user", document.get("summary")), _SHAPE, "summary")
        match message.get("role"):
            case "toolResult":
                result = {"type": "tool_result", "tool_use_id": message.get("toolCallId")}
                return self._messages.prints(_body("user", [{**result, "content": message.get("content")}]), _SHAPE)
            case "bashExecution":
                said = f"{message.get('command')}\n{message.get('output')}"
                return self._messages.prints(_body("user", said), _SHAPE)
            case "user" | "assistant" as role:
                parts = message.get("content")
                content = [_block(part) for part in parts] if isinstance(parts, list) else parts
                return self._messages.prints(_body(role, content), _SHAPE)
        return ()


def _prompt(last: _Entry | None) -> list[SegmentPrint]:
    """What was sent after ``last``: everything, or from the last compaction on its summary and what it kept."""
    newer: list[_Entry] = []
    for entry in last.path() if last else ():
        if entry.kept:
            kept = _kept(entry)
            return [print_ for part in (entry, *kept, *reversed(newer)) for print_ in part.prints]
        newer.append(entry)
    return [print_ for part in reversed(newer) for print_ in part.prints]


def _kept(compaction: _Entry) -> list[_Entry]:
    """The entries that a compaction left, oldest first; none if the first of them is not on the way."""
    found: list[_Entry] = []
    for entry in compaction.parent.path() if compaction.parent else ():
        if not entry.kept:
            found.append(entry)
        if entry.name == compaction.kept:
            return found[::-1]
    return []


def _body(role: str, content: Any) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content}]}


def _block(part: Any) -> Any:
    """A part in Anthropic's spelling."""
    if mapping(part).get("type") == "toolCall":
        return {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}
    return part


def _usage(raw: Mapping[str, Any], message: Mapping[str, Any]) -> Usage:
    """Counts are disjoint. An answer that ended before the first count came has zeros, which mean nothing."""
    counts = {name: count(raw.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")}
    served, name = text(message.get("responseModel")), text(message.get("responseId"))
    if not any(counts.values()):
        return Usage(served_model=served, response_id=name)
    return Usage(
        state="partial" if counts["cacheRead"] is None else "reported",
        uncached=counts["input"] or 0,
        read=counts["cacheRead"] or 0,
        write_unknown=counts["cacheWrite"] or 0,
        output=counts["output"] or 0,
        reasoning=count(raw.get("reasoning")) or 0,
        served_model=served,
        response_id=name,
        notes=(_CACHE_UNREAD,) if counts["cacheRead"] is None else (),
    )
