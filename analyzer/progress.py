"""The progress bar on standard error; nothing where that is no terminal."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


@contextmanager
def reading(paths: Sequence[Path]) -> Iterator[Callable[[int], None]]:
    """Gives the function that moves the bar on by some bytes of the files in ``paths``."""
    console = Console(stderr=True)
    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=sum(path.stat().st_size for path in paths if path.is_file()))
        yield lambda size: bar.advance(task, size)
