"""The reference: what a provider's prompt cache does with a list of calls, one call after the other.

Plain and slow on purpose, and independent of the product, whose vectorised replay must give the same figures call by
call.

**Entries.** A cache holds *prefixes*: the contents of a prompt from its first part up to some part, in one scope. An
entry knows until when it lives (``expires_ms``) and from when it can be read (``available_ms``). It is *alive* for a
call at ``t`` if ``available_ms <= t <= expires_ms``. Anthropic: the clock of an entry runs from the start of the
request that wrote it, a read refreshes it for free, and it is readable only once the first response has begun, so that
parallel cold requests all write (platform.claude.com, "Prompt caching", autumn 2026).

**Touch.** A call at ``t`` whose response begins at ``f`` touches a prefix with a time to live. An entry that has not
expired keeps the later expiry and the earlier availability; otherwise there is a new one: ``t + ttl`` and ``f``. A call
touches after its own lookup.

**automatic** (OpenAI before GPT-5.6, Gemini implicit, DeepSeek): read is the longest prefix of which every shorter
prefix is alive too, rounded down to the granularity and 0 if that is below the minimum. Nothing is billed as a write.
Every prefix of the prompt is touched (OpenAI: "Prompt caching", models before GPT-5.6: from 1,024 tokens, reported
rounded down to 128).

**explicit** (Anthropic, Bedrock): entries stand only at markers.

* Markers whose prefix has fewer tokens than the minimum are ignored, for reading and for writing.
* A marker finds entries at the end of its own block and of the blocks before it, ``lookback`` positions counting itself
  (Anthropic: 20). A is the deepest entry found alive, over all markers, with at least the minimum of tokens. Read is A.
* Written is what lies between A and the last marker behind it, each time to live for itself, the longest first: from A
  to the last 1h marker at the price of 1h, from there to the last 5m marker at the price of 5m (Anthropic's rule for
  mixed TTLs, with "A, B, C"). What lies behind the last marker is uncached.
* Every marker's prefix is touched with the marker's TTL, those before A too. Where no marker stands at A, the entry was
  found by looking back: it is touched with the TTL of the first marker (in the order of ``markers``) whose window
  contains it.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the prompt that is cached as a whole. Consecutive parts of the same block number form one block."""

    content: Hashable
    tokens: int
    block: int


@dataclass(frozen=True, slots=True)
class Marker:
    """An explicit breakpoint behind ``parts[part]``, which must be the last part of its block."""

    part: int
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class SimCall:
    """``scope`` is what the cache is isolated by: provider, account, model, region, cache key."""

    at_ms: int
    first_token_ms: int  # when the response began, >= at_ms
    scope: Hashable
    parts: tuple[Part, ...]
    markers: tuple[Marker, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """A provider's cache. ``granularity`` and ``ttl_ms`` are for automatic caches, ``lookback`` for explicit ones."""

    cache: Literal["automatic", "explicit"]
    min_tokens: int
    granularity: int = 1  # tokens
    ttl_ms: int = 300_000
    lookback: int = 20  # positions (blocks), the marker's own included


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


_Entries = dict[tuple[Hashable, tuple[Hashable, ...]], _Entry]  # (scope, contents of the prefix) -> entry


def simulate(calls: Sequence[SimCall], rules: Rules) -> list[Outcome]:
    """What each call reads, writes and pays in full, in the order given; they happen in the order of (at_ms, index).

    Raises:
        KeyError: a marker does not stand at the end of a block.
    """
    serve: Callable[[_Prompt, Rules], Outcome] = _automatic if rules.cache == "automatic" else _explicit
    entries: _Entries = {}
    outcomes: dict[int, Outcome] = {}
    for index in sorted(range(len(calls)), key=lambda i: (calls[i].at_ms, i)):
        outcomes[index] = serve(_Prompt(calls[index], entries), rules)
    return [outcomes[index] for index in range(len(calls))]


class _Prompt:
    """One call's prefixes, each named by the index of its last part, and the cache they are looked up in."""

    def __init__(self, call: SimCall, entries: _Entries) -> None:
        self.call = call
        self.entries = entries
        self.tokens = list(accumulate(part.tokens for part in call.parts))  # of the prefix that ends with part i
        self.total = self.tokens[-1] if self.tokens else 0

    def _key(self, last: int) -> tuple[Hashable, tuple[Hashable, ...]]:
        return self.call.scope, tuple(part.content for part in self.call.parts[: last + 1])

    def is_alive(self, last: int) -> bool:
        entry = self.entries.get(self._key(last))
        return entry is not None and entry.available_ms <= self.call.at_ms <= entry.expires_ms

    def touch(self, last: int, ttl_ms: int) -> None:
        expires_ms, first_token_ms = self.call.at_ms + ttl_ms, self.call.first_token_ms
        entry = self.entries.get(self._key(last))
        if entry is None or entry.expires_ms < self.call.at_ms:
            self.entries[self._key(last)] = _Entry(expires_ms, first_token_ms)
        else:
            entry.expires_ms = max(entry.expires_ms, expires_ms)
            entry.available_ms = min(entry.available_ms, first_token_ms)


def _automatic(prompt: _Prompt, rules: Rules) -> Outcome:
    found = 0
    for last, tokens in enumerate(prompt.tokens):
        if not prompt.is_alive(last):
            break
        found = tokens
    found -= found % rules.granularity
    read = found if found >= rules.min_tokens else 0
    for last in range(len(prompt.tokens)):
        prompt.touch(last, rules.ttl_ms)
    return Outcome(read, prompt.total - read)


def _explicit(prompt: _Prompt, rules: Rules) -> Outcome:
    markers = [m for m in prompt.call.markers if prompt.tokens[m.part] >= rules.min_tokens]
    windows = [list(_window(prompt.call.parts, m, rules.lookback)) for m in markers]
    candidates = {last for window in windows for last in window if prompt.tokens[last] >= rules.min_tokens}
    hit = max((last for last in candidates if prompt.is_alive(last)), default=None)
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
        finder = next(m for m, window in zip(markers, windows, strict=True) if hit in window)
        prompt.touch(hit, finder.ttl_ms)
    return Outcome(read, prompt.total - covered, writes)


def _window(parts: Sequence[Part], marker: Marker, lookback: int) -> Iterator[int]:
    """The last parts of the blocks that ``marker`` looks at: its own and those before it."""
    is_end = [i + 1 == len(parts) or parts[i + 1].block != part.block for i, part in enumerate(parts)]
    ends = [i for i, end in enumerate(is_end) if end]
    position = {last: n for n, last in enumerate(ends)}[marker.part]
    yield from ends[max(0, position + 1 - lookback) : position + 1]
