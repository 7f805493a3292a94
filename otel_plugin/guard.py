"""The host application always wins: an error of ours is logged once, counted and swallowed.

Set ``PREFIXSCOPE_RERAISE=1`` (as this project's own tests do) and errors are raised instead.
"""

import logging
from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from traceback import extract_tb
from typing import ParamSpec, TypeVar

logger = logging.getLogger("prefixscope")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Guard:
    """Stands between our errors and the application. ``errors`` counts what was swallowed, by place."""

    def __init__(self, *, reraise: bool = False) -> None:
        self.reraise = reraise
        self.errors: Counter[str] = Counter()
        self._told: set[str] = set()

    def caught(self, place: str, error: BaseException) -> None:
        """Takes note of ``error``; to be called in an except clause. Raises it again if asked to."""
        self.errors[place] += 1
        what = f"{type(error).__name__} at {_where(error)}"
        self.tell(place, f"prefixscope: {place} failed ({what}); the application is not affected")
        if self.reraise:
            raise error

    def tell(self, topic: str, message: str) -> None:
        """Logs ``message`` as a warning, once for each topic. Never an error's own message: it may quote a prompt."""
        if topic not in self._told:
            self._told.add(topic)
            logger.warning(message)

    def runs(self, place: str, function: Callable[_P, _R]) -> Callable[_P, _R | None]:
        """``function``, giving None where it would raise."""

        @wraps(function)
        def guarded(*args: _P.args, **kwargs: _P.kwargs) -> _R | None:
            try:
                return function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - what may go wrong is not known, whom it must not hurt is
                self.caught(place, error)
                return None

        return guarded


def _where(error: BaseException) -> str:
    """File and line of the innermost frame: what can be said of an error without its message."""
    frames = extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
