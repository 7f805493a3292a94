"""The help desk's traffic: deterministic, and with everything in it that response caches are tried on."""

import gzip
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import response_caches

Json = dict[str, Any]


@cache
def made() -> list[Json]:
    return [dict(line) for line in response_caches.lines()]


def asked(line: Json) -> str:
    """The last user message."""
    content = line["request"]["messages"][-1]["content"]
    return content if isinstance(content, str) else str(content[0]["text"])


def test_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    """Two runs differ in nothing, another seed in everything."""
    runs = [response_caches.write(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    found = [path.read_bytes() for path in runs]
    assert found[0] == found[1]
    assert found[0] != found[2]


def test_the_file_beside_the_generator_is_what_it_makes() -> None:
    """Whoever changes texts or code makes the file again."""
    path = Path(response_caches.__file__).parent / response_caches.NAME
    with gzip.open(path, "rt", encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == json.loads(json.dumps(made()))


def test_command_line_writes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a seed."""
    monkeypatch.setattr("sys.argv", ["response_caches.py", "--out", str(tmp_path / "new"), "--seed", "3"])
    response_caches.main()
    assert [path.name for path in (tmp_path / "new").iterdir()] == [response_caches.NAME]


def test_calls_are_in_the_order_of_time_and_ids_are_unique() -> None:
    """Service by service."""
    for desk in response_caches.DESKS:
        times = [line["timestamp"] for line in made() if line["service"] == desk.name]
        assert len(times) > 300
        assert times == sorted(times)
    ids = Counter(line["response"]["id"] for line in made())
    assert max(ids.values()) == 1


def test_everything_is_in_it() -> None:
    """Repeats, rewordings, two-turn conversations, users, temperatures, tool calls, and hits of a cache in use."""
    questions = Counter(asked(line) for line in made())
    assert max(questions.values()) > 10
    assert len(questions) > 500
    turns = Counter(sum(message["role"] == "user" for message in line["request"]["messages"]) for line in made())
    assert turns[2] > 100
    assert any(line["request"]["temperature"] == 1.0 for line in made())
    assert any("user_id" in line for line in made())
    finishes = Counter(
        str(line["response"].get("stop_reason") or line["response"]["choices"][0]["finish_reason"]) for line in made()
    )
    assert finishes["tool_calls"]
    assert finishes["tool_use"]
    hits = [line for line in made() if line.get("cache_hit")]
    assert {line["service"] for line in hits} == {"chat-widget"}
    assert all(0.9 <= line["response_headers"]["x-litellm-semantic-similarity"] <= 1 for line in hits)


def test_answers_depend_on_what_they_should() -> None:
    """Two countries, two days, two customers, two conversations: two answers; two wordings: one."""
    answers: dict[str, set[str]] = {}
    for line in made():
        choices = line["response"].get("choices")
        if choices and not line.get("cache_hit"):
            answers.setdefault(asked(line), set()).add(str(choices[0]["message"]["content"]))
    assert len(answers["What is today's deal?"]) == response_caches.DAYS
    assert len(answers["When will my order arrive?"]) > 1
    assert len(answers["How much does it cost?"]) == 3
    assert answers["How do I reset my password?"] == answers["How can I reset my password?"]
    assert not answers["How long does delivery to Spain take?"] & answers["How long does delivery to Portugal take?"]
