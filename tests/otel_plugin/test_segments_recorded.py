"""Every recorded request of the provider APIs is understood, down to its last part."""

from collections import Counter

import pytest

import cassettes
from prefixscope.otel_plugin import providers, segments
from prefixscope.otel_plugin.record import Prompt

pytestmark = pytest.mark.skipif(not cassettes.CASSETTES.exists(), reason="needs ../shared/data/cassettes")

NO_CALLS = ("/v1/files", "/cachedContents", "/count_tokens", ".pdf")
UNLISTED = {"localhost", "api.venice.ai", "api.inference.crusoecloud.com"}


@pytest.fixture(scope="module")
def recorded() -> list[tuple[cassettes.Exchange, Prompt | None]]:
    return [(e, segments.parse(e.request_body, path=e.path)) for e in cassettes.exchanges()]


def test_every_call_is_a_prompt(recorded: list[tuple[cassettes.Exchange, Prompt | None]]) -> None:
    """What is no prompt is a call to another endpoint; a prompt has a model and segments."""
    for exchange, prompt in recorded:
        assert (prompt is None) == any(part in exchange.path for part in NO_CALLS), exchange.url
        assert prompt is None or (prompt.model and prompt.segments), exchange.source


def test_no_part_is_opaque(recorded: list[tuple[cassettes.Exchange, Prompt | None]]) -> None:
    """Every part sent in the recordings is of a known kind."""
    opaque = Counter(
        (prompt.api, segment.text)
        for _, prompt in recorded
        if prompt is not None
        for segment in prompt.segments
        if segment.kind == "opaque"
    )
    print(f"{sum(1 for _, prompt in recorded if prompt)} prompts, {sum(opaque.values())} opaque segments")
    assert not opaque


def test_the_shape_alone_gives_the_same_segments(recorded: list[tuple[cassettes.Exchange, Prompt | None]]) -> None:
    """A log without URLs is read as well as one with them."""
    for exchange, prompt in recorded:
        if prompt is not None:
            told = segments.parse(exchange.request_body)
            assert told is not None
            assert told.segments == prompt.segments, exchange.source


def test_markers_are_all_found(recorded: list[tuple[cassettes.Exchange, Prompt | None]]) -> None:
    """As many markers as the bodies hold."""
    for exchange, prompt in recorded:
        if prompt is not None:
            raw = exchange.request_body
            sent = sum(
                raw.count(name) for name in (b'"cache_control":', b'"cachePoint":', b'"prompt_cache_breakpoint":')
            )
            found = sum(1 for segment in prompt.segments if segment.marker) + bool(prompt.auto_marker)
            assert found == sent, exchange.source


def test_every_provider_is_known(recorded: list[tuple[cassettes.Exchange, Prompt | None]]) -> None:
    """Hosts that are listed are recognised; those that are not do not get a name by guess."""
    for exchange, prompt in recorded:
        if prompt is not None:
            found = providers.identify(host=exchange.host, path=exchange.path, model=prompt.model, api=prompt.api)
            assert bool(found) == (exchange.host not in UNLISTED), exchange.url
