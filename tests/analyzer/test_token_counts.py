"""Tokens of texts: exact where the vocabulary is known, said to be an estimate elsewhere, and nothing is fetched."""

import os
import socket

import pytest

from prefixscope.analyzer.counting.token_counts import Count, count


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("something wants the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize(
    ("text", "model", "tokens"),
    [
        ("tiktoken is great!", "gpt-4o", 6),  # OpenAI's cookbook
        ("tiktoken is great!", "gpt-4", 6),
        ("お誕生日おめでとう", "gpt-5-mini-2025-08-07", 8),
        ("", "gpt-4o", 0),
        ("<|endoftext|>", "gpt-4o", 7),  # in a text it is no special token
    ],
)
def test_known_vocabularies_are_counted(text: str, model: str, tokens: int) -> None:
    """As the models' own tokenizer does, special tokens taken as text."""
    assert count(text, model) == Count(tokens, exact=True)


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gemini-2.5-flash", ""])
def test_other_models_are_estimated(model: str) -> None:
    """A fourth of the bytes, and it says so."""
    assert count("word " * 80, model) == Count(100, exact=False)


def test_the_environment_is_left_as_it_was() -> None:
    """Whoever else uses tiktoken finds its downloads where they were."""
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    count("a", "gpt-4o")
    assert os.environ.get("TIKTOKEN_CACHE_DIR") == before
