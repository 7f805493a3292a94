"""What of a call may be kept in a response cache, for whom, and what must be told apart and never served.

Pure. Field names are in cacheable.toml.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from prefixscope.analyzer.ingest.loose import text
from prefixscope.analyzer.semantic.answers import Answer
from prefixscope.analyzer.semantic.hits import Hit, hit_in
from prefixscope.otel_plugin.asked import LONGEST, Keys, parameters, runs_tools
from prefixscope.otel_plugin.loose import values
from prefixscope.otel_plugin.record import Prompt
from prefixscope.otel_plugin.response_cache import FACTS

__all__ = [
    "BARS",
    "LONGEST",
    "SEMANTIC_ONLY",
    "Content",
    "Hit",
    "Reducer",
    "bar",
    "parameters",
    "recorded_bar",
    "runs_tools",
]

BARS: Final = {
    "no_content": "the prompt's text is not recorded",
    "failed": "the request failed, was aborted, or its answer was cut off or refused",
    "served_already": "a response cache in use answered it: it cost nothing, and its answer is an earlier call's",
    "server_history": "the provider holds the conversation: what was asked is not known",
    "acts": "the answer asks for a tool: an action, not an answer",
    "live_tools": "the provider searches or runs something for the answer: it holds for that moment only",
    "varies": "the caller asked for varying answers (temperature, several choices)",
    "no_answer": "the answer is not recorded, so neither its kind nor its worth is known",
    "tool_step": "the last message is what a tool returned, not a question (an exact repeat may still be served)",
    "too_long": "the question is longer than what can be compared by meaning (an exact repeat may still be served)",
    "no_question": "the prompt does not end with a question in words (an exact repeat may still be served)",
    "attachment": "the question comes with an image or a file (an exact repeat may still be served)",
}
"""Why a call is left out, and in words. The last four hold for the semantic cache alone."""

_PREVIOUS: Final = 300  # characters of each text of the turn before the question
SEMANTIC_ONLY: Final = frozenset({"tool_step", "too_long", "no_question", "attachment"})


@dataclass(frozen=True, slots=True)
class Content:
    """What is kept of one call's text while the command runs: question, answer, the turn before; else keyed hashes."""

    question: str  # the last user message, its words alone; "" = none
    answer: Answer | None
    system: bytes  # hashes of what stands in front of the conversation, …
    tools: bytes
    before: bytes  # … of the conversation before the question (b"" = none), …
    attached: bytes  # … of images and files beside it (b"" = none), …
    parameters: bytes  # … of the request's fields that shape the answer, …
    key: bytes  # … and of all that an exact cache compares: capture's exact key
    streamed: bool = False
    server_history: bool = False
    tool_step: bool = False  # the last message is what a tool returned
    live_tools: bool = False
    temperature: float = 0.0  # 0 where none is asked for: the provider's default
    choices: int = 1
    user: str = ""
    tenant: str = ""
    hit: Hit | None = None
    vector: tuple[float, ...] | None = None
    previous: tuple[tuple[str, str], ...] = ()  # (role, beginning of the text) of the turn before the question


class Reducer:
    """Reduces calls to what is kept of them."""

    def __init__(self, key: bytes) -> None:
        self._keys = Keys(key)

    def content(
        self,
        prompt: Prompt,
        request: Mapping[str, Any],
        answer: Answer | None,
        holders: Sequence[Mapping[str, Any]],
    ) -> Content:
        """Puts a call together. ``holders``: places beside the request that may say who asked or name a cache."""
        asked = self._keys.asked(prompt, request)
        return Content(
            question=asked.question,
            answer=answer,
            system=asked.system,
            tools=asked.tools,
            before=asked.before,
            attached=asked.attached,
            parameters=asked.parameters,
            key=asked.key,
            streamed=asked.streamed,
            server_history=asked.server_history,
            tool_step=asked.tool_step,
            live_tools=asked.live_tools,
            temperature=asked.temperature or 0.0,
            choices=asked.choices,
            user=_first((request, *holders), _table()["who"]["user"]),
            tenant=asked.tenant or _first(holders, (*FACTS["tenant"]["names"], *_table()["who"]["tenant"])),
            hit=hit_in(holders),
            vector=_vector(holders),
            previous=_previous(prompt),
        )


def bar(found: Content | None, *, failed: bool, max_temperature: float) -> str:
    """Why the call may not be served from a cache, "" if it may; a key of ``BARS``."""
    if found is None:
        return "failed" if failed else "no_content"
    answer = found.answer
    checks = {
        "failed": failed or (answer is not None and not answer.whole),
        "served_already": found.hit is not None,
        "server_history": found.server_history,
        "acts": answer is not None and answer.acts,
        "live_tools": found.live_tools,
        "varies": found.temperature > max_temperature
        or found.choices > 1
        or (answer is not None and answer.choices > 1),
        "no_answer": answer is None or not answer.text,
        "tool_step": found.tool_step,
        "too_long": len(found.question) > LONGEST,
        "no_question": not found.question,
        "attachment": bool(found.attached),
    }
    return next((name for name, holds in checks.items() if holds), "")


def recorded_bar(row: Mapping[str, Any], *, failed: bool, max_temperature: float) -> str:
    """The same of a call whose text is not there, by what capture kept of it (columns of ``calls``)."""
    checks = {
        "failed": failed or row["answer_kind"] in {"refused", "cut"},
        "server_history": "history=" in row["settings"] or bool(row["cached_content"]),
        "acts": row["answer_kind"] == "tool_call",
        "live_tools": row["live_tools"],
        "varies": (row["temperature"] or 0.0) > max_temperature or row["choices"] > 1,
        "no_answer": not row["answer_key"],
    }
    return next((name for name, holds in checks.items() if holds), "")


@cache
def _table() -> Any:
    return tomllib.loads((resources.files(__package__) / "cacheable.toml").read_text("utf-8"))


def _first(places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    return next(filter(None, map(text, values(places, names))), "")


def _previous(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    """The last words of the conversation before the question, those of two speakers at most."""
    messages = [segment for segment in prompt.segments if segment.level == "messages"]
    while messages and messages[-1].role == "user" and messages[-1].kind != "tool_result":
        messages.pop()
    said = [segment for segment in messages if segment.kind == "text"]
    return tuple((segment.role, segment.text[:_PREVIOUS]) for segment in said[-2:])


def _vector(holders: Sequence[Mapping[str, Any]]) -> tuple[float, ...] | None:
    found = next((v for v in values(holders, _table()["vectors"]["names"]) if isinstance(v, list) and v), None)
    if found is None or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in found):
        return None
    return tuple(map(float, found))
