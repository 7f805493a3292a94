"""Lines of Claude Code's transcripts, and of the stream of the Agent SDK, as entries of a tree: which follows which.

What has to be known of them, as seen in transcripts of versions 1.0.24 to 2.1.114: one answer is spread over several
entries with one ``message.id``, one for each block. All repeat the usage; its output grows, so the last one counts and
nothing is added up. A sub-agent's answers are relayed in its parent's file too, as ``agent_progress``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prefixscope.analyzer.ingest.conversation import Messages, Prints
from prefixscope.analyzer.ingest.loose import count, items, mapping, moment, text
from prefixscope.analyzer.ingest.results import Place
from prefixscope.otel_plugin.wire.parts import compact

API = "anthropic.messages"
_SYNTHETIC = "<synthetic>"  # the model of messages that the client wrote itself
_WITHOUT_SESSION = frozenset({"summary", "file-history-snapshot"})  # types of entries that name no session
_SESSIONS = frozenset({"sessionId", "session_id"})  # who names it: Claude Code's transcripts, the SDK's stream
_TYPES = frozenset(  # of entries that are no messages; newer versions have more
    {
        *("system", "progress", "attachment", "queue-operation", "permission-mode", "last-prompt", "custom-title"),
        *("result", "stream_event", "control_request", "control_response", "control_cancel_request"),
    }
)
_STATUS = re.compile(r"API Error:? \(?([45]\d\d)\b")
_ERROR = re.compile(r'"type"\s*:\s*"(\w+_error)"')


def is_entry(document: Mapping[str, Any]) -> bool:
    """Whether ``document`` is a line of a transcript or of the SDK's stream, be it one that tells nothing of calls."""
    kind, message = text(document.get("type")), document.get("message")
    if isinstance(message, dict) and (kind in {"user", "assistant"} or (not kind and "usage" in message)):
        return kind != "" or "sessionId" in document
    if "parentUuid" in document or kind in _WITHOUT_SESSION:
        return bool(kind)
    return kind in _TYPES and not _SESSIONS.isdisjoint(document)


@dataclass(slots=True, eq=False)
class Entry:
    """A line. ``prints`` is what it adds to a prompt; those of answers stand in their turn."""

    place: Place
    uuid: str
    parent: str  # "" = it begins a conversation
    before: str  # the entry that was before it, where a compaction has removed what came before; else ""
    at: int | None  # ns
    session: str
    agent: str
    prints: Prints = ()
    results: tuple[str, ...] = ()  # the tool calls whose results it holds
    thinking: str = ""  # how much the model was to think from here on, as compact JSON; "" = as before
    cleared: tuple[str, ...] = ()  # the tool calls whose results are no longer sent from here on
    turn: "Turn | None" = None
    relayed: bool = False  # it is told by the parent of a sub-agent; what the sub-agent sent is not
    failure: tuple[int | None, str] | None = None  # HTTP status and error of a request that failed


@dataclass(slots=True, eq=False)
class Turn:
    """An answer: all entries with its id."""

    entries: list[Entry] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)  # the tool calls in it
    body: dict[str, Any] = field(default_factory=dict)  # the message without its content, as last written
    request_id: str = ""


