"""What of a call may be kept in a response cache, for whom, and what must be told apart and never served.

Pure. Field names are in cacheable.toml.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib import resources
from typing import Any, Final

from prefixscope.analyzer.ingest.loose import count, items, mapping, number, text
from prefixscope.analyzer.semantic.answers import Answer
from prefixscope.analyzer.semantic.words import canonical
from prefixscope.otel_plugin.record import Prompt, Segment
from prefixscope.otel_plugin.segments import HISTORY
from prefixscope.otel_plugin.wire.parts import compact

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

LONGEST: Final = 1000  # characters of a question: about what the default embedder reads
_ATTACHED: Final = frozenset({"image", "file", "opaque", "unrecorded"})
SEMANTIC_ONLY: Final = frozenset({"tool_step", "too_long", "no_question", "attachment"})


@dataclass(frozen=True, slots=True)
class Hit:
    """The mark of a response cache that is in use already."""

    cache: str
    semantic: bool | None  # None: the mark does not say
    similarity: float | None


@dataclass(frozen=True, slots=True)
class Content:
    """What is kept of one call's text while the command runs: question and answer; of the rest, keyed hashes."""

    question: str  # the last user message, its words alone; "" = none
    answer: Answer | None
    system: bytes  # hashes of what stands in front of the conversation, …
    tools: bytes
    before: bytes  # … of the conversation before the question (b"" = none), …
    attached: bytes  # … of images and files beside it (b"" = none), …
    parameters: bytes  # … and of the request's fields that shape the answer
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


class Reducer:
    """Reduces calls to what is kept of them."""

    def __init__(self, key: bytes) -> None:
        self._state = blake2b(digest_size=16, key=key[:64]).copy

    def content(
        self,
        prompt: Prompt,
        request: Mapping[str, Any],
        answer: Answer | None,
        holders: Sequence[Mapping[str, Any]],
    ) -> Content:
        """Puts a call together. ``holders``: places beside the request that may say who asked or name a cache."""
        front, before, last = _split(prompt)
        places, names = (request, *holders), _table()
        attached = [(s.kind, s.text) for s in last if s.kind in _ATTACHED]
        heat = (number(v) or 0.0 for v in _values((request,), names["parameters"]["temperature"]))
        choices = (count(v) or 1 for v in _values((request,), names["parameters"]["choices"]))
        return Content(
            question="\n".join(s.text for s in last if s.kind == "text"),
            answer=answer,
            system=self._hashed(*(canonical(s.text) for s in front if s.level == "system")),
            tools=self._hashed(*sorted(s.canonical or s.text for s in front if s.level == "tools")),
            before=self._hashed(*(f"{s.role}\0{s.kind}\0{canonical(s.text)}" for s in before)) if before else b"",
            attached=self._hashed(*(f"{kind}\0{text_}" for kind, text_ in attached)) if attached else b"",
            parameters=self._hashed(parameters(request)),
            streamed=prompt.stream,
            server_history=HISTORY in prompt.settings or bool(prompt.cached_content),
            tool_step=bool(prompt.segments) and prompt.segments[-1].kind == "tool_result",
            live_tools=runs_tools(request),
            temperature=max(heat, default=0.0),
            choices=max(choices, default=1),
            user=_first(places, names["who"]["user"]),
            tenant=_first(places, names["who"]["tenant"]),
            hit=_hit(holders),
            vector=_vector(holders),
        )

    def _hashed(self, *texts: str) -> bytes:
        state = self._state()
        for text_ in texts:
            data = text_.encode("utf-8", "surrogatepass")
            state.update(len(data).to_bytes(8, "big") + data)
        return state.digest()


def _split(prompt: Prompt) -> tuple[list[Segment], list[Segment], list[Segment]]:
    """Segments in front of the conversation, the conversation, and the last user message."""
    front = [s for s in prompt.segments if s.level != "messages"]
    messages = [s for s in prompt.segments if s.level == "messages"]
    last = len(messages)
    while last and messages[last - 1].role == "user" and messages[last - 1].kind != "tool_result":
        last -= 1
    return front, messages[:last], messages[last:]


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


def runs_tools(request: Mapping[str, Any]) -> bool:
    """Whether the provider runs a tool by itself."""
    live = _table()["live_tools"]
    if any(request.get(name) for name in live["fields"]):
        return True
    tools = [mapping(tool) for tool in items(request.get("tools"))]
    return any(
        text(tool.get("type")).startswith(tuple(live["types"])) or not tool.keys().isdisjoint(live["keys"])
        for tool in tools
    )


def parameters(request: Mapping[str, Any]) -> str:
    """The request's fields that shape the answer, as one comparable text."""
    return compact({name: request[name] for name in sorted(_table()["parameters"]["fields"]) if name in request})


@cache
def _table() -> Any:
    return tomllib.loads((resources.files(__package__) / "cacheable.toml").read_text("utf-8"))


def _values(places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[Any]:
    """The values under ``names``, in their order, in each of the places; a dotted name may also be a path."""
    found = []
    for name in names:
        for place in places:
            value = place.get(name)
            if value is None and "." in name:
                holder, _, key = name.partition(".")
                value = mapping(place.get(holder)).get(key)
            if value is not None:
                found.append(value)
    return found


def _first(places: Iterable[Mapping[str, Any]], names: Iterable[str]) -> str:
    return next(filter(None, map(text, _values(places, names))), "")


def _hit(holders: Sequence[Mapping[str, Any]]) -> Hit | None:
    for cache_ in _table()["cache"]:
        for value in _values(holders, cache_["marks"]):
            said = str(value).strip().lower()
            if said in cache_["hit"]:
                near = next((number(v) for v in _values(holders, cache_.get("similarity", ()))), None)
                semantic = said in cache_.get("semantic", ()) or (None if near is None else near < 1.0)
                return Hit(cache_["name"], semantic, near)
    return None


def _vector(holders: Sequence[Mapping[str, Any]]) -> tuple[float, ...] | None:
    found = next((v for v in _values(holders, _table()["vectors"]["names"]) if isinstance(v, list) and v), None)
    if found is None or not all(isinstance(x, int | float) and not isinstance(x, bool) for x in found):
        return None
    return tuple(map(float, found))
