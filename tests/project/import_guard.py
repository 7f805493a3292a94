"""Fails if importing the plugin loads anything heavy. A script of its own: CI runs it where only the bare wheel is."""

import importlib
import pkgutil
import sys

HEAVY = frozenset(
    {
        "altair",
        "duckdb",
        "numpy",
        "orjson",
        "pandas",
        "polars",
        "pyarrow",
        "streamlit",
        "tiktoken",
        "genai_prices",
        "rich",
    }
)


def main() -> str:
    """Imports the plugin with all of its modules and returns what is wrong, or nothing."""
    plugin = importlib.import_module("prefixscope.otel_plugin")
    found = [module.name for module in pkgutil.walk_packages(plugin.__path__, f"{plugin.__name__}.")]
    for name in found:
        importlib.import_module(name)
    loaded = sorted(HEAVY & sys.modules.keys())
    if loaded:
        return f"importing the plugin loads {', '.join(loaded)}"
    expected = ("segments", "usage", "sse", "fingerprint", "call_attributes", "codec", "keys")
    absent = [name for name in expected if f"{plugin.__name__}.{name}" not in found]
    return f"modules that are gone: {', '.join(absent)}" if absent else ""


if __name__ == "__main__":
    sys.exit(main() or None)
