"""Fingerprints as one bounded text: what travels in the span attribute ``prefixscope.fingerprint``.

Compact JSON, version first. Sizes and ids of a segment's pieces are left out where the segment is one static piece.
A text over the limit is made smaller by merging neighbouring pieces where their ids say so, so that two prints of
similar texts are merged alike; segment ends and segment ids are always kept.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from prefixscope.otel_plugin.record import Fingerprint, Piece, SegmentPrint

LIMIT = 16_384  # characters
_MAX_PIECES = 64  # of one segment, in an exported print
_MASK = (1 << 64) - 1


def pack(print_: Fingerprint, limit: int = LIMIT) -> str:
    """``print_`` as text of at most ``limit`` characters, or without any piece lists where even that is more."""
    segments = [_sampled(segment) for segment in print_.segments]
    text = _dump(print_, segments)
    for keep in range(len(segments)) if len(text) > limit else ():
        # the oldest messages give up their inner pieces first: their ends still name every prefix
        if segments[keep].level == "messages" and len(segments[keep].pieces) > 1:
            segments[keep] = _whole(segments[keep])
            text = _dump(print_, segments)
            if len(text) <= limit:
                return text
    return text if len(text) <= limit else _dump(print_, [_whole(s) for s in segments])


def unpack(text: str) -> Fingerprint:
    """The print that ``pack`` wrote.

    Raises:
        ValueError: the text is not a print of a known version.
    """
    try:
        raw = json.loads(text)
        if raw["v"] != 1:
            raise ValueError(f"fingerprint version {raw['v']} is newer than this prefixscope: update it")
        return Fingerprint(
            version=1,
            key_id=raw["k"],
            segments=tuple(_segment(*row) for row in raw["s"]),
            settings=raw.get("set", {}),
            auto_marker=raw.get("am", ""),
            cache_mode=raw.get("cm", ""),
            cache_ttl=raw.get("ct", ""),
            cache_key=raw.get("ck", ""),
            cached_content=raw.get("cc", ""),
        )
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise ValueError(f"not a prefixscope fingerprint: {error!r}") from error


def _dump(print_: Fingerprint, segments: Sequence[SegmentPrint]) -> str:
    raw = {"v": 1, "k": print_.key_id, "s": [_row(segment) for segment in segments]}
    short = {"set": dict(print_.settings), "am": print_.auto_marker, "cm": print_.cache_mode, "ct": print_.cache_ttl}
    short |= {"ck": print_.cache_key, "cc": print_.cached_content}
    return json.dumps(raw | {name: value for name, value in short.items() if value}, separators=(",", ":"))


def _row(segment: SegmentPrint) -> list[Any]:
    """level, kind, role, size, content id, then, where they say more: marker, canonical id, skeleton id, pieces."""
    whole = len(segment.pieces) == 1 and not segment.pieces[0].volatile
    rest = [
        segment.marker,
        segment.canonical_id if segment.canonical_id != segment.content_id else 0,
        segment.skeleton_id if segment.skeleton_id != segment.content_id else 0,
        []
        if whole
        else [value for piece in segment.pieces for value in (piece.content_id, piece.size, _mark(piece))],
    ]
    while rest and not rest[-1]:
        rest.pop()
    return [segment.level, segment.kind, segment.role, segment.size, segment.content_id, *rest]


def _mark(piece: Piece) -> str:
    """Volatile kind, behind a plus sign where the piece continues the one before."""
    return f"+{piece.volatile}" if piece.continues else piece.volatile


def _segment(  # noqa: PLR0913, PLR0917 - one parameter a column of the row
    level: Any,
    kind: Any,
    role: str,
    size: int,
    content_id: int,
    marker: str = "",
    canonical_id: int = 0,
    skeleton_id: int = 0,
    flat: Sequence[Any] = (),
) -> SegmentPrint:
    marked = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    pieces = tuple(Piece(i, n, mark.lstrip("+"), mark.startswith("+")) for i, n, mark in marked) or (Piece(content_id, size),)
    return SegmentPrint(
        level, kind, role, size, content_id, skeleton_id or content_id, canonical_id or content_id, pieces, marker
    )


def _whole(segment: SegmentPrint) -> SegmentPrint:
    return _with_pieces(segment, (Piece(segment.content_id, segment.size),))


def _sampled(segment: SegmentPrint) -> SegmentPrint:
    if len(segment.pieces) <= _MAX_PIECES:
        return segment
    keep_one_in = 1 << ((len(segment.pieces) - 1) // _MAX_PIECES).bit_length()
    return _with_pieces(segment, tuple(_merge(segment.pieces, keep_one_in)))


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


def _with_pieces(segment: SegmentPrint, pieces: tuple[Piece, ...]) -> SegmentPrint:
    return SegmentPrint(
        segment.level,
        segment.kind,
        segment.role,
        segment.size,
        segment.content_id,
        segment.skeleton_id,
        segment.canonical_id,
        pieces,
        segment.marker,
    )
