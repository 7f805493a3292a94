"""Traces that name the blocks of each prompt by number instead of giving its text -> calls.

Two layouts: a session as one object, ``{"block_size": 64, "requests": [{"t": 0.0, "in": 15818, "hash_ids": […]}]}``
(kv-cache-tester), and a request a line, ``{"timestamp": 0, "input_length": 6758, "hash_ids": […]}`` (Mooncake).

A number names a block together with everything before it, so equal numbers are equal prefixes. The blocks become the
pieces of the fingerprint. Their size is known in tokens and not in bytes: **sizes of calls of this API are tokens**.
Times are seconds or milliseconds since an unknown moment; they are told as if that had been ``START``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prefixscope.analyzer.ingest.loose import count, items, mapping, number, text
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.otel_plugin import providers
from prefixscope.otel_plugin.fingerprint import VERSION, Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, Kind, Level, Piece, SegmentPrint, Usage

API = "block_hashes"
START = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z, ns
NOTES = ("cache_read_not_recorded", "cache_write_not_recorded", "relative_time")

_LINE_BLOCK = 512  # tokens; what Mooncake cuts prompts into
_MAX_BLOCK = 1 << 20
_NO_BLOCKS = 'a request without "hash_ids", the numbers of its blocks'
_NO_TIME = 'a request without a time since the beginning of the trace ("t" in seconds, "timestamp" in ms)'
_NO_LENGTH = 'a request without the length of its prompt in tokens ("in", "input_length")'
_BAD_SIZE = (
    '{blocks:,} blocks of {size} tokens are no prompt of {tokens:,} tokens: add "block_size", the tokens of a block'
)


class _Request(NamedTuple):
    """One request of either layout. Times in seconds."""

    at: float
    tokens: int
    blocks: Sequence[int]
    output: int | None
    model: str = ""
    session: str = ""
    lasted: float | None = None
    first_token: float | None = None


class BlockHashes:
    """Reads the requests of one file. It remembers where earlier prompts ended: there messages begin."""

    def __init__(self, printer: Fingerprinter) -> None:
        self._printer = printer
        self._ids: dict[tuple[str, int], int] = {}
        self._ends: set[int] = set()  # ids of the pieces that were the last full block of a prompt
        self._segments: dict[tuple[int, ...], SegmentPrint] = {}

    @staticmethod
    def is_trace(document: Mapping[str, Any]) -> bool:
        """Whether ``document`` is a session or a request of such a trace."""
        if isinstance(document.get("requests"), list):
            return "block_size" in document
        return isinstance(document.get("hash_ids"), list)

    def calls(self, document: Mapping[str, Any], place: Place) -> Iterator[Observed | Rejected]:
        """The calls in a session or a line."""
        if "requests" not in document:
            block = count(document.get("block_size")) or _LINE_BLOCK
            yield self._call(_line(document, place), block, (), scope=place.file, place=place)
            return
        block = count(document.get("block_size")) or 0
        session = text(document.get("id"))
        heads = tuple(count(document.get(name)) or 0 for name in ("tool_tokens", "system_tokens"))
        # the numbers of one session mean nothing in another, unless the trace says so
        scope = "" if document.get("hash_id_scope") == "global" else f"{place.file}:{session}"
        for raw in map(mapping, items(document["requests"])):
            yield self._call(_of_session(raw, session, place), block, heads, scope=scope, place=place)

    def _call(
        self, request: _Request | Rejected, block: int, heads: Sequence[int], *, scope: str, place: Place
    ) -> Observed | Rejected:
        if isinstance(request, Rejected):
            return request
        rest = request.tokens - block * len(request.blocks)
        if not 0 < block <= _MAX_BLOCK or not -block < rest < block:
            reason = _BAD_SIZE.format(blocks=len(request.blocks), size=block, tokens=request.tokens)
            return place.rejected(reason)
        record = CallRecord(
            started_ns=START + round(request.at * 1e6) * 1000,
            provider=providers.identify(model=request.model) if request.model else "",
            api=API,
            model=request.model,
            usage=Usage("partial", uncached=request.tokens, output=request.output or 0, notes=NOTES),
            fingerprint=self._fingerprint(request, block, heads, scope),
            duration_ms=None if request.lasted is None else request.lasted * 1000,
            ttft_ms=None if request.first_token is None else request.first_token * 1000,
            session_id=request.session,
            instrumentation="block_hashes",
        )
        return place.observed(record)

    def _fingerprint(self, request: _Request, block: int, heads: Sequence[int], scope: str) -> Fingerprint | None:
        pieces = [Piece(self._id(scope, number), block) for number in request.blocks]
        rest = request.tokens - block * len(pieces)
        if rest < 0:  # the last block is not full
            pieces[-1] = pieces[-1]._replace(size=block + rest)
        ends = self._cuts(pieces, block, heads)
        if pieces and rest >= 0:
            self._ends.add(pieces[-1].content_id)
        if rest > 0:  # a beginning of a block, which the trace gives no number: nobody else has it
            own = f"{scope}\0{request.at}\0{request.tokens}\0{pieces[-1].content_id if pieces else 0}"
            pieces.append(Piece(self._number(own), rest))
        segments = [
            self._segment(level, tuple(pieces[begin:end]))
            for level, begin, end in _spans(ends, len(pieces), block, heads)
            if begin < end
        ]
        return Fingerprint(VERSION, self._printer.key_id, tuple(segments)) if segments else None

    def _cuts(self, pieces: Sequence[Piece], block: int, heads: Sequence[int]) -> list[int]:
        """Behind which blocks of the messages an earlier prompt ended."""
        begin = sum(heads) // block
        return [at for at, piece in enumerate(pieces, 1) if at > begin and piece.content_id in self._ends]

    def _id(self, scope: str, number: int) -> int:
        found = self._ids.get((scope, number))
        if found is None:
            found = self._ids[scope, number] = self._number(f"{scope}\0{number}")
        return found

    def _number(self, name: str) -> int:
        return int(self._printer.keyed(f"block\0{name}"), 16)

    def _segment(self, level: Level, pieces: tuple[Piece, ...]) -> SegmentPrint:
        # a block's number stands for all before it, so first and last one name the segment
        key = (("tools", "system", "messages").index(level), len(pieces), pieces[0].content_id, pieces[-1].content_id)
        known = self._segments.get(key)
        if known is None:
            content_id = self._number("\0".join(str(piece.content_id) for piece in pieces))
            size = sum(piece.size for piece in pieces)
            kind: Kind = "tool" if level == "tools" else "text"
            known = SegmentPrint(level, kind, "", size, content_id, content_id, content_id, pieces)
            self._segments[key] = known
        return known


def _spans(cuts: Sequence[int], pieces: int, block: int, heads: Sequence[int]) -> Iterator[tuple[Level, int, int]]:
    """(level, first block, behind the last one) of each segment."""
    tools = min(heads[0] // block, pieces) if heads else 0
    system = min(sum(heads) // block, pieces) if heads else 0
    yield "tools", 0, tools
    yield "system", tools, system
    for begin, end in zip((system, *cuts), (*cuts, pieces), strict=True):
        yield "messages", begin, end


def _of_session(raw: Mapping[str, Any], session: str, place: Place) -> _Request | Rejected:
    at, tokens, blocks = number(raw.get("t")), count(raw.get("in")), _blocks(raw)
    if at is None or tokens is None or blocks is None:
        return place.rejected(_NO_TIME if at is None else _NO_LENGTH if tokens is None else _NO_BLOCKS)
    return _Request(
        at=at,
        tokens=tokens,
        blocks=blocks,
        output=count(raw.get("out")),
        model=text(raw.get("model")),
        session=session,
        lasted=number(raw.get("api_time")),
        first_token=number(raw.get("ttft")),
    )


def _line(raw: Mapping[str, Any], place: Place) -> _Request | Rejected:
    at, tokens, blocks = number(raw.get("timestamp")), count(raw.get("input_length")), _blocks(raw)
    if at is None or tokens is None or blocks is None:
        return place.rejected(_NO_TIME if at is None else _NO_LENGTH if tokens is None else _NO_BLOCKS)
    return _Request(
        at=at / 1000,
        tokens=tokens,
        blocks=blocks,
        output=count(raw.get("output_length")),
        model=text(raw.get("model")),
        session=text(raw.get("session_id")) or text(raw.get("chat_id")),
    )


def _blocks(raw: Mapping[str, Any]) -> Sequence[int] | None:
    found = raw.get("hash_ids")
    return found if isinstance(found, list) and all(type(n) is int for n in found) else None
