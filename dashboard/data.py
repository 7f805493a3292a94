"""The store as pages see it: opened for reading, for as long as one question takes, and asked once for each answer."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Final

import polars as pl
import streamlit as st

from prefixscope.analyzer import store
from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.report.wording import clean
from prefixscope.analyzer.store import Store
from prefixscope.dashboard.command import STORE_VARIABLE

_UPLOADED: Final = "uploaded_store"  # key of session state: this session's own store
_PATIENCE: Final = 20.0  # seconds to wait for another session of this server
_LOCKS: Final[dict[Path, Lock]] = {}  # DuckDB gives one process one configuration a file, so its users take turns


@dataclass(frozen=True, slots=True)
class Source:
    """A store at one moment: any change of the file makes another source, so that answers are never stale."""

    path: Path
    stamp: tuple[int, int]  # time of change in ns, bytes


def current() -> Source:
    """The store of this session: the one it uploaded to, else the one of the command line.

    Raises:
        StoreError: there is none.
    """
    path = st.session_state.get(_UPLOADED) or shared()
    try:
        state = path.stat()
    except OSError as error:
        raise StoreError(
            f"{path}: there is no such store. Make one with: prefixscope audit PATH... --db {path}"
        ) from error
    return Source(path, (state.st_mtime_ns, state.st_size))


def shared() -> Path:
    """The store that the command line named."""
    return Path(os.environ.get(STORE_VARIABLE, ""))


def use(path: Path | None) -> None:
    """Makes ``path`` this session's store; None goes back to that of the command line."""
    st.session_state[_UPLOADED] = path


def is_private() -> bool:
    """Whether this session looks at a store of its own."""
    return bool(st.session_state.get(_UPLOADED))


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Waits for this process's other users of the file.

    Raises:
        StoreError: another session has been at it for too long.
    """
    lock = _LOCKS.setdefault(path, Lock())
    if not lock.acquire(timeout=_PATIENCE):
        raise StoreError(f"{path}: another session is writing to it; try again in a moment")
    try:
        yield
    finally:
        lock.release()


@contextmanager
def reading(path: Path) -> Iterator[Store]:
    """The store, read-only and cut off from all other files.

    Raises:
        StoreError: locked by another process, not a store, or of another version.
    """
    with turn(path), store.opened(path, read_only=True) as opened:
        opened.run("pages/lock_down")
        yield opened


@st.cache_data(max_entries=256, show_spinner=False)
def _frame(source: Source, query: str, params: tuple[tuple[str, Any], ...]) -> pl.DataFrame:
    with reading(source.path) as opened:
        return drawable(opened.frame(query, **dict(params)))


@st.cache_data(max_entries=8, show_spinner=False)
def _report(source: Source) -> Mapping[str, Any] | None:
    with reading(source.path) as opened:
        found = opened.last_report()
    return None if found is None else clean(found)


def frame(query: str, **params: Any) -> pl.DataFrame:
    """Result of ``queries/<query>.sql`` on the current store, ready to be drawn."""
    return _frame(current(), query, tuple(sorted(params.items(), key=lambda item: item[0])))


def report() -> Mapping[str, Any] | None:
    """The last report, None before the first; texts in it are printable."""
    return _report(current())


def drawable(found: pl.DataFrame) -> pl.DataFrame:
    """Without Decimals, which charts draw a thousand times too large, and with texts made printable."""
    texts = pl.selectors.string()
    return found.with_columns(
        pl.selectors.decimal().cast(pl.Float64), texts.map_elements(_plain, return_dtype=pl.String, skip_nulls=True)
    )


def _plain(text: str) -> str:
    return str(clean(text))