class Entries:
    """The entries of all files that were taken, and what they say of each other."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages
        self._last: dict[tuple[str, ...], str] = {}  # the last entry of each file and agent
        self.by_uuid: dict[str, Entry] = {}
        self.turns: dict[tuple[str, str], Turn] = {}  # by file and message id: a resumed session copies lines
        self.results: dict[tuple[str, str], list[Entry]] = {}  # by file and tool call
        self.relayed: dict[str, Entry] = {}  # by message id: answers of sub-agents, told in their parent's file

    def take(self, document: Mapping[str, Any], place: Place) -> None:
        """Remembers a line; the first one counts if there are several with one id."""
        entry = self._entry(document, place)
        if entry.uuid in self.by_uuid:
            return
        self.by_uuid[entry.uuid] = entry
        message = mapping(document.get("message"))
        role = text(message.get("role")) or text(document.get("type"))
        match document.get("type"):
            case "system":
                self._note(entry, document)
            case "progress":
                self._relay(mapping(document.get("data")), entry)
            case _ if role == "assistant":
                self._answer(entry, document, message)
            case _ if role == "user":
                self._question(entry, document, message)

    def alone(self) -> list[Entry]:
        """Answers of sub-agents whose own file was not taken."""
        known = {name for _, name in self.turns}
        return [entry for name, entry in self.relayed.items() if name not in known]

    def _entry(self, document: Mapping[str, Any], place: Place) -> Entry:
        uuid = text(document.get("uuid")) or f"{place.file}:{place.line}:{len(self.by_uuid)}"
        agent = text(document.get("agentId")) or text(document.get("parent_tool_use_id"))
        parent, before = text(document.get("parentUuid")), text(document.get("logicalParentUuid"))
        last = self._last.get((place.file, agent), "")
        if before and before not in self.by_uuid:
            before = last  # it may name an entry that was never written
        if "session_id" in document or "message" in document:
            self._last[place.file, agent] = uuid
            parent = parent if "parentUuid" in document else last  # the SDK's stream names no parents
        return Entry(
            place=place,
            uuid=uuid,
            parent=parent,
            before=before,
            at=moment(document.get("timestamp")),
            session=text(document.get("sessionId")) or text(document.get("session_id")),
            agent=agent,
        )

    def _note(self, entry: Entry, document: Mapping[str, Any]) -> None:
        """An entry of the client: a request that failed and was sent again, results of tools that were cleared."""
        if document.get("subtype") == "api_error":
            error = mapping(document.get("error"))
            entry.failure = count(error.get("status")), _error_name(error)
        cleared = items(mapping(document.get("microcompactMetadata")).get("compactedToolIds"))
        entry.cleared = tuple(map(text, cleared))

    def _question(self, entry: Entry, document: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        content = message.get("content")
        entry.prints = self._message("user", content, summary=document.get("isCompactSummary") is True)
        entry.results = tuple(_ids(content, "tool_result", "tool_use_id"))
        entry.thinking = _thinking(mapping(document.get("thinkingMetadata")))
        for tool in entry.results:
            self.results.setdefault((entry.place.file, tool), []).append(entry)

    def _answer(self, entry: Entry, document: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        content = message.get("content")
        if document.get("isApiErrorMessage") is True:
            entry.failure = _failure(document, content)
        if entry.failure or message.get("model") == _SYNTHETIC:
            return
        name = text(message.get("id")) or text(document.get("requestId")) or entry.uuid
        turn = entry.turn = self.turns.setdefault((entry.place.file, name), Turn())
        turn.entries.append(entry)
        turn.tools += _ids(content, "tool_use", "id")
        turn.body |= _facts(message)
        turn.request_id = text(document.get("requestId")) or turn.request_id
        entry.prints = self._message("assistant", content)

    def _message(self, role: str, content: Any, *, summary: bool = False) -> Prints:
        body = {"messages": [{"role": role, "content": content}]}
        return self._messages.prints(body, API, "summary" if summary else None)

    def _relay(self, data: Mapping[str, Any], parent: Entry) -> None:
        """An answer of a sub-agent: it counts if the sub-agent's own file is not there, and its prompt is not known."""
        told = mapping(data.get("message"))
        message = mapping(told.get("message"))
        name = text(message.get("id"))
        if data.get("type") != "agent_progress" or message.get("role") != "assistant" or not name:
            return
        agent = text(data.get("agentId"))
        at = moment(told.get("timestamp"))
        new = Entry(parent.place, f"{name}:relayed", "", "", at, parent.session, agent, relayed=True)
        entry = self.relayed.setdefault(name, new)
        entry.turn = entry.turn or Turn([entry])
        entry.turn.body |= _facts(message)
        entry.turn.request_id = text(told.get("requestId"))


def _facts(message: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer says besides its content."""
    return {name: value for name, value in message.items() if name != "content" and value is not None}


def _ids(content: Any, kind: str, name: str) -> list[str]:
    blocks = [block for block in map(mapping, items(content)) if block.get("type") == kind]
    return [found for block in blocks if (found := text(block.get(name)))]


def _thinking(told: Mapping[str, Any]) -> str:
    """What is told of the thinking budget; which words asked for it does not matter, only that some did."""
    return compact({**told, "triggers": bool(told.get("triggers"))}) if told else ""


def _failure(document: Mapping[str, Any], content: Any) -> tuple[int | None, str]:
    """Status and error type of an answer that is an error message; newer versions say both in fields of their own."""
    said = content if isinstance(content, str) else " ".join(text(mapping(b).get("text")) for b in items(content))
    status, error = _STATUS.search(said), _ERROR.search(said)
    return (
        count(document.get("apiErrorStatus")) or (int(status[1]) if status else None),
        _name(document.get("error")) or (error[1] if error else "api_error"),
    )


def _error_name(error: Mapping[str, Any]) -> str:
    """The innermost type of a nested error, or the code of what failed on the way."""
    inner, found = error, ""
    for _ in range(4):
        found = _name(inner.get("type")) if _name(inner.get("type")) not in {"", "error"} else found
        inner = mapping(inner.get("error"))
    return found or _name(mapping(error.get("cause")).get("code")) or "api_error"


def _name(value: Any) -> str:
    """A name that says what kind of error it is; never a message, which may quote the prompt."""
    return value if isinstance(value, str) and len(value) < 64 and value.replace("_", "").isalnum() else ""
