"""What a person judged in this session: kept on every page, read from queues and written to them."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import streamlit as st

from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.semantic import labels as label_files
from prefixscope.analyzer.semantic.analysis import Analysis, review_rows
from prefixscope.analyzer.semantic.relabelled import relabelled

FILE: Final = "semantic-cache-review.csv"
_LABELS: Final = "caches_labels"  # key of session state: pair -> whether one answer does for both
_ORDER: Final = "caches_order"  # … the pairs that were judged or skipped here, the last at the end


def labels() -> dict[str, bool]:
    """Pair -> whether one answer does for both."""
    return dict(st.session_state.get(_LABELS, {}))


def seen() -> list[str]:
    """Pairs that were judged or skipped here, in that order."""
    return list(st.session_state.get(_ORDER, []))


def judge(pair: str, same: bool) -> None:
    take_in({pair: same})
    skip(pair)


def skip(pair: str) -> None:
    st.session_state[_ORDER] = [*seen(), pair]


def undo() -> None:
    """Takes the last judgement, or skipping, back."""
    *before, pair = seen()
    st.session_state[_ORDER] = before
    st.session_state[_LABELS] = {name: same for name, same in labels().items() if name != pair}


def take_in(read: Mapping[str, bool]) -> None:
    st.session_state[_LABELS] = {**labels(), **read}


def rows(found: Analysis, now: Mapping[str, bool]) -> list[dict[str, object]]:
    """The whole queue, the most urgent first, with these labels in it; at its end those of other traffic."""
    queue = review_rows(relabelled(found, now))
    strangers = now.keys() - {row["pair"] for row in queue}
    return queue + [{"pair": pair, "same_answer": "yes" if now[pair] else "no"} for pair in sorted(strangers)]


def as_csv(found: Analysis, now: Mapping[str, bool]) -> bytes:
    """The queue as ``prefixscope semantic --review`` writes it and ``--labels`` reads it."""
    with tempfile.TemporaryDirectory(prefix="prefixscope-review-") as folder:
        path = Path(folder) / FILE
        label_files.write(path, rows(found, now))
        return path.read_bytes()


def read(uploaded: Any) -> dict[str, bool]:
    """The labels in an uploaded queue (name, getvalue()).

    Raises:
        InputError: it is no queue, or a cell is neither yes nor no; it names the file as its owner does.
    """
    with tempfile.TemporaryDirectory(prefix="prefixscope-review-") as folder:
        path = Path(folder) / FILE
        path.write_bytes(uploaded.getvalue())
        try:
            return label_files.read(path)
        except InputError as error:
            raise InputError(str(error).replace(str(path), uploaded.name)) from error
