"""Every finding that reports on a store have told, with the ids that one and the same finding had over time.

A finding's id names its cause, service, provider, model and the static text that its calls share. New calls can show
that this text is two pieces, as the moved text of a fix does, and then the id changes. So findings are told apart by
their calls: two ids are one finding if everything else is the same and the last analysis has their example calls in one
family; and causes that one fix is for are the same, since calls to come can show another sign of the same fault. The
finding goes by its first id, and decisions may use any.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.lifecycle.decisions import Decision
from prefixscope.analyzer.store import Store
from prefixscope.analyzer.times import in_utc


@dataclass(frozen=True, slots=True)
class Told:
    """A finding as the last report that has it told it. Times are UTC."""

    id: str  # its first one
    ids: tuple[str, ...]  # all, in the order in which they came up
    first_seen: datetime
    last_seen: datetime
    finding: Mapping[str, Any]  # ``report.data``: a row of ``findings``
    family: str  # in the last analysis; "" = it has none of the finding's calls

    def promised(self, end: str = "high") -> float:
        """USD a week that the report promised; ``end`` is low or high."""
        return float(self.finding["saving_usd_per_week"][end])


@dataclass(frozen=True, slots=True)
class Known:
    """All findings by their first id."""

    told: Mapping[str, Told]
    first_id: Mapping[str, str] = field(default_factory=dict)  # any id -> the first one

    @property
    def first_seen(self) -> dict[str, datetime]:
        return {id_: told.first_seen for id_, told in self.told.items()}

    def renamed(self, decisions: Sequence[Decision]) -> list[Decision]:
        """The decisions with first ids; an id that no report told stays."""
        return [replace(d, finding=self.first_id.get(d.finding, d.finding)) for d in decisions]

    def one(self, begins: str) -> Told:
        """The finding one of whose ids begins so.

        Raises:
            UsageError: there is none, or several.
        """
        found = {first for id_, first in self.first_id.items() if id_.startswith(begins)}
        if len(found) != 1:
            many = f"{len(found)} findings begin" if found else "no finding begins"
            raise UsageError(f"{many} with {begins!r}. Known are: {', '.join(self.told) or 'none'}")
        return self.told[found.pop()]


def load(store: Store, decisions: Sequence[Decision] = ()) -> Known:
    """The findings of all reports in a store; decisions tell of ids that were one finding when they were made."""
    families = dict(store.frame("lifecycle/families_now").iter_rows())
    rows = store.frame("lifecycle/told_findings").to_dicts()
    also = {id_: decision.finding for decision in decisions for id_ in decision.also}
    return known([row | {"finding": json.loads(row["finding"])} for row in rows], families, also)


def known(rows: Sequence[Mapping[str, Any]], families: Mapping[str, str], also: Mapping[str, str]) -> Known:
    """Joins ids that are one finding.

    Args:
        rows: columns of ``queries/lifecycle/told_findings``, the finding as a mapping, in the order of first_seen.
        families: id -> family in the last analysis; ids without one stand for themselves.
        also: id -> another id of the same finding.
    """
    roots = {row["id"]: _root(row["id"], also) for row in rows}
    family_of = {roots[id_]: family for id_, family in families.items() if id_ in roots}
    groups: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        family = family_of.get(roots[row["id"]])
        same = (*_place(row["finding"]), family) if family else (roots[row["id"]],)
        groups.setdefault(same, []).append(row)
    told = [_told(group, family_of.get(roots[group[0]["id"]], "")) for group in groups.values()]
    return Known({one.id: one for one in told}, {**also, **{id_: one.id for one in told for id_ in one.ids}})


def _root(id_: str, also: Mapping[str, str]) -> str:
    """The id at the end of the chain; hand-made lines may lead in a circle, and then it is left somewhere."""
    passed = set()
    while id_ in also and id_ not in passed:
        passed.add(id_)
        id_ = also[id_]
    return id_


def causes(finding: Mapping[str, Any]) -> tuple[str, ...]:
    """What the fix of a finding removes: the causes that it is for, the finding's among them."""
    fix = FIXES.get(finding["fix"]["action"])  # an old report may name one that is gone
    return fix.causes if fix and finding["cause"] in fix.causes else (finding["cause"],)


def _place(finding: Mapping[str, Any]) -> tuple[str, ...]:
    return causes(finding)[0], finding["service"], finding["provider"], finding["model"]


def _told(rows: Sequence[Mapping[str, Any]], family: str) -> Told:
    last = max(rows, key=lambda row: (row["last_seen"], row["first_seen"]))
    return Told(
        id=rows[0]["id"],
        ids=tuple(row["id"] for row in rows),
        first_seen=in_utc(rows[0]["first_seen"]),
        last_seen=in_utc(last["last_seen"]),
        finding=last["finding"],
        family=family,
    )
