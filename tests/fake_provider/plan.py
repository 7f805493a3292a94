"""What a request asks the fake provider to do: one header, the same for every SDK.

The header holds JSON: ``{"scope": "a name", "warm": false, "replies": [{…}, {…}]}``. A scope is a cache, a clock and a
part of the journal of its own. Its n-th request gets the n-th reply, those after the last get the last: a retry is told
from the first attempt by that alone. A warm scope has served its first request before, without the last block.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any

HEADER = "x-fake-plan"


@dataclass(frozen=True, slots=True)
class Reply:
    """How one request is answered. Sizes are bytes of the body as sent, times are seconds."""

    status: int = 200
    retry_after: str = ""
    encoding: str = ""  # gzip, br, zstd, deflate
    split: int = 0  # bytes a chunk; 0 = one chunk an event
    crlf: bool = False  # SSE lines end with CRLF
    delay: float = 0.0  # before the response begins
    pause: float = 0.0  # between chunks
    hold_after: int = 0  # after so many chunks wait until the scope is released; 0 = do not
    abort_after: int = -1  # close the connection after so many bytes; -1 = do not
    fail_after: int = -1  # after so many events send the API's error event and end; -1 = do not
    words: int = 12  # of the answer
    at_ms: int = 0  # when the request arrives, Unix epoch; 0 = a second after the one before


@dataclass(frozen=True, slots=True)
class Plan:
    """The replies to the requests of one scope, in order."""

    scope: str = "default"
    replies: tuple[Reply, ...] = (Reply(),)
    warm: bool = False

    def reply(self, ordinal: int) -> Reply:
        return self.replies[min(ordinal, len(self.replies) - 1)]

    @property
    def headers(self) -> dict[str, str]:
        """What a client sends to have this plan carried out."""
        default = asdict(Reply())
        replies = [{k: v for k, v in asdict(reply).items() if v != default[k]} for reply in self.replies]
        return {HEADER: json.dumps({"scope": self.scope, "warm": self.warm, "replies": replies}, separators=(",", ":"))}


def parse(header: str) -> Plan:
    """The plan in a header; the default plan if there is none.

    Raises:
        TypeError: a name that no ``Reply`` has.
    """
    if not header:
        return Plan()
    found: dict[str, Any] = json.loads(header)
    return Plan(found["scope"], tuple(Reply(**reply) for reply in found["replies"]) or (Reply(),), found["warm"])
