"""What ingest hands on: calls that were observed, and what had to be rejected and why."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from prefixscope.otel_plugin.record import CallRecord


@dataclass(frozen=True, slots=True)
class Observed:
    """A call and where it was found."""

    record: CallRecord
    file: str
    line: int  # 1-based; of a binary file: the number of the message
    prompt_lost: str = ""  # why a prompt that was recorded could not be fingerprinted; "" = nothing was lost


@dataclass(frozen=True, slots=True)
class Rejected:
    """Input that is no call although it should be one. ``reason`` says what is wrong and what to do about it."""

    file: str
    line: int | None  # None: the file as a whole
    reason: str


class Pending(NamedTuple):
    """A call that was read and is told later, since what was read afterwards belongs to it."""

    place: "Place"
    tell: "Callable[[], Observed | Rejected]"


class Place(NamedTuple):
    """Where a reader stands; it names the place in everything that is handed on from there."""

    file: str
    line: int

    def observed(self, record: CallRecord, prompt_lost: str = "") -> Observed:
        return Observed(record, self.file, self.line, prompt_lost)

    def rejected(self, reason: str) -> Rejected:
        return Rejected(self.file, self.line, reason)
