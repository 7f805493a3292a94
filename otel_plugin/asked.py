"""Requests as a response cache compares them: keyed hashes of their parts in one spelling, and one of all of it.

The same request has the same hashes wherever it was seen, on the wire or in a log, under the same key. BLAKE2b, 128
bit, keyed. Text is compared as ``canonical`` spells it, JSON with its keys sorted, tools in any order; tools, images
and files to the byte.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from prefixscope.otel_plugin.answers import Answer
from prefixscope.otel_plugin.canonical import canonical
from prefixscope.otel_plugin.fingerprint import Memo
from prefixscope.otel_plugin.loose import count, items, mapping, number, text, values
from prefixscope.otel_plugin.record import Prompt, Reuse, Segment
from prefixscope.otel_plugin.response_cache import FACTS
from prefixscope.otel_plugin.segments import HISTORY
from prefixscope.otel_plugin.wire import parts

LONGEST: Final = 1000  # characters of a question that can be compared by meaning: about what an embedder reads
_BYTES: Final = 16
_NONE: Final = bytes(_BYTES)
_ATTACHED: Final = frozenset({"image", "file", "opaque", "unrecorded"})
_OVERHEAD: Final = 120  # bytes of memory beside a text that is remembered, about
_LIVE: Final = FACTS["live_tools"]
_LIVE_TYPES: Final = tuple(_LIVE["types"])
_FIELDS: Final = tuple(FACTS["parameters"]["fields"])


class _Names:
    """Names under which something may stand in a request. Most requests have none, which is soon told."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._holders = frozenset(part for name in names for part in (name, name.partition(".")[0]))

    def values(self, request: Mapping[str, Any]) -> Sequence[Any]:
        return () if self._holders.isdisjoint(request) else values((request,), self._names)


_TEMPERATURE: Final = _Names(FACTS["parameters"]["temperature"])
_CHOICES: Final = _Names(FACTS["parameters"]["choices"])
_TENANT: Final = _Names(FACTS["tenant"]["names"])


class Asked(NamedTuple):
    """What was asked. Parts are keyed hashes of 16 bytes; the question alone is text, for those who may keep it."""

    key: bytes  # of all that follows up to the tenant, and of the model
    system: bytes
    tools: bytes
    parameters: bytes  # settings, and other fields that shape the answer
    before: bytes  # the conversation before the question; b"" = none
    question: str  # the last user message, its words alone; "" = none
    attached: bytes  # images and files beside the question; b"" = none
    tenant: str  # as the request names it
    temperature: float | None  # None: none asked for
    choices: int
    streamed: bool
    live_tools: bool  # the provider runs tools by itself
    tool_step: bool  # the last message is what a tool returned
    server_history: bool  # the provider holds earlier turns: what was asked is not all known
    scope: bytes  # what has to be the same before an answer may be shared: system, tools, parameters, tenant

    @property
    def comparable(self) -> bool:
        """Whether the question says it all, so that it can be compared with others by its meaning."""
        alone = not (self.attached or self.tool_step or self.live_tools or self.server_history)
        return alone and 0 < len(self.question) <= LONGEST


