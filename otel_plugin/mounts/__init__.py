"""Mounts: one module per HTTP library, which shows the tap what passes by.

A mount module has one function, ``mount(module, tap)``, which takes the imported library and gives back what undoes it.
It is imported, and mounts, when its library is: a program without that library pays nothing.
"""

from collections.abc import Callable
from functools import partial, wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from wrapt import register_post_import_hook

from prefixscope.otel_plugin.tap import Tap

Undo = Callable[[], None]

LIBRARIES = {
    "aiohttp": "prefixscope.otel_plugin.mounts.aiohttp",
    "botocore.httpsession": "prefixscope.otel_plugin.mounts.botocore",
    "httpx": "prefixscope.otel_plugin.mounts.httpx",
    "httpx2": "prefixscope.otel_plugin.mounts.httpx",
    "requests.adapters": "prefixscope.otel_plugin.mounts.requests",
}
"""Module whose import triggers a mount -> the mount's own module."""


class Mounts:
    """The libraries that are, or will be, shown to ``tap``. Undone once; another capture makes its own."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap
        self._undo: dict[str, Undo] = {}
        for library in LIBRARIES:
            register_post_import_hook(partial(self._mount, library), library)

    @property
    def mounted(self) -> list[str]:
        """The libraries that are there."""
        return sorted(self._undo)

    def undo(self) -> None:
        """Takes everything off again that nobody has wrapped since; what is left passes calls through."""
        while self._undo:
            self._undo.popitem()[1]()

    def _mount(self, library: str, module: ModuleType) -> None:
        if not self._tap.active or library in self._undo:
            return
        try:
            self._undo[library] = import_module(LIBRARIES[library]).mount(module, self._tap)
        except Exception as error:  # noqa: BLE001 - an unknown version of a library must not stop its import
            self._tap.guard.caught(f"mounting {library}", error)


def replace(owner: Any, name: str, tap: Tap, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Undo:
    """Puts ``make(original)`` in place of ``owner.name``, unless it is there already for the same tap.

    Two module names may mean one class (``httpx2.alias_httpx``), and others may wrap it before or after: what is undone
    is only what still stands.
    """
    original = getattr(owner, name)
    if getattr(original, "__prefixscope_tap__", None) is tap:
        return lambda: None
    replacement: Any = wraps(original)(make(original))
    replacement.__prefixscope_tap__ = tap
    setattr(owner, name, replacement)

    def undo() -> None:
        if vars(owner).get(name) is replacement:
            setattr(owner, name, original)

    return undo
