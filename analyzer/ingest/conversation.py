"""Prompts put together from a conversation that was kept message by message.

A transcript holds the messages and neither tools nor system prompt. So each prompt begins with a segment of kind
``unrecorded``, and has the setting ``history``: what stands behind has an order and an identity, and no position.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from prefixscope.otel_plugin import segments
from prefixscope.otel_plugin.fingerprint import VERSION, Fingerprinter
from prefixscope.otel_plugin.record import Fingerprint, Kind, Level, Piece, SegmentPrint

Prints = tuple[SegmentPrint, ...]
UNRECORDED: Final = "unrecorded"


class Messages:
    """Makes prints of single messages: their text is needed once, however many prompts they stand in."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._printer = printer
        self._settings = {segments.HISTORY: printer.keyed(UNRECORDED)}  # of prompts that are not all recorded

    def prints(self, body: Mapping[str, Any], api: str, kind: Kind | None = None) -> Prints:
        """The segments of a request body of the shape ``api`` that holds a part of a conversation.

        ``kind``: what its text parts are, if they are no common text.
        """
        prompt = segments.parse(body, api=api)
        if prompt is None:  # nested deeper than Python can follow
            return (self.unrecorded("nested too deeply", level="messages"),)
        found = self._printer.fingerprint(prompt).segments
        return tuple(s._replace(kind=kind) if kind and s.kind == "text" else s for s in found)

    def unrecorded(self, *names: str, level: Level = "system") -> SegmentPrint:
        """A place whose text is not in the transcript; equal names stand for text that is taken to be equal.

        It has one piece without bytes, so that prompts with different unknown beginnings share no prefix.
        """
        content_id = int(self._printer.keyed("\0".join((UNRECORDED, *names))), 16)
        return SegmentPrint(level, UNRECORDED, "", 0, content_id, content_id, content_id, (Piece(content_id, 0),))

    def fingerprint(
        self, prompt: Iterable[SegmentPrint], settings: Mapping[str, str] = MappingProxyType({})
    ) -> Fingerprint | None:
        """The print of a prompt and its settings (compact JSON by name); None if nothing of the prompt is recorded."""
        found = tuple(prompt)
        if all(segment.kind == UNRECORDED for segment in found):
            return None
        gaps = any(segment.kind == UNRECORDED for segment in found)
        keyed = {name: self._printer.keyed(value) for name, value in settings.items()}
        return Fingerprint(VERSION, self._printer.key_id, found, settings=keyed | self._settings if gaps else keyed)
