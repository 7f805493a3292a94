"""What a program does with an SDK's answers, and what it sees of them.

A program is written once for synchronous and asynchronous clients: ``wait``, ``entered`` and ``items`` do with either
what one would. On a synchronous client nothing of it suspends, so that ``drive`` needs no event loop.
"""

import inspect
import json
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal

Seen = list[Any]
"""In order: bytes, results as JSON, statuses, headers, and how it ended."""

Ending = Literal["all", "close", "drop"]
"""Read a stream to its end; read one item and close it; read one item and forget it."""

_VARYING = {"date", "server"}  # headers


def drive(program: Coroutine[Any, Any, Seen]) -> Seen:
    """Run a program that uses a synchronous client only."""
    try:
        program.send(None)
    except StopIteration as stop:
        return list(stop.value)
    raise AssertionError("a synchronous client has waited for an event loop")


async def wait(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


class entered(AbstractAsyncContextManager[Any]):  # noqa: N801 - used as a function
    """``with`` or ``async with``, whichever ``manager`` is made for."""

    def __init__(self, manager: Any) -> None:
        self._manager = manager

    async def __aenter__(self) -> Any:
        return await wait(self._call("enter"))

    async def __aexit__(self, *error: object) -> Any:
        return await wait(self._call("exit", *error))

    def _call(self, what: str, *args: Any) -> Any:
        kind = type(self._manager)
        method = getattr(kind, f"__a{what}__", None) or getattr(kind, f"__{what}__")
        return method(self._manager, *args)


async def items(iterable: Any, seen: Seen, ending: Ending = "all") -> None:
    """Iterate, and stop as told."""
    iterator = aiter(iterable) if hasattr(iterable, "__aiter__") else iter(iterable)
    try:
        while True:
            seen.append(shown(await anext(iterator) if hasattr(iterator, "__anext__") else next(iterator)))
            if ending != "all":
                break
    except (StopIteration, StopAsyncIteration):
        return
    if ending == "close":
        await _close(iterable)


async def _close(iterable: Any) -> None:
    for name in ("aclose", "close"):
        if hasattr(iterable, name):
            await wait(getattr(iterable, name)())
            return
    await entered(iterable).__aexit__(None, None, None)


def shown(value: Any) -> Any:
    """``value`` as something that can be compared."""
    if hasattr(value, "model_dump_json"):
        # google-genai's response has the headers in it, with the date; OpenAI's are of other types than they declare
        return value.model_dump_json(exclude={"sdk_http_response"}, warnings=False)
    return json.dumps(value, default=repr, sort_keys=True) if isinstance(value, dict) else value


def headers(found: Any) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in found.items() if str(name).lower() not in _VARYING}
