"""A receiver that runs while a test talks to it, and requests to send."""

import gzip
import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

import polars as pl

from prefixscope.analyzer import store
from prefixscope.analyzer.collect.receiver import Receiver
from prefixscope.analyzer.collect.writer import Writer
from prefixscope.otel_plugin.fingerprint import Fingerprinter

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}
PROMPT = "You are the assistant of a shop for garden tools."
START = 1_796_000_000_000_000_000


@dataclass
class Collector:
    """A running receiver; ``told`` are its messages."""

    receiver: Receiver
    writer: Writer
    path: Path
    told: list[str] = field(default_factory=list)

    def post(
        self, body: Any, path: str = "/v1/traces", headers: Mapping[str, str] = JSON
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer. A body that is not bytes, nor an iterable of them, goes as JSON."""
        connection = http.client.HTTPConnection("127.0.0.1", self.receiver.server_address[1], timeout=20)
        try:
            connection.request("POST", path, json.dumps(body) if isinstance(body, dict) else body, dict(headers))
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()


@contextmanager
def collecting(path: Path, **options: Any) -> Iterator[Collector]:
    """A receiver on a free port that writes into ``path``; when it ends, everything is written."""
    told: list[str] = []
    writer = Writer(path, told.append, **{"gather": 0.01, "patience": 0.0} | options)
    receiver = Receiver(("127.0.0.1", 0), writer, Fingerprinter(b"test"), told.append)
    thread = Thread(target=receiver.serve_forever, kwargs={"poll_interval": 0.01})
    writer.start()
    thread.start()
    try:
        with receiver:
            yield Collector(receiver, writer, path, told)
            receiver.shutdown()
    finally:
        receiver.shutdown()
        thread.join()
        writer.close()


def calls(path: Path) -> pl.DataFrame:
    """The calls in a store."""
    with store.opened(path, read_only=True) as opened:
        return opened.frame("analysis/calls", service=None, since=None, until=None)


def rejected(path: Path) -> list[str]:
    """The reasons in a store's quarantine."""
    with store.opened(path, read_only=True) as opened:
        return [*opened.frame("analysis/quarantine")["reason"]]


def span(number: int = 1, **attributes: Any) -> dict[str, Any]:
    """A call as an instrumentation reports it, in OTLP/JSON."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": f"question {number}"}]}]
    found = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5.1",
        "gen_ai.system_instructions": json.dumps([{"type": "text", "content": PROMPT}]),
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.usage.input_tokens": 2000 + number,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.response.id": f"resp_{number}",
    } | attributes
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "chat gpt-5.1",
        "kind": 3,
        "startTimeUnixNano": str(START + number * 10**9),
        "endTimeUnixNano": str(START + number * 10**9 + 10**8),
        "attributes": [{"key": name, "value": _value(value)} for name, value in found.items()],
    }


def traces(*spans: Mapping[str, Any]) -> dict[str, Any]:
    """An export request."""
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "test"}, "spans": [*spans]}]}]}


def gzipped(body: Mapping[str, Any]) -> bytes:
    return gzip.compress(json.dumps(body).encode())


def _value(value: Any) -> dict[str, Any]:
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
