"""Call records as span attributes and back: GenAI conventions where they name it, ``prefixscope.*`` for the rest.

Zero counts and empty texts are left out; ``prefixscope.usage.state`` says whether an absent count means zero.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from typing import Any, get_args

from prefixscope.otel_plugin import codec, embedding
from prefixscope.otel_plugin.record import UNKNOWN, AnswerKind, CallRecord, Embedded, Reuse, Usage

Encoded = Mapping[str, str | int | float | bool]
FINGERPRINT = "prefixscope.fingerprint"  # its presence tells a span of ours
SERVICE = "prefixscope.service"  # of the call, on spans whose resource says whose process it was
_OWN = "prefixscope."
_SHARED = frozenset({"gen_ai.response.id"})  # tells that two spans are of one call
_OPERATION = "gen_ai.operation.name"
_USAGE = "prefixscope.usage."
_STATUS, _RETRIES = "http.response.status_code", "http.request.resend_count"
_KEY = re.compile("(?:[0-9a-f]{32})?")
_LONGEST = 256  # characters of a name
_TEXTS = {
    "provider": "gen_ai.provider.name",
    "model": "gen_ai.request.model",
    "session_id": "gen_ai.conversation.id",
    "api": "prefixscope.api",
    "account": "prefixscope.account",
    "region": "cloud.region",
    "error": "error.type",
    "request_id": "prefixscope.request_id",
    "prompt_name": "gen_ai.prompt.name",
}
_REUSE = {
    "exact_key": "prefixscope.exact.key",
    "answer_key": "prefixscope.exact.answer",
    "answer_kind": "prefixscope.exact.answer_kind",
    "temperature": "gen_ai.request.temperature",
    "choices": "gen_ai.request.choice.count",
    "streamed": "gen_ai.request.stream",
    "live_tools": "prefixscope.exact.live_tools",
}
_VECTOR = {
    "made_by": "prefixscope.embedding.made_by",
    "vector": "prefixscope.embedding.vector",
    "scope_key": "prefixscope.embedding.scope",
    "context_key": "prefixscope.embedding.context",
}
_RENAMED = {"served_model": "gen_ai.response.model", "response_id": "gen_ai.response.id"}
_ALL = (*_TEXTS.values(), *_REUSE.values(), *_RENAMED.values(), _STATUS, _RETRIES, _OPERATION)
_CONVENTIONAL = frozenset(name for name in _ALL if not name.startswith(_OWN))
_USAGE_FIELDS = tuple(f.name for f in fields(Usage) if f.name != "notes" and f.name not in _RENAMED)


def encode(record: CallRecord) -> Encoded:
    """``record`` as flat span attributes; time, ids and service belong to the span and its resource."""
    found: dict[str, Any] = {name: getattr(record, field) for field, name in _TEXTS.items()}
    found |= {name: getattr(record.usage, field) for field, name in _RENAMED.items()}
    found |= {_USAGE + field: getattr(record.usage, field) for field in _USAGE_FIELDS}
    found |= {
        "prefixscope.usage.notes": ",".join(record.usage.notes),
        "prefixscope.ttft_ms": record.ttft_ms,
        _STATUS: record.status,
        "prefixscope.aborted": record.aborted,
        _RETRIES: record.retries,
        FINGERPRINT: codec.pack(record.fingerprint) if record.fingerprint else "",
    }
    kept = {name: value for name, value in found.items() if value}
    if record.reuse is not UNKNOWN:
        kept |= _encoded(record.reuse)
    if record.embedded:
        values = asdict(record.embedded) | {"vector": embedding.encoded(record.embedded.vector)}
        kept |= {name: values[field] for field, name in _VECTOR.items() if values[field]}
    return {_OPERATION: "chat"} | kept


def beside(encoded: Encoded) -> dict[str, Any]:
    """``encode``'s attributes for a span beside another one of the same call: names that are only ours."""
    return {name if _is_own(name) else _OWN + name: value for name, value in encoded.items()}


def decode(attributes: Mapping[str, Any], loads: Callable[[str], Any] = json.loads) -> dict[str, Any]:
    """The fields of ``CallRecord`` that ``encode`` wrote, ready for ``CallRecord(started_ns=…, **fields)``.

    ``service`` is among them only where the call named one of its own.

    ``loads`` parses the fingerprint's JSON; see ``codec.unpack``.

    Raises:
        ValueError: the fingerprint is damaged or of a newer version, or a key is none.
    """
    attributes = _as_encoded(attributes)
    packed = attributes.get(FINGERPRINT)
    service = attributes.get(SERVICE)
    return {
        **({"service": str(service)} if service else {}),
        **{field: str(attributes.get(name, "")) for field, name in _TEXTS.items()},
        "usage": _usage(attributes),
        "ttft_ms": attributes.get("prefixscope.ttft_ms"),
        "status": attributes.get(_STATUS),
        "aborted": bool(attributes.get("prefixscope.aborted", False)),
        "retries": attributes.get(_RETRIES, 0),
        "fingerprint": codec.unpack(packed, loads) if packed else None,
        "instrumentation": "prefixscope",
        "reuse": _reuse(attributes) if _REUSE["exact_key"] in attributes else UNKNOWN,
        "embedded": _embedded(attributes) if _VECTOR["vector"] in attributes else None,
    }


def _encoded(reuse: Reuse) -> dict[str, Any]:
    """What differs from what is not known."""
    values = {name: getattr(reuse, field) for field, name in _REUSE.items()}
    return {name: values[name] for field, name in _REUSE.items() if values[name] != getattr(UNKNOWN, field)}


def _reuse(attributes: Mapping[str, Any]) -> Reuse:
    """What ``_encoded`` wrote; attributes come from outside."""
    found = Reuse(**{field: attributes.get(name, getattr(UNKNOWN, field)) for field, name in _REUSE.items()})
    if not _are_keys(found.exact_key, found.answer_key) or found.answer_kind not in get_args(AnswerKind):
        raise ValueError("what should be keys of a response cache are none")
    return replace(found, streamed=bool(found.streamed), live_tools=bool(found.live_tools))


def _embedded(attributes: Mapping[str, Any]) -> Embedded:
    found = {field: attributes.get(name, "") for field, name in _VECTOR.items()}
    is_name = isinstance(found["made_by"], str) and len(found["made_by"]) <= _LONGEST
    if not is_name or not _are_keys(found["scope_key"], found["context_key"]):
        raise ValueError("what should be keys or a name beside a vector are none")
    return Embedded(**found | {"vector": embedding.decoded(found["vector"])})


def _are_keys(*values: Any) -> bool:
    return all(isinstance(value, str) and _KEY.fullmatch(value) for value in values)


def _is_own(name: str) -> bool:
    return name.startswith(_OWN) or name in _SHARED


def _as_encoded(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """``attributes`` under the names that ``encode`` gives them, whether they are ``beside`` others or not."""
    if _OWN + _OPERATION not in attributes:
        return attributes
    return {_renamed(name): value for name, value in attributes.items()}


def _renamed(name: str) -> str:
    bare = name.removeprefix(_OWN)
    return bare if bare in _CONVENTIONAL else name


def _usage(attributes: Mapping[str, Any]) -> Usage:
    found = {field: attributes.get(_USAGE + field) for field in _USAGE_FIELDS}
    found |= {field: attributes.get(name) for field, name in _RENAMED.items()}
    notes = tuple(filter(None, str(attributes.get("prefixscope.usage.notes", "")).split(",")))
    return Usage(**{field: value for field, value in found.items() if value is not None}, notes=notes)
