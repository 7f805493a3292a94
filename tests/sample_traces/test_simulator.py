"""The reference simulator against hand-computed tables, and the laws it must obey on random traffic."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator import Kind, Marker, Part, Rules, SimCall, Stored, simulate

MINUTE, HOUR = 60_000, 3_600_000
FIVE, SIXTY = 5 * MINUTE, HOUR
AUTOMATIC = Rules("automatic", min_tokens=1024, granularity=128, ttl_ms=FIVE)
EXPLICIT = Rules("explicit", min_tokens=1024)
STEP = 1000  # tokens of a part in the tables


def call(at_ms: int, contents: str, *markers: tuple[int, int], wait_ms: int = 500, scope: str = "one") -> SimCall:
    """A call whose prompt is a letter a block, 1,000 tokens each; markers are (block, TTL)."""
    parts = tuple(Part(letter, STEP, number) for number, letter in enumerate(contents))
    return SimCall(at_ms, at_ms + wait_ms, scope, parts, tuple(Marker(*marker) for marker in markers))


def figures(calls: list[SimCall], rules: Rules) -> list[tuple[int, dict[int, int], int]]:
    return [(o.read, dict(o.writes), o.uncached) for o in simulate(calls, rules)]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param([call(0, "abc"), call(MINUTE, "abc")], [(0, 3000), (2944, 56)], id="rounded down to 128"),
        pytest.param([call(0, "abc"), call(MINUTE, "abd")], [(0, 3000), (1920, 1080)], id="longest common prefix"),
        pytest.param([call(0, "abc"), call(MINUTE, "xbc")], [(0, 3000), (0, 3000)], id="a new head loses all"),
        pytest.param([call(0, "abc"), call(MINUTE, "ax")], [(0, 3000), (0, 2000)], id="896 is below the minimum"),
        pytest.param([call(0, "ab"), call(FIVE, "ab")], [(0, 2000), (1920, 80)], id="expires after the TTL, not at it"),
        pytest.param([call(0, "ab"), call(FIVE + 1, "ab")], [(0, 2000), (0, 2000)], id="expired"),
        pytest.param(
            [call(0, "ab"), call(FIVE, "ab"), call(2 * FIVE, "ab")],
            [(0, 2000), (1920, 80), (1920, 80)],
            id="a read refreshes",
        ),
        pytest.param(
            [call(0, "ab"), call(499, "ab"), call(500, "ab")],
            [(0, 2000), (0, 2000), (1920, 80)],
            id="readable from the first token of the first writer",
        ),
        pytest.param(
            [call(0, "ab"), call(2 * FIVE, "ab"), call(2 * FIVE + 499, "ab")],
            [(0, 2000), (0, 2000), (0, 2000)],
            id="an expired entry waits for a first token again",
        ),
        pytest.param([call(0, "ab"), call(MINUTE, "ab", scope="two")], [(0, 2000), (0, 2000)], id="scopes are apart"),
        pytest.param([call(MINUTE, "ab"), call(0, "ab")], [(1920, 80), (0, 2000)], id="time decides, not the position"),
        pytest.param([call(0, "")], [(0, 0)], id="an empty prompt"),
    ],
)
def test_automatic_cache_reads(calls: list[SimCall], expected: list[tuple[int, int]]) -> None:
    """An automatic cache reads what the table says, and never bills a write."""
    assert figures(calls, AUTOMATIC) == [(read, {}, uncached) for read, uncached in expected]


LONG = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(
            [call(0, "abc", (1, FIVE)), call(MINUTE, "abd", (1, FIVE))],
            [(0, {FIVE: 2000}, 1000), (2000, {}, 1000)],
            id="written and read at the marker",
        ),
        pytest.param(
            [call(0, "abc", (2, FIVE)), call(MINUTE, "abd", (2, FIVE))],
            [(0, {FIVE: 3000}, 0), (0, {FIVE: 3000}, 0)],
            id="entries stand only at markers",
        ),
        pytest.param([call(0, "abc"), call(1, "abc")], [(0, {}, 3000)] * 2, id="no marker, no cache"),
        pytest.param(
            [call(0, "ab", (0, FIVE)), call(MINUTE, "ab", (0, FIVE))], [(0, {}, 2000)] * 2, id="below minimum"
        ),
        pytest.param(
            # "Prompt caching", mixed TTLs: A = deepest hit, B = last 1h marker behind it, C = last marker
            [call(0, "ab", (1, SIXTY)), call(10 * MINUTE, "abcdef", (1, SIXTY), (3, SIXTY), (4, FIVE))],
            [(0, {SIXTY: 2000}, 0), (2000, {SIXTY: 2000, FIVE: 1000}, 1000)],
            id="Anthropic's mixed TTLs",
        ),
        pytest.param(
            [call(0, "abcd", (1, SIXTY), (2, FIVE)), call(6 * MINUTE, "abcd", (1, SIXTY), (2, FIVE))],
            [(0, {SIXTY: 2000, FIVE: 1000}, 1000), (2000, {FIVE: 1000}, 1000)],
            id="the 5m part lapses by itself",
        ),
        pytest.param(
            [call(0, "ab", (1, SIXTY)), call(MINUTE, "ab", (1, FIVE)), call(31 * MINUTE, "ab", (1, FIVE))],
            [(0, {SIXTY: 2000}, 0), (2000, {}, 0), (2000, {}, 0)],
            id="a shorter TTL does not shorten a life",
        ),
        pytest.param(
            [call(0, "abc", (2, FIVE)), call(MINUTE, "abcde", (4, FIVE)), call(MINUTE + FIVE, "abc", (2, FIVE))],
            [(0, {FIVE: 3000}, 0), (3000, {FIVE: 2000}, 0), (3000, {}, 0)],
            id="an entry found by looking back is refreshed",
        ),
        pytest.param(
            [call(0, LONG[:3], (2, FIVE)), call(MINUTE, LONG[:22], (21, FIVE))],
            [(0, {FIVE: 3000}, 0), (3000, {FIVE: 19_000}, 0)],
            id="19 blocks back is the twentieth position",
        ),
        pytest.param(
            [call(0, LONG[:3], (2, FIVE)), call(MINUTE, LONG[:23], (22, FIVE))],
            [(0, {FIVE: 3000}, 0), (0, {FIVE: 23_000}, 0)],
            id="20 blocks back is out of sight",
        ),
        pytest.param(
            # found by both markers: the first one's hour counts, so that it is alive half an hour later
            [
                call(0, "ab", (1, FIVE)),
                call(MINUTE, "abcd", (2, SIXTY), (3, FIVE)),
                call(31 * MINUTE, "ab", (1, FIVE)),
            ],
            [(0, {FIVE: 2000}, 0), (2000, {SIXTY: 1000, FIVE: 1000}, 0), (2000, {}, 0)],
            id="the first marker that looks that far refreshes",
        ),
        pytest.param(
            [call(0, "ab", (1, FIVE)), call(100, "ab", (1, FIVE)), call(500, "ab", (1, FIVE))],
            [(0, {FIVE: 2000}, 0), (0, {FIVE: 2000}, 0), (2000, {}, 0)],
            id="parallel cold requests all write",
        ),
    ],
)
def test_explicit_cache_reads_and_writes(calls: list[SimCall], expected: list[tuple[int, dict[int, int], int]]) -> None:
    """An explicit cache reads and writes what the table says."""
    assert figures(calls, EXPLICIT) == expected


UNITS = Rules("units", min_tokens=64, ttl_ms=FIVE)
SLOT = Rules("slot", min_tokens=1, ttl_ms=SIXTY, always_processed=1)
IMPLICIT = Rules("boundaries", min_tokens=1000, ttl_ms=30 * MINUTE, lookback=21)


def said(at_ms: int, text: str, *markers: tuple[int, int]) -> SimCall:
    """A call of letters as blocks: S developer, a-z user, A-Z else assistant, digits tool results, ? thinking."""
    return SimCall(at_ms, at_ms + 500, "one", tuple(map(_part, text, range(99))), tuple(Marker(*m) for m in markers))


def _part(letter: str, number: int) -> Part:
    if letter == "S":
        return Part(letter, STEP, number, "system", "text", "developer")
    if letter.isdigit():
        return Part(letter, STEP, number, "messages", "tool_result", "tool")
    kind: Kind = "thinking" if letter == "?" else "text"
    return Part(letter, STEP, number, "messages", kind, "user" if letter.islower() else "assistant")


@pytest.mark.parametrize(
    ("calls", "reads"),
    [
        pytest.param([call(0, "ab"), call(MINUTE, "abc")], [0, 2000], id="the end of a request's input"),
        pytest.param(
            [call(0, "ab"), call(MINUTE, "ac"), call(2 * MINUTE, "ad")],
            [0, 0, 1000],
            id="a common prefix, the third time",
        ),
        pytest.param([call(0, "abc"), call(MINUTE, "ab")], [0, 0], id="a part of a unit misses"),
        pytest.param(
            [replace(call(0, "ab"), answer=call(0, "x").parts), call(MINUTE, "abxc")],
            [0, 3000],
            id="the end of its output",
        ),
        pytest.param(
            [call(0, "ab"), call(FIVE, "abc"), call(2 * FIVE, "abd"), call(3 * FIVE, "abe")],
            [0, 2000, 2000, 2000],
            id="a read refreshes",
        ),
        pytest.param([call(0, "ab"), call(100, "ab")], [0, 0], id="parallel requests"),
    ],
)
def test_prefix_units_are_read_as_wholes(calls: list[SimCall], reads: list[int]) -> None:
    """DeepSeek's page: which prefixes become units, and that nothing but a whole unit is read."""
    assert [outcome.read for outcome in simulate(calls, UNITS)] == reads


