"""The records every stage meets at: what was sent (Prompt), what it hashes to (Fingerprint), what was billed (Usage).

Live capture and the audit build the same records, so that one analysis serves both. Standard library only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

Level = Literal["tools", "system", "messages"]
"""Where a segment stands in the provider's render order; a cached prefix is invalidated level by level."""

Kind = Literal[
    "tool", "text", "image", "file", "tool_call", "tool_result", "thinking", "opaque", "summary", "unrecorded"
]
"""``opaque``: of a type that nobody knows. ``summary``: text that stands for the turns which a compaction removed.
``unrecorded``: a place where the prompt had text that the source does not hold: its size is 0 and means nothing, its id
only says which places are taken for the same text. Positions behind such a segment are not known."""

UsageState = Literal["reported", "partial", "missing"]
"""``reported``: input total and cache counts are the provider's final word. ``partial``: some are (an aborted stream,
an input count without cache fields from a server that reports them only behind a switch). ``missing``: none are."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Billed tokens of one call in disjoint buckets.

    Invariant: ``uncached + read + write == input_total``. A bucket the provider did not report is 0 and ``state`` is
    not ``reported``: missing is not zero, and nothing may be concluded from it.
    """

    state: UsageState = "missing"
    uncached: int = 0
    read: int = 0
    write_5m: int = 0
    write_30m: int = 0
    write_1h: int = 0
    write_12h: int = 0
    write_unknown: int = 0  # written, TTL not reported
    output: int = 0  # billed output tokens, reasoning included
    reasoning: int = 0  # part of output
    tier: str = ""  # the provider's service tier as reported: default, flex, priority, batch…
    speed: str = ""  # Anthropic: standard, fast
    geo: str = ""  # Anthropic inference_geo
    served_model: str = ""
    response_id: str = ""
    miss_reason: str = ""  # the provider's own diagnosis, in its own words
    missed_tokens: int | None = None  # the provider's own estimate behind miss_reason
    notes: tuple[str, ...] = ()  # what had to be repaired to satisfy the invariant: "exclusive_input", …

    @property
    def write(self) -> int:
        return self.write_5m + self.write_30m + self.write_1h + self.write_12h + self.write_unknown

    @property
    def input_total(self) -> int:
        return self.uncached + self.read + self.write


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of the prompt in the provider's render order, with its text: lives in memory only.

    ``text`` is what the provider sees: the string itself for text parts, compact JSON in wire key order for tools and
    structured parts. White space between JSON tokens is dropped (the provider parses it away); key order, number
    spelling and white space inside strings are kept. Markers are cut out.
    """

    level: Level
    kind: Kind
    role: str
    text: str
    canonical: str = ""  # tools only: the same JSON with keys sorted, to tell "reordered" from "changed"
    marker: str = ""  # TTL of an explicit cache breakpoint at this segment's end: "5m", "1h", "30m", "12h"; "" = none


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request body, taken apart."""

    api: str  # one of segments.APIS
    model: str
    segments: tuple[Segment, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    """Request fields in the cache key that are not text (tool_choice, thinking, effort…): name -> compact JSON."""
    auto_marker: str = ""  # TTL of an automatic breakpoint at the end (Anthropic top-level cache_control)
    cache_mode: str = ""  # OpenAI prompt_cache_options.mode: "", "implicit", "explicit"
    cache_ttl: str = ""  # the request-wide TTL or retention: "30m", "12h", "24h", "in_memory"
    cache_key: str = ""  # prompt_cache_key or what the provider calls it; routes and isolates
    cached_content: str = ""  # Gemini cachedContent name: a stored prefix that is not in the body
    session: str = ""  # a conversation id found in the body (previous_response_id is not one)
    stream: bool = False


class Piece(NamedTuple):
    """A content-defined part of a segment. A tuple, as is SegmentPrint: made by the million, and quicker to make."""

    content_id: int  # unsigned 64 bit, keyed
    size: int  # UTF-8 bytes
    volatile: str = ""  # the kind of volatile span it is; "" = none
    continues: bool = False  # it belongs to the same line or sentence as the piece before


class SegmentPrint(NamedTuple):
    """A segment without its text. ``pieces`` sizes sum to ``size``."""

    level: Level
    kind: Kind
    role: str
    size: int  # UTF-8 bytes
    content_id: int
    skeleton_id: int  # the content id with volatile pieces replaced by their kind
    canonical_id: int  # tools: independent of key order; otherwise equal to content_id
    pieces: tuple[Piece, ...]
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A prompt without its text: safe to export."""

    version: int
    key_id: str  # names the key that made the ids; prints of different keys cannot be compared
    segments: tuple[SegmentPrint, ...]
    settings: Mapping[str, str] = field(default_factory=dict)  # name -> keyed hash of the value, 16 hex digits
    auto_marker: str = ""
    cache_mode: str = ""
    cache_ttl: str = ""
    cache_key: str = ""  # keyed hash, 16 hex digits; "" = none sent
    cached_content: str = ""  # keyed hash, 16 hex digits; "" = none


AnswerKind = Literal["", "whole", "tool_call", "refused", "cut"]
"""How an answer ended: by itself; in a request to run a tool; refused or filtered; cut off. "" = not known."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """What tells whether a response cache could have answered a call, without its text: safe to export.

    Keyed hashes are BLAKE2b, 128 bit, as 32 hex digits; "" = not known. See ``asked`` for what they are made of.
    """

    exact_key: str = ""  # of the request in one spelling: an exact repeat has the same
    answer_key: str = ""  # of the answer's words in one spelling; "" too where it has none, as of a tool call
    answer_kind: AnswerKind = ""
    temperature: float | None = None  # as asked for; None = the provider's default
    choices: int = 1  # answers asked for, or given
    streamed: bool = False
    live_tools: bool = False  # the provider runs tools by itself: the answer holds for that moment only


UNKNOWN: Final = Reuse()


@dataclass(frozen=True, slots=True)
class Embedded:
    """A question as a vector, where the user has switched that on, and what has to be the same to share its answer."""

    made_by: str  # the function that made it: vectors of two cannot be compared
    vector: bytes  # 16-bit floats, little endian, of length 1
    scope_key: str  # keyed hash of system prompt, tools, settings and tenant, 32 hex digits
    context_key: str  # keyed hash of the conversation before the question, 32 hex digits; "" = none


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One request to a model and what came of it. A retry is another call."""

    started_ns: int  # UTC, Unix epoch, nanoseconds: when the request was sent
    service: str = ""
    provider: str = ""  # genai-prices' id: openai, anthropic, google, aws, azure, deepseek, x-ai…; "" = unknown
    api: str = ""  # one of segments.APIS; or "block_hashes": sizes in its fingerprint are tokens, for want of bytes
    model: str = ""  # as requested
    usage: Usage = field(default_factory=Usage)
    fingerprint: Fingerprint | None = None
    duration_ms: float | None = None
    ttft_ms: float | None = None  # request sent -> first response byte of the body
    status: int | None = None  # HTTP status
    error: str = ""  # error class or provider error type
    account: str = ""  # keyed hash, 16 hex digits, never a credential
    region: str = ""
    session_id: str = ""
    trace_id: str = ""  # 32 lower-case hex digits
    span_id: str = ""  # 16 lower-case hex digits
    parent_span_id: str = ""
    request_id: str = ""  # provider's request id from the response headers
    instrumentation: str = ""  # who observed it: an OTel scope name, "request_log", "prefixscope"
    aborted: bool = False  # the body did not end by itself
    retries: int = 0  # how many times the SDK had sent this request before
    prompt_name: str = ""  # what the caller names the prompt
    reuse: Reuse = UNKNOWN
    embedded: Embedded | None = None

    @property
    def ms_per_output_token(self) -> float | None:
        """Mean time between two output tokens, from the first byte of the body to its end; None if it is not known."""
        if self.duration_ms is None or self.ttft_ms is None or self.usage.output < 2:
            return None
        return (self.duration_ms - self.ttft_ms) / (self.usage.output - 1)
