"""The reference: what a provider's prompt cache does with a list of calls, one call after the other.

Plain and slow on purpose, and independent of the product, whose vectorised replay must give the same figures call by
call. The function of each kind of cache states its rules and their source.

**Entries.** A cache holds *prefixes*: the contents of a prompt from its first part up to some part, in one scope and
under the settings of the levels that it reaches. An entry knows until when it lives (``expires_ms``) and from when it
can be read (``available_ms``). It is *alive* for a call at ``t`` if ``available_ms <= t <= expires_ms``. Anthropic: the
clock of an entry runs from the start of the request that wrote it, a read refreshes it for free, and it is readable
only once the first response has begun, so that parallel cold requests all write (platform.claude.com, "Prompt caching",
autumn 2026).

**Touch.** A call at ``t`` whose response begins at ``f`` touches a prefix with a time to live. An entry that has not
expired keeps the later expiry and the earlier availability; otherwise there is a new one: ``t + ttl`` and ``f``. A call
touches after its own lookup.

**Settings.** A setting belongs to the level that it invalidates: a changed ``tool_choice`` leaves Anthropic's tools and
system prompt cached and loses the messages ("What invalidates the cache", same page). So a prefix is named by the
settings of the levels that it has entered, besides its contents.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile
from typing import Literal

Level = Literal["tools", "system", "messages"]
Kind = Literal["tool", "text", "tool_call", "tool_result", "thinking"]
_LEVELS: tuple[Level, ...] = ("tools", "system", "messages")


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the prompt that is cached as a whole. Consecutive parts of the same block number form one block.

    ``content`` names all that is sent of the part, its level, kind and role included: equal contents are the same text.
    """

    content: Hashable
    tokens: int
    block: int
    level: Level = "messages"
    kind: Kind = "text"
    role: str = "user"


