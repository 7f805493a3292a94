"""Labels by hand: a queue of pairs as CSV to fill in, and what was filled in read back.

The queue holds the questions and answers in clear text: it is written only where the user asks for it.
"""

import csv
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final

from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.semantic.words import canonical

COLUMNS: Final = (
    "pair", "same_answer", "suggested", "cosine", "overlap", "reasons", "calls", "usd",
    "question", "earlier_question", "answer", "earlier_answer",
)  # fmt: skip
_YES: Final = frozenset({"yes", "y", "true", "1", "same"})
_NO: Final = frozenset({"no", "n", "false", "0", "different"})
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def pair_name(key: bytes, one: str, other: str) -> str:
    """16 hex digits that name a pair of questions, whichever came first; the same in every run with one key."""
    texts = sorted((canonical(one), canonical(other)))
    return blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8, key=key[:64]).hexdigest()


def write(path: Path, rows: Iterable[Mapping[str, object]]) -> int:
    """Writes the queue; a cell that a spreadsheet would take for a formula gets an apostrophe. Returns the rows."""
    cells = [{name: _harmless(row.get(name, "")) for name in COLUMNS} for row in rows]
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(cells)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    return len(cells)


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def read(path: Path) -> dict[str, bool]:
    """Pair name -> whether one answer does for both; rows that are not filled in are left out.

    Raises:
        InputError: not a label file, or a cell that is neither yes nor no.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if not {"pair", "same_answer"} <= set(reader.fieldnames or ()):
                raise InputError(f"{path}: no columns pair and same_answer: is this a queue written by --review?")
            return dict(_label(path, reader.line_num, row) for row in reader if (row["same_answer"] or "").strip())
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _label(path: Path, line: int, row: Mapping[str, str]) -> tuple[str, bool]:
    said = row["same_answer"].strip().lower()
    if said not in _YES | _NO:
        raise InputError(f"{path}:{line}: same_answer is {row['same_answer']!r}: write yes or no, or leave it empty")
    return row["pair"].strip().lstrip("'"), said in _YES
