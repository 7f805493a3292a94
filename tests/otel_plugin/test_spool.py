"""The spool: whole lines in files that can be read at any moment, within a quota."""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from prefixscope.otel_plugin import spool
from prefixscope.otel_plugin.spool import Spool

LINE = b'{"resourceSpans":[]}\n'


def make(folder: Path, *, rotate: int = 1 << 20, age: float = 3600.0, quota: int = 1 << 30) -> Spool:
    return Spool(folder / "spool", rotate=rotate, age=age, quota=quota)


def files(found: Spool) -> list[Path]:
    return sorted(spool.files(found.folder))


def test_nothing_is_made_before_the_first_line(tmp_path: Path) -> None:
    """Neither file nor folder; an empty batch is no line."""
    found = make(tmp_path)
    found.write([])
    found.tick()
    found.finish()
    assert list(tmp_path.iterdir()) == []


def test_the_live_file_can_be_read(tmp_path: Path) -> None:
    """After each write; finished, it has lost its mark and nothing else."""
    found = make(tmp_path)
    found.write([LINE, LINE])
    (live,) = files(found)
    assert live.name.endswith(spool.LIVE)
    assert live.read_bytes() == LINE * 2
    found.write([LINE])
    found.finish()
    (done,) = files(found)
    assert not done.name.endswith(spool.LIVE)
    assert done.read_bytes() == LINE * 3


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    """Folder and files."""
    found = make(tmp_path)
    found.write([LINE])
    modes = [path.stat().st_mode & 0o777 for path in (found.folder, *files(found))]
    assert modes == [0o700, 0o600]


def test_files_rotate_by_size(tmp_path: Path) -> None:
    """A line is never cut in two."""
    found = make(tmp_path, rotate=3 * len(LINE))
    for _ in range(7):
        found.write([LINE])
    found.finish()
    assert sorted(len(path.read_bytes()) // len(LINE) for path in files(found)) == [1, 3, 3]


def test_files_rotate_by_age(tmp_path: Path) -> None:
    """Also when nothing comes any more."""
    found = make(tmp_path, age=0.0)
    found.write([LINE])
    found.tick()
    assert [path.name.endswith(spool.LIVE) for path in files(found)] == [False]


def test_the_oldest_files_make_room(tmp_path: Path) -> None:
    """The folder stays within its quota; what lies there besides is not touched."""
    quota = 40 * len(LINE)
    found = make(tmp_path, rotate=10 * len(LINE), quota=quota)
    found.folder.mkdir()
    (found.folder / "calls.jsonl").write_bytes(b"x" * quota)
    for number in range(20):
        found.write([LINE] * 10)
        newest = files(found)[-1]
        newest.rename(newest.with_name(f"calls-20260101T0000{number:02d}-1-00000000.jsonl"))
    assert sum(path.stat().st_size for path in files(found)) <= quota
    assert found.removed == 16
    assert [path.name[19:21] for path in files(found)] == ["16", "17", "18", "19"]
    assert (found.folder / "calls.jsonl").exists()


def test_a_quota_used_up_by_live_files_is_an_error(tmp_path: Path) -> None:
    """Those of other processes cannot be removed."""
    found = make(tmp_path, quota=100)
    found.folder.mkdir()
    other = found.folder / f"calls-20260101T000000-1-00000000{spool.LIVE}"
    other.write_bytes(b"x" * 100)
    with other.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="quota"):
            found.write([LINE])


class Disk:
    """``os.write`` of a disk that has room for ``room`` bytes."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, file: int, data: Any, write: Callable[[int, Any], int] = os.write) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(file, data[: self.room])
        self.room -= written
        return written


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be written whole is taken back; when there is room again, writing goes on."""
    disk = Disk(5 * len(LINE) // 2)
    monkeypatch.setattr(os, "write", disk.write)
    found = make(tmp_path)
    found.write([LINE])
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        found.write([LINE, LINE])
    assert files(found)[0].read_bytes() == LINE
    disk.room = 1000
    found.write([LINE])
    assert files(found)[0].read_bytes() == LINE * 2


DIES = """
import os, sys
from pathlib import Path
from prefixscope.otel_plugin.spool import Spool
found = Spool(Path(sys.argv[1]), rotate=1 << 20, age=3600, quota=1 << 30)
found.write([b'{"n": 1}\\n', b'{"n": 2}\\n'])
os.write(found._file, b'{"n": ')  # killed in the middle of a line
print("ready", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_process_left_is_finished_by_the_next(tmp_path: Path) -> None:
    """Without the line that was torn; not while that process is alive."""
    found = make(tmp_path)
    command = [sys.executable, "-c", DIES, str(found.folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        (left,) = files(found)
        found.write([b'{"n": 3}\n'])
        found.finish()
        assert left in files(found)
        process.kill()
    found.write([b'{"n": 4}\n'])
    assert left not in files(found)
    assert left.with_name(left.name.replace(".live", "")).read_bytes() == b'{"n": 1}\n{"n": 2}\n'


def test_an_inherited_file_is_the_parents(tmp_path: Path) -> None:
    """After a fork the child writes another one; the parent's lock holds."""
    found = make(tmp_path)
    found.write([LINE])
    (parents,) = files(found)
    child = os.fork()
    if not child:
        found.forget()
        found.write([LINE])
        os._exit(len(files(found)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert parents.read_bytes() == LINE
    found.write([LINE])
    assert parents.read_bytes() == LINE * 2


def test_a_file_that_was_taken_away(tmp_path: Path) -> None:
    """By somebody who collects files too eagerly: nothing is wrong, the next line opens another one."""
    found = make(tmp_path)
    found.write([LINE])
    files(found)[0].unlink()
    found.finish()
    found.write([LINE])
    assert len(files(found)) == 1


def test_processes_do_not_share_a_file(tmp_path: Path) -> None:
    """Names differ although everything happens in one second of one process."""
    made = [make(tmp_path) for _ in range(5)]
    for found in made:
        found.write([LINE])
    assert len(files(made[0])) == 5
