"""What the provider knows of each request: the truth that a record is held against."""

import hashlib
from dataclasses import dataclass, field
from typing import Any, Self

from fake_provider.answers import Answer
from fake_provider.plan import Reply
from fake_provider.prompts import Request

_REQUEST_ID = {
    "openai.chat": "x-request-id",
    "openai.responses": "x-request-id",
    "anthropic.messages": "request-id",
    "bedrock.converse": "x-amzn-requestid",
    "bedrock.invoke": "x-amzn-requestid",
}


@dataclass(slots=True)
class Entry:
    """One request. Token counts are those billed, 0 where none were; a call that failed bills nothing."""

    api: str
    model: str
    path: str
    status: int
    streams: bool
    request_id: str
    request_id_header: str
    body: str  # the request's, as it came
    headers: list[str]  # names, sorted
    reports: bool = False  # whether the answer states its usage
    response_id: str = ""  # these three as the answer states them, "" where it does not
    served_model: str = ""
    tier: str = ""
    read: int = 0
    uncached: int = 0
    writes: dict[str, int] = field(default_factory=dict)  # TTL -> tokens
    output: int = 0
    reasoning: int = 0
    ended: bool = False  # the body was sent to its end

    @classmethod
    def of(
        cls, request: Request, reply: Reply, path: str, headers: dict[str, str], body: bytes, *, ordinal: int
    ) -> Self:
        """A request as it has come in, the ``ordinal``-th of its scope."""
        header = _REQUEST_ID.get(request.api, "")
        request_id = "req_" + hashlib.sha256(body + str(ordinal).encode()).hexdigest()[:16] if header else ""
        text, names = body.decode(), sorted(headers)
        return cls(request.api, request.model, path, reply.status, request.streams, request_id, header, text, names)

    def bill(self, given: Answer) -> None:
        """Take over what the answer states."""
        names = {300_000: "5m", 3_600_000: "1h"}
        self.reports, self.response_id = given.request.wants_usage, given.response_id
        self.served_model, self.tier = given.served_model, given.tier
        self.read, self.uncached = given.outcome.read, given.outcome.uncached
        self.writes = {names[ttl]: tokens for ttl, tokens in given.outcome.writes.items()}
        self.output, self.reasoning = given.output, given.reasoning

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Self:
        return cls(**found)
