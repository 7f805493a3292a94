"""The vectorised replay gives what the sequential simulator gives, call by call, for every kind of cache."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abstract_traffic
from prefixscope.analyzer import ragged
from prefixscope.analyzer.replay import TTLS_MS, replay
from simulator import Kind, Level, Marker, Outcome, Part, Rules, SimCall, Stored, simulate

FIVE, HALF, HOUR = 300_000, 1_800_000, 3_600_000
MINIMUMS = st.sampled_from([0, 256, 600])
RANDOM = settings(max_examples=300, deadline=None)


class Block(NamedTuple):
    """A tool, a system block or a part of a message; a content is a number, and weighs the same everywhere."""

    level: Level
    kind: Kind
    role: str
    contents: tuple[int, ...]


class Talk(NamedTuple):
    """What a conversation's requests are made of: the answers of the model follow from what stands in front of them."""

    front: tuple[Block, ...]
    turns: tuple[tuple[Block, ...], ...]

    @property
    def prompt(self) -> tuple[Block, ...]:
        found = self.front
        for number, turn in enumerate(self.turns):
            found += (*(_kept(_answer(found)) if number else ()), *turn)
        return found


def _answer(prompt: tuple[Block, ...]) -> tuple[Block, ...]:
    """What the model says to a prompt: text or calls of tools, sometimes with reasoning in front."""
    seed = sum((i + 1) * (sum(block.contents) + 1) for i, block in enumerate(prompt))
    thinking = (Block("messages", "thinking", "assistant", (seed % 3,)),) if seed % 2 else ()
    said: Kind = "text" if seed % 5 < 3 else "tool_call"
    return (*thinking, *(Block("messages", said, "assistant", (seed % 4, n)) for n in range(1 + seed % 3)))


def _kept(answer: tuple[Block, ...]) -> tuple[Block, ...]:
    """An answer in the next prompt: its reasoning is left out unless it calls a tool (DeepSeek, OpenAI)."""
    calls_tool = any(block.kind == "tool_call" for block in answer)
    return tuple(block for block in answer if calls_tool or block.kind != "thinking")


def _parts(blocks: Sequence[Block]) -> tuple[Part, ...]:
    found = []
    for number, block in enumerate(blocks):
        head = (block.level, block.kind, block.role)
        # where a block begins is part of a prefix
        found += [
            Part((*head, content, i == 0), 100 + 37 * content, number, *head)
            for i, content in enumerate(block.contents)
        ]
    return tuple(found)


CONTENTS = st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)
MESSAGES: list[tuple[Kind, str]] = [("text", "user"), ("text", "user"), ("tool_result", "tool"), ("text", "developer")]


@st.composite
def _turn(draw: st.DrawFn) -> tuple[Block, ...]:
    """One or two messages in front of the model's next answer; tool results come in runs."""
    found: list[Block] = []
    for kind, role in draw(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=2)):
        found += [Block("messages", kind, role, draw(CONTENTS)) for _ in range(draw(st.integers(1, 2)))]
    return tuple(found)


@st.composite
def _front(draw: st.DrawFn) -> tuple[Block, ...]:
    """Tools in any order, and a system prompt that may hold what changes from call to call."""
    tools = draw(st.permutations([0, 1, 2]))[: draw(st.sampled_from([0, 2, 2, 3]))]
    system = draw(st.sampled_from([(), ((0, 1),), ((0, 1),), ((2, 1),), ((0,), (1, 3, 2))]))
    return (
        *(Block("tools", "tool", "", (number,)) for number in tools),
        *(Block("system", "text", "system", contents) for contents in system),
    )


@st.composite
def _next_talk(draw: st.DrawFn, earlier: list[Talk]) -> Talk:
    """A new conversation; or an earlier one repeated, gone on with, forked, edited, or with another front."""
    how = draw(st.sampled_from(["new", "again", "on", "on", "on", "fork", "edit", "front"]))
    if how == "new" or not earlier:
        return Talk(draw(_front()), (draw(_turn()),))
    base = draw(st.sampled_from(earlier))
    at = draw(st.integers(0, len(base.turns) - 1))
    turns = {
        "again": base.turns,
        "on": (*base.turns, draw(_turn())),
        "fork": (*base.turns[:at], draw(_turn())),
        "edit": (*base.turns[:at], draw(_turn()), *base.turns[at + 1 :]),
        "front": base.turns,
    }[how]
    return Talk(draw(_front()) if how == "front" else base.front, turns)


