"""One order, and one set, of tools in every request."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.fixes.keys import differing
from prefixscope.analyzer.prompts import TOOLS, Prompts
from prefixscope.analyzer.ragged import Bools, Ids, Ints
from prefixscope.analyzer.traffic import Traffic

_MOST_TOOLS = 2.0  # a union of more than so many times the tools of a usual call is another program


def sort_tools(traffic: Traffic, _: Families, where: Bools) -> Traffic:
    """Every request sends its tools in one order, each with its keys in one order."""
    segment = np.where(_rows_of(where, traffic.prompts), _with_tools_sorted(traffic), traffic.prompts.segment)
    return traffic.with_prompts(replace(traffic.prompts, segment=segment))


def unsorted_calls(traffic: Traffic) -> Bools:
    """Calls whose tools ``sort_tools`` would send otherwise."""
    differs = (_with_tools_sorted(traffic) != traffic.prompts.segment).astype(np.int64)
    return ragged.group_sums(differs, traffic.prompts.offsets) > 0


def pin_tools(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """Every request of a family sends all tools that any of them sends, in one order.

    Which of them a call may use is said by ``tool_choice`` or ``allowed_tools``, which are no part of the tools.
    """
    prompts = traffic.prompts
    union = {
        family: tools
        for family, tools in _unions(traffic, families).items()
        if (families.of_call[where] == family).any()
    }
    pieces, markers, lengths = [], [], np.diff(prompts.offsets).copy()
    is_tool = traffic.contents.level[prompts.segment] == TOOLS
    for call, (start, end) in enumerate(zip(prompts.offsets[:-1], prompts.offsets[1:], strict=True)):
        segment, marker = prompts.segment[start:end], prompts.marker_ms[start:end]
        tools = union.get(int(families.of_call[call])) if where[call] else None
        if tools is not None:
            rest = ~is_tool[start:end]
            of_tools = np.zeros(len(tools), dtype=marker.dtype)
            of_tools[-1] = marker[~rest].max(initial=0)  # a breakpoint behind the tools stays behind them
            segment, marker = np.concatenate([tools, segment[rest]]), np.concatenate([of_tools, marker[rest]])
            lengths[call] = len(segment)
        pieces.append(segment)
        markers.append(marker)
    empty = np.zeros(0, dtype=np.int64)
    changed = Prompts(ragged.offsets_of(lengths), np.concatenate([empty, *pieces]), np.concatenate([empty, *markers]))
    return traffic.with_prompts(changed)


def changing_sets(traffic: Traffic, families: Families) -> Bools:
    """Calls of families that send several sets of tools and could send all of them always."""
    return np.isin(families.of_call, list(_unions(traffic, families)))


def set_ids(traffic: Traffic) -> Ids:
    """For each call an id of its set of tools, whatever their order and that of their keys; 0 = no tools."""
    prompts, contents = traffic.prompts, traffic.contents
    with np.errstate(over="ignore"):
        value = ragged.mix(contents.canonical + np.uint64(1))
        value = np.where(contents.level == TOOLS, value, np.uint64(0))[prompts.segment]
        return ragged.group_sums(value, prompts.offsets)


def _unions(traffic: Traffic, families: Families) -> dict[int, Ints]:
    """Family -> the tools that any of its calls sends, in the order first seen; where sets differ, and not too much."""
    prompts, contents = traffic.prompts, traffic.contents
    of_set = set_ids(traffic)
    found: dict[int, Ints] = {}
    is_tool = contents.level[prompts.segment] == TOOLS
    family = families.of_call[ragged.owners(prompts.offsets)]
    alike = _first_alike(contents.canonical)
    chosen = is_tool & (family >= 0)
    order = np.argsort(family[chosen], kind="stable")
    families_of, tools_of = family[chosen][order], alike[prompts.segment[chosen]][order]
    edges = np.flatnonzero(np.diff(families_of, prepend=-1, append=-1))
    _, set_number = np.unique(of_set, return_inverse=True)
    varies = np.zeros(len(families), dtype=np.bool_)
    varies[families.of_call[differing(set_number, families)]] = True
    with_tools = np.bincount(families.of_call[(of_set != 0) & (families.of_call >= 0)], minlength=len(families))
    for start, end in pairwise(edges.tolist()):
        number = int(families_of[start])
        if not varies[number]:
            continue
        _, first = np.unique(tools_of[start:end], return_index=True)
        union = tools_of[start:end][np.sort(first)]
        usual = (end - start) / max(int(with_tools[number]), 1)
        if len(union) <= _MOST_TOOLS * usual:
            found[number] = union
    return found


def _rows_of(where: Bools, prompts: Prompts) -> Bools:
    return np.repeat(where, np.diff(prompts.offsets))


def _with_tools_sorted(traffic: Traffic) -> Ints:
    """The segments of all prompts: tools in the order in which they were first seen, of those alike the first."""
    prompts, contents = traffic.prompts, traffic.contents
    segment = np.where(contents.level == TOOLS, _first_alike(contents.canonical), np.arange(len(contents.canonical)))
    segment = segment[prompts.segment]
    is_tool = contents.level[segment] == TOOLS
    call = ragged.owners(prompts.offsets)
    place = np.where(is_tool, segment, len(contents.canonical) + np.arange(len(segment)))
    ordered: Ints = segment[np.lexsort((place, ~is_tool, call))]
    return ordered


def _first_alike(values: Ids) -> Ints:
    """For each value the index of its first occurrence."""
    _, first, number = np.unique(values, return_index=True, return_inverse=True)
    return first[number]
