"""Laws of the replay of response caches, on random traffic."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixscope.analyzer.semantic.matches import Matches
from prefixscope.analyzer.semantic.neighbours import find
from prefixscope.analyzer.semantic.questions import Questions
from prefixscope.analyzer.semantic.tiers import EXACT, MODEL, SEMANTIC, Policy, reach, replay
from semantic_traffic import made_up


@st.composite
def traffic(draw: st.DrawFn) -> tuple[Questions, Matches]:
    """Calls in time order with random texts, conversations, scopes, pauses and durations; random cosines of texts."""
    size = draw(st.integers(1, 40))
    numbers = {"texts": 5, "contexts": 2, "scopes": 2}
    columns = {name: draw(st.lists(st.integers(0, top), min_size=size, max_size=size)) for name, top in numbers.items()}
    gaps = draw(st.lists(st.integers(0, 30), min_size=size, max_size=size))
    last = draw(st.lists(st.integers(0, 40), min_size=size, max_size=size))
    asked = made_up(**columns, at_s=np.cumsum(gaps).tolist(), last_s=last)
    seed = draw(st.integers(0, 2**32 - 1))
    return asked, _matches(asked, np.random.default_rng(seed))


def _matches(asked: Questions, rng: np.random.Generator) -> Matches:
    vectors = rng.normal(size=(len(asked.texts), 3)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = find(vectors, asked.text_scope, floor=0.0)
    ends = np.concatenate([pairs.later, pairs.earlier])
    order = np.lexsort((-np.tile(pairs.cosine, 2), ends))
    return Matches(
        later=pairs.later,
        earlier=pairs.earlier,
        cosine=pairs.cosine,
        overlap=rng.uniform(size=len(pairs)),
        reasons=tuple(("number",) if rng.uniform() < 0.3 else () for _ in range(len(pairs))),
        offsets=np.searchsorted(ends[order], np.arange(len(asked.texts) + 1)).astype(np.int64),
        slots=np.tile(np.arange(len(pairs)), 2)[order].astype(np.int64),
    )


policies = st.builds(
    Policy,
    threshold=st.floats(0.0, 1.0),
    guarded=st.booleans(),
    overlap=st.sampled_from([0.0, 0.5]),
    same_context=st.booleans(),
    ttl_s=st.sampled_from([20.0, 200.0, 1e6]),
    capacity=st.sampled_from([1, 3, 1000]),
    exact=st.booleans(),
)


@given(traffic(), policies)
@settings(deadline=None)
def test_deflection_never_rises_when_the_threshold_rises(made: tuple[Questions, Matches], policy: Policy) -> None:
    """A higher threshold leaves the cache in shadow no more calls to serve."""
    view = reach(*made, policy)
    counts = [view.count(threshold / 20) for threshold in range(22)]
    assert counts == sorted(counts, reverse=True)


@given(traffic(), policies)
@settings(deadline=None)
def test_what_a_cache_serves_its_shadow_serves_too(made: tuple[Questions, Matches], policy: Policy) -> None:
    """The cache as it would have run deflects no call that the shadow, which knows every answer, could not."""
    served = replay(*made, policy)
    view = reach(*made, policy)
    assert policy.threshold is not None
    by_meaning = served.tier == SEMANTIC
    assert (view.source[by_meaning] >= 0).all()
    assert (view.cosine[by_meaning] >= served.cosine[by_meaning] - 1e-9).all()


@given(traffic(), policies)
@settings(deadline=None)
def test_no_answer_is_used_before_it_was_there_or_after_its_lifetime(
    made: tuple[Questions, Matches], policy: Policy
) -> None:
    """The source of every served call had ended when the call was sent, no longer ago than the TTL."""
    asked, _ = made
    for source, calls in ((replay(*made, policy).source, asked), (reach(*made, policy).source, asked)):
        hit = np.flatnonzero(source >= 0)
        age = calls.started[hit] - calls.ended[source[hit]]
        assert (age >= 0).all()
        assert (age <= policy.ttl_s * 1e9).all()
        assert (source[hit] < hit).all()


@given(traffic(), policies)
@settings(deadline=None)
def test_nothing_is_served_across_scopes(made: tuple[Questions, Matches], policy: Policy) -> None:
    """Source and call share their scope, and their conversation where the policy says so."""
    asked, _ = made
    for source in (replay(*made, policy).source, reach(*made, policy).source):
        hit = np.flatnonzero(source >= 0)
        assert (asked.scope[hit] == asked.scope[source[hit]]).all()
        if policy.same_context:
            assert (asked.context[hit] == asked.context[source[hit]]).all()


@given(traffic(), policies)
@settings(deadline=None)
def test_each_call_has_one_tier_and_a_source_is_a_call_that_the_model_answered(
    made: tuple[Questions, Matches], policy: Policy
) -> None:
    """Tiers are disjoint and complete, exact repeats have the same prompt, and no served answer is passed on."""
    asked, _ = made
    served = replay(*made, policy)
    assert served.count(MODEL) + served.count(EXACT) + served.count(SEMANTIC) == len(asked)
    hit = np.flatnonzero(served.tier != MODEL)
    assert ((served.source >= 0) == (served.tier != MODEL)).all()
    assert (served.tier[served.source[hit]] == MODEL).all()
    exact = np.flatnonzero(served.tier == EXACT)
    assert (asked.key[exact] == asked.key[served.source[exact]]).all()


@given(traffic(), policies)
@settings(deadline=None)
def test_a_semantic_cache_takes_nothing_from_the_exact_one_that_has_room(
    made: tuple[Questions, Matches], policy: Policy
) -> None:
    """Without a semantic tier nothing is served by meaning, and guards only ever take away from what shadow reaches."""
    assert replay(*made, replace(policy, threshold=None)).count(SEMANTIC) == 0
    free, guarded = reach(*made, replace(policy, guarded=False)), reach(*made, replace(policy, guarded=True))
    assert guarded.count(0.01) <= free.count(0.01)
    assert (guarded.cosine <= free.cosine + 1e-12).all()
