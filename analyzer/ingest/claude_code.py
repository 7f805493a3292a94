"""Transcripts of Claude Code and of the Claude Agent SDK -> calls: each answer's prompt is the conversation before it.

``parentUuid`` names the entry that one follows, so that a transcript is a tree (forks, sub-agents), with these turns:

* Results of tools called in parallel follow the entry of their own call: only one of them is on the way back from the
  next answer. All of them were sent.
* A compaction begins a new tree; ``logicalParentUuid`` leads on to the old one.
* A sub-agent's entries are in a file of their own, which may hang on entries of its parent's file; so does a session
  that was resumed under another id. Files are read as one conversation until ``calls`` is asked for them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from prefixscope.analyzer.ingest.claude_entries import API, Entries, Entry, Turn
from prefixscope.analyzer.ingest.conversation import Messages, Prints
from prefixscope.analyzer.ingest.loose import text
from prefixscope.analyzer.ingest.results import Observed, Pending, Place, Rejected
from prefixscope.otel_plugin import providers
from prefixscope.otel_plugin import usage as wire
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Usage

NOT_FINAL = "output_not_final"
"""The note of a usage whose output count may have grown after it was written: the answer had not ended yet."""

_NO_TIME = (
    "an answer without a time: the stream of the Agent SDK has none. Give the transcript that Claude Code keeps in "
    '~/.claude/projects, or add "timestamp" (ISO 8601) to each line'
)
_ELSEWHERE = "this sub-agent's own transcript is not among the files: give the folder of its session too"
_KNOWN = 16  # prompts kept to be extended: conversations that take turns in one file are few
_HOSTS = {"msg_bdrk_": "aws", "msg_vrtx_": "google"}  # how ids of answers begin where others serve the model


@dataclass(frozen=True, slots=True)
class _Before:
    """A prompt: what had been sent when an answer began."""

    prints: Prints = ()
    asked_at: int | None = None  # ns: when the last of it was written
    thinking: str = ""  # the setting, as compact JSON
    model: str = ""  # of the last answer


class ClaudeCode:
    """Collects entries, and tells the calls in them when all files that belong together were taken."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._messages = Messages(printer)
        self._forget()

    def _forget(self) -> None:
        self._entries = Entries(self._messages)
        self._known: dict[Turn, _Before] = {}  # the prompts of the latest answers: the next ones extend them
        self._origins: dict[str, tuple[str, str]] = {}  # entry -> session and agent that its conversation began with

    def take(self, document: Mapping[str, Any], place: Place) -> None:
        """Remembers a line."""
        self._entries.take(document, place)

    def calls(self) -> Iterator[Pending]:
        """Every call in what was taken; then it is forgotten."""
        for entry in (*self._entries.by_uuid.values(), *self._entries.alone()):
            if entry.failure or (entry.turn and entry.turn.entries[0] is entry):
                yield Pending(entry.place, partial(self._call, entry))
        self._forget()

    def _call(self, entry: Entry) -> Observed | Rejected:
        before = self._before(entry)
        turn = entry.turn or Turn()
        last_at = max((e.at for e in (*turn.entries, entry) if e.at), default=None)
        started = _started(entry, before)
        if started is None:
            return entry.place.rejected(_NO_TIME)
        front = self._messages.unrecorded(*self._origin(entry))
        settings = {"thinking": before.thinking} if before.thinking else {}
        status, error = entry.failure or (None, "")
        model = text(turn.body.get("model")) or before.model
        record = CallRecord(
            started_ns=started,
            service="claude-code",
            provider=_provider(turn, model),
            api=API,
            model=model,
            usage=_usage(turn) if entry.turn else Usage(),
            fingerprint=self._messages.fingerprint((front, *before.prints), settings),
            duration_ms=(last_at - started) / 1e6 if last_at is not None else None,
            status=status if status is not None and 100 <= status < 600 else None,
            error=error,
            session_id="/".join(filter(None, (entry.session, entry.agent))),
            request_id=turn.request_id,
            instrumentation="claude_code",
        )
        return entry.place.observed(record, _ELSEWHERE if entry.relayed else "")

    def _before(self, entry: Entry) -> _Before:
        """What the prompt of the answer ``entry`` is made of."""
        chain, known = self._chain(entry, self._known)
        if any(e.cleared for e in chain):  # it changes what was sent long before
            chain, known = self._chain(entry, {})
        found = self._extended(known, chain)
        if entry.turn:
            self._known[entry.turn] = found
            if len(self._known) > _KNOWN:
                del self._known[next(iter(self._known))]
        return found

    def _chain(self, entry: Entry, known: Mapping[Turn, _Before]) -> tuple[list[Entry], _Before]:
        """The entries before ``entry``, oldest first, back to a compaction or to the beginning.

        Or back to an answer whose prompt is known, which is then given too.
        """
        found: dict[str, Entry] = {}
        parent = self._entries.by_uuid.get(entry.parent)
        while parent and parent is not entry and parent.uuid not in found:  # damaged files have circles
            found[parent.uuid] = parent
            if parent.turn and parent.turn in known:
                return list(reversed(found.values())), known[parent.turn]
            parent = self._entries.by_uuid.get(parent.parent)
        chain = list(reversed(found.values()))
        removed = self._entries.by_uuid.get(chain[0].before) if chain else None
        return chain, self._removed(removed) if removed else _Before()

    def _removed(self, last: Entry) -> _Before:
        """What a compaction leaves of the conversation that ended with ``last``: no messages, but how it was held."""
        path = {last.uuid: last}
        while (parent := self._entries.by_uuid.get(last.parent or last.before)) and parent.uuid not in path:
            last = path.setdefault(parent.uuid, parent)
        return _Before(
            thinking=next((e.thinking for e in path.values() if e.thinking), ""),
            model=next((m for e in path.values() if (m := _model(e))), ""),
        )

    def _extended(self, known: _Before, chain: list[Entry]) -> _Before:
        """The prompt ``known`` and what the entries of ``chain`` add to it."""
        on_chain = {entry.uuid for entry in chain}
        cleared = {tool for entry in chain for tool in entry.cleared}
        sent: dict[str, Entry] = {}
        asked_at = [entry.at for entry in chain[-1:] if entry.at]
        for entry in chain:
            if entry.uuid in sent:
                continue
            if entry.turn is None:
                sent[entry.uuid] = entry
                continue
            following = [*entry.turn.entries, *self._answers_of_tools(entry.turn, on_chain)]
            asked_at = [e.at for e in (*following, *chain[-1:]) if e.at]
            sent |= {e.uuid: e for e in following}
        return _Before(
            prints=known.prints + tuple(print_ for entry in sent.values() for print_ in self._sent(entry, cleared)),
            asked_at=max(asked_at, default=None),
            thinking=next((e.thinking for e in reversed(chain) if e.thinking), known.thinking),
            model=next((m for e in reversed(chain) if (m := _model(e))), known.model),
        )

    def _answers_of_tools(self, turn: Turn, on_chain: set[str]) -> Iterator[Entry]:
        """The results of a turn's tool calls; where a fork has several of one call, the one on the way."""
        for tool in turn.tools:
            found = self._entries.results.get((turn.entries[0].place.file, tool), [])
            yield from [e for e in found if e.uuid in on_chain][:1] or found[:1]

    def _sent(self, entry: Entry, cleared: set[str]) -> Prints:
        if cleared.isdisjoint(entry.results):
            return entry.prints
        return (self._messages.unrecorded("cleared", *entry.results, level="messages"),)

    def _origin(self, entry: Entry) -> tuple[str, str]:
        """Session and agent that the conversation began with, behind all compactions and forks.

        Its tools and system prompt are theirs: recorded summaries for compactions, which are calls of an agent that
        goes on with its parent's conversation, read exactly what the parent had written.
        """
        path: dict[str, None] = {}
        found = entry
        while found.uuid not in self._origins and found.uuid not in path:
            path[found.uuid] = None
            found = self._entries.by_uuid.get(found.parent or found.before, found)
        origin = self._origins.get(found.uuid, (found.session, found.agent))
        self._origins |= dict.fromkeys(path, origin)
        return origin


def _started(entry: Entry, before: _Before) -> int | None:
    """When the request was sent, as near as it can be told: when the last message of its prompt was written."""
    if entry.at is None or before.asked_at is None:
        return entry.at or before.asked_at
    return min(before.asked_at, entry.at)


def _usage(turn: Turn) -> Usage:
    told = wire.from_body(turn.body, provider="anthropic")
    if told.state == "missing" or turn.body.get("stop_reason"):
        return told
    return replace(told, notes=(*told.notes, NOT_FINAL))


def _provider(turn: Turn, model: str) -> str:
    name = text(turn.body.get("id"))
    served = next((provider for prefix, provider in _HOSTS.items() if name.startswith(prefix)), "")
    return served or providers.identify(model=model) or "anthropic"


def _model(entry: Entry) -> str:
    return text(entry.turn.body.get("model")) if entry.turn else ""
