"""Call records as span attributes and back: GenAI conventions where they name it, ``prefixscope.*`` for the rest.

Zero counts and empty texts are left out; ``prefixscope.usage.state`` says whether an absent count means zero.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from prefixscope.otel_plugin import codec
from prefixscope.otel_plugin.record import CallRecord, Usage

FINGERPRINT = "prefixscope.fingerprint"  # its presence tells a span of ours
_USAGE = "prefixscope.usage."
_TEXTS = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "session_id": "gen_ai.conversation.id",
    "api": "prefixscope.api",
    "account": "prefixscope.account",
    "region": "cloud.region",
    "error": "error.type",
    "request_id": "prefixscope.request_id",
}
_RENAMED = {"served_model": "gen_ai.response.model", "response_id": "gen_ai.response.id"}
_USAGE_FIELDS = tuple(f.name for f in fields(Usage) if f.name != "notes" and f.name not in _RENAMED)


def encode(record: CallRecord) -> dict[str, str | int | float | bool]:
    """``record`` as flat span attributes; time, ids and service belong to the span and its resource."""
    found: dict[str, Any] = {name: getattr(record, field) for field, name in _TEXTS.items()}
    found |= {name: getattr(record.usage, field) for field, name in _RENAMED.items()}
    found |= {_USAGE + field: getattr(record.usage, field) for field in _USAGE_FIELDS}
    found |= {
        "prefixscope.usage.notes": ",".join(record.usage.notes),
        "prefixscope.ttft_ms": record.ttft_ms,
        "http.response.status_code": record.status,
        "prefixscope.aborted": record.aborted,
        FINGERPRINT: codec.pack(record.fingerprint) if record.fingerprint else "",
    }
    return {"gen_ai.operation.name": "chat"} | {name: value for name, value in found.items() if value}


def decode(attributes: Mapping[str, Any], loads: Callable[[str], Any] = json.loads) -> dict[str, Any]:
    """The fields of ``CallRecord`` that ``encode`` wrote, ready for ``CallRecord(started_ns=…, **fields)``.

    ``loads`` parses the fingerprint's JSON; see ``codec.unpack``.

    Raises:
        ValueError: the fingerprint is damaged or of a newer version.
    """
    packed = attributes.get(FINGERPRINT)
    return {
        **{field: str(attributes.get(name, "")) for field, name in _TEXTS.items()},
        "usage": _usage(attributes),
        "ttft_ms": attributes.get("prefixscope.ttft_ms"),
        "status": attributes.get("http.response.status_code"),
        "aborted": bool(attributes.get("prefixscope.aborted", False)),
        "fingerprint": codec.unpack(packed, loads) if packed else None,
        "instrumentation": "prefixscope",
    }


def _usage(attributes: Mapping[str, Any]) -> Usage:
    found = {field: attributes.get(_USAGE + field) for field in _USAGE_FIELDS}
    found |= {field: attributes.get(name) for field, name in _RENAMED.items()}
    notes = tuple(filter(None, str(attributes.get("prefixscope.usage.notes", "")).split(",")))
    return Usage(**{field: value for field, value in found.items() if value is not None}, notes=notes)
