"""How honest the threshold's bound is: many random splits of the labelled pairs into those that choose, check, judge.

Run: ``python tests/bench/semantic_choice.py [SPLITS]`` (200 where none is named). The pairs lie beside the project.

A third of the pairs is held out. On the other two thirds the threshold is chosen and its bound stated, as the command
does it; on the third that had no part in either it is judged: is the rate of wrong answers within the bound, and how
many right answers are served next to the best single cosine that is wrong no more often *on the held-out third itself*,
which no real cache could know? Pairs that share a question are held out together.

The word lists of the guards were tuned on one half of the pairs (``halves``), so the other half is told by itself.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # helpers of the tests

from labelled_pairs import DATA, Split, best_alone, families, halves, judged, pairs, splits
from prefixscope.analyzer.semantic.threshold import Labelled, Measured, choose, measure
from prefixscope.analyzer.semantic.tiers import Policy

_BUDGETS = (0.05, 0.01, 0.0)
_COSINES = (0.92, 0.95)
_SPLITS = 200


class Judged(NamedTuple):
    """One split at one budget, on the pairs that were held out."""

    held: Measured
    bound: float
    alone: int  # right answers of the best single cosine that is wrong no more often


def _judged(found: Sequence[Split], budget: float) -> Iterator[Judged | None]:
    for split in found:
        choice = choose(split.known, budget, Policy())
        if choice.policy is None or not choice.checked_on.served:
            yield None
            continue
        held = measure(choice.policy, split.held)
        yield Judged(held, choice.checked_on.bound, best_alone(split.held, max(held.rate, budget)))


def _spread(values: Sequence[float], form: str) -> str:
    ordered = sorted(values)
    low, high = ordered[len(ordered) // 20], ordered[-1 - len(ordered) // 20]
    return f"{median(ordered):{form}} ({low:{form}} to {high:{form}})"


def _row(budget: float, rows: Sequence[Judged | None]) -> str:
    made = [row for row in rows if row is not None]
    held = sum(row.held.rate <= row.bound for row in made) / len(made)
    ours = sum(row.held.right >= row.alone for row in made) / len(made)
    return (
        f"{budget:>6.0%}  {len(made):>4}  {held:>6.1%}  {_spread([r.bound for r in made], '.1%'):>24}  "
        f"{_spread([r.held.rate for r in made], '.1%'):>22}  {_spread([r.held.right for r in made], '.0f'):>14}  "
        f"{_spread([r.alone for r in made], '.0f'):>14}  {ours:>6.1%}"
    )


def _alone(cosine: float, found: Sequence[Split]) -> str:
    policy = Policy(threshold=cosine, guarded=False)
    rows = [measure(policy, split.held) for split in found]
    rate, right = _spread([row.rate for row in rows], ".1%"), _spread([row.right for row in rows], ".0f")
    return f"cosine {cosine} alone: wrong {rate}, right {right}"


def _table(title: str, found: Sequence[Labelled], family: Mapping[str, str], count: int) -> None:
    made = list(splits(found, family, count))
    should, held = [sum(pair.same for pair in split.held) for split in made], [len(split.held) for split in made]
    print(f"\n{title}: {len(found)}, of which {_spread(held, '.0f')} held out, {_spread(should, '.0f')} to be served")
    print(
        "budget  made   holds            stated bound         wrong, held out     right, ours    right, alone  ours>="
    )
    for budget in _BUDGETS:
        print(_row(budget, list(_judged(made, budget))))
    for cosine in _COSINES:
        print(_alone(cosine, made))


def main(count: int) -> None:
    """Prints the tables."""
    found = pairs()
    labelled, family = judged(found), families(found)
    print(f"{count} splits; medians, and the middle 90 % of the splits")
    _table("all pairs", labelled, family, count)
    _table("pairs that nothing was tuned on", halves(labelled)[1], family, count)


if __name__ == "__main__":
    if DATA.is_dir():
        main(int(sys.argv[1]) if len(sys.argv) > 1 else _SPLITS)
    else:
        print("labelled pairs: no data beside the project")