@dataclass(frozen=True, slots=True)
class Marker:
    """An explicit breakpoint behind ``parts[part]``, which must be the last part of its block."""

    part: int
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A prefix that lies with the provider and that a request names instead of sending it (Gemini's cachedContent)."""

    tokens: int
    created_ms: int
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class SimCall:
    """``scope`` is what the cache is isolated by: provider, account, model, region, cache key."""

    at_ms: int
    first_token_ms: int  # when the response began, >= at_ms
    scope: Hashable
    parts: tuple[Part, ...]
    markers: tuple[Marker, ...] = ()
    settings: tuple[Hashable, Hashable, Hashable] = ("", "", "")  # those that invalidate tools, system, messages
    ttl_ms: int = 0  # the request-wide time to live; 0 = the cache's own
    auto_marker_ms: int = 0  # TTL of a breakpoint that the request asks for at its end; 0 = it does not
    explicit_only: bool = False  # no breakpoint but those of ``markers``
    reads: bool = True  # automatic, units, slot: False processes all anew (llama.cpp's cache_prompt)
    answer: tuple[Part, ...] = ()  # what the model wrote, all of it
    stored: Stored | None = None


@dataclass(frozen=True, slots=True)
class Rules:
    """A provider's cache. A field that says nothing of other kinds is for all of them."""

    cache: Literal["automatic", "explicit", "boundaries", "units", "slot", "none"]
    min_tokens: int
    granularity: int = 1  # tokens that a read is rounded down to; automatic, units, slot
    ttl_ms: int = 300_000  # explicit: of a marker, which has its own
    lookback: int = 20  # explicit: positions, the marker's own included; boundaries: endings, the implicit one included
    collapse_tool_runs: bool = False  # explicit: a run of tool calls, or of tool results, is one position
    max_markers: int = 4  # breakpoints that write, the latest
    first_lookups: int = 2  # boundaries: breakpoints of the request that are looked up, from its beginning
    latest_lookups: int = 50  # boundaries: … and from its end
    always_processed: int = 0  # tokens at the end of a prompt that are never read; automatic, units, slot
    charges_writes: bool = False  # automatic: what is not read is billed as a write


@dataclass(frozen=True, slots=True)
class Outcome:
    """Input tokens of one call in disjoint buckets; ``writes`` maps a TTL in ms to tokens and holds no zeros."""

    read: int
    uncached: int
    writes: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Entry:
    expires_ms: int
    available_ms: int
    prefixes: tuple[Hashable, ...] = ()  # of the prompt that a slot holds


_Entries = dict[Hashable, _Entry]  # what kind of entry, scope, settings and contents of the prefix -> entry


def simulate(calls: Sequence[SimCall], rules: Rules) -> list[Outcome]:
    """What each call reads, writes and pays in full, in the order given; they happen in the order of (at_ms, index).

    Raises:
        KeyError: a marker does not stand at the end of a block.
        ValueError: a call names a stored prefix that is not there at its time: the provider refuses it.
    """
    entries: _Entries = {}
    outcomes: dict[int, Outcome] = {}
    for index in sorted(range(len(calls)), key=lambda i: (calls[i].at_ms, i)):
        prompt = _Prompt(calls[index], entries)
        outcomes[index] = (_stored if calls[index].stored else _SERVE[rules.cache])(prompt, rules)
    return [outcomes[index] for index in range(len(calls))]


class _Prompt:
    """One call's prefixes, each named by the index of its last part, and the cache they are looked up in."""

    def __init__(self, call: SimCall, entries: _Entries) -> None:
        self.call = call
        self.entries = entries
        self.tokens = list(accumulate(part.tokens for part in call.parts))  # of the prefix that ends with part i
        self.total = self.tokens[-1] if self.tokens else 0
        levels = (_LEVELS.index(part.level) for part in call.parts)
        self._entered = [level + 1 for level in accumulate(levels, max)]

    def key(self, last: int, sort: str = "") -> Hashable:
        settings = self.call.settings[: self._entered[last]]
        return sort, self.call.scope, settings, tuple(part.content for part in self.call.parts[: last + 1])

    def has_expired(self, last: int, sort: str = "") -> bool:
        entry = self.entries.get(self.key(last, sort))
        return entry is None or entry.expires_ms < self.call.at_ms

    def is_alive(self, last: int) -> bool:
        entry = self.entries.get(self.key(last))
        return entry is not None and entry.available_ms <= self.call.at_ms <= entry.expires_ms

    def touch(self, last: int, ttl_ms: int, sort: str = "") -> None:
        expires_ms, first_token_ms = self.call.at_ms + ttl_ms, self.call.first_token_ms
        key = self.key(last, sort)
        if self.has_expired(last, sort):
            self.entries[key] = _Entry(expires_ms, first_token_ms)
        else:
            entry = self.entries[key]
            entry.expires_ms = max(entry.expires_ms, expires_ms)
            entry.available_ms = min(entry.available_ms, first_token_ms)


def _automatic(prompt: _Prompt, rules: Rules) -> Outcome:
    """Every prefix of every prompt (OpenAI before GPT-5.6, Gemini implicit, vLLM, SGLang).

    Read is the longest prefix of which every shorter prefix is alive too, rounded down to the granularity and 0 if that
    is below the minimum. OpenAI ("Prompt caching", "Earlier models"): from 1,024 tokens, reported rounded down to 128.
    vLLM caches whole blocks of 16 tokens and always computes the last token (vllm/v1/core/kv_cache_manager.py,
    ``get_computed_blocks``); SGLang's radix tree matches by token and also leaves the last one
    (sglang/srt/managers/schedule_batch.py, ``init_next_round_input``).
    """
    found = 0
    for last, tokens in enumerate(prompt.tokens):
        if not prompt.is_alive(last):
            break
        found = tokens
    for last in range(len(prompt.tokens)):
        prompt.touch(last, prompt.call.ttl_ms or rules.ttl_ms)
    return _rounded(prompt, rules, found)


def _units(prompt: _Prompt, rules: Rules) -> Outcome:
    """Whole prefix units (DeepSeek, api-docs.deepseek.com/guides/kv_cache, 2026).

    A unit ends where the input of a request ends, where its output ends, and where the prefix ends that a request has
    in common with an earlier one: after A+B and A+C, a third request A+D reads A. Only a unit that a prompt holds as a
    whole can be read; the longest one is. Fixed intervals, which cut long inputs as well, are not modelled: their size
    is not published. Counts come in steps (128 in recorded exchanges).
    """
    ttl_ms = prompt.call.ttl_ms or rules.ttl_ms
    ends = range(len(prompt.tokens))
    hit = max((last for last in ends if prompt.is_alive(last)), default=None)
    common = [last for last in ends if not any(prompt.has_expired(shorter, "seen") for shorter in range(last + 1))]
    for last in ends:
        prompt.touch(last, ttl_ms, "seen")
    for last in {hit, *common[-1:], *ends[-1:]} - {None}:
        prompt.touch(last, ttl_ms)
    if prompt.call.answer:
        told = _Prompt(replace(prompt.call, parts=prompt.call.parts + prompt.call.answer), prompt.entries)
        told.touch(len(told.tokens) - 1, ttl_ms)
    return _rounded(prompt, rules, prompt.tokens[hit] if hit is not None else 0)


def _slot(prompt: _Prompt, rules: Rules) -> Outcome:
    """One slot a scope, which keeps its last prompt and no other (llama.cpp's server).

    Read is the longest prefix in common with the last prompt, but never the last token (tools/server, "need to evaluate
    at least 1 token"). A slot serves one request after the other, so that the last prompt is always complete. With
    ``cache_prompt: false`` all is processed anew, and then kept as ever.
    """
    keys = tuple(prompt.key(last) for last in range(len(prompt.tokens)))
    name = ("slot", prompt.call.scope)
    slot = prompt.entries.get(name)
    shared = 0
    if slot is not None and prompt.call.at_ms <= slot.expires_ms:
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(keys, slot.prefixes, strict=False)))
    expires_ms = prompt.call.at_ms + (prompt.call.ttl_ms or rules.ttl_ms)
    prompt.entries[name] = _Entry(expires_ms, prompt.call.at_ms, keys)
    return _rounded(prompt, rules, prompt.tokens[shared - 1] if shared else 0)


