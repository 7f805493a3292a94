"""Switches capture on and off: for ``opentelemetry-instrument`` and for programs that do it themselves."""

from collections.abc import Collection
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.guard import logger
from prefixscope.otel_plugin.mounts import Mounts
from prefixscope.otel_plugin.settings import Settings

_NAMES = frozenset(entry.name for entry in fields(Settings))


class PrefixscopeInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Captures the calls to models. Settings come from the environment, and from arguments of their names.

    Nothing of it raises: an exception here would end the auto-instrumentation of everything else.
    """

    capture: Capture | None = None
    mounts: Mounts | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """None: each mount waits for its library."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        try:
            settings, problems = Settings.read(**{name: kwargs[name] for name in _NAMES & kwargs.keys()})
            for problem in problems:
                logger.warning("prefixscope: %s", problem)
            self.capture = Capture(settings)
            self.mounts = Mounts(self.capture.tap)
        except Exception as error:  # noqa: BLE001 - see guard
            logger.warning("prefixscope: capture could not start (%s): nothing is captured", type(error).__name__)

    def _uninstrument(self, **_: Any) -> None:
        if self.mounts is not None:
            self.mounts.undo()
        if self.capture is not None:
            self.capture.close()
        self.capture = self.mounts = None


def instrument(*, http_spans: bool = True, **settings: Any) -> None:
    """Starts to capture the calls to models of this process.

    Args:
        http_spans: switch on OpenTelemetry's instrumentation of httpx and httpx2 as well, if nobody has yet.
        settings: as in ``settings.Settings``, over those of the environment.

    Raises:
        TypeError: there is no setting of that name.
    """
    unknown = settings.keys() - _NAMES
    if unknown:
        raise TypeError(f"no such setting: {', '.join(sorted(unknown))}; there are {', '.join(sorted(_NAMES))}")
    instrumentor = PrefixscopeInstrumentor()
    if not instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.instrument(skip_dep_check=True, **settings)
    if http_spans:
        _instrument_http()


def uninstrument() -> None:
    """Ends the capture: what is in the queue is written, and the libraries are as they were."""
    instrumentor = PrefixscopeInstrumentor()
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


def flush(timeout: float = 5.0) -> bool:
    """Waits until every finished call is written: for functions that are frozen between two requests.

    Returns:
        False if that took longer than ``timeout`` seconds.
    """
    capture = PrefixscopeInstrumentor().capture
    return capture is None or capture.flush(timeout)


def _instrument_http() -> None:
    """Spans of the HTTP requests; ours do not need them, but traces are read better with them."""
    try:
        from opentelemetry.instrumentation import httpx  # noqa: PLC0415 - it imports what it instruments

        for library, name in (("httpx", "HTTPXClientInstrumentor"), ("httpx2", "HTTPX2ClientInstrumentor")):
            kind = getattr(httpx, name, None)
            if kind is not None and find_spec(library) and not kind().is_instrumented_by_opentelemetry:
                kind().instrument()
    except Exception as error:  # noqa: BLE001 - see guard
        logger.warning("prefixscope: HTTP spans could not be switched on (%s)", type(error).__name__)
