"""Fingerprints as one bounded text: what travels in the span attribute ``prefixscope.fingerprint``.

Compact JSON, version first, a segment's facts in columns; ids are eight bytes each in base64:

* ``h``: the distinct [level, kind, role] of segments; ``of``: which of them each segment has
* ``n``: sizes in bytes; ``i``: content ids
* ``m``, ``c``, ``sk``: what only some segments have, as [segment, value]: marker, canonical id, skeleton id
* ``p``: the pieces of each segment in base64, "" = it is one static piece; ``vk``: the volatile kinds these refer to

A text over the limit is made smaller by merging neighbouring pieces where their ids say so, so that two prints of
similar texts are merged alike; segment ends and segment ids are always kept.
"""

import json
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

from prefixscope.otel_plugin import volatile
from prefixscope.otel_plugin.fingerprint import Memo
from prefixscope.otel_plugin.record import Fingerprint, Kind, Level, Piece, SegmentPrint

LIMIT = 16_384  # characters
_MAX_PIECES = 64  # of one segment, in an exported print
_MASK = (1 << 64) - 1
_PIECE_BYTES = 100  # what one weighs in memory, about
_PIECE = struct.Struct(">QIB")  # id, size, twice the place of its volatile kind in ("", *vk), one more if it continues
_LEVELS, _KINDS = get_args(Level), get_args(Kind)
_MAX_SIZE = (1 << 31) - 1  # bytes of a segment
_TEXTS = {
    "key_id": "k",
    "auto_marker": "am",
    "cache_mode": "cm",
    "cache_ttl": "ct",
    "cache_key": "ck",
    "cached_content": "cc",
}


def pack(print_: Fingerprint, limit: int = LIMIT) -> str:
    """``print_`` as text of at most ``limit`` characters, or without any piece lists where even that is more."""
    kinds = tuple(dict.fromkeys(kind for segment in print_.segments for kind in _volatile(segment.pieces)))
    pieces = [_packed(segment.pieces, kinds) for segment in print_.segments]
    text = _dump(print_, pieces, kinds)
    excess = len(text) - limit
    if excess <= 0:
        return text
    for at, segment in enumerate(print_.segments):
        # the oldest messages give up their inner pieces first: their ends still name every prefix
        if excess > 0 and segment.level == "messages":
            excess -= len(pieces[at])
            pieces[at] = ""
    return _dump(print_, pieces if excess <= 0 else [""] * len(pieces), kinds)


def unpack(text: str, loads: Callable[[str], Any] = json.loads) -> Fingerprint:
    """The print that ``pack`` wrote.

    Args:
        text: what ``pack`` wrote.
        loads: parses JSON and raises ValueError for what is none; for those who read millions.

    Raises:
        ValueError: the text is not a print of a known version.
    """
    try:
        raw = loads(text)
        if raw["v"] != 1:
            raise ValueError(f"fingerprint version {raw['v']} is newer than this prefixscope: update it")
        return Fingerprint(version=1, segments=_segments(raw), **_texts(raw))
    except (KeyError, TypeError, AttributeError, IndexError, struct.error, json.JSONDecodeError) as problem:
        raise ValueError(f"not a prefixscope fingerprint: {problem!r}") from problem


def _dump(print_: Fingerprint, pieces: Sequence[str], kinds: Sequence[str]) -> str:
    segments = print_.segments
    headers = {header: at for at, header in enumerate(dict.fromkeys(map(_header, segments)))}
    raw: dict[str, Any] = {
        "v": 1,
        "k": print_.key_id,
        "h": list(headers),
        "of": [headers[_header(segment)] for segment in segments],
        "n": [segment.size for segment in segments],
        "i": b64encode(struct.pack(f">{len(segments)}Q", *(segment.content_id for segment in segments))).decode(),
    }
    raw |= {
        "m": [(at, s.marker) for at, s in enumerate(segments) if s.marker],
        "c": [(at, s.canonical_id) for at, s in enumerate(segments) if s.canonical_id != s.content_id],
        "sk": [(at, s.skeleton_id) for at, s in enumerate(segments) if s.skeleton_id != s.content_id],
        "p": pieces if any(pieces) else (),
        "vk": kinds,
    }
    raw |= {"set": dict(print_.settings), "am": print_.auto_marker, "cm": print_.cache_mode, "ct": print_.cache_ttl}
    raw |= {"ck": print_.cache_key, "cc": print_.cached_content}
    always = ("v", "k", "h", "of", "n", "i")
    return json.dumps({n: value for n, value in raw.items() if value or n in always}, separators=(",", ":"))


@dataclass(slots=True)
class _Same:
    """A key that stands for one object, not for its equals: comparing thousands of pieces would take too long."""

    pieces: Sequence[Piece]

    def __hash__(self) -> int:
        return id(self.pieces)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.pieces is self.pieces


_MEMORY = 16 << 20  # bytes of pieces that are remembered, about: a call repeats most segments of the call before
_KINDS_IN: Memo[_Same, tuple[str, ...]] = Memo(_MEMORY)
_TEXTS_OF: Memo[tuple[_Same, tuple[str, ...]], str] = Memo(_MEMORY)