@pytest.mark.parametrize(
    ("calls", "reads"),
    [
        pytest.param([call(0, "ab"), call(MINUTE, "ab")], [0, 1999], id="the last token is always processed"),
        pytest.param([call(0, "abc"), call(MINUTE, "abd")], [0, 2000], id="what both prompts begin with"),
        pytest.param([call(0, "ab"), call(1, "xy"), call(2, "ab")], [0, 0, 0], id="another prompt took the slot"),
        pytest.param([call(0, "ab"), call(1, "xy", scope="two"), call(2, "abc")], [0, 0, 2000], id="two slots"),
        pytest.param(
            # rig's cassette llamacpp/prompt_caching/cache_prompt_disabled, in steps of 1,000 tokens
            [call(0, "ab"), call(1, "ab"), replace(call(2, "ab"), reads=False), call(3, "ab")],
            [0, 1999, 0, 1999],
            id="cache_prompt is false",
        ),
    ],
)
def test_a_slot_holds_its_last_prompt(calls: list[SimCall], reads: list[int]) -> None:
    """What llama.cpp's server reads, as recorded."""
    assert [outcome.read for outcome in simulate(calls, SLOT)] == reads


HALF = 30 * MINUTE
CHAIN = "aBcDeFgHiJkLmNoPqRtUvWxYzAbCdEfGhIjKlMnOpQrTuVw"  # 24 messages of the user


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param(
            [said(0, "Sa"), said(MINUTE, "SaBc")], [(0, {HALF: 2000}, 0), (2000, {HALF: 2000}, 0)], id="a growing talk"
        ),
        pytest.param(
            [said(0, "Sa"), said(MINUTE, "Sab")],
            [(0, {HALF: 2000}, 0), (0, {HALF: 3000}, 0)],
            id="text in the same message",
        ),
        pytest.param(
            [said(0, "SaB"), said(MINUTE, "SaB")],
            [(0, {HALF: 2000}, 1000), (2000, {}, 1000)],
            id="behind it all is uncached",
        ),
        pytest.param(
            [said(0, "Sa"), said(MINUTE, "SaB12")],
            [(0, {HALF: 2000}, 0), (2000, {HALF: 3000}, 0)],
            id="a group of results",
        ),
        pytest.param(
            [said(0, "S"), said(MINUTE, "Sa"), said(2 * MINUTE, "Sb")],
            [(0, {HALF: 1000}, 0), (1000, {HALF: 1000}, 0), (1000, {HALF: 1000}, 0)],
            id="the first developer messages",
        ),
        pytest.param(
            [replace(said(0, "Sa"), explicit_only=True)] * 2,
            [(0, {}, 2000)] * 2,
            id="explicit without a breakpoint is off",
        ),
        pytest.param(
            [said(0, "Sa"), replace(said(MINUTE, "Sa", (0, HALF)), explicit_only=True)],
            [(0, {HALF: 2000}, 0), (0, {HALF: 1000}, 1000)],
            id="an implicit entry is lost to explicit mode",
        ),
        pytest.param(
            [said(0, "Sa", (0, 24 * HALF)), said(MINUTE, "Sb", (0, 24 * HALF))],
            [(0, {24 * HALF: 1000, HALF: 1000}, 0), (1000, {HALF: 1000}, 0)],
            id="both, the longer life first",
        ),
        pytest.param(
            [said(0, "aBcDe", (0, HALF), (1, HALF), (2, HALF), (3, HALF)), said(MINUTE, "aX", (0, HALF))],
            [(0, {HALF: 5000}, 0), (0, {HALF: 1000}, 1000)],
            id="of four explicit ones the first is one too many",
        ),
        pytest.param(
            [said(0, "a"), said(MINUTE, CHAIN[:41])],
            [(0, {HALF: 1000}, 0), (1000, {HALF: 40_000}, 0)],
            id="20 messages back",
        ),
        pytest.param(
            [said(0, "a"), said(MINUTE, CHAIN[:43])],
            [(0, {HALF: 1000}, 0), (0, {HALF: 43_000}, 0)],
            id="21 messages back",
        ),
    ],
)
def test_implicit_breakpoints(calls: list[SimCall], expected: list[tuple[int, dict[int, int], int]]) -> None:
    """OpenAI's guide for GPT-5.6 and later, rule by rule."""
    assert figures(calls, IMPLICIT) == expected


