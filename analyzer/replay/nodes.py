"""What can be left out before anything is sorted: prefixes that tell nothing of their own, and those nobody touched.

Both answers come from tables indexed by some bits of the chain ids. Two prefixes that fall into one place are kept
together, which costs a little time and changes no result.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.traffic import Traffic

_LEAST_BITS, _MOST_BITS = 12, 27
_Bits = npt.NDArray[np.uint32]


class NodeSet:
    """Prefixes, as a table of bits: it may hold more than was put into it, never less."""

    def __init__(self, nodes: Ids) -> None:
        self._shift = _shift_for(4 * len(nodes))
        self._table = np.zeros(1 << (64 - int(self._shift)), dtype=np.bool_)
        self._table[_places(nodes, self._shift)] = True

    def holds(self, nodes: Ids) -> Bools:
        return self._table[_places(nodes, self._shift)]


def run_ends(traffic: Traffic, chain: Ids, chosen: Bools) -> Ints:
    """Rows of the chosen calls where the tree of all prefixes branches, or where a prompt ends.

    Whoever sends a prefix between two of those sends the rest of its run too, so that its state is that of the run's
    end.
    """
    shift = _shift_for(len(chain) // 2)
    child = np.zeros(1 << (64 - int(shift)), dtype=np.uint32)
    forks = np.zeros(len(child), dtype=np.bool_)
    for _, place, following in _steps(traffic, chain, chosen, shift):
        child[place] = following  # any one of them
    for _, place, following in _steps(traffic, chain, chosen, shift):
        forks[place[child[place] != following]] = True
    found = [at[forks[place] | (following == 0)] for at, place, following in _steps(traffic, chain, chosen, shift)]
    return np.concatenate([np.zeros(0, dtype=np.int64), *found])


def _steps(traffic: Traffic, chain: Ids, chosen: Bools, shift: np.uint64) -> Iterator[tuple[Ints, Ids, _Bits]]:
    """Slice by slice: rows of the chosen calls, their places in a table, and some bits of what follows; 0 = nothing."""
    for at, call in chosen_rows(traffic, chosen):
        node = chain[at]
        following = np.zeros(len(at), dtype=np.uint32)
        following[:-1] = np.where(call[1:] == call[:-1], node[1:].astype(np.uint32) | np.uint32(1), 0)
        yield at, _places(node, shift), following


def chosen_rows(traffic: Traffic, chosen: Bools) -> Iterator[tuple[Ints, Ints]]:
    """The rows of the chosen calls, slice by slice, and the call of each; a call is never cut."""
    offsets = traffic.rows.offsets
    for begin, end in ragged.slices(offsets):
        kept = np.repeat(chosen[begin:end], np.diff(offsets[begin : end + 1]))
        call = np.repeat(np.arange(begin, end, dtype=np.int32), np.diff(offsets[begin : end + 1]))
        at = np.arange(offsets[begin], offsets[end])
        yield (at, call) if kept.all() else (at[kept], call[kept])


def _shift_for(entries: int) -> np.uint64:
    bits = min(max(entries.bit_length() + 1, _LEAST_BITS), _MOST_BITS)
    return np.uint64(64 - bits)


def _places(nodes: Ids, shift: np.uint64) -> Ids:
    return nodes >> shift
