"""Vectors instead of questions, for those who switch it on: made by a function of theirs, on the worker's thread.

A vector can be turned back into words to some degree, and no key protects it: it is nearer to text than to a hash.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any, Final

from opentelemetry.instrumentation.utils import suppress_instrumentation

from prefixscope.otel_plugin import embedding
from prefixscope.otel_plugin.asked import Asked
from prefixscope.otel_plugin.calls import Call
from prefixscope.otel_plugin.embedding import Embed
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.record import Embedded
from prefixscope.otel_plugin.tap import Tap

_LONGEST: Final = 256  # characters of a function's name


class Vectors:
    """Adds vectors to calls whose question can be compared by its meaning.

    Args:
        named: the function, or where it is: ``module:function``.
        guard: takes errors; what had a part in them goes without a vector.

    Raises:
        ImportError, AttributeError, ValueError: there is no such function.
        TypeError: it cannot be called.
    """

    def __init__(self, named: str | Embed, guard: Guard) -> None:
        found: Any = resolve_name(named) if isinstance(named, str) else named
        if not callable(found):
            raise TypeError(f"{named!r} is no function")
        self.name = (named if isinstance(named, str) else _name(found))[:_LONGEST]
        self._embed: Embed = found
        self._made = guard.runs("making vectors of questions", self._vectors_of)
        self._packed = guard.runs("keeping a vector", embedding.packed)

    def added(self, calls: Sequence[Call]) -> list[Call]:
        """``calls`` with their vectors; their questions are embedded together."""
        asked = {at: call.asked for at, call in enumerate(calls) if call.asked and call.asked.comparable}
        made = self._made([one.question for one in asked.values()]) if asked else ()
        found = list(calls)
        for (at, one), vector in zip(asked.items(), made or (), strict=False):
            if (kept := self._packed(vector)) is not None:
                found[at] = calls[at]._replace(record=replace(calls[at].record, embedded=self._embedded(one, kept)))
        return found

    def _vectors_of(self, questions: list[str]) -> Sequence[Sequence[float]]:
        """What the function sends to make them is no call of the application's."""
        with ExitStack() as stack:
            stack.enter_context(Tap.sending())
            stack.enter_context(suppress_instrumentation())
            found = self._embed(questions)
        if len(found) != len(questions):
            raise ValueError(f"{len(found)} vectors of {len(questions)} questions")
        return found

    def _embedded(self, asked: Asked, vector: bytes) -> Embedded:
        return Embedded(self.name, vector, asked.scope.hex(), asked.before.hex())


def _name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__qualname__)}"