def test_a_changed_setting_loses_its_level_and_those_behind() -> None:
    """Another tool_choice keeps Anthropic's system prompt cached and loses the messages."""
    first = said(0, "SaBc", (0, FIVE), (3, FIVE))
    again, other = (replace(first, at_ms=MINUTE, settings=("", "", value)) for value in ("", "none"))
    rules = replace(EXPLICIT, min_tokens=1000)
    assert figures([first, again], rules)[1] == (4000, {}, 0)
    assert figures([first, other], rules)[1] == (1000, {FIVE: 3000}, 0)


def test_the_automatic_marker_stands_behind_the_last_block_that_can_carry_one() -> None:
    """The top-level ``cache_control`` caches up to the last block that is not thinking, as one of the four markers."""
    marked = replace(said(0, "abcde?", (0, FIVE), (1, FIVE), (2, FIVE), (3, FIVE)), auto_marker_ms=SIXTY)
    assert figures([marked], EXPLICIT) == [(0, {SIXTY: 5000}, 1000)]
    assert figures([marked, said(MINUTE, "aX", (0, FIVE))], replace(EXPLICIT, min_tokens=1))[1][0] == 0


def test_a_run_of_tool_results_can_be_one_position() -> None:
    """Twenty results behind an entry are out of sight block by block, and one position on the Claude API."""
    calls = [said(0, "ab", (1, FIVE)), said(MINUTE, "abB" + "1" * 20, (22, FIVE))]
    assert figures(calls, EXPLICIT)[1][0] == 0
    assert figures(calls, replace(EXPLICIT, collapse_tool_runs=True))[1][0] == 2000


