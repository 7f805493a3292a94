"""What formats hold for response caches: Langfuse's exports answers, transcripts nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.ingest import langfuse
from prefixscope.analyzer.semantic import of_paths
from prefixscope.analyzer.semantic.analysis import Options
from prefixscope.analyzer.semantic.answers import Answer, of_span
from semantic_traffic import DATA, line, questions, write

_OTEL, _TRANSCRIPTS = (DATA.parent / name for name in ("otel", "transcripts"))
_OPEN = Answer("It is open.")

OUTPUTS: list[tuple[Any, Answer | None]] = [
    ("It is open.", _OPEN),
    ({"role": "assistant", "content": "It is open."}, _OPEN),
    (json.dumps({"role": "assistant", "content": "It is open."}), _OPEN),
    ([{"role": "assistant", "parts": [{"type": "text", "content": "It is open."}], "finish_reason": "stop"}], _OPEN),
    ({"content": {"parts": [{"text": "It is open."}], "role": "model"}, "finish_reason": "STOP"}, _OPEN),
    ({"choices": [{"index": 0, "message": {"content": "It is open."}, "finish_reason": "stop"}]}, _OPEN),
    ({"candidates": [{"content": {"parts": [{"text": "It is open."}]}, "finish_reason": 1}]}, _OPEN),
    ({"candidates": [{"content": {"parts": [{"text": "It"}]}, "finish_reason": 2}]}, Answer("It", whole=False)),
    ({"role": "assistant", "content": "", "additional_kwargs": {"tool_calls": [{"id": "1"}]}}, Answer("", acts=True)),
    ([{"toolCallId": "1", "toolName": "f", "input": "{}"}], Answer("", acts=True)),
    (None, None),
]


@pytest.mark.parametrize(("output", "expected"), OUTPUTS)
def test_the_output_of_an_observation_is_its_answer(output: Any, expected: Answer | None) -> None:
    """In the shapes in which twenty frameworks hand it to Langfuse."""
    observation = {"id": "a" * 16, "traceId": "b" * 32, "type": "GENERATION", "usage": {}, "output": output}
    assert of_span(langfuse.span(observation, {})) == expected


@pytest.mark.skipif(not _OTEL.is_dir(), reason="the exports lie beside the project")
def test_answers_in_real_exports() -> None:
    """Of the calls whose prompt is recorded nearly all have an answer, and tool calls are told apart."""
    asked = [questions(path) for path in sorted((_OTEL / "langfuse").glob("*.json"))]
    found = [content for one in asked for content in one.contents if content is not None]
    answered = [content for content in found if content.answer]
    assert len(found) >= 25
    assert len(answered) >= 0.85 * len(found)
    assert {content.answer.acts for content in answered if content.answer} == {True, False}


def _claude(text: str) -> dict[str, Any]:
    return {
        "type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "timestamp": "2026-11-30T08:00:00Z",
        "message": {"role": "user", "content": text}, "cwd": "/x", "version": "2.1.0",
    }  # fmt: skip


def test_a_transcript_says_why_it_is_left_out(tmp_path: Path) -> None:
    """One line a file, however long it is, and what can be read beside it still is."""
    write(tmp_path / "session.jsonl", [_claude(f"Do {n}") for n in range(5)])
    with pytest.raises(
        InputError, match=r"session\.jsonl: the transcript of an agent: its calls are steps of one task"
    ):
        of_paths.analysed([tmp_path], Options(), b"k")
    write(tmp_path / "log.jsonl", [line("Is it open?", "Yes.", 60.0 * n) for n in range(2)])
    found = of_paths.analysed([tmp_path], Options(), b"k")
    assert len(found.questions) == 2
    assert found.rejected["reason"].str.starts_with("the transcript of an agent").to_list() == [True]


def test_a_line_of_a_transcript_in_a_log_costs_only_itself(tmp_path: Path) -> None:
    """What came before has shown that the file is a log."""
    calls = [line("Is it open?", "Yes.", 60.0 * n) for n in range(2)]
    path = write(tmp_path / "log.jsonl", [calls[0], _claude("Do it"), calls[1]])
    found = of_paths.analysed([path], Options(), b"k")
    assert (len(found.questions), found.rejected["line"].to_list()) == (2, [2])


@pytest.mark.skipif(not _TRANSCRIPTS.is_dir(), reason="the transcripts lie beside the project")
@pytest.mark.parametrize("folder", ["pi", "claude_code_log", "ccusage", "claude_agent_sdk"])
def test_real_transcripts_are_told(folder: str) -> None:
    """Each of them, whatever agent wrote it."""
    with pytest.raises(InputError, match="the transcript of an agent"):
        of_paths.analysed([_TRANSCRIPTS / folder], Options(), b"k")


def test_teams_of_a_gateway_share_nothing(tmp_path: Path) -> None:
    """LiteLLM's log names the team of the virtual key; by the key's hash where there is no team."""

    def of(**metadata: str | None) -> dict[str, Any]:
        return line("Is it open?", "Yes.", 60.0 * len(rows), metadata=metadata)

    rows: list[dict[str, Any]] = []
    for team, key in (("blue", "k1"), ("blue", "k2"), ("red", "k1"), (None, "k1"), (None, "k2")):
        rows.append(of(user_api_key_team_id=team, user_api_key_hash=key))
    scope = questions(write(tmp_path / "log.jsonl", rows)).scope.tolist()
    assert scope[0] == scope[1]
    assert len(set(scope)) == 4


def test_the_conversation_before_is_compared_in_one_spelling(tmp_path: Path) -> None:
    """Case, white space and compatible characters are no other conversation; another word is."""

    def asked(before: str, question: str, at_s: float) -> dict[str, Any]:
        turns = [("user", before), ("assistant", "I see."), ("user", question)]
        messages = [{"role": role, "content": content} for role, content in turns]
        return line("", "Call the office.", at_s, messages=messages)

    path = write(
        tmp_path / "log.jsonl",
        [
            asked("I have a gym card.", "How do I cancel it?", 0),
            asked("i have a  GYM card.", "How can I cancel it please?", 60),
            asked("\uff29 have a gym card.", "How do I cancel it?", 120),
            asked("I have a bus card.", "How do I cancel it?", 180),
        ],
    )
    context = questions(path).context.tolist()
    assert context[0] == context[1] == context[2] != context[3]
