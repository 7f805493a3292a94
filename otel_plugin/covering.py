"""Whether another instrumentation, or the SDK itself, puts a call's usage on a span of its own.

A backend that sums ``gen_ai.usage.*`` over spans must not count a call twice. What tells it is data (covering.toml).
"""

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

_FACTS: dict[str, Any] = tomllib.loads(files("prefixscope.otel_plugin").joinpath("covering.toml").read_text("utf-8"))
_CONTEXT_KEYS = tuple(_FACTS["context"])
_ATTRIBUTES: Mapping[str, list[str]] = _FACTS["attributes"]
_EXACT_SCOPES = frozenset(_FACTS["scopes"]["exact"])
_SCOPE_STARTS = tuple(_FACTS["scopes"]["starts"])
_AGENTS: Mapping[str, str] = _FACTS["instrumentors"]


def is_covered(context: Context, user_agent: str) -> bool:
    """Whether a call made in ``context`` by a client of that name is reported by somebody else as well."""
    if any(key.startswith(_CONTEXT_KEYS) for key in context):
        return True
    return _describes_call(trace.get_current_span(context)) or _is_instrumented(user_agent.lower())


def active_instrumentors() -> Iterator[str]:
    """The modules of all active instrumentors of model SDKs."""
    for kind in _subclasses(BaseInstrumentor):
        instance = getattr(kind, "_instance", None)
        if instance is not None and instance.is_instrumented_by_opentelemetry and _words(kind.__module__):
            yield kind.__module__


def _describes_call(span: trace.Span) -> bool:
    scope = getattr(getattr(span, "instrumentation_scope", None), "name", "")
    if scope in _EXACT_SCOPES or scope.startswith(_SCOPE_STARTS):
        return True
    attributes: Mapping[str, Any] = getattr(span, "attributes", None) or {}
    return any(attributes.get(name) in values for name, values in _ATTRIBUTES.items())


def _is_instrumented(user_agent: str) -> bool:
    agents = {_AGENTS[word] for module in active_instrumentors() for word in _words(module)}
    return any(agent in user_agent for agent in agents)


def _words(module: str) -> list[str]:
    return [] if module.startswith("prefixscope") else [word for word in _AGENTS if word in module]


def _subclasses(kind: Any) -> Iterator[Any]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)