def test_a_stored_prefix_is_read_while_it_lives() -> None:
    """Gemini's cachedContent: exactly its tokens; afterwards the request is refused."""
    named = replace(call(MINUTE, "ab"), stored=Stored(5770, 0, FIVE))
    assert figures([named], AUTOMATIC) == [(5770, {}, 2000)]
    with pytest.raises(ValueError, match="refuses"):
        simulate([replace(named, at_ms=FIVE + 1)], AUTOMATIC)


def test_an_automatic_cache_may_charge_writes() -> None:
    """Moonshot since October 2026: what is not read is written, where the prompt is long enough to be cached."""
    rules = replace(AUTOMATIC, charges_writes=True)
    calls = [call(0, "abc"), call(MINUTE, "abc"), call(MINUTE, "x")]
    assert figures(calls, rules) == [(0, {FIVE: 3000}, 0), (2944, {FIVE: 56}, 0), (0, {}, 1000)]


def test_lookback_counts_blocks_not_parts() -> None:
    """A block of many parts, such as static text around a date, is one position of the lookback window."""
    head = Part("head", 2000, 0)
    pieces = tuple(Part(("piece", n), 10, 1) for n in range(50))
    first = SimCall(0, 1, "s", (head,), (Marker(0, FIVE),))
    second = SimCall(MINUTE, MINUTE + 1, "s", (head, *pieces), (Marker(50, FIVE),))
    assert figures([first, second], replace(EXPLICIT, lookback=2))[1] == (2000, {FIVE: 500}, 0)


def test_marker_inside_a_block_is_refused() -> None:
    """A marker stands at the end of a block or nowhere."""
    parts = (Part("a", 2000, 0), Part("b", 2000, 0))
    with pytest.raises(KeyError):
        simulate([SimCall(0, 1, "s", parts, (Marker(0, FIVE),))], EXPLICIT)


@st.composite
def sim_calls(draw: st.DrawFn) -> SimCall:
    """Few contents, scopes and moments, so that prefixes are shared, lapse and race."""
    lengths = draw(st.lists(st.integers(1, 3), max_size=6))  # parts of each block
    parts = tuple(
        Part(draw(st.sampled_from("ab")), draw(st.integers(0, 900)), block)
        for block, length in enumerate(lengths)
        for _ in range(length)
    )
    ends = [sum(lengths[: n + 1]) - 1 for n in range(len(lengths))]
    marked = draw(st.lists(st.sampled_from(ends), max_size=4, unique=True)) if ends else []
    markers = tuple(Marker(end, draw(st.sampled_from((FIVE, SIXTY)))) for end in sorted(marked))
    at_ms = draw(st.integers(0, 40)) * MINUTE
    return SimCall(
        at_ms,
        at_ms + draw(st.integers(0, 2 * MINUTE)),
        draw(st.sampled_from("xy")),
        parts,
        markers,
        settings=draw(st.sampled_from([("", "", "")] * 2 + [("t", "", ""), ("", "", "m")])),
        auto_marker_ms=draw(st.sampled_from((0, FIVE))),
        explicit_only=draw(st.booleans()),
    )


