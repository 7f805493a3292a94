"""The names the provider APIs use, read once from ``apis.toml``."""

import re
import tomllib
from importlib.resources import files
from typing import Any

FACTS: dict[str, Any] = tomllib.loads(files("prefixscope.otel_plugin.wire").joinpath("apis.toml").read_text("utf-8"))

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake(camel: str) -> str:
    """``systemInstruction`` -> ``system_instruction``."""
    return _HUMP.sub("_", camel).lower()