def _rounded(prompt: _Prompt, rules: Rules, found: int) -> Outcome:
    found = max(min(found, prompt.total - rules.always_processed), 0) if prompt.call.reads else 0
    found -= found % rules.granularity
    read = found if found >= rules.min_tokens else 0
    rest = prompt.total - read
    if rules.charges_writes and rest and prompt.total >= rules.min_tokens:
        return Outcome(read, 0, {prompt.call.ttl_ms or rules.ttl_ms: rest})
    return Outcome(read, rest)


def _explicit(prompt: _Prompt, rules: Rules) -> Outcome:
    """Entries stand only at markers (Anthropic, Bedrock, Alibaba; platform.claude.com, "Prompt caching").

    * The latest ``max_markers`` count: Anthropic refuses a request with more than four, Alibaba takes the last four.
      The top-level ``cache_control`` is one more marker, behind the last block that can carry one: thinking and empty
      text cannot. Where a marker stands already, it stays.
    * A marker finds entries at the end of its own block and of the blocks before it, ``lookback`` positions counting
      itself (20); a run of tool calls, or of tool results, can be one position. A is the deepest entry found alive.
    * An entry found by looking back is refreshed with the TTL of the first marker whose window contains it.
    """
    parts, markers = prompt.call.parts, list(prompt.call.markers)
    if prompt.call.auto_marker_ms and (last := _last_markable(parts)) is not None:
        markers += [Marker(last, prompt.call.auto_marker_ms)] if last not in {m.part for m in markers} else []
    markers = sorted(markers, key=lambda marker: marker.part)[-rules.max_markers :]
    finders: dict[int, int] = {}
    for marker in markers:
        if prompt.tokens[marker.part] >= rules.min_tokens:
            for last in _window(parts, marker, rules):
                finders.setdefault(last, marker.ttl_ms)
    return _at_markers(prompt, rules, markers, finders)


def _boundaries(prompt: _Prompt, rules: Rules) -> Outcome:
    """Implicit and explicit breakpoints (OpenAI since GPT-5.6, guide "Prompt caching", September 2026).

    * Implicit mode sets a breakpoint behind the latest eligible message: one of the user; the last of a group of tool
      responses; the last of the developer messages at the beginning. A message is a run of blocks of one role.
    * Written are the implicit breakpoint and the latest three explicit ones, or, without it, the latest four.
    * Looked up are, of the explicit ones, the first 2 and latest 50, and in implicit mode the implicit one, the endings
      of up to 20 earlier eligible messages, and that of the developer messages at the beginning.
    * A read refreshes its entry: with the TTL of the breakpoint that found it there, else with the request's.
    """
    parts, ttl_ms = prompt.call.parts, prompt.call.ttl_ms or rules.ttl_ms
    endings = [] if prompt.call.explicit_only else list(_eligible_endings(parts))
    implicit = endings[-1:]
    at_implicit = [m for m in prompt.call.markers if m.part in implicit]
    explicit = sorted((m for m in prompt.call.markers if m.part not in implicit), key=lambda marker: marker.part)
    room = rules.max_markers - len(implicit)
    written = explicit[-room:] if room else []
    written += at_implicit or [Marker(last, ttl_ms) for last in implicit]
    latest = explicit[max(len(explicit) - rules.latest_lookups, 0) :]
    looked_up = {m.part: m.ttl_ms for m in (*explicit[: rules.first_lookups], *latest)}
    looked_up |= {m.part: m.ttl_ms for m in written if m.part in implicit}
    opening = [last for last in endings if parts[last].level == "system"]
    for last in (*endings[-rules.lookback :], *opening):
        looked_up.setdefault(last, ttl_ms)
    return _at_markers(prompt, rules, written, looked_up)