TRAFFIC = st.lists(sim_calls(), max_size=12)
RULES = st.builds(
    Rules,
    st.sampled_from(("automatic", "explicit", "boundaries", "units", "slot", "none")),
    min_tokens=st.integers(0, 1500),
    granularity=st.sampled_from((1, 64, 128)),
    ttl_ms=st.sampled_from((FIVE, SIXTY)),
    lookback=st.integers(1, 4),
)


def total(one: SimCall) -> int:
    return sum(part.tokens for part in one.parts)


@given(TRAFFIC, RULES)
def test_buckets_sum_to_the_total(calls: list[SimCall], rules: Rules) -> None:
    """Every input token is in exactly one bucket, and no bucket is negative."""
    for one, outcome in zip(calls, simulate(calls, rules), strict=True):
        assert outcome.read + outcome.uncached + sum(outcome.writes.values()) == total(one)
        assert min(outcome.read, outcome.uncached) >= 0
        assert all(tokens > 0 for tokens in outcome.writes.values())


@given(TRAFFIC, RULES)
def test_a_read_reaches_the_minimum(calls: list[SimCall], rules: Rules) -> None:
    """What is read is nothing, or at least the minimum; an automatic cache gives whole steps of its granularity."""
    for outcome in simulate(calls, rules):
        assert outcome.read == 0 or outcome.read >= rules.min_tokens
        assert rules.cache in {"explicit", "boundaries"} or outcome.read % rules.granularity == 0


@given(TRAFFIC, RULES)
def test_nothing_is_read_before_the_writers_first_token(calls: list[SimCall], rules: Rules) -> None:
    """If no response begins before the last request is sent, nobody reads anything; a slot's requests wait."""
    last_ms = max((one.at_ms for one in calls), default=0)
    slow = [replace(one, first_token_ms=last_ms + 1) for one in calls]
    assert rules.cache == "slot" or all(outcome.read == 0 for outcome in simulate(slow, rules))


@given(TRAFFIC, RULES)
def test_scopes_share_nothing(calls: list[SimCall], rules: Rules) -> None:
    """A scope's outcomes are the same whether or not the other scope is called."""
    of_x = [outcome for one, outcome in zip(calls, simulate(calls, rules), strict=True) if one.scope == "x"]
    assert of_x == simulate([one for one in calls if one.scope == "x"], rules)


@given(TRAFFIC, RULES)
def test_only_the_past_counts(calls: list[SimCall], rules: Rules) -> None:
    """Cutting off the latest calls changes nothing for the others."""
    ordered = sorted(calls, key=lambda one: one.at_ms)
    half = len(ordered) // 2
    assert simulate(ordered, rules)[:half] == simulate(ordered[:half], rules)


@given(TRAFFIC, RULES)
def test_longer_ttl_never_reads_less_from_an_automatic_cache(calls: list[SimCall], rules: Rules) -> None:
    """Call by call, a cache that forgets later reads at least as much."""
    rules = replace(rules, cache="automatic")
    short, long = (simulate(calls, replace(rules, ttl_ms=ttl)) for ttl in (FIVE, SIXTY))
    assert all(after.read >= before.read for before, after in zip(short, long, strict=True))


@given(TRAFFIC, RULES)
def test_tokens_behind_the_last_marker_are_never_cached(calls: list[SimCall], rules: Rules) -> None:
    """What an explicit cache reads or writes lies in front of the last marker; without a marker that is nothing."""
    calls = [replace(one, auto_marker_ms=0) for one in calls]
    for one, outcome in zip(calls, simulate(calls, replace(rules, cache="explicit")), strict=True):
        last = max((marker.part for marker in one.markers), default=-1)
        assert total(one) - outcome.uncached <= sum(part.tokens for part in one.parts[: last + 1])


@given(sim_calls(), RULES)
def test_a_repeated_call_reads_all_that_can_be_read(one: SimCall, rules: Rules) -> None:
    """The same call again, at once after the first response began, writes nothing."""
    again = replace(one, at_ms=one.first_token_ms)
    first, second = simulate([one, again], rules)
    assert not second.writes
    assert second.read >= sum(first.writes.values())