class Keys:
    """Makes keyed hashes of requests and answers. Not thread safe.

    Args:
        key: what is hashed with: the one of the fingerprints.
        memory: bytes of text that need not be put into one spelling again.
    """

    def __init__(self, key: bytes, memory: int = 16 << 20) -> None:
        self._hash = blake2b(digest_size=_BYTES, key=key[:64]).copy
        self._known: Memo[tuple[str, str, str], bytes] = Memo(memory)

    def asked(self, prompt: Prompt, request: Mapping[str, Any]) -> Asked:
        """What ``request`` asks; ``prompt`` is the same taken apart."""
        front, before, last = _split(prompt)
        question = "\n".join([s.text for s in last if s.kind == "text"])
        attached = [s for s in last if s.kind in _ATTACHED]
        tenant = next(filter(None, map(text, _TENANT.values(request))), "")
        system = self._all([self._said(s) for s in front if s.level == "system"])
        tools = self._all(sorted([self._tool(s.canonical or s.text) for s in front if s.level == "tools"]))
        set_ = self.keyed(parameters(request) + _settings(prompt))
        said = self._all(map(self._said, before)) if before else b""
        beside = self._all(map(self._said, attached)) if attached else b""
        head = [self.keyed(prompt.model), self.keyed(tenant), self.keyed(canonical(question))]
        return Asked(
            key=self._all([*head, system, tools, set_, said or _NONE, beside or _NONE]),
            system=system,
            tools=tools,
            parameters=set_,
            before=said,
            question=question,
            attached=beside,
            tenant=tenant,
            temperature=_temperature(request),
            choices=max((count(n) or 1 for n in _CHOICES.values(request)), default=1),
            streamed=prompt.stream,
            live_tools=runs_tools(request),
            tool_step=bool(prompt.segments) and prompt.segments[-1].kind == "tool_result",
            server_history=HISTORY in prompt.settings or bool(prompt.cached_content),
            scope=self._all([system, tools, set_, head[1]]),
        )

    def keyed(self, text_: str) -> bytes:
        """Keyed hash of a text as it is."""
        state = self._hash()
        state.update(text_.encode("utf-8", "surrogatepass"))
        return state.digest()

    def answer_key(self, answer: Answer) -> str:
        """Keyed hash of an answer's words in one spelling, 32 hex digits; "" where it has none, or acts beside them."""
        return self.keyed(canonical(answer.text)).hex() if answer.text and not answer.acts else ""

    def reuse(self, asked: Asked, answer: Answer | None) -> Reuse:
        """What may be kept of a call whose text may not."""
        return Reuse(
            exact_key=asked.key.hex(),
            answer_key=self.answer_key(answer) if answer else "",
            answer_kind=answer.kind if answer else "",
            temperature=asked.temperature,
            choices=max(asked.choices, answer.choices if answer else 1),
            streamed=asked.streamed,
            live_tools=asked.live_tools,
        )

    def _all(self, hashes: Iterable[bytes]) -> bytes:
        """One hash of several, in their order."""
        state = self._hash()
        state.update(b"".join(hashes))
        return state.digest()

    def _said(self, segment: Segment) -> bytes:
        """Hashes of who said something in which form, and of what, in one spelling."""
        at = segment.role, segment.kind, segment.text
        known = self._known.get(at)
        if known is None:
            made = self.keyed(f"{segment.role}\0{segment.kind}") + self.keyed(_spelled(segment))
            known = self._known.put(at, made, len(segment.text) + _OVERHEAD)
        return known

    def _tool(self, definition: str) -> bytes:
        at = "", "tool", definition
        known = self._known.get(at)
        return self._known.put(at, self.keyed(definition), len(definition) + _OVERHEAD) if known is None else known


def parameters(request: Mapping[str, Any]) -> str:
    """The request's fields that shape the answer, as one comparable text."""
    found = {name: request[name] for name in _FIELDS if name in request}
    return parts.canonical(parts.compact(found))


def runs_tools(request: Mapping[str, Any]) -> bool:
    """Whether the provider runs a tool by itself."""
    if any(request.get(name) for name in _LIVE["fields"]):
        return True
    return any(
        text(tool.get("type")).startswith(_LIVE_TYPES) or not tool.keys().isdisjoint(_LIVE["keys"])
        for tool in map(mapping, items(request.get("tools")))
    )


def _temperature(request: Mapping[str, Any]) -> float | None:
    found = map(number, _TEMPERATURE.values(request))
    return max((heat for heat in found if heat is not None), default=None)


def _spelled(segment: Segment) -> str:
    if segment.kind in _ATTACHED:
        return segment.text
    return canonical(_sorted(segment.text) if segment.kind == "tool_call" else segment.text)


def _sorted(said: str) -> str:
    """JSON with its keys sorted; what is none stays as it is."""
    try:
        return parts.canonical(said)
    except ValueError:
        return said


def _settings(prompt: Prompt) -> str:
    """The settings of a request as one comparable text."""
    found = sorted(prompt.settings.items())
    return "\n".join(f"{name}={parts.canonical(value)}" for name, value in found if name != HISTORY)


def _split(prompt: Prompt) -> tuple[list[Segment], list[Segment], list[Segment]]:
    """Segments in front of the conversation, the conversation, and the last user message."""
    front = [s for s in prompt.segments if s.level != "messages"]
    messages = [s for s in prompt.segments if s.level == "messages"]
    last = len(messages)
    while last and messages[last - 1].role == "user" and messages[last - 1].kind != "tool_result":
        last -= 1
    return front, messages[:last], messages[last:]
