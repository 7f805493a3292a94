"""Figures of the response caches: wrong answers on labelled pairs, a load test, and the time for 100,000 queries.

Run: ``python tests/bench/semantic.py [pairs|near|load|growth]``; without a name everything. Labelled data is read where
it lies beside the project; what is absent is skipped.
"""

import csv
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # helpers of the tests

from labelled_pairs import DATA, best_alone, conversations, halves, judged, pairs
from prefixscope.analyzer.semantic import load_test, matches, neighbours, tiers
from prefixscope.analyzer.semantic.embedding import MiniLM, Vectors, known_words
from prefixscope.analyzer.semantic.questions import Ints, Questions
from prefixscope.analyzer.semantic.threshold import Labelled, choose, measure
from prefixscope.analyzer.semantic.tiers import Policy
from semantic_traffic import made_up

_BUDGETS = (0.05, 0.01, 0.0)
_SIZES = (25_000, 50_000, 100_000)


def _pairs() -> None:
    """The labelled pairs: cosine alone against ours, on the half that nothing was tuned on."""
    if not DATA.is_dir():
        print("labelled pairs: no data beside the project")
        return
    tuned, held = halves(judged(pairs()))
    print(f"\nlabelled pairs, the half not tuned on: {len(held)} pairs, {sum(p.same for p in held)} should be served")
    _table(tuned, held)
    print("\nconversation pairs, all of them:")
    _conversations(choose(tuned, 0.01, Policy()).policy or Policy())


def _table(tuned: Sequence[Labelled], held: Sequence[Labelled]) -> None:
    should = sum(p.same for p in held)
    traps = len(held) - should
    for threshold in (0.92, 0.95):
        alone = measure(Policy(threshold=threshold, guarded=False), held)
        print(f"  cosine {threshold} alone: {alone.right}/{should} served, {alone.wrong}/{traps} traps served")
    for budget in _BUDGETS:
        choice = choose(tuned, budget, Policy())
        if choice.policy is None:
            print(f"  budget {budget:.0%}: no threshold keeps it")
            continue
        found, bound = measure(choice.policy, held), choice.checked_on.bound
        print(
            f"  budget {budget:.0%}: {found.right}/{should} served, {found.wrong}/{traps} traps served "
            f"(rate {found.rate:.2%}, stated bound {bound:.2%}, holds: {found.rate <= bound}); "
            f"cosine {choice.policy.threshold:.3f}, overlap {choice.policy.overlap}; "
            f"cosine alone at that rate: {best_alone(held, max(found.rate, budget))}"
        )


def _conversations(policy: Policy) -> None:
    """With the last message alone, and with the conversation before it, which may be the same or alike."""
    found = conversations()
    compared, before = judged(found.last), judged(found.before)
    same = sum(p.same for p in compared)
    apart = len(compared) - same
    ways = {
        "cosine 0.92 on the last message alone": (Policy(threshold=0.92, guarded=False), compared),
        "ours on the last message alone": (policy, compared),
        "ours, where the conversation before is the same": (policy, [p for p in compared if p.name in found.equal]),
        "any, where no guard finds a difference before": (Policy(threshold=0.0), before),
        "any, where the cosine before is 0.95": (Policy(threshold=0.95, guarded=False), before),
    }
    for name, (how, rows) in ways.items():
        measured = measure(how, rows)
        print(f"  {name}: {measured.right}/{same} served, {measured.wrong}/{apart} traps served")
    print(f"  best cosine before without a trap: {best_alone(before, 0.0)}/{same} served")


def _near() -> None:
    """Intent data: two queries of different intents never get one answer; of one intent they may or may not."""
    for name, load in (("Banking77", _banking), ("CLINC150", _clinc)):
        if (rows := load()) is not None:
            print(f"\n{name}: each query against its nearest earlier one; wrong = of another intent")
            _nearest(rows)


def _banking() -> list[tuple[str, str]] | None:
    path = DATA / "banking77" / "test.csv"
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["text"], row["category"]) for row in csv.DictReader(file)]


def _clinc() -> list[tuple[str, str]] | None:
    path = DATA / "clinc_oos_data_small.json"
    if not path.is_file():
        return None
    found = json.loads(path.read_text("utf-8"))
    return [(text, intent) for text, intent in found["test"]]


