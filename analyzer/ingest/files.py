"""Which files are meant by the paths on a command line."""

import glob
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from prefixscope.analyzer.errors import InputError


def expand(paths: Iterable[Path]) -> list[Path]:
    """The files that ``paths`` name, each once, in a stable order.

    A folder stands for every file below it, except hidden ones; a pattern (``*``, ``?``, ``[…]``, ``**``) for what it
    matches.

    Raises:
        InputError: a path does not exist or a pattern matches nothing.
    """
    found: dict[Path, Path] = {}
    for path in paths:
        for file in _files(path):
            found.setdefault(file.resolve(), file)
    return list(found.values())


def _files(path: Path) -> Sequence[Path]:
    if path.is_dir():
        return sorted(_below(path))
    if path.exists():
        return [path]
    if not glob.has_magic(str(path)):
        raise InputError(f"{path}: no such file or folder")
    # glob.glob, not Path.glob: the pattern may be absolute
    matches = [Path(match) for match in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
    if not matches:
        raise InputError(f"{path}: no file matches this pattern")
    return [file for match in matches for file in (sorted(_below(match)) if match.is_dir() else [match])]


def _below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden:
            yield path
