"""All ways to call a model that the matrix goes through: SDK × API × method × streaming × sync or async."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from sdks.clients import Clients
from sdks.seeing import Ending, Seen

ENCODINGS = ("gzip", "br", "zstd", "deflate")

Program = Callable[[Clients, dict[str, str], Seen, Ending], Coroutine[Any, Any, None]]
"""What is called with: the clients, headers to send, where to put what it sees, and how to end."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to call a model."""

    name: str
    program: Program
    streams: bool = False
    is_async: bool = False
    stops: bool = False  # obeys the endings "close" and "drop"
    encodings: tuple[str, ...] = ENCODINGS  # that its client undoes
    reads: bool = True  # whether the program reads the whole answer
    bounds: bool = True  # whether what it sees is cut where the server cut it, and not where the network did


async def observed(way: Way, clients: Clients, headers: dict[str, str], ending: Ending = "all") -> Seen:
    """What a program sees that calls a model in this way."""
    seen: Seen = []
    try:
        await way.program(clients, headers, seen, ending)
        seen.append("returned")
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what the program sees
        seen.append(("raised", type(error).__name__, str(error)))
    return seen
