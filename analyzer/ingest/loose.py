"""Values of JSON that nobody has checked: every function takes anything and answers with the type it promises."""

import base64
import json
import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson

from prefixscope.otel_plugin.loose import MAX_COUNT, count, items, mapping, number, text

__all__ = [
    "MAX_COUNT",
    "NotJsonError",
    "count",
    "embedded",
    "hex_id",
    "items",
    "loads",
    "mapping",
    "moment",
    "number",
    "text",
    "url",
]

_EARLIEST_NS = 1_262_304_000 * 10**9  # 2010: before it nobody billed tokens, so a clock or a unit is wrong
_LATEST_NS = 4_102_444_800 * 10**9  # 2100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_NS = ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3), (1e20, 1))  # upper bound of s, ms, µs, ns since 1970
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?\Z")
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]+)\Z")
_BASE64_LENGTH = {16: 12, 32: 24}  # hex digits -> characters of the same bytes in base64, padding included
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJsonError(ValueError):
    """The text is not JSON; the message says why, for a person."""


def loads(data: bytes | str) -> Any:
    """``data`` as Python values.

    orjson where it can. The standard library takes over for what orjson refuses: NaN, infinities, lone surrogates.

    Raises:
        NotJsonError: it is not JSON, not UTF-8, or nested too deeply.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        return _loads_leniently(data, str(error))


def _loads_leniently(data: bytes | str, complaint: str) -> Any:
    try:
        return _without_surrogates(json.loads(data))
    except UnicodeDecodeError:
        raise NotJsonError("not UTF-8: write the file as UTF-8") from None
    except RecursionError:
        raise NotJsonError("nested too deeply to be a call") from None
    except ValueError:
        raise NotJsonError(f"not JSON: {complaint}") from None


def _without_surrogates(value: Any) -> Any:
    """``value`` with lone surrogates replaced: they cannot be written as UTF-8, so no provider has ever seen them."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(v) for v in value]
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(v) for k, v in value.items()}
    return value


def embedded(value: Any) -> Any:
    """``value``, parsed where it is JSON in a string; None where that string is not JSON."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except NotJsonError:
        return None


def url(value: Any) -> SplitResult:
    """A URL taken apart; one that is none has only empty parts."""
    try:
        return urlsplit(text(value))
    except ValueError:  # an IPv6 address without its closing bracket
        return urlsplit("")


def moment(value: Any) -> int | None:
    """A time as UTC nanoseconds since 1970: ISO 8601, or seconds, ms, µs or ns since 1970, told by magnitude.

    A time without zone is taken as UTC. Times before 2010 or after 2100 are None: their unit or clock is wrong.
    """
    if isinstance(value, str):
        found = _epoch_ns(_as_number(value)) if _DECIMAL.match(value) else _iso_ns(value)
    else:
        found = _epoch_ns(value)
    return found if found is not None and _EARLIEST_NS <= found < _LATEST_NS else None


def _as_number(value: str) -> int | float | None:
    """An integer stays exact: 64-bit nanoseconds do not fit a float."""
    return int(value) if len(value) <= 20 and "." not in value else number(value)


def _epoch_ns(value: Any) -> int | None:
    size = value if type(value) is int else number(value)
    unit = next((ns for bound, ns in _UNITS_NS if size < bound), None) if size is not None else None
    if unit is None or size is None:
        return None
    return size * unit if isinstance(size, int) else round(size * unit / 1000) * 1000  # a float is good to about 1 µs


def _iso_ns(value: str) -> int | None:
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    since = (when if when.tzinfo else when.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def hex_id(value: Any, digits: int) -> str:
    """A trace or span id as ``digits`` lower-case hex digits; "" if it is absent, all zero or not an id.

    Takes hex with or without 0x, protobuf's base64, bytes of a binary export, and the integers of SDK dumps.
    """
    if isinstance(value, bytes):
        found = value.hex()
    elif type(value) is int:
        found = f"{value:0{digits}x}" if value > 0 else ""
    else:
        found = _hex_text(value, digits) if isinstance(value, str) else ""
    return found if len(found) == digits and found.strip("0") else ""


def _hex_text(value: str, digits: int) -> str:
    if len(value) == _BASE64_LENGTH.get(digits) and value.endswith("="):
        try:
            return base64.b64decode(value, validate=True).hex()
        except ValueError:
            return ""
    match = _HEX.match(value)
    return match[1].lower().rjust(digits, "0") if match else ""
