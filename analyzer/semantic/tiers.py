"""Replay of the hierarchy: each call is served by the exact cache, by the semantic one, or by the model.

Two views. ``replay`` is the cache as it would have run: it keeps the answers of the calls that it did not serve, within
its TTL and capacity, the least recently used evicted first. ``reach`` is the cache in shadow, which sees every answer
that was recorded: for each call the most alike question it could have been served from. What replay deflects, reach
does too; and reach never rises with the threshold. (Replay may: a call that was served leaves no answer of its own, so
a higher threshold can keep an answer that a lower one never had.)

No answer is used before it was there, none beyond its scope.
"""

from bisect import bisect_right
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from prefixscope.analyzer.semantic.matches import Matches, occurrences, reasons_between, slot
from prefixscope.analyzer.semantic.questions import Floats, Ints, Questions

MODEL, EXACT, SEMANTIC = 0, 1, 2
_NS: Final = 1_000_000_000
DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Policy:
    """How a response cache decides."""

    threshold: float | None = 0.92  # cosine; None: no semantic cache
    guarded: bool = True  # refuse where a guard finds a reason
    overlap: float = 0.0  # share of words that both questions must have
    same_context: bool = True  # the conversation before must be the same
    ttl_s: float = DAY  # how long an answer may be served
    capacity: int = 100_000  # answers kept
    exact: bool = True

    @property
    def told(self) -> str:
        """How it decides, in words."""
        if self.threshold is None:
            return "no semantic cache"
        guards = "with guards" if self.guarded else "without guards"
        common = f", and {10 * self.overlap:.3g} of 10 words must be the same" if self.overlap else ""
        return f"cosine {self.threshold:.3f} {guards}{common}"


@dataclass(frozen=True, slots=True)
class Served:
    """What replay did with each call."""

    tier: Ints  # MODEL, EXACT or SEMANTIC
    source: Ints  # the call whose answer was served, -1 = none
    cosine: Floats  # of tier 2: with the question of the source; 1 of tier 1
    evicted: int

    def count(self, tier: int) -> int:
        return int((self.tier == tier).sum())


def replay(questions: Questions, matches: Matches | None, policy: Policy) -> Served:
    """Runs the calls through a cache of that policy, in time order."""
    cache = _Cache(questions, matches, policy)
    tier, source, cosine = np.zeros(len(questions), np.int64), np.full(len(questions), -1), np.zeros(len(questions))
    exact, semantic = questions.exact.tolist(), questions.semantic.tolist()
    for call in range(len(questions)):
        if not exact[call]:
            continue
        found = cache.exact_source(call) if policy.exact else None
        if found is not None:
            tier[call], source[call], cosine[call] = EXACT, found, 1.0
            continue
        if semantic[call] and (near := cache.semantic_source(call)) is not None:
            tier[call] = SEMANTIC
            source[call], cosine[call] = near
            continue
        cache.keep(call)
    return Served(tier, source.astype(np.int64), cosine, cache.evicted)