def _nearest(rows: Sequence[tuple[str, str]]) -> None:
    texts, intents = zip(*dict(rows).items(), strict=True)
    alike = _matches(texts)
    found = [_labelled(alike, pair, intents) for pair in _best_of(alike, np.arange(len(alike)))]
    for threshold in (0.92, 0.95):
        alone = measure(Policy(threshold=threshold, guarded=False), found)
        print(f"  cosine {threshold} alone: {alone.served}/{len(texts)} served, {alone.wrong} wrong ({alone.rate:.1%})")
    for budget in _BUDGETS:
        choice = choose(found, budget, Policy())
        if choice.policy is None:
            print(f"  budget {budget:.0%}: no threshold keeps it")
            continue
        checked = choice.checked_on
        print(
            f"  budget {budget:.0%}, chosen on one half, checked on the other: {checked.served} served, "
            f"{checked.wrong} wrong ({checked.rate:.1%}, at most {checked.bound:.1%}); "
            f"cosine {choice.policy.threshold:.3f}, overlap {choice.policy.overlap}, of {len(found)} pairs"
        )


def _labelled(alike: matches.Matches, pair: int, intents: Sequence[str]) -> Labelled:
    same = intents[alike.later[pair]] == intents[alike.earlier[pair]]
    cosine, overlap = float(alike.cosine[pair]), float(alike.overlap[pair])
    return Labelled(f"pair {alike.later[pair]}", cosine, overlap, alike.reasons[pair], same=same)


def _matches(texts: Sequence[str]) -> matches.Matches:
    asked = _asked(texts)
    vectors, known = MiniLM().embed(texts), known_words()
    return matches.of_pairs(neighbours.find(vectors, asked.text_scope), asked, known.__contains__)


def _asked(texts: Sequence[str]) -> Questions:
    numbers = list(range(len(texts)))
    zeros = [0] * len(texts)
    return replace(made_up(numbers, zeros, zeros, numbers, zeros), texts=tuple(texts))


def _best_of(alike: matches.Matches, chosen: Ints) -> list[int]:
    found: dict[int, int] = {}
    for pair in chosen[np.argsort(-alike.cosine[chosen])].tolist():
        found.setdefault(int(alike.later[pair]), pair)
    return list(found.values())


def _load() -> None:
    print("\na published load test at today's prices")
    for line in load_test.table(datetime.now(UTC)):
        print(f"  {line.model:30} {line.option:24} ${line.usd_per_task:.6f}  {line.formula} = ${line.usd:.2f}")


def _growth() -> None:
    """Distinct questions of one scope through embedding, index, guards and replay."""
    texts = list(islice(_questions(), _SIZES[-1]))
    print(f"\n{len(texts):,} distinct queries of one scope on two cores (CPU seconds of all threads)")
    parts: list[Vectors] = []
    spent, embedder, known = 0.0, MiniLM(), known_words()
    for size in _SIZES:
        began, clock = time.perf_counter(), _Clock()
        parts.append(embedder.embed(texts[sum(map(len, parts)) : size]))
        spent += clock.lap()
        vectors = np.concatenate(parts)
        pairs_ = neighbours.find(vectors, np.zeros(size, dtype=np.int64))
        searched = clock.lap()
        asked = _asked(texts[:size])
        alike = matches.of_pairs(pairs_, asked, known.__contains__)
        compared = clock.lap()
        served = tiers.replay(asked, alike, Policy(ttl_s=1e9))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        print(
            f"  {size:>7,}: embed {spent:.0f}, index {searched:.1f}, guards {compared:.1f} ({len(alike):,} pairs), "
            f"replay {clock.lap():.1f}; served {served.count(tiers.SEMANTIC):,}; peak memory {peak:.2f} GiB; "
            f"wall of this step {time.perf_counter() - began:.0f} s",
            flush=True,
        )


class _Clock:
    """CPU seconds since the lap before."""

    def __init__(self) -> None:
        self._last = time.process_time()

    def lap(self) -> float:
        now = time.process_time()
        since, self._last = now - self._last, now
        return since


def _questions() -> Iterator[str]:
    """Questions that differ in what they ask about; two in five come again in other words."""
    verbs = ("change", "cancel", "renew", "print", "return", "track", "insure", "upgrade", "share", "repair")
    things = ("ticket", "invoice", "parcel", "contract", "licence", "router", "bicycle", "account", "voucher", "permit")
    places = ("Ghent", "Bilbao", "Lyon", "Porto", "Turin", "Malmo", "Graz", "Brno", "Cork", "Tampere")
    manners = ("How do I {0} my {1} from {2} in {3}?", "Please tell me how I can {0} my {1} from {2} in {3}",
               "What is the way to {0} a {1} bought in {3} in {2}?")  # fmt: skip
    years = range(1990, 2030)
    for year, verb, thing, place, manner in product(years, verbs, things, places, manners):
        yield manner.format(verb, thing, year, place)


_PARTS: dict[str, Callable[[], None]] = {"pairs": _pairs, "near": _near, "load": _load, "growth": _growth}

if __name__ == "__main__":
    for name in sys.argv[1:] or _PARTS:
        _PARTS[name]()
