"""Observed calls on their way into the store: numbered contents, and Arrow tables of calls and contents."""

from collections.abc import Iterable, Mapping
from dataclasses import astuple
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa

from prefixscope.analyzer.ingest.results import Observed
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, SegmentPrint

_TEXT, _COUNT, _ID = pa.string(), pa.int64(), pa.uint64()
_RECORD: Final = {
    **dict.fromkeys(("service", "provider", "api", "model", "account", "region", "session_id", "trace_id"), _TEXT),
    **dict.fromkeys(("span_id", "parent_span_id", "request_id", "instrumentation", "error"), _TEXT),
    "started_ns": _COUNT,
    "status": pa.int16(),
    "aborted": pa.bool_(),
    "duration_ms": pa.float64(),
    "ttft_ms": pa.float64(),
}
_USAGE: Final = {
    **dict.fromkeys(("served_model", "response_id", "tier", "speed", "geo", "miss_reason"), _TEXT),
    **dict.fromkeys(("uncached", "read", "write_5m", "write_30m", "write_1h", "write_12h", "write_unknown"), _COUNT),
    **dict.fromkeys(("output", "reasoning", "missed_tokens"), _COUNT),
}
_REUSE: Final = {
    **dict.fromkeys(("exact_key", "answer_key", "answer_kind"), _TEXT),
    "temperature": pa.float64(),
    "choices": pa.int64(),
    **dict.fromkeys(("streamed", "live_tools"), pa.bool_()),
}
_EMBEDDED: Final = {"embedded_by": _TEXT, "vector": pa.binary(), "scope_key": _TEXT, "context_key": _TEXT}
_PLACE: Final = {"prompt_lost": _TEXT, "file": _TEXT, "line": _COUNT}
_DERIVED: Final = {"call_id": _TEXT, "usage_state": _TEXT, "usage_notes": _TEXT}
_PROMPT: Final = {
    "segments": pa.list_(pa.int32()),
    "marker_at": pa.list_(pa.int32()),
    "marker_ttl": pa.list_(_TEXT),
    **dict.fromkeys(("key_id", "auto_marker", "cache_mode", "cache_ttl", "cache_key"), _TEXT),
    **dict.fromkeys(("cached_content", "settings"), _TEXT),
}
_CALLS: Final = _RECORD | _USAGE | _REUSE | _PLACE | _DERIVED | _PROMPT | _EMBEDDED
_CONTENTS: Final = {
    "content": pa.int32(),
    "key": _ID,
    "level": _TEXT,
    "kind": _TEXT,
    "role": _TEXT,
    "bytes": _COUNT,
    "skeleton_id": _ID,
    "canonical_id": _ID,
    "piece_ids": pa.list_(_ID),
    "piece_bytes": pa.list_(pa.int32()),
    "piece_kinds": pa.list_(_TEXT),
    "piece_continues": pa.list_(pa.bool_()),
}
_facts = attrgetter(
    *(f"record.{name}" for name in _RECORD),
    *(f"record.usage.{name}" for name in _USAGE),
    *(f"record.reuse.{name}" for name in _REUSE),
    *_PLACE,
)
_NO_VECTOR: Final = ("", None, "", "")
_NO_PROMPT: Final = (None, None, None, "", "", "", "", "", "", "")


class Batch:
    """Observations as rows, until they are taken. Contents are numbered densely, from batch to batch.

    Args:
        numbers: the contents that are known already, key -> number; grows.
    """

    def __init__(self, numbers: dict[int, int]) -> None:
        self._numbers = numbers
        self._salts: dict[tuple[str, str, str], int] = {}
        self._calls: list[tuple[Any, ...]] = []
        self._contents: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, item: Observed) -> None:
        record, usage = item.record, item.record.usage
        prompt = _NO_PROMPT if record.fingerprint is None else self._prompt(record.fingerprint)
        derived = call_id(record, prompt[0]), usage.state, ",".join(usage.notes)
        vector = _NO_VECTOR if record.embedded is None else astuple(record.embedded)
        self._calls.append((*_facts(item), *derived, *prompt, *vector))

    def taken(self) -> tuple[pa.Table, pa.Table]:
        """The contents that are new and the calls since the last time."""
        found = _table(self._contents, _CONTENTS), _table(self._calls, _CALLS)
        self._contents, self._calls = [], []
        return found

    def _prompt(self, print_: Fingerprint) -> tuple[Any, ...]:
        marked = [(at, segment.marker) for at, segment in enumerate(print_.segments) if segment.marker]
        return (
            [self._number(segment) for segment in print_.segments],
            [at for at, _ in marked],
            [ttl for _, ttl in marked],
            print_.key_id,
            print_.auto_marker,
            print_.cache_mode,
            print_.cache_ttl,
            print_.cache_key,
            print_.cached_content,
            settings_text(print_.settings),
        )

    def _number(self, segment: SegmentPrint) -> int:
        header = segment.level, segment.kind, segment.role
        salt = self._salts.get(header)
        if salt is None:
            salt = self._salts[header] = _hashed("\0".join(header))
        key = segment.content_id ^ salt
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers)
            self._contents.append(_content(number, key, segment))
        return number


def call_id(record: CallRecord, segments: list[int] | None) -> str:
    """16 hex digits that are equal for two observations of one call.

    The provider's response id names a call; where it is not known the span does, and where there is none either,
    everything that was seen of it.
    """
    if record.usage.response_id:
        name = record.usage.response_id
    elif record.span_id:
        name = f"{record.trace_id}:{record.span_id}"
    else:
        seen = (record.started_ns, record.service, record.model, record.session_id, record.usage, segments)
        name = repr(seen)
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def settings_text(settings: Mapping[str, str]) -> str:
    """Settings as one comparable text: ``name=hash`` joined by commas, sorted by name."""
    return ",".join(f"{name}={value}" for name, value in sorted(settings.items()))


def _content(number: int, key: int, segment: SegmentPrint) -> tuple[Any, ...]:
    pieces = segment.pieces
    return (
        *(number, key, segment.level, segment.kind, segment.role),
        *(segment.size, segment.skeleton_id, segment.canonical_id),
        *([piece.content_id for piece in pieces], [piece.size for piece in pieces]),
        *([piece.volatile for piece in pieces], [piece.continues for piece in pieces]),
    )


def _table(rows: Iterable[tuple[Any, ...]], columns: Mapping[str, pa.DataType]) -> pa.Table:
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays = [pa.array(column, type=kind) for column, kind in zip(values, columns.values(), strict=True)]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
