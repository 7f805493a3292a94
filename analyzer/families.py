"""Families: calls that share their biggest static content, whatever stands in front of it.

Sessions do not matter: three hundred one-call sessions that share a system prompt behind a clock are one family.
"""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Bools, Floats, Ids, Ints
from prefixscope.analyzer.traffic import Traffic, model_name, numbered

_EVERYWHERE = 0.98  # of a family's calls


@dataclass(frozen=True, slots=True)
class Families:
    """``of_call`` is the family of each call, -1 where its prompt is unknown or shares nothing."""

    of_call: Ints
    anchor: Ids  # family -> what names it: ``_names``

    def only(self, chosen: Bools) -> "Families":
        """The families of the chosen calls; they keep their numbers."""
        return replace(self, of_call=self.of_call[chosen])

    def name(self, family: int) -> str:
        """A name that is the same in every analysis with one key."""
        return f"{int(self.anchor[family]):016x}"

    def names(self) -> list[str]:
        """For each call the name of its family; "" = none."""
        known = [self.name(family) for family in range(len(self))]
        return [known[family] if family >= 0 else "" for family in self.of_call.tolist()]

    def __len__(self) -> int:
        return len(self.anchor)


@dataclass(frozen=True, slots=True)
class Opening:
    """The part of each prompt in front of the model's first answer: what a program puts into every conversation."""

    rows: Bools  # row -> it belongs to its call's opening
    static: Bools  # row -> more than half of its family's calls hold it in their opening, and it does not fray


def opening_rows(traffic: Traffic) -> Bools:
    """Rows in front of the first one that the model wrote."""
    rows = traffic.rows
    answers = np.flatnonzero(rows.answer)
    first = rows.offsets[1:].copy()
    np.minimum.at(first, rows.call[answers], answers)
    return np.arange(len(rows.atom)) < np.repeat(first, np.diff(rows.offsets))


def find(traffic: Traffic) -> Families:
    """Groups the calls of one service, provider and model by the opening atom that weighs most among them.

    An atom weighs its bytes times the square root of the sessions that hold it (a call without one counts as one): a
    preamble that everybody shares does not swallow the larger prompts behind it, and a document that one session
    repeats does not outweigh its system prompt.
    """
    contents = traffic.contents
    session = numbered(traffic.calls.select(pl.col("session_id"), call=_alone()))
    group = numbered(traffic.calls.select("service", "provider", model=model_name()))
    call, atom = _distinct_pairs(traffic.rows.call, traffic.rows.atom, opening_rows(traffic))
    number = numbered(pl.DataFrame({"group": group[call], "atom": atom}))
    calls_with = np.bincount(number)[number] if len(number) else number
    pairs = ragged.distinct(number * len(traffic) + session[call]) // max(len(traffic), 1)
    sessions_with = np.bincount(pairs)[number] if len(number) else number
    weight = np.where(calls_with > 1, contents.atom_bytes[atom] * np.sqrt(sessions_with), 0.0)
    best = _heaviest(call, weight, len(traffic))
    found = np.flatnonzero(best >= 0)
    _, family = ragged.factorize(number[best[found]])
    of_call = np.full(len(traffic), -1, dtype=np.int64)
    of_call[found] = family
    shared, of_group = np.zeros((2, family.max() + 1 if len(family) else 0), dtype=np.int64)
    shared[family], of_group[family] = atom[best[found]], group[call[best[found]]]
    return Families(of_call, _names(traffic, shared, of_group))


def _names(traffic: Traffic, shared: Ints, group: Ints) -> Ids:
    """Families are named by the longest part of what their calls share: later calls may cut the rest off it.

    Where two of a group have that in common, each is named by all that its calls share.
    """
    marks = traffic.contents.atom_marks[shared]
    same = pl.DataFrame({"group": group, "mark": marks}).is_duplicated().to_numpy()
    return np.where(same, traffic.contents.atom_ids[shared], marks)


def _alone() -> pl.Expr:
    """A number of its own for each call without a session; 0 for the others."""
    return pl.when(pl.col("session_id") == "").then(pl.int_range(1, pl.len() + 1)).otherwise(0)


def opening(traffic: Traffic, families: Families) -> Opening:
    """Tells static rows of the openings from dynamic ones, family by family."""
    rows = traffic.rows
    chosen = opening_rows(traffic)
    at = np.flatnonzero(chosen & (families.of_call[rows.call] >= 0))
    call, atom = rows.call[at], rows.atom[at]
    family = families.of_call[call]
    stride = int(atom.max(initial=0)) + 1
    key, number = ragged.factorize(family * stride + atom)
    holders = np.bincount(ragged.distinct(number * len(traffic) + call) // len(traffic), minlength=len(key))
    size = np.bincount(families.of_call[families.of_call >= 0], minlength=len(families))
    adjacent = np.flatnonzero((np.diff(at) == 1) & (np.diff(call) == 0))
    firm = _firm(holders / size[key // stride], number[adjacent], number[adjacent + 1])
    static = np.zeros(len(chosen), dtype=np.bool_)
    static[at] = firm[number]
    return Opening(chosen, static)


def _firm(share: Floats, left: Ints, right: Ints) -> Bools:
    """Which atoms are static, from the share of the family's calls that hold each and which ones stand side by side.

    Text next to dynamic text is sometimes cut together with it, and then missing in a few calls. What is missing
    somewhere and stands there cannot be counted on: it is dynamic too.
    """
    static = share > 0.5
    everywhere = share >= _EVERYWHERE
    while True:
        frayed = np.zeros(len(share), dtype=np.bool_)
        for here, there in ((left, right), (right, left)):
            frayed[here[static[here] & ~everywhere[here] & ~static[there]]] = True
        if not frayed.any():
            return static
        static &= ~frayed


def _distinct_pairs(call: Ints, atom: Ints, chosen: Bools) -> tuple[Ints, Ints]:
    """Distinct (call, atom) of the chosen rows, sorted: an atom repeated inside a prompt counts once."""
    stride = int(atom.max(initial=0)) + 1
    pairs = ragged.distinct(call[chosen] * stride + atom[chosen])
    return pairs // stride, pairs % stride


def _heaviest(call: Ints, weight: np.ndarray[tuple[int], np.dtype[np.float64]], calls: int) -> Ints:
    """For each call the index of its heaviest pair, -1 where none has weight; the first of equals."""
    best = np.full(calls, -1, dtype=np.int64)
    order = np.lexsort((-np.arange(len(call)), weight, call))
    order = order[weight[order] > 0]
    best[call[order]] = order
    return best
