"""Which requests are calls to a model: by path, on known hosts and, where a path says enough, on any host."""

import re
from collections.abc import Iterable
from fnmatch import translate
from typing import NamedTuple

from prefixscope.otel_plugin import providers, segments
from prefixscope.otel_plugin.wire import apis

_TELLING = re.compile(
    r"/chat/completions$|/v1/(?:responses|messages|completions)$|:(?:stream)?[gG]enerateContent$|:(?:raw|streamRaw)Predict$"
    r"|/model/[^/]+/(?:converse|invoke)(?:-stream|-with-response-stream)?$"
)
"""Paths that mean a call to a model on any host; others could be a web application's own."""
_REMEMBERED = 4096  # (host, path) pairs


class _Extra(NamedTuple):
    pattern: re.Pattern[str]
    api: str


class Endpoints:
    """The known endpoints and the user's own.

    Args:
        extra: ``host/path`` patterns with ``*``, each followed by ``=api`` where the path does not tell the request's
            shape: ``llm.example.com/*``, ``*/ai/generate=openai.chat``. A pattern without a slash is a host.

    Raises:
        ValueError: an entry names no API that exists.
    """

    def __init__(self, extra: Iterable[str] = ()) -> None:
        self._extra = [_parsed(entry) for entry in extra]
        self._known: dict[tuple[str, str], str | None] = {}

    def api(self, host: str, path: str) -> str | None:
        """The API a request to ``path`` of ``host`` speaks, "" if its body must tell, None if it is no call."""
        key = host, path.partition("?")[0]
        try:
            return self._known[key]
        except KeyError:
            if len(self._known) >= _REMEMBERED:
                self._known = {}
            found = self._known[key] = self._decide(*key)
            return found

    def _decide(self, host: str, path: str) -> str | None:
        host, told = host.lower(), apis.by_path(path)
        for pattern, api in self._extra:
            if pattern.match(host + path):
                return api or ("" if told is None else told or None)
        known = told and (_TELLING.search(path) or providers.identify(host=host))
        return told if known else None


def _parsed(entry: str) -> _Extra:
    place, _, api = entry.strip().partition("=")
    if api not in segments.APIS:
        known = ", ".join(filter(None, segments.APIS))
        raise ValueError(f"PREFIXSCOPE_ENDPOINTS: {entry!r} names no API; known are {known}")
    return _Extra(re.compile(translate(place if "/" in place else f"{place}/*"), re.IGNORECASE), api)