@st.composite
def _markers(draw: st.DrawFn, parts: tuple[Part, ...], most: int) -> tuple[Marker, ...]:
    ends = [i for i, part in enumerate(parts) if i + 1 == len(parts) or parts[i + 1].block != part.block]
    system = [end for end in ends if parts[end].level == "system"][-1:]
    anywhere = st.lists(st.sampled_from(ends), unique=True, max_size=most)
    # often where programs put them: behind the system prompt and the last message
    chosen = draw(st.one_of(st.just([*system, ends[-1]]), st.just(ends[-1:]), anywhere))
    return tuple(Marker(at, draw(st.sampled_from([FIVE, FIVE, HOUR]))) for at in sorted(set(chosen)))


SETTINGS = [("", "", "")] * 9 + [("x", "", ""), ("", "x", ""), ("", "", "x"), ("", "", "y")]


@st.composite
def traffic(draw: st.DrawFn, *, markers: int = 0) -> list[SimCall]:
    """Calls often at once, sometimes within the TTL, just at its edge, or long after it."""
    calls: list[SimCall] = []
    talks: list[Talk] = []
    now = 0
    for _ in range(draw(st.integers(1, 12))):
        now += draw(st.sampled_from([0, 0, 500, 60_000, FIVE - 1, FIVE, FIVE + 1, 4_000_000]))
        talks.append(draw(_next_talk(talks)))
        parts = _parts(talks[-1].prompt)
        calls.append(
            SimCall(
                at_ms=now,
                first_token_ms=now + draw(st.sampled_from([0, 400, 400, 90_000])),
                scope=draw(st.sampled_from("aaaab")),
                parts=parts,
                markers=draw(_markers(parts, markers)) if markers else (),
                settings=draw(st.sampled_from(SETTINGS)),
                ttl_ms=draw(st.sampled_from([0, 0, HOUR])),
                auto_marker_ms=draw(st.sampled_from([0, 0, FIVE, HOUR])) if markers else 0,
                explicit_only=draw(st.booleans()),
                reads=draw(st.sampled_from([True, True, True, False])),
                answer=_parts(_answer(talks[-1].prompt)),
            )
        )
    return calls


def _assert_equal(calls: Sequence[SimCall], rules: Rules | Mapping[str, Rules]) -> None:
    expected: dict[int, Outcome] = {}
    for scope in {call.scope for call in calls}:
        at = [i for i, call in enumerate(calls) if call.scope == scope]
        of_scope = rules if isinstance(rules, Rules) else rules[str(scope)]
        expected |= zip(at, simulate([calls[i] for i in at], of_scope), strict=True)
    ordered = [expected[i] for i in abstract_traffic.time_order(calls)]
    found = replay(abstract_traffic.traffic(calls, rules))
    np.testing.assert_allclose(found.read, [outcome.read for outcome in ordered])
    np.testing.assert_allclose(found.uncached, [outcome.uncached for outcome in ordered], atol=1e-9)
    for name, ttl in TTLS_MS.items():
        np.testing.assert_allclose(found.writes[name], [outcome.writes.get(ttl, 0) for outcome in ordered], atol=1e-9)


@RANDOM
@given(traffic(), st.sampled_from([1, 64, 128]), MINIMUMS, st.booleans())
def test_automatic_caches_equal_the_simulator(
    calls: list[SimCall], granularity: int, minimum: int, charges: bool
) -> None:
    """Longest live prefix, rounded down, with refresh on read, parallel cold starts, settings and scopes kept apart."""
    _assert_equal(calls, Rules("automatic", minimum, granularity, always_processed=0, charges_writes=charges))


@RANDOM
@given(traffic(), st.sampled_from([1, 16]))
def test_engines_equal_the_simulator(calls: list[SimCall], block: int) -> None:
    """Blocks of 16 tokens as vLLM has, and SGLang's tree of tokens; both process the last token always."""
    _assert_equal(calls, Rules("automatic", block, block, ttl_ms=HOUR, always_processed=1))


