"""Files that mean something as a whole: transcripts of agents, whose prompts are the lines before, and block traces.

Only ``ClaudeCode`` needs more than the file it reads: sub-agents and resumed sessions go on from other files of their
project. Its calls are told when another project has begun; so memory is bounded by a project.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from prefixscope.analyzer.ingest import claude_entries
from prefixscope.analyzer.ingest.block_hashes import BlockHashes
from prefixscope.analyzer.ingest.claude_code import ClaudeCode
from prefixscope.analyzer.ingest.codex import Codex
from prefixscope.analyzer.ingest.dsh import Dsh
from prefixscope.analyzer.ingest.loose import items, mapping
from prefixscope.analyzer.ingest.pi import Pi
from prefixscope.analyzer.ingest.results import Observed, Pending, Place, Rejected
from prefixscope.analyzer.ingest.run_events import RunEvents
from prefixscope.otel_plugin.fingerprint import Fingerprinter

Document = Mapping[str, Any]
_SIGNS = frozenset({"type", "role", "message", "messages", "event", "hash_ids", "requests"})  # one is in every line
_SUBAGENTS = "subagents"  # Claude Code keeps a session's in PROJECT/SESSION/subagents


class Transcripts:
    """Everything that is remembered from one document to the next."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._printer = printer
        self._projects: dict[Path, ClaudeCode] = {}  # the last one is being read
        self._begin()

    def _begin(self) -> None:
        self._session: Pi | Dsh | None = None  # what began with a line of its own, and all lines after it belong to
        self._in_claude = False  # the file has shown to be one of Claude Code's
        self._codex = Codex(self._printer)
        self._run = RunEvents()
        self._blocks = BlockHashes(self._printer)

    def opened(self) -> Iterator[Pending]:
        """To be called before a file is read: the calls that no further file can change."""
        self._begin()
        for project in list(self._projects)[:-1]:
            yield from self._projects.pop(project).calls()

    def closed(self) -> Iterator[Pending]:
        """To be called after the last file."""
        for project in list(self._projects):
            yield from self._projects.pop(project).calls()

    def read(self, document: Any, place: Place) -> Iterator[Observed | Rejected] | None:
        """The calls that are known now; None if ``document`` is no part of a transcript."""
        if not isinstance(document, dict) or _SIGNS.isdisjoint(document):
            return None
        if Codex.is_line(document):
            return self._codex.calls(document, place)
        session = self._of_session(document)
        if session:
            return session.calls(document, place)
        if BlockHashes.is_trace(document):
            return self._blocks.calls(document, place)
        if RunEvents.is_event(document):
            return self._run.calls(document, place)
        entries = [document] if self._of_claude(document) else _recorded_stream(document)
        for entry in entries:
            self._claude(Path(place.file)).take(entry, place)
        return iter(()) if entries else None

    def _of_claude(self, document: Document) -> bool:
        """After the first entry of a file, whatever has a type is one too: versions differ in the types they have."""
        if claude_entries.is_entry(document):
            self._in_claude = True
            return True
        return self._in_claude and isinstance(document.get("type"), str)

    def _claude(self, path: Path) -> ClaudeCode:
        project = path.parent.parent.parent if path.parent.name == _SUBAGENTS else path.parent
        if project not in self._projects:
            self._projects[project] = ClaudeCode(self._printer)
        return self._projects[project]

    def _of_session(self, document: Document) -> Pi | Dsh | None:
        if Pi.is_session(document):
            self._session = Pi(self._printer)
        elif Dsh.is_session(document):
            self._session = Dsh(self._printer)
        elif self._session is None and Pi.is_answer(document):
            return Pi(self._printer)
        return self._session if "type" in document or "role" in document else None


def _recorded_stream(document: Document) -> list[Document]:
    """The messages between the Agent SDK and the CLI, recorded as {"messages": [{"direction", "message"}]}."""
    found = items(document.get("messages"))
    recorded = all("direction" in mapping(m) and isinstance(m.get("message"), dict) for m in found)
    return [m["message"] for m in found] if recorded else []