class _Cache:
    """Answers by (text or key, context), the least recently used first."""

    def __init__(self, questions: Questions, matches: Matches | None, policy: Policy) -> None:
        self._q, self._matches, self._policy = questions, matches, policy
        self._kept: OrderedDict[int, int] = OrderedDict()  # key -> call
        self._keys_of: dict[tuple[int, int], OrderedDict[int, None]] = defaultdict(
            OrderedDict
        )  # slot -> keys, newest last
        self._allowed = matches.passing(guarded=policy.guarded, overlap=policy.overlap) if matches else np.zeros(0)
        self._ttl = int(policy.ttl_s * _NS)
        self.evicted = 0

    def exact_source(self, call: int) -> int | None:
        """The kept answer to the very same prompt."""
        return self._alive(int(self._q.key[call]), call)

    def semantic_source(self, call: int) -> tuple[int, float] | None:
        """The kept answer to the most alike question that may be shared, and the cosine."""
        if self._matches is None or self._policy.threshold is None:
            return None
        text = int(self._q.text[call])
        for cosine, other in self._candidates(text, self._policy.threshold):
            source = self._source_of(other, call)
            if source is not None:
                return source, cosine
        return None

    def _candidates(self, text: int, threshold: float) -> Iterator[tuple[float, int]]:
        """(cosine, text) that pass, the most alike first; the same text in another prompt before all."""
        assert self._matches is not None
        yield 1.0, text
        for pair in self._matches.of_text(text):
            cosine = float(self._matches.cosine[pair])
            if cosine < threshold:
                return
            if self._allowed[pair]:
                yield cosine, self._matches.other(pair, text)

    def _source_of(self, text: int, call: int) -> int | None:
        """The newest kept answer to ``text`` that ``call`` may get."""
        for key in reversed(self._keys_of.get(self._slot(call, text), ())):
            source = self._kept[key]
            if not self._policy.guarded or "personal" not in reasons_between(call, source, (), self._q):
                return self._alive(key, call)
        return None

    def _slot(self, call: int, text: int) -> tuple[int, int]:
        return slot(call, text, self._q, same_context=self._policy.same_context)

    def _alive(self, key: int, call: int) -> int | None:
        """The kept answer under ``key`` if it was there and has not expired; using it makes it recent."""
        source = self._kept.get(key)
        if source is None or not 0 <= self._q.started[call] - self._q.ended[source] <= self._ttl:
            return None
        self._kept.move_to_end(key)
        return source

    def keep(self, call: int) -> None:
        """Stores the answer of a call that the model answered; one that is still under way stays."""
        key, text = int(self._q.key[call]), int(self._q.text[call])
        known = self._kept.get(key)
        if known is not None and self._q.ended[known] > self._q.started[call]:
            return
        self._kept[key] = call
        self._kept.move_to_end(key)
        if text >= 0:
            keys = self._keys_of[self._slot(call, text)]
            keys[key] = None
            keys.move_to_end(key)
        while len(self._kept) > self._policy.capacity:
            gone, old = self._kept.popitem(last=False)
            self._keys_of.get(self._slot(old, int(self._q.text[old])), OrderedDict()).pop(gone, None)
            self.evicted += 1


@dataclass(frozen=True, slots=True)
class Reach:
    """For each call the most alike earlier question whose answer could have been served; -1 and 0 where none."""

    source: Ints
    pair: Ints  # its pair in Matches; -1: the same text
    cosine: Floats

    def count(self, threshold: float) -> int:
        """Calls that a cache with this threshold could have served, exact repeats included."""
        return int((self.cosine >= threshold).sum())


def reach(questions: Questions, matches: Matches, policy: Policy) -> Reach:
    """The cache in shadow: its answers are all that were recorded within the TTL."""
    source, pair = np.full(len(questions), -1, np.int64), np.full(len(questions), -1, np.int64)
    cosine = np.zeros(len(questions))
    shadow = _Shadow(questions, policy)
    allowed = matches.passing(guarded=policy.guarded, overlap=policy.overlap)
    for call in np.flatnonzero(questions.semantic).tolist():
        text = int(questions.text[call])
        if (same := shadow.latest(call, text)) is not None:
            source[call], cosine[call] = same, 1.0
            continue
        for candidate in matches.of_text(text):
            found = shadow.latest(call, matches.other(candidate, text)) if allowed[candidate] else None
            if found is not None:
                source[call], pair[call], cosine[call] = found, candidate, matches.cosine[candidate]
                break
    return Reach(source, pair, cosine)


class _Shadow:
    """Every recorded answer, by slot and time."""

    def __init__(self, questions: Questions, policy: Policy) -> None:
        self._q, self._policy = questions, policy
        self._known = occurrences(questions, same_context=policy.same_context)
        self._ttl = int(policy.ttl_s * _NS)

    def latest(self, call: int, text: int) -> int | None:
        """The newest answer to ``text`` that was there when ``call`` was sent, and that it may get."""
        key = slot(call, text, self._q, same_context=self._policy.same_context)
        ends, owners = self._known.get(key, ([], []))
        now = int(self._q.started[call])
        for at in range(bisect_right(ends, now) - 1, -1, -1):
            if now - ends[at] > self._ttl:
                break
            source = owners[at]
            if source < call and not self._refused(call, source):
                return source
        return None

    def _refused(self, call: int, source: int) -> bool:
        return self._policy.guarded and "personal" in reasons_between(call, source, (), self._q)
