"""Whose account a call is billed to and where it runs, by what the request shows; never a credential itself."""

import base64
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

FACTS: dict[str, Any] = tomllib.loads(files("prefixscope.otel_plugin").joinpath("http_facts.toml").read_text("utf-8"))
_ACCOUNT = FACTS["account"]
_SHORT_LIVED = re.compile(_ACCOUNT["short_lived"])
_AWS_KEY = re.compile(_ACCOUNT["aws_key"])
_PATH = re.compile(_ACCOUNT["path"])
_REGION_HOST = re.compile(FACTS["region"]["host"])
_REGION_PATH = re.compile(FACTS["region"]["path"])


def identity(headers: Mapping[str, str], host: str, path: str) -> str:
    """What stays the same as long as the account does: to be hashed with a key, never to be written.

    An API key is that itself. Of credentials that change by the hour, something stable stands in: the AWS account
    number, the Google project, the host of an Azure resource. Empty without a credential.
    """
    credential = first(headers, _ACCOUNT["credentials"])
    if signed := _AWS_KEY.search(credential):
        return _aws_account(signed[1])
    bare = credential.rpartition(" ")[2]
    if not _SHORT_LIVED.match(bare):
        return bare
    project = _PATH.search(path)
    return project[1] if project else first(headers, _ACCOUNT["header"]) or host


def region(host: str, path: str) -> str:
    """The cloud region that host or path name, "" if none."""
    found = _REGION_HOST.search(host) or _REGION_PATH.search(path)
    return found[1] if found else ""


def first(headers: Mapping[str, str], names: Iterable[str]) -> str:
    """The first of the headers that is there and not empty."""
    return next((value for name in names if (value := headers.get(name))), "")


def _aws_account(key_id: str) -> str:
    """The account number in an access key id (base32 behind four letters, 40 bits from the second on), else the id."""
    try:
        number = int.from_bytes(base64.b32decode(key_id[4:20])[:6], "big")
    except ValueError:
        return key_id
    return f"{(number & 0x7FFF_FFFF_FF80) >> 7:012d}"
