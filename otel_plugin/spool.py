"""The spool: a folder of OTLP-JSON lines, one live file per process, so that many write without a lock.

``calls-<time>-<process>-<random>.live.jsonl`` is being written; finished, it loses the ``.live`` (one atomic rename).
Lines are written whole, in one system call a batch, so that a killed process loses what it had not written yet and at
most tears its last line. Files that a dead process left behind are finished by the next one that starts.
"""

import os
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on Windows: what a dead process left stays as it is, readable
    fcntl = None  # type: ignore[assignment]

LIVE, FINISHED = ".live.jsonl", ".jsonl"
_NAME = re.compile(r"calls-\d{8}T\d{6}-\d+-[0-9a-f]{8}(?:\.live)?\.jsonl")
_TAIL = 1 << 16  # bytes read at a time in search of the last line end


class Spool:
    """Writes lines. Nothing here is guarded: errors of the file system are the caller's to tell.

    Args:
        folder: made when the first line is written, readable by its owner only, like the files in it.
        rotate: bytes after which a file is finished.
        age: seconds after which a file is finished.
        quota: bytes of all spool files in the folder; the oldest finished ones are removed to make room.
    """

    def __init__(self, folder: Path, *, rotate: int, age: float, quota: int) -> None:
        self.folder = folder
        self.removed = 0  # finished files that had to make room
        self._rotate = min(rotate, quota // 4)
        self._age = age
        self._quota = quota
        self.forget()

    def forget(self) -> None:
        """After a fork: the open file is the parent's."""
        inherited: int | None = getattr(self, "_file", None)
        self._file: int | None = None
        self._path = Path()
        self._size = 0
        self._opened = 0.0
        if inherited is not None:
            with suppress(OSError):
                os.close(inherited)  # the parent's own descriptor, and its lock, are not touched by this

    def write(self, lines: Sequence[bytes]) -> None:
        """Appends ``lines``, each with its line end, all or none of them.

        Raises:
            OSError: nothing was written, because the disk is full, the folder read-only, the quota used up…
        """
        data = b"".join(lines)
        if not data:
            return
        file = self._open() if self._file is None else self._file
        try:
            _write_all(file, data)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, self._size)
            raise
        self._size += len(data)
        if self._size >= self._rotate:
            self.finish()

    def tick(self) -> None:
        """Finishes a file that has become old."""
        if self._file is not None and time.monotonic() - self._opened >= self._age:
            self.finish()

    def finish(self) -> None:
        """Ends the live file under its final name; the next line opens another one."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            _finish(self._path, self._size)
        finally:
            os.close(file)

    def _open(self) -> int:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._adopt()
        self._make_room()
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._path = self.folder / f"calls-{stamp}-{os.getpid()}-{secrets.token_hex(4)}{LIVE}"
        self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
        if fcntl is not None:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._size, self._opened = 0, time.monotonic()
        return self._file

    def _adopt(self) -> None:
        """Finishes what processes left behind that are no more: nobody holds the lock of their file."""
        if fcntl is None:
            return
        for path in files(self.folder):
            if path.name.endswith(LIVE):
                with suppress(OSError):  # still written, or another process is quicker
                    _adopt(path)

    def _make_room(self) -> None:
        sizes = {path: size for path in files(self.folder) if (size := _size(path)) is not None}
        excess = sum(sizes.values()) + self._rotate - self._quota
        for path in sorted(sizes, key=lambda path: path.name):
            if excess <= 0:
                return
            if not path.name.endswith(LIVE):
                path.unlink(missing_ok=True)
                self.removed += 1
                excess -= sizes[path]
        if excess > 0:
            raise OSError("the spool's quota is used up by files that are being written")


def files(folder: Path) -> Iterator[Path]:
    """The spool files in ``folder``, live ones included; nothing else that may lie there."""
    with suppress(FileNotFoundError, NotADirectoryError):
        yield from [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]


def _finish(path: Path, size: int) -> None:
    """Gives a live file its final name, or takes it away if there is nothing in it."""
    with suppress(FileNotFoundError):  # somebody was quicker
        if size:
            path.rename(path.with_name(path.name.removesuffix(LIVE) + FINISHED))
        else:
            path.unlink()


def _adopt(path: Path) -> None:
    file = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = _end_of_lines(file)
        os.ftruncate(file, size)
        _finish(path, size)
    finally:
        os.close(file)


def _end_of_lines(file: int) -> int:
    """Where the last whole line ends."""
    end = os.fstat(file).st_size
    while end > 0:
        start = max(0, end - _TAIL)
        os.lseek(file, start, os.SEEK_SET)
        found = os.read(file, end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0


def _write_all(file: int, data: bytes) -> None:
    """A file on disk takes all at once, or less when the disk is about to be full."""
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _size(path: Path) -> int | None:
    with suppress(OSError):
        return path.stat().st_size
    return None
