"""AWS event stream (application/vnd.amazon.eventstream) -> JSON objects, in the form boto3 gives them.

Frame: total length, headers length, CRC-32 of these eight bytes, headers, payload, CRC-32 of all before; big endian.
Source: botocore.eventstream and smithy.io/2.0/aws/amazon-eventstream.html, checked 2026-11-30.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from struct import Struct, error
from typing import Any

CONTENT_TYPE = "application/vnd.amazon.eventstream"

_PRELUDE = Struct(">III")
_CRC = Struct(">I")
_LENGTH = Struct(">H")
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # header value type -> bytes
_COUNTED_TYPES = (6, 7)  # bytes and string: two bytes of length, then the value


def decode(data: bytes) -> Iterator[dict[str, Any]]:
    """One object per frame: ``{event type: payload}``, or the model's own chunk for InvokeModel's wrapped chunks.

    A frame that tells of an error is ``{"__type": its name}``; its message is left out, since it may quote the prompt.
    Stops at the first frame that is cut short or fails its checksum: what follows cannot be framed.
    """
    position = 0
    while frame := _frame(data, position):
        headers, payload, position = frame
        failed = headers.get(":exception-type") or headers.get(":error-code", "")
        event = {"__type": failed} if failed else _event(headers.get(":event-type", ""), payload)
        if event is not None:
            yield event


def unwrap(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The model's own event inside ``{"chunk": {"bytes": …}}`` or ``{"bytes": …}`` (raw or base64); others as is."""
    chunk = event.get("chunk", event)
    wrapped = chunk.get("bytes") if isinstance(chunk, Mapping) else None
    if not isinstance(wrapped, str | bytes):
        return event
    try:
        raw = wrapped if isinstance(wrapped, bytes) else base64.b64decode(wrapped, validate=True)
    except ValueError:  # not base64: some other field of that name
        return event
    inner = _json(raw)
    return event if inner is None else inner


def _frame(data: bytes, start: int) -> tuple[dict[str, str], bytes, int] | None:
    """Headers, payload and the end of the frame at ``start``; None at the end of sound data."""
    if len(data) - start < _PRELUDE.size + _CRC.size:
        return None
    length, headers_length, prelude_crc = _PRELUDE.unpack_from(data, start)
    head, end = start + _PRELUDE.size, start + length
    sound = zlib.crc32(data[start : start + 8]) == prelude_crc and head + headers_length <= end - _CRC.size
    if not sound or end > len(data):
        return None
    body_end = end - _CRC.size
    if zlib.crc32(data[start:body_end]) != _CRC.unpack_from(data, body_end)[0]:
        return None
    return _headers(data[head : head + headers_length]), data[head + headers_length : body_end], end


def _headers(data: bytes) -> dict[str, str]:
    """The text headers by name; a malformed rest is left out."""
    found: dict[str, str] = {}
    position = 0
    try:
        while position < len(data):
            name_end = position + 1 + data[position]
            name, kind = data[position + 1 : name_end].decode("utf-8", "replace"), data[name_end]
            start, size = name_end + 1, _FIXED_SIZES.get(kind, 0)
            if kind in _COUNTED_TYPES:
                (size,) = _LENGTH.unpack_from(data, start)
                start += _LENGTH.size
                found[name] = data[start : start + size].decode("utf-8", "replace")
            position = start + size
    except (IndexError, error):  # cut short
        return found
    return found


def _event(kind: str, payload: bytes) -> dict[str, Any] | None:
    body = _json(payload)
    if body is None:
        return None
    return dict(unwrap(body)) if kind == "chunk" else {kind: body}


def _json(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):  # not JSON, or nested beyond reason
        return None
    return value if isinstance(value, dict) else None
