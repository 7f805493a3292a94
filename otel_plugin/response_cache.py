"""What is known of response caches: response_cache.toml of this package."""

import tomllib
from importlib.resources import files
from typing import Any

FACTS: dict[str, Any] = tomllib.loads(
    files("prefixscope.otel_plugin").joinpath("response_cache.toml").read_text("utf-8")
)
