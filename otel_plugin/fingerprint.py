"""Fingerprints: keyed ids of what a prompt is made of, so that prefixes can be compared without their text.

Ids are BLAKE2b, 64 bit, keyed: without the key nobody can test a guess. Prints made with different keys cannot be
compared; ``key_id`` travels with them so that a mix is noticed.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Generic, TypeVar

from prefixscope.otel_plugin import pieces
from prefixscope.otel_plugin.record import Fingerprint, Piece, Prompt, Segment, SegmentPrint

VERSION = 1
_K = TypeVar("_K", bound=Hashable)
_V = TypeVar("_V")


class Memo(Generic[_K, _V]):
    """A bounded cache of two generations: when the young one is full it becomes the old one, and the old one goes."""

    def __init__(self, limit: int) -> None:
        self._young: dict[_K, _V] = {}
        self._old: dict[_K, _V] = {}
        self._limit = limit // 2
        self._weight = 0

    def get(self, key: _K) -> _V | None:
        value = self._young.get(key)
        if value is None and (value := self._old.get(key)) is not None:
            self._young[key] = value
        return value

    def put(self, key: _K, value: _V, weight: int) -> _V:
        self._weight += weight
        if self._weight > self._limit:
            self._old, self._young, self._weight = self._young, {}, weight
        self._young[key] = value
        return value


@dataclass(frozen=True, slots=True)
class _Core:
    """What depends on a segment's text alone."""

    size: int
    content_id: int
    skeleton_id: int
    pieces: tuple[Piece, ...]


class Fingerprinter:
    """Turns prompts into fingerprints under one key. Not thread safe: one per thread.

    Text seen before is looked up, not cut and hashed again; ``memory`` bounds the bytes of text held for that.
    """

    def __init__(self, key: bytes, memory: int = 128 << 20) -> None:
        self._hash: Callable[[], blake2b] = blake2b(digest_size=8, key=key[:64]).copy
        self.key_id = f"{self._id(b'prefixscope key id'):016x}"
        self._cores: Memo[str, _Core] = Memo(memory)
        self._units: Memo[tuple[str, bool], tuple[Piece, ...]] = Memo(memory // 4)
        self._canonical: Memo[str, int] = Memo(memory // 4)

    def fingerprint(self, prompt: Prompt) -> Fingerprint:
        """The print of ``prompt``: a function of the prompt and the key alone."""
        return Fingerprint(
            version=VERSION,
            key_id=self.key_id,
            segments=tuple(map(self._segment, prompt.segments)),
            settings={name: self.keyed(value) for name, value in prompt.settings.items()},
            auto_marker=prompt.auto_marker,
            cache_mode=prompt.cache_mode,
            cache_ttl=prompt.cache_ttl,
            cache_key=self.keyed(prompt.cache_key),
            cached_content=self.keyed(prompt.cached_content),
        )

    def keyed(self, text: str) -> str:
        """Keyed hash of a short text, 16 hex digits; empty for empty."""
        return f"{self._id(text.encode('utf-8', 'surrogatepass')):016x}" if text else ""

    def _id(self, data: bytes) -> int:
        state = self._hash()
        state.update(data)
        return int.from_bytes(state.digest(), "big")

    def _segment(self, segment: Segment) -> SegmentPrint:
        core = self._cores.get(segment.text) or self._new_core(segment.text)
        canonical_id = self._canonical_id(segment.canonical) if segment.canonical else core.content_id
        return SegmentPrint(
            segment.level,
            segment.kind,
            segment.role,
            core.size,
            core.content_id,
            core.skeleton_id,
            canonical_id,
            core.pieces,
            segment.marker,
        )

    def _canonical_id(self, text: str) -> int:
        known = self._canonical.get(text)
        return self._canonical.put(text, self._id(_utf8(text)), len(text)) if known is None else known

    def _new_core(self, text: str) -> _Core:
        data = _utf8(text)
        content_id = self._id(data)
        found: list[Piece] = []
        for unit in pieces.units(text):
            found += self._units.get(unit) or self._new_unit(unit)
        core = _Core(len(data), content_id, self._skeleton(found, content_id), tuple(found))
        return self._cores.put(text, core, len(data) + 100 * len(found))

    def _new_unit(self, unit: tuple[str, bool]) -> tuple[Piece, ...]:
        text, fine = unit
        cuts = [(_utf8(part), kind) for part, kind in pieces.cut(text, fine=fine)]
        found = tuple([Piece(self._id(data), len(data), kind, i > 0) for i, (data, kind) in enumerate(cuts)])
        return self._units.put(unit, found, len(text) + 100 * len(found))

    def _skeleton(self, found: Sequence[Piece], content_id: int) -> int:
        if not any(piece.volatile for piece in found):
            return content_id
        return self._id(b"".join(p.volatile.encode() if p.volatile else p.content_id.to_bytes(8, "big") for p in found))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")  # JSON may carry lone surrogates