@RANDOM
@given(traffic(), st.sampled_from([1, 128]), MINIMUMS)
def test_prefix_units_equal_the_simulator(calls: list[SimCall], granularity: int, minimum: int) -> None:
    """DeepSeek: ends of prompts and answers, and common prefixes from the third request on; never part of a unit."""
    _assert_equal(calls, Rules("units", minimum, granularity))


@RANDOM
@given(traffic(), st.sampled_from([0, 1]))
def test_slots_equal_the_simulator(calls: list[SimCall], always_processed: int) -> None:
    """llama.cpp: what a prompt has in common with the last one of its slot, unless ``cache_prompt`` is false."""
    _assert_equal(calls, Rules("slot", 1, ttl_ms=HOUR, always_processed=always_processed))


@RANDOM
@given(traffic(markers=5), st.sampled_from([1, 2, 3, 20]), MINIMUMS, st.booleans(), st.sampled_from([1, 2, 4]))
def test_explicit_caches_equal_the_simulator(
    calls: list[SimCall], lookback: int, minimum: int, collapse: bool, most: int
) -> None:
    """Markers and the automatic one, at most so many, lookback over runs of tools, mixed TTLs, minimums, refreshes."""
    rules = Rules("explicit", minimum, lookback=lookback, collapse_tool_runs=collapse, max_markers=most)
    _assert_equal(calls, rules)


@RANDOM
@given(
    traffic(markers=5),
    st.sampled_from([1, 2, 21]),
    MINIMUMS,
    st.sampled_from([1, 2, 4]),
    st.sampled_from([(2, 50), (0, 1), (1, 0), (1, 1)]),
)
def test_implicit_breakpoints_equal_the_simulator(
    calls: list[SimCall], lookback: int, minimum: int, most: int, lookups: tuple[int, int]
) -> None:
    """GPT-5.6 and later: the implicit breakpoint and its lookback over messages, explicit ones, and those alone."""
    first, latest = lookups
    rules = Rules(
        "boundaries",
        minimum,
        ttl_ms=HALF,
        lookback=lookback,
        max_markers=most,
        first_lookups=first,
        latest_lookups=latest,
    )
    _assert_equal(calls, rules)


@RANDOM
@given(traffic(), st.lists(st.sampled_from([0, 0, 1, 2]), min_size=12, max_size=12), MINIMUMS)
def test_stored_contents_equal_the_simulator(calls: list[SimCall], stored: list[int], minimum: int) -> None:
    """Gemini: a call that names a stored prefix reads exactly its tokens; the others read as ever."""
    sizes = {1: Stored(4096, 0, 10**9), 2: Stored(777, 1, 10**9)}
    named = [
        SimCall(call.at_ms + 1, call.first_token_ms + 1, call.scope, call.parts, stored=sizes.get(number))
        for call, number in zip(calls, stored, strict=False)
    ]
    _assert_equal(named, Rules("automatic", minimum))


@RANDOM
@given(traffic(markers=3), st.permutations(["automatic", "explicit", "boundaries", "units", "slot", "none"]))
def test_caches_side_by_side_equal_the_simulator(calls: list[SimCall], kinds: list[str]) -> None:
    """Traffic of several providers: each call follows the rules of its own."""
    _assert_equal(calls, {scope: Rules(kind, 256) for scope, kind in zip("ab", kinds, strict=False)})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["automatic", "explicit", "boundaries", "units", "slot"])
def test_replay_in_portions_equals_the_whole(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Going through rows in portions, as with large traffic, changes nothing."""
    talk = Talk((Block("system", "text", "system", (1, 2)),), ((Block("messages", "text", "user", (0,)),),))
    calls = []
    for i in range(30):
        grown = talk.turns + ((Block("messages", "text", "user", (i % 4,)),),) * (i % 6)
        parts = _parts(Talk(talk.front, grown).prompt)
        calls.append(SimCall(i * 50_000, i * 50_000, "a", parts, (Marker(1, FIVE),), answer=parts[:0]))
    rules = Rules(kind, min_tokens=100)  # type: ignore[arg-type]
    whole = replay(abstract_traffic.traffic(calls, rules))
    monkeypatch.setattr(ragged, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(replay(abstract_traffic.traffic(calls, rules)).read, whole.read)
    assert whole.read.sum() > 0
