"""Who is being called: genai-prices' provider ids from hosts, paths, model names and telemetry names.

The names are data (``providers.toml``); where they disagree the nearest to the wire wins: URL, then the request shape,
then the model's name.
"""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files
from typing import Any

_FACTS: dict[str, Any] = tomllib.loads(files("prefixscope.otel_plugin").joinpath("providers.toml").read_text("utf-8"))
_HOSTS: dict[str, str] = _FACTS["hosts"]
_APIS: dict[str, str] = _FACTS["apis"]
_ALIASES: dict[str, str] = _FACTS["aliases"]
_URLS = [(re.compile(row["pattern"]), str(row["provider"])) for row in _FACTS["url"]]
_MODELS = [(re.compile(row["pattern"]), str(row["provider"])) for row in _FACTS["model"]]
_OPEN_WEIGHTS = frozenset(_FACTS["open_weights"])
_IDS = frozenset((*_HOSTS.values(), *_FACTS["own_ids"], *_FACTS["routed_ids"]))


@lru_cache(maxsize=4096)
def identify(*, host: str = "", path: str = "", model: str = "", api: str = "") -> str:
    """The id of the provider that serves a request, "" when nothing says who.

    A proxy's host is not listed, so the model's name decides; not for open weights, which any server may offer.

    Args:
        host: the host called, without port.
        path: the URL path; gateways name the provider there.
        model: the model as requested; a vendor prefix (``openrouter/anthropic/claude…``) is a router's and is followed.
        api: one of ``segments.APIS``.
    """
    found = _by_url(host.lower(), path.partition("?")[0]) or _APIS.get(api, "")
    if found:
        return found
    vendor = _by_model(model.lower())
    return "" if host and vendor in _OPEN_WEIGHTS else vendor


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """The id of a provider as telemetry names it: ``aws.bedrock`` -> ``aws``; "" when the name is not known."""
    bare = name.strip().lower()
    found = _ALIASES.get(bare, bare)
    if found in _IDS:
        return found
    vendor = re.split(r"[./]", bare, maxsplit=1)[0]  # the AI SDK writes openai.responses, anthropic.messages
    return canonical(vendor) if vendor != bare else ""


def _by_url(host: str, path: str) -> str:
    for pattern, provider in _URLS:
        if found := pattern.search(host + path):
            return canonical(provider.format(**found.groupdict()))
    labels = host.split(".")
    suffixes = (".".join(labels[start:]) for start in range(len(labels)))
    return next((_HOSTS[suffix] for suffix in suffixes if suffix in _HOSTS), "")


def _by_model(model: str) -> str:
    for pattern, provider in _MODELS:
        if pattern.match(model):
            return provider
    vendor, slash, _ = model.partition("/")
    return canonical(vendor) if slash else ""
