"""What the page on response caches looks at: logs with their texts, held in memory, or the store, which has none."""

import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import streamlit as st

from prefixscope.analyzer.ingest import expand
from prefixscope.analyzer.report.wording import counted, plain
from prefixscope.analyzer.semantic import analysis
from prefixscope.analyzer.semantic.analysis import Analysis, Options
from prefixscope.analyzer.semantic.bench import Bench
from prefixscope.dashboard import data
from prefixscope.dashboard.command import LOGS_VARIABLE
from prefixscope.dashboard.data import Source
from prefixscope.otel_plugin.keys import load_key

_OWN: Final = "caches_own"  # key of session state: the logs that this session gave
_KNOWN: Final = "caches_known"  # … and the last analyses that it has seen
_MOST_KNOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Looked:
    """Calls to be replayed. ``name`` and ``services`` may come from outside."""

    name: str
    identity: str  # another one where other calls are meant
    services: Sequence[str]
    calls: int
    with_text: bool
    replay: Callable[[Options], Analysis]

    def analysed(self, options: Options) -> Analysis:
        """What response caches would have done; asked twice with the same options, it is computed once."""
        known: OrderedDict[tuple[str, str], Analysis] = st.session_state.setdefault(_KNOWN, OrderedDict())
        asked = self.identity, repr(options)
        if asked not in known:
            known[asked] = self.replay(options)
            while len(known) > _MOST_KNOWN:
                known.popitem(last=False)
        known.move_to_end(asked)
        return known[asked]


def texts() -> Looked | None:
    """The logs of this session, else those of the command line; None where nobody gave any.

    Raises:
        InputError: the command line named logs that are not there, or hold no call.
    """
    own: Looked | None = st.session_state.get(_OWN)
    if own:
        return own
    named = os.environ.get(LOGS_VARIABLE, "")
    return _from_command_line(*_stamped(named)) if named else None


def is_own() -> bool:
    """Whether this session looks at logs that it gave itself."""
    return _OWN in st.session_state


def _stamped(named: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Paths and when each was changed."""
    paths = expand([Path(path) for path in named.split("\n")])
    return tuple(map(str, paths)), tuple(path.stat().st_mtime_ns for path in paths)


@st.cache_resource(max_entries=1, show_spinner="Reading the logs that the command line named")
def _from_command_line(paths: tuple[str, ...], stamps: tuple[int, ...]) -> Looked:
    bench = Bench({Path(path): path for path in paths}, load_key())
    return _of_bench(bench, [Path(path).name for path in paths], repr((paths, stamps)))


def _of_bench(bench: Bench, names: Sequence[str], identity: str) -> Looked:
    told = names[0] if len(names) == 1 else counted(len(names), "file")
    return Looked(told, identity, bench.services, bench.calls, True, bench.analysed)


def of_store(service: str | None) -> Looked:
    """The calls of the store, of one service or of all: fingerprints without a text.

    Raises:
        StoreError: there is no store.
    """
    source = data.current()
    found = data.frame("pages/coverage", since=None, until=None, service=service, provider=None, model=None)
    services = found["service"].unique().sort().to_list()
    name = "this store" if service is None else f"{service} in this store"
    return Looked(
        name, repr(source), services, int(found["calls"].sum()), False, lambda options: _replayed(source, options)
    )


def _replayed(source: Source, options: Options) -> Analysis:
    with data.reading(source.path) as opened:
        return analysis.run(opened, lambda _: None, load_key(), options)


def take_uploaded(uploaded: Sequence[Any], on_bytes: Callable[[int], None]) -> None:
    """Reads uploaded files into the memory of this session; the copies that are read from are gone at once.

    Args:
        uploaded: as ``st.file_uploader`` gives them.
        on_bytes: told how many bytes were read since it was told last.

    Raises:
        InputError: no call was found in them.
    """
    with tempfile.TemporaryDirectory(prefix="prefixscope-logs-") as folder:
        names: dict[Path, str] = {}
        for number, file in enumerate(uploaded):
            kept = Path(folder) / str(number)  # a name of ours: theirs could point anywhere
            kept.write_bytes(file.getvalue())
            names[kept] = _unused(plain(Path(file.name).name), names.values())
        take(names, on_bytes)


def take(names: Mapping[Path, str], on_bytes: Callable[[int], None]) -> None:
    """Reads files, known by these names, into the memory of this session in place of what it had given before."""
    forget()
    st.session_state[_OWN] = _of_bench(Bench(names, load_key(), on_bytes=on_bytes), list(names.values()), token_hex(8))


def _unused(name: str, used: Any) -> str:
    """``log.jsonl``, then ``log.jsonl (2)``."""
    numbered = [name, *(f"{name} ({number})" for number in range(2, len(used) + 2))]
    return next(candidate for candidate in numbered if candidate not in used)


def forget() -> None:
    """Lets go of this session's logs and of all that was found in them."""
    st.session_state.pop(_OWN, None)
    st.session_state.pop(_KNOWN, None)
