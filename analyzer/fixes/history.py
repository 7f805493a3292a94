"""A conversation that is only ever added to."""

import numpy as np

from prefixscope.analyzer import ragged
from prefixscope.analyzer.families import Families
from prefixscope.analyzer.prompts import MESSAGES, Prompts
from prefixscope.analyzer.ragged import Bools, Ints
from prefixscope.analyzer.traffic import Traffic, numbered


def keep_history(traffic: Traffic, families: Families, where: Bools) -> Traffic:
    """Each call of a session sends what the call before it sent, as it was, and then what is new.

    What is new is what stands behind the last segment that both calls hold. Where they share no more than their
    beginning, the conversation was begun anew or summed up, and is left as it is.
    """
    prompts = traffic.prompts
    level = traffic.contents.level
    segments: list[Ints] = np.split(prompts.segment, prompts.offsets[1:-1])
    markers: list[Ints] = np.split(prompts.marker_ms, prompts.offsets[1:-1])
    sent, kept_marks = list(segments), list(markers)
    altered = np.zeros(len(traffic), dtype=np.bool_)
    for before, call in _successions(traffic, families):
        if not where[call]:
            continue
        shared = _shared(segments[before], segments[call])
        if shared == len(segments[before]) and not altered[before]:
            continue
        known = np.flatnonzero(np.isin(segments[call][shared:], segments[before][shared:]))
        goes_on = shared == len(segments[before])
        if not goes_on and (not len(known) or level[segments[before][shared]] != MESSAGES):
            continue
        new_from = shared if goes_on else shared + int(known[-1]) + 1
        front = np.zeros(len(sent[before]), dtype=np.int64)
        head = min(shared, len(front))
        front[:head] = markers[call][:head]
        front[-1:] = np.maximum(front[-1:], markers[call][head:new_from].max(initial=0))
        altered[call] = True
        sent[call] = np.concatenate([sent[before], segments[call][new_from:]])
        kept_marks[call] = np.concatenate([front, markers[call][new_from:]])
    lengths = np.array([len(segment) for segment in sent], dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    changed = Prompts(ragged.offsets_of(lengths), np.concatenate([empty, *sent]), np.concatenate([empty, *kept_marks]))
    return traffic.with_prompts(changed)


def _successions(traffic: Traffic, families: Families) -> list[tuple[int, int]]:
    """Calls with the one before them in the same session and family, in time order."""
    session = numbered(traffic.calls.select("session_id"))
    named = (traffic.calls["session_id"] != "").to_numpy() & (families.of_call >= 0)
    thread = session * (len(families) + 1) + families.of_call
    latest: dict[int, int] = {}
    found = []
    for call in np.flatnonzero(named).tolist():
        key = int(thread[call])
        if key in latest:
            found.append((latest[key], call))
        latest[key] = call
    return found


def _shared(left: Ints, right: Ints) -> int:
    """How many segments two prompts have in common at their beginning."""
    length = min(len(left), len(right))
    differs = np.flatnonzero(left[:length] != right[:length])
    return int(differs[0]) if len(differs) else length
