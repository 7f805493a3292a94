"""What holds for every request body: no error, markers are not text, a longer history keeps its prefix."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prefixscope.otel_plugin import segments
from prefixscope.otel_plugin.record import Prompt

_NAMES = st.sampled_from(
    """type role content text tools messages system input prompt parts contents function functionDeclarations toolConfig
    cachePoint cache_control prompt_cache_breakpoint ttl tool_calls toolResult inlineData thought instructions model
    documents chat_history message thread metadata conversation prompt_cache_options mcp_servers anthropic_beta
    additionalModelRequestFields systemInstruction cachedContent stream tool_results suffix source""".split()  # noqa: SIM905 - forty names read best as words
)
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(), max_size=8)
    | st.sampled_from(["text", "tool_result", "reasoning", "mcp", "function_call", "system", "tool", "1h", "thought"])
)
_JSON = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_NAMES | st.text(max_size=3), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=300, deadline=None)
@example(body={"input": [{"role": []}, {"type": {}, "role": "user"}]}, api="openai.responses")
@example(body={"messages": [{"role": {}, "content": {"type": []}}], "tools": {"type": []}}, api="openai.chat")
@given(body=st.dictionaries(_NAMES, _JSON, max_size=6), api=st.sampled_from(segments.APIS))
def test_no_json_raises(body: dict[str, Any], api: str) -> None:
    """Any object is a prompt of any API, if need be an empty or an opaque one."""
    prompt = segments.parse(body, api=api)
    assert prompt is not None or not api
    assert prompt is None or all(isinstance(segment.text, str) for segment in prompt.segments)


@settings(deadline=None)
@given(body=st.binary(max_size=40) | st.text(max_size=40), path=st.text(max_size=40))
def test_no_bytes_raise(body: bytes | str, path: str) -> None:
    """Nor does anything that is no JSON, whatever the path."""
    segments.parse(body, path=path)


_TEXTS = st.text(min_size=1, max_size=20)
_TTLS = st.sampled_from([None, "5m", "1h"])
_Piece = tuple[str, str | None]  # its text and the TTL of its marker
_PIECES = st.lists(st.tuples(_TEXTS, _TTLS), min_size=1, max_size=4)
Build = Callable[[list[_Piece], list[_Piece], list[_Piece]], dict[str, Any]]


def _marked(part: dict[str, Any], ttl: str | None) -> dict[str, Any]:
    return {**part, "cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else part


def _texts(pieces: list[_Piece]) -> list[dict[str, Any]]:
    return [_marked({"type": "text", "text": text}, ttl) for text, ttl in pieces]


def _anthropic(tools: list[_Piece], system: list[_Piece], turns: list[_Piece]) -> dict[str, Any]:
    return {
        "tools": [_marked({"name": name, "input_schema": {}}, ttl) for name, ttl in tools],
        "system": _texts(system),
        "messages": [{"role": "user", "content": _texts([turn])} for turn in turns],
    }


def _chat(tools: list[_Piece], system: list[_Piece], turns: list[_Piece]) -> dict[str, Any]:
    return {
        "tools": [_marked({"type": "function", "function": {"name": name}}, ttl) for name, ttl in tools],
        "messages": [
            {"role": "system", "content": _texts(system)},
            *({"role": "tool", "tool_call_id": "c", "content": _texts([turn])} for turn in turns),
        ],
    }


def _responses(tools: list[_Piece], system: list[_Piece], turns: list[_Piece]) -> dict[str, Any]:
    def content(text: str, ttl: str | None) -> list[dict[str, Any]]:
        mark = {"prompt_cache_breakpoint": {"mode": "explicit", "ttl": ttl}} if ttl else {}
        return [{"type": "input_text", "text": text, **mark}]

    return {
        "tools": [{"type": "function", "name": name} for name, _ in tools],
        "input": [
            *({"role": "developer", "content": content(*piece)} for piece in system),
            *({"role": "user", "content": content(*turn)} for turn in turns),
        ],
    }


def _converse(tools: list[_Piece], system: list[_Piece], turns: list[_Piece]) -> dict[str, Any]:
    def pointed(blocks: list[tuple[dict[str, Any], str | None]]) -> list[dict[str, Any]]:
        point = {"type": "default"}
        return [
            item for block, ttl in blocks for item in (block, *([{"cachePoint": {**point, "ttl": ttl}}] * bool(ttl)))
        ]

    return {
        "toolConfig": {"tools": pointed([({"toolSpec": {"name": name}}, ttl) for name, ttl in tools])},
        "system": pointed([({"text": text}, ttl) for text, ttl in system]),
        "messages": [{"role": "user", "content": pointed([({"text": text}, ttl)])} for text, ttl in turns],
    }


BUILDERS: list[tuple[str, Build]] = [
    ("anthropic.messages", _anthropic),
    ("openai.chat", _chat),
    ("openai.responses", _responses),
    ("bedrock.converse", _converse),
    ("bedrock.invoke", lambda *pieces: {"anthropic_version": "bedrock-2023-05-31", **_anthropic(*pieces)}),
]


def _parsed(body: dict[str, Any], api: str) -> Prompt:
    before = deepcopy(body)
    prompt = segments.parse(body, api=api)
    assert body == before, "the request is only read"
    assert prompt is not None
    return prompt


def _bare(pieces: list[_Piece]) -> list[_Piece]:
    return [(text, None) for text, _ in pieces]


@pytest.mark.parametrize(("api", "build"), BUILDERS)
@settings(deadline=None)
@given(tools=_PIECES, system=_PIECES, turns=_PIECES)
def test_markers_are_not_text(
    api: str, build: Build, tools: list[_Piece], system: list[_Piece], turns: list[_Piece]
) -> None:
    """Adding or removing markers changes no text, and each marker is found where it was put."""
    marked = _parsed(build(tools, system, turns), api)
    bare = _parsed(build(_bare(tools), _bare(system), _bare(turns)), api)
    assert [s.text for s in marked.segments] == [s.text for s in bare.segments]
    assert {s.marker for s in bare.segments} == {""}
    expected = [ttl or "" for _, ttl in (*(_bare(tools) if api == "openai.responses" else tools), *system, *turns)]
    assert [s.marker for s in marked.segments] == expected


@pytest.mark.parametrize(("api", "build"), BUILDERS)
@settings(deadline=None)
@given(tools=_PIECES, system=_PIECES, turns=_PIECES)
def test_a_longer_history_keeps_its_prefix(
    api: str, build: Build, tools: list[_Piece], system: list[_Piece], turns: list[_Piece]
) -> None:
    """Appending messages leaves all earlier segments equal."""
    whole = _parsed(build(tools, system, turns), api).segments
    for length in range(len(turns)):
        shorter = _parsed(build(tools, system, turns[:length]), api).segments
        assert shorter == whole[: len(shorter)]


@settings(deadline=None)
@given(texts=st.lists(_TEXTS, min_size=1, max_size=6))
def test_gemini_keeps_its_prefix(texts: list[str]) -> None:
    """The same for contents and parts."""
    body = {"contents": [{"role": "user", "parts": [{"text": text}]} for text in texts]}
    whole = _parsed(body, "gemini.generate_content").segments
    assert [segment.text for segment in whole] == texts
    assert _parsed({"contents": body["contents"][:-1]}, "gemini.generate_content").segments == whole[:-1]
