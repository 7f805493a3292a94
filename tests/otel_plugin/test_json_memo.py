"""JSON that is parsed once: always what the standard library makes of it."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.otel_plugin import json_memo
from prefixscope.otel_plugin.json_memo import JsonMemo

LONG = st.text(alphabet="ab“😀", min_size=1).map(lambda text: text * 8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner | LONG, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
FORMATS: list[dict[str, Any]] = [{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}]


def outcome(loads: Any, data: bytes) -> Any:
    """What comes of it, errors included."""
    try:
        return loads(data)
    except ValueError as error:
        return type(error), str(error)


@pytest.fixture(autouse=True, scope="module")
def everything_is_remembered() -> Iterator[None]:
    """Short values too, by their first characters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_memo, "_LONG", 2)
        patch.setattr(json_memo, "_HEAD", 40)
        yield


MEMO = JsonMemo(10_000)


@given(
    st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=4) | VALUES, max_size=4), st.sampled_from(FORMATS)
)
def test_it_reads_what_json_reads(values: list[Any], style: dict[str, Any]) -> None:
    """Whatever was read before."""
    for value in [*values, *values]:
        data = json.dumps(value, **style).encode("utf-8", "surrogatepass")
        assert MEMO.loads(data) == json.loads(data)
        assert repr(MEMO.loads(data)) == repr(json.loads(data))


@given(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=3), st.randoms(use_true_random=False), st.binary(max_size=3)
)
def test_it_refuses_what_json_refuses(value: Any, chance: random.Random, noise: bytes) -> None:
    """With the same message."""
    data = json.dumps(value).encode()
    MEMO.loads(data)
    at = chance.randrange(len(data) + 1)
    for broken in (data[:at], data[:at] + noise + data[at:], data + noise, noise + data, data[:at] + data[at + 1 :]):
        assert outcome(MEMO.loads, broken) == outcome(json.loads, broken)


ODD = [
    b"",
    b"{",
    b"{}",
    b" {}",
    b"{ }  ",
    b'{"a":1,}',
    b'{"a":[1,]}',
    b'{"a":[]}',
    b'{"a":NaN,"b":-Infinity}',
    b'{"a":1,"a":2}',
    b'{"a":[12,123]}',
    b'{"a":12}',
    b'{"a":123}',
    b'{"a":"x\n"}',
    b"{1:2}",
    b'{"a" : [ "x" , "y" ] }',
    b'\xef\xbb\xbf{"a":1}',
    '{"a":1}'.encode("utf-16"),
    b'{"a":"\xff"}',
    b"[1]",
]


@pytest.mark.parametrize("data", ODD, ids=repr)
def test_odd_bodies(data: bytes) -> None:
    """Twice each: the second time something may be known of it."""
    for _ in range(2):
        assert repr(outcome(JsonMemo(1000).loads, data)) == repr(outcome(json.loads, data))
        assert repr(outcome(MEMO.loads, data)) == repr(outcome(json.loads, data))


def body(*messages: str, **more: Any) -> tuple[Any, bytes]:
    """A request, as value and as bytes: messages first, as OpenAI's SDK writes it."""
    value = {"messages": [{"role": "user", "content": text * 200} for text in messages], "model": "m", **more}
    return value, json.dumps(value, ensure_ascii=False).encode()


def test_what_was_seen_is_not_parsed_again() -> None:
    """A conversation goes on: its old messages are the same objects, and nobody has changed them."""
    memo = JsonMemo(100_000)
    (_, first), (expected, second) = body("one", "two"), body("one", "two", "three", stream=True)
    old, new = memo.loads(first), memo.loads(second)
    before = copy.deepcopy(new)
    assert [a is b for a, b in zip(old["messages"], new["messages"], strict=False)] == [True, True]
    memo.loads(second)
    assert new == before == expected


def resumed_after(memo: JsonMemo, *messages: str) -> int:
    """How many messages of a body need not be decoded; it is read then."""
    value, data = body(*messages)
    begun = memo._begun(data)
    assert memo.loads(data) == value
    return len(begun.elements) if begun else 0


def test_a_conversation_goes_on_where_it_was() -> None:
    """What was sent before is compared, and not even decoded."""
    memo = JsonMemo(100_000)
    turns = ["“a”", "b", "c", "d"]
    assert [resumed_after(memo, *turns[: n + 1]) for n in range(4)] == [0, 1, 2, 3]


def test_conversations_share_a_beginning() -> None:
    """After it was seen twice; what only looks like one is none."""
    memo = JsonMemo(100_000)
    assert [resumed_after(memo, "“a”", other) for other in ("b", "c", "d", "b")] == [0, 0, 1, 2]
    assert resumed_after(memo, "“b”") == 0


def test_tools_may_stand_behind_the_messages() -> None:
    """As in OpenAI's bodies: the messages grow all the same."""
    memo = JsonMemo(100_000)
    for texts in (["a"], ["a", "b"], ["a", "b", "c"]):
        value, data = body(*texts, tools=[{"name": "x" * 300}], user="u")
        begun = memo._begun(data)
        assert begun is None or len(begun.elements) == len(texts) - 1
        assert memo.loads(data) == value


def test_memory_is_bounded() -> None:
    """Old values go, and old bodies."""
    memo = JsonMemo(10_000)
    for number in range(1000):
        memo.loads(json.dumps({f"{number:06d}": [f"{number:06d}" * 100, 1]}).encode())
    values = [*memo._known._young.values(), *memo._known._old.values()]
    bodies = [*memo._bodies._young.values(), *memo._bodies._old.values()]
    assert sum(len(known.text) for known in values) <= 5_000
    assert 0 < sum(len(begun.data) for found in bodies for begun in found) <= 5_000