def _volatile(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The kinds of the volatile pieces, in the order of their first."""
    key = _Same(pieces)
    known = _KINDS_IN.get(key)
    if known is None:
        found = tuple(dict.fromkeys(piece.volatile for piece in pieces if piece.volatile))
        return _KINDS_IN.put(key, found, _PIECE_BYTES * len(pieces))
    return known


def _packed(pieces: Sequence[Piece], kinds: tuple[str, ...]) -> str:
    """Few enough of the pieces, as text; "" for one static piece, or none."""
    key = _Same(pieces), kinds
    known = _TEXTS_OF.get(key)
    return _TEXTS_OF.put(key, _pieces(_sampled(pieces), kinds), _PIECE_BYTES * len(pieces)) if known is None else known


def _header(segment: SegmentPrint) -> tuple[str, str, str]:
    return segment.level, segment.kind, segment.role


def _pieces(pieces: Sequence[Piece], kinds: Sequence[str]) -> str:
    if len(pieces) == 1 and not pieces[0].volatile:
        return ""
    places = {kind: 2 * at for at, kind in enumerate(("", *kinds))}
    return b64encode(
        b"".join(_PIECE.pack(p.content_id, p.size, places[p.volatile] + p.continues) for p in pieces)
    ).decode()


def _segments(raw: Any) -> tuple[SegmentPrint, ...]:
    headers = [tuple(header) for header in raw["h"]]
    of, sizes = raw["of"], raw["n"]
    count = len(of)
    ids = struct.unpack(f">{count}Q", b64decode(raw["i"], validate=True))
    columns = (
        *(_column(raw.get(name, ()), count, empty) for name, empty in (("m", ""), ("c", 0), ("sk", 0))),
        raw.get("p") or [""] * count,
    )
    kinds = tuple(raw.get("vk", ()))
    if not set(volatile.KINDS).issuperset(kinds):
        raise TypeError(f"{kinds!r} are no volatile kinds")
    return tuple(
        _segment(headers[header], size, *facts, kinds)
        for header, size, *facts in zip(of, sizes, ids, *columns, strict=True)
    )


def _column(some: Iterable[tuple[int, Any]], count: int, empty: Any) -> list[Any]:
    found = [empty] * count
    for at, value in some:
        found[at] = value
    return found


@lru_cache(maxsize=1 << 16)  # a call repeats most segments of the call before
def _segment(  # noqa: PLR0913, PLR0917 - one parameter a column
    header: tuple[Any, Any, Any],
    size: int,
    content_id: int,
    marker: str,
    canonical_id: int,
    skeleton_id: int,
    pieces: str,
    kinds: tuple[str, ...],
) -> SegmentPrint:
    level, kind, role = header
    if level not in _LEVELS or kind not in _KINDS or not isinstance(role, str) or not _is_count(size, _MAX_SIZE):
        raise TypeError(f"{header!r} of {size!r} bytes is no segment")
    if not isinstance(marker, str) or not _is_count(canonical_id, _MASK) or not _is_count(skeleton_id, _MASK):
        raise TypeError("a marker or an id is none")
    names = ("", *kinds)
    found = (
        Piece(i, n, names[m >> 1], bool(m & 1)) for i, n, m in _PIECE.iter_unpack(b64decode(pieces, validate=True))
    )
    pieces_ = tuple(found) or ((Piece(content_id, size),) if size else ())
    if sum(piece.size for piece in pieces_) != size:
        raise TypeError(f"pieces do not make up a segment of {size} bytes")
    return SegmentPrint(
        level,
        kind,
        role,
        size,
        content_id,
        skeleton_id or content_id,
        canonical_id or content_id,
        pieces_,
        marker,
    )


def _is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and 0 <= value <= most


def _texts(raw: Any) -> dict[str, Any]:
    """The fields of a print that are texts, and its settings."""
    found = {field: raw.get(name, "") for field, name in _TEXTS.items()}
    settings = raw.get("set", {})
    if not all(isinstance(text, str) for text in (*found.values(), *settings, *settings.values())):
        raise TypeError("a text or a setting is none")
    return found | {"settings": settings}


def _sampled(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Few enough of a segment's pieces."""
    if len(pieces) <= _MAX_PIECES:
        return pieces
    return tuple(_merge(pieces, 1 << ((len(pieces) - 1) // _MAX_PIECES).bit_length()))


def _merge(pieces: Iterable[Piece], keep_one_in: int) -> Iterable[Piece]:
    """Joins static neighbours, ending a joined piece where the id of its last part is a multiple of ``keep_one_in``."""
    content_id = size = 0
    for piece in pieces:
        if piece.volatile:
            if size:
                yield Piece(content_id, size)
            yield piece
            content_id = size = 0
            continue
        content_id, size = _mix(content_id, piece.content_id), size + piece.size
        if piece.content_id % keep_one_in == 0:
            yield Piece(content_id, size)
            content_id = size = 0
    if size:
        yield Piece(content_id, size)


def _mix(left: int, right: int) -> int:
    """Joins two ids into one (the finaliser of SplitMix64); the ids are keyed already."""
    value = (left * 0x9E3779B97F4A7C15 + right) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
