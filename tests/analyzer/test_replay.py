"""The vectorised replay gives what the sequential simulator gives, call by call."""

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import abstract_traffic
from prefixscope.analyzer import replay as replay_module
from prefixscope.analyzer.replay import TTLS_MS, replay
from simulator import Marker, Part, Rules, SimCall, simulate

_TTLS = st.sampled_from([300_000, 3_600_000])


@st.composite
def _prompt(draw: st.DrawFn) -> tuple[Part, ...]:
    """A prompt of a few blocks from a small alphabet, so that prefixes are shared, forked and edited often."""
    blocks = draw(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1, max_size=6))
    parts = []
    for number, block in enumerate(blocks):
        # where a block begins is part of a prefix; the same content weighs the same everywhere
        parts += [Part((content, i == 0), 100 + 37 * content, number) for i, content in enumerate(block)]
    return tuple(parts)


@st.composite
def _markers(draw: st.DrawFn, parts: tuple[Part, ...]) -> tuple[Marker, ...]:
    ends = [i for i, part in enumerate(parts) if i + 1 == len(parts) or parts[i + 1].block != part.block]
    chosen = draw(st.lists(st.sampled_from(ends), unique=True, max_size=4))
    return tuple(Marker(at, draw(_TTLS)) for at in sorted(chosen))


@st.composite
def _calls(draw: st.DrawFn, *, explicit: bool) -> list[SimCall]:
    calls = []
    now = 0
    for _ in range(draw(st.integers(1, 14))):
        # often at once, sometimes within the TTL, sometimes just at its edge, sometimes long after it
        now += draw(st.sampled_from([0, 500, 60_000, 299_999, 300_000, 300_001, 4_000_000]))
        parts = draw(_prompt())
        calls.append(
            SimCall(
                at_ms=now,
                first_token_ms=now + draw(st.sampled_from([0, 400, 2_000, 90_000])),
                scope=draw(st.sampled_from(["a", "a", "a", "b"])),
                parts=parts,
                markers=draw(_markers(parts)) if explicit else (),
            )
        )
    return calls


def _assert_equal(calls: list[SimCall], rules: Rules) -> None:
    expected = [simulate(calls, rules)[i] for i in abstract_traffic.time_order(calls)]
    found = replay(abstract_traffic.traffic(calls, rules))
    np.testing.assert_allclose(found.read, [outcome.read for outcome in expected])
    np.testing.assert_allclose(found.uncached, [outcome.uncached for outcome in expected])
    for name, ttl in TTLS_MS.items():
        np.testing.assert_allclose(found.writes[name], [outcome.writes.get(ttl, 0) for outcome in expected])


@settings(max_examples=300, deadline=None)
@given(
    calls=_calls(explicit=False),
    granularity=st.sampled_from([1, 64, 128]),
    minimum=st.sampled_from([0, 256, 600]),
)
def test_automatic_caches_equal_the_simulator(calls: list[SimCall], granularity: int, minimum: int) -> None:
    """Longest live prefix, rounded down, with refresh on read, parallel cold starts and scopes kept apart."""
    _assert_equal(calls, Rules("automatic", min_tokens=minimum, granularity=granularity, ttl_ms=300_000))


@settings(max_examples=300, deadline=None)
@given(calls=_calls(explicit=True), lookback=st.sampled_from([1, 2, 20]), minimum=st.sampled_from([0, 256, 600]))
def test_explicit_caches_equal_the_simulator(calls: list[SimCall], lookback: int, minimum: int) -> None:
    """Markers, lookback, mixed TTLs, minimums, and refreshes of entries that were found by looking back."""
    _assert_equal(calls, Rules("explicit", min_tokens=minimum, lookback=lookback))


@pytest.mark.parametrize("cache", ["automatic", "explicit"])
def test_partitioned_replay_equals_the_whole(
    cache: Literal["automatic", "explicit"], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replaying prefixes in portions, as large traffic is, changes nothing."""
    parts = tuple(Part((i % 5, i % 2), 100, i // 2) for i in range(10))
    calls = [SimCall(i * 50_000, i * 50_000, "a", parts[: 4 + i % 6], (Marker(3, 300_000),)) for i in range(30)]
    rules = Rules(cache, min_tokens=100, ttl_ms=300_000)
    whole = replay(abstract_traffic.traffic(calls, rules))
    monkeypatch.setattr(replay_module, "_ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(replay(abstract_traffic.traffic(calls, rules)).read, whole.read)
    assert whole.read.sum() > 0
