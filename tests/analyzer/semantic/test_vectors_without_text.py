"""Vectors instead of texts: an upper bound for what a semantic cache would serve, and nothing that is called safe."""

import json
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from exchanges import chat, completion, exchange
from prefixscope.analyzer import store
from prefixscope.analyzer.semantic import analysis, questions, report, tiers, vectors
from prefixscope.analyzer.semantic.reading import Reader
from prefixscope.analyzer.semantic.tiers import Policy
from prefixscope.analyzer.semantic.vectors import AtMost
from prefixscope.otel_plugin import spool
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.settings import Settings

KEY = b"test"
EVERYTHING: dict[str, Any] = {"service": None, "since": None, "until": None}
PLACES = {
    "Where is my order?": (1.0, 0.0),
    "Where's my order": (0.966, 0.259),  # by 15 degrees: a cosine of 0.966
    "Where is my order 17?": (0.906, -0.423),  # by 25 to the other side: 0.906
    "Who are you?": (0.0, 1.0),
}


def placed(texts: list[str]) -> list[tuple[float, ...]]:
    """A vector of each of the questions above."""
    return [PLACES[text] for text in texts]


def spun(folder: Path, requests: Sequence[dict[str, Any]], embed: Any = placed) -> list[Path]:
    """The spool of calls with vectors."""
    settings = Settings(spool=str(folder), spans="off", embed=embed, reraise=True)
    capture = Capture(settings, {"PREFIXSCOPE_KEY": KEY.decode()})
    for n, request in enumerate(requests):
        answer = json.dumps(completion() | {"id": f"r{len(list(folder.glob('*')))}-{n}"}).encode()
        capture.sinks.take([exchange(request, answer)])
    capture.close()
    return list(spool.files(folder))


def bound(paths: list[Path], **policy: Any) -> AtMost | None:
    reader = Reader(KEY)
    with store.opened(None) as opened:
        opened.ingest(reader.read(paths), at=datetime(2026, 11, 30, tzinfo=UTC))
        segments = opened.arrow("analysis/prompts", **EVERYTHING).column("segments")
        calls = opened.frame("analysis/calls", **EVERYTHING)
        asked = questions.of_calls(calls, segments, reader.text_of, KEY)
        return vectors.at_most(opened, asked, Policy(**policy), **EVERYTHING)


def ask(*texts: str, system: str = "You are helpful.") -> list[dict[str, Any]]:
    return [chat(system, text) for text in texts]


def served(found: AtMost | None) -> dict[float, int]:
    assert found is not None
    return dict(found.served)


def test_alike_questions_are_counted_at_each_threshold(tmp_path: Path) -> None:
    """As a cache in shadow would have: those that were asked after one of a cosine that high."""
    found = bound(spun(tmp_path, ask(*PLACES)))
    assert found is not None
    assert (found.calls, found.left_out) == (4, 0)
    assert served(found) == {0.80: 2, 0.85: 2, 0.90: 2, 0.92: 1, 0.95: 1, 0.98: 0}


def test_the_bound_never_rises_with_the_threshold(tmp_path: Path) -> None:
    """Whatever was asked."""
    counts = list(served(bound(spun(tmp_path, ask(*[*PLACES] * 3)))).values())
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == 8  # exact repeats


@pytest.mark.parametrize(
    "other",
    [
        chat("Be kind.", "Where is my order?"),
        chat(user="Where is my order?", max_tokens=5),
        chat(user="Where is my order?", tools=[{"type": "function", "function": {"name": "a"}}]),
        chat(user="Where is my order?", organization_id="o1"),
        chat(user="Where is my order?") | {"model": "gpt-5"},
        chat(user="Where is my order?", temperature=1),
        chat() | {"messages": [*chat(user="Hi")["messages"], {"role": "assistant", "content": "Hi"},
                               {"role": "user", "content": "Where is my order?"}]},
    ],
    ids=["system", "parameters", "tools", "tenant", "model", "varies", "conversation"],
)  # fmt: skip
def test_nothing_is_shared_across_scopes(tmp_path: Path, other: dict[str, Any]) -> None:
    """Nor across conversations, nor where answers are to vary."""
    assert set(served(bound(spun(tmp_path, [*ask("Where is my order?"), other]))).values()) == {0}


def test_another_conversation_may_be_allowed(tmp_path: Path) -> None:
    """Where the user says that it does not count."""
    turns = [{"role": "assistant", "content": "Hi"}, {"role": "user", "content": "Where is my order?"}]
    requests = [*ask("Where is my order?"), chat() | {"messages": [*chat(user="Hi")["messages"], *turns]}]
    assert set(served(bound(spun(tmp_path, requests), same_context=False)).values()) == {1}


def test_vectors_of_two_models_are_not_compared(tmp_path: Path) -> None:
    """The more frequent kind counts."""

    def longer(texts: list[str]) -> list[tuple[float, ...]]:
        return [(*PLACES[text], 0.0) for text in texts]

    spun(tmp_path, ask("Where is my order?", "Where's my order", "Who are you?"))
    found = bound(spun(tmp_path, ask("Where is my order?"), longer))
    assert found is not None
    assert (found.made_by, found.calls, found.left_out) == (f"{__name__}:placed", 3, 1)
    assert served(found)[0.95] == 1


def test_without_vectors_there_is_no_bound(tmp_path: Path) -> None:
    """None was recorded."""
    assert bound(spun(tmp_path, ask("Where is my order?"), "")) is None


def test_nothing_is_replayed_on_vectors_alone(tmp_path: Path) -> None:
    """A semantic cache is never recommended where no guard can look."""
    reader = Reader(KEY)
    with store.opened(None) as opened:
        opened.ingest(reader.read(spun(tmp_path, ask(*PLACES))), at=datetime(2026, 11, 30, tzinfo=UTC))
        found = analysis.run(opened, reader.text_of, KEY, analysis.Options())
    assert found.served.count(tiers.SEMANTIC) == 0
    assert found.policy.threshold is None
    told = report.build(found)
    assert told["vectors"]["served"][-1] == (0.98, 0)
    assert any("None of these is safe" in note for note in told["notes"])


def test_what_is_stored_is_what_was_made(tmp_path: Path) -> None:
    """Two numbers of 16 bits, of length 1."""
    with store.opened(None) as opened:
        opened.ingest(Reader(KEY).read(spun(tmp_path, ask("Where's my order"))), at=datetime(2026, 11, 30, tzinfo=UTC))
        [data] = opened.frame("analysis/vectors", **EVERYTHING)["vector"]
    assert struct.unpack("<2e", data) == pytest.approx((0.966, 0.259), abs=1e-3)