def _at_markers(prompt: _Prompt, rules: Rules, markers: Sequence[Marker], looked_up: Mapping[int, int]) -> Outcome:
    """Reads, bills and touches where entries stand at markers.

    * What has fewer tokens than the minimum is neither read nor written. Read is A, the deepest entry found alive.
    * Written is what lies between A and the last marker behind it, each time to live for itself, the longest first:
      from A to the last 1h marker at the price of 1h, from there to the last 5m marker at the price of 5m (Anthropic's
      rule for mixed TTLs, with "A, B, C"). What lies behind the last marker is uncached.
    * Every marker's prefix is touched with the marker's TTL, those before A too; A with the TTL of what found it.
    """
    markers = [m for m in markers if prompt.tokens[m.part] >= rules.min_tokens]
    found = (last for last in looked_up if prompt.tokens[last] >= rules.min_tokens and prompt.is_alive(last))
    hit = max(found, default=None)
    read = prompt.tokens[hit] if hit is not None else 0
    writes: dict[int, int] = {}
    covered = read
    for ttl_ms in sorted({m.ttl_ms for m in markers}, reverse=True):
        end = max(prompt.tokens[m.part] for m in markers if m.ttl_ms == ttl_ms)
        if end > covered:
            writes[ttl_ms], covered = end - covered, end
    for marker in markers:
        prompt.touch(marker.part, marker.ttl_ms)
    if hit is not None and hit not in {m.part for m in markers}:
        prompt.touch(hit, looked_up[hit])
    return Outcome(read, prompt.total - covered, writes)


def _stored(prompt: _Prompt, _: Rules) -> Outcome:
    """A request that names a stored prefix reads exactly its tokens and pays the rest (Gemini, explicit caching).

    Implicit caching of what the request itself holds is not promised and not modelled.
    """
    stored = prompt.call.stored
    assert stored is not None
    if not stored.created_ms <= prompt.call.at_ms <= stored.created_ms + stored.ttl_ms:
        raise ValueError("the stored prefix is not there: the provider refuses the request")
    return Outcome(stored.tokens, prompt.total)


def _none(prompt: _Prompt, _: Rules) -> Outcome:
    """No cache (models before their vendors had one)."""
    return Outcome(0, prompt.total)


_SERVE: Mapping[str, Callable[[_Prompt, Rules], Outcome]] = {
    "automatic": _automatic,
    "units": _units,
    "slot": _slot,
    "explicit": _explicit,
    "boundaries": _boundaries,
    "none": _none,
}


def _block_ends(parts: Sequence[Part]) -> list[int]:
    return [i for i, part in enumerate(parts) if i + 1 == len(parts) or parts[i + 1].block != part.block]


def _last_markable(parts: Sequence[Part]) -> int | None:
    ends = _block_ends(parts)
    written = {part.block for part in parts if part.tokens}
    markable = (last for last in ends if parts[last].kind != "thinking" and parts[last].block in written)
    return max(markable, default=None)


def _window(parts: Sequence[Part], marker: Marker, rules: Rules) -> Iterator[int]:
    """The last parts of the blocks that ``marker`` looks at: its own and those before it."""
    position: dict[int, int] = {}
    number, before = 0, None
    for last in _block_ends(parts):
        kind = parts[last].kind
        goes_on = rules.collapse_tool_runs and kind == before and kind in {"tool_call", "tool_result"}
        number += not goes_on
        position[last], before = number, kind
    here = position[marker.part]
    yield from (last for last, number in position.items() if last <= marker.part and here - number < rules.lookback)


def _eligible_endings(parts: Sequence[Part]) -> Iterator[int]:
    """The last parts of the messages that an implicit breakpoint can stand behind."""
    ends = _block_ends(parts)
    for this, following in zip(ends, [*ends[1:], None], strict=False):
        group = _group(parts[this])
        if group and (following is None or _group(parts[following]) != group):
            yield this


def _group(part: Part) -> str:
    """What a block belongs to, where its end can be that of an eligible message: "" = it cannot."""
    if part.level == "system":
        return "developer"
    if part.level == "messages" and part.kind == "tool_result":
        return "tool"
    return "user" if part.level == "messages" and part.role == "user" else ""
