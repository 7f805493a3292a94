"""CAPTURE: from wire JSON to call records. Light: the standard library and OpenTelemetry, nothing else.

In programs that are not started by ``opentelemetry-instrument``::

    from prefixscope.otel_plugin import attributes, instrument

    instrument(service="shop")
    with attributes(prompt_name="greeting", conversation_id="42"):
        client.chat.completions.create(...)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prefixscope.otel_plugin.instrumentor import PrefixscopeInstrumentor, flush, instrument, uninstrument
    from prefixscope.otel_plugin.naming import attributes

__all__ = ["PrefixscopeInstrumentor", "attributes", "flush", "instrument", "uninstrument"]

_HOMES = {"attributes": "naming"}  # of the others: instrumentor


def __getattr__(name: str) -> Any:
    """Loads the public names when they are used: the audit imports the wire formats alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = import_module(f"{__name__}.{_HOMES.get(name, 'instrumentor')}")
    return getattr(home, name)
