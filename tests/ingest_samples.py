"""Makes the files that ingest tests read: OTLP documents from plain attributes, and what reading bytes gives."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from prefixscope.analyzer.ingest import Observed, Rejected, read
from prefixscope.otel_plugin.fingerprint import Fingerprinter

START_NS = 1_790_000_000 * 10**9
TRACE, SPAN, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
KEY = b"a key for tests that is not secret"

CALL = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4.1",
    "gen_ai.usage.input_tokens": 2006,
    "gen_ai.usage.output_tokens": 100,
    "gen_ai.usage.cache_read.input_tokens": 1920,
}
"""A span of the current conventions."""

ENTRY = {
    "timestamp": "2026-09-21T13:33:20Z",
    "request": {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hello"}]},
    "response": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "gpt-4.1-2025-04-14",
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}},
    },
}
"""A line of a request log."""


def any_value(value: Any) -> dict[str, Any]:
    """A plain value as an OTLP AnyValue, as the specification's JSON writes it."""
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(v) for v in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": pairs(value)}}
    name = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}.get(type(value))
    return {name: str(value) if name == "intValue" else value} if name else {}  # {} is null


def pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def raw_span(attributes: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "traceId": TRACE,
        "spanId": SPAN,
        "parentSpanId": PARENT,
        "name": "chat",
        "kind": 3,
        "startTimeUnixNano": str(START_NS),
        "endTimeUnixNano": str(START_NS + 1_500_000_000),
        "attributes": pairs(attributes),
        "status": {},
        **fields,
    }


def otlp(*spans: Mapping[str, Any], scope: str = "", version: str = "", service: str = "shop") -> dict[str, Any]:
    """A trace document; ``spans`` are attributes, or raw spans where they have a traceId."""
    raw = [dict(s) if "traceId" in s else raw_span(s) for s in spans]
    scoped = {"scope": {"name": scope, "version": version}, "spans": raw}
    return {"resourceSpans": [{"resource": {"attributes": pairs({"service.name": service})}, "scopeSpans": [scoped]}]}


def lines(*documents: Any) -> bytes:
    return b"".join(json.dumps(d).encode() + b"\n" for d in documents)


def read_bytes(tmp_path: Path, content: bytes, name: str = "input") -> tuple[list[Observed], list[Rejected]]:
    """What reading a file with that content gives."""
    path = tmp_path / name
    path.write_bytes(content)
    found = list(read([path], Fingerprinter(KEY)))
    return [f for f in found if isinstance(f, Observed)], [f for f in found if isinstance(f, Rejected)]


def one_call(tmp_path: Path, document: Any) -> Observed:
    """The only call in ``document``."""
    [call], rejected = read_bytes(tmp_path, lines(document))
    assert not rejected, rejected
    return call
