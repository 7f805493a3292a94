"""VERIFY: what a fix has saved, measured on the calls of its family before and after it. Nobody reports it of himself.

The calls after the fix are billed once as they were and once at the cache behaviour of the calls before it
(``counterfactual``); the difference is the saving, and it counts once its whole 95 % interval is above nothing.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import polars as pl

from prefixscope.analyzer.lifecycle import confounders
from prefixscope.analyzer.lifecycle.confounders import Confounder
from prefixscope.analyzer.lifecycle.counterfactual import Saved, saved, with_stratum
from prefixscope.analyzer.times import in_utc, iso, naive
from prefixscope.analyzer.traffic import INPUT_BUCKETS

BEFORE: Final = timedelta(days=28)  # calls before the fix that are still like those when it came, leaking or not
MIN_CALLS: Final = 30
MIN_DAYS: Final = 5  # with calls, on each side: below that no interval over days is worth its name
BACK: Final = 0.5  # of the cause's former share of calls: the leak has returned
_BACK_CALLS: Final = 20  # in the days of the return: one bad morning is none
_BACK_HITS: Final = 5
_NOTHING: Final = 1e-9  # of what the calls would cost: rounding of sums

NOT_ENOUGH: Final = "not_enough_data"


@dataclass(frozen=True, slots=True)
class Fix:
    """What is to be verified. Times are UTC."""

    causes: frozenset[str]  # what the fix removes: the finding's cause, and those that the same fix is for
    on: datetime
    begin: datetime | None = None  # calls before the fix count from here, at most ``BEFORE``: an earlier fix, a return
    end: datetime | None = None  # calls after it count up to here: a later fix of the same family


@dataclass(frozen=True, slots=True)
class Side:
    """The calls on one side of the fix."""

    calls: int
    days: int
    first: str
    last: str
    input_tokens: int
    usd: float  # of the input
    usd_per_call: float
    usd_per_million: float  # input tokens
    read_share: float  # of input tokens
    cause_share: float  # of calls that have the fixed cause, or another that the same fix is for


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found. ``status`` is verified, not_confirmed, regressed or not_enough_data."""

    status: str
    fixed_on: datetime
    before: Side | None = None
    after: Side | None = None
    saved: Saved | None = None
    provider_usd: float = 0.0  # what caching saved on the calls after anyway, at the shares from before: not ours
    weeks: float = 0.0  # from the fix to the last call counted, at least one day
    returned_on: datetime | None = None  # since when the cause is back; what is counted ends there
    missing: tuple[str, ...] = ()  # what more is needed, where the data is not enough
    confounders: tuple[Confounder, ...] = ()  # what else changed
    left_out: int = 0  # calls without usage or price
    share: float = 1.0  # of the saving that is this finding's, where several fixes of one family went live together
    together_with: tuple[str, ...] = ()  # their findings

    def as_json(self) -> dict[str, Any]:
        """Plain data, dollars rounded to 1e-10: ``measure`` of a decision.

        Keys: fixed_on, before, after (``Side``), saved_usd and saved_usd_per_week (estimate, low, high), expected_usd,
        paid_usd (input of the calls after, all findings of the family), provider_usd, weeks, returned_on, confounders,
        left_out, share, together_with.
        """
        ends = {name: self.share * getattr(self.saved, name) for name in ("estimate", "low", "high")}
        return {
            "fixed_on": iso(self.fixed_on),
            "before": asdict(self.before) if self.before else None,
            "after": asdict(self.after) if self.after else None,
            "saved_usd": _rounded(ends),
            "saved_usd_per_week": _rounded({name: usd / self.weeks for name, usd in ends.items()}),
            "expected_usd": round(self.saved.expected, 10) if self.saved else None,
            "paid_usd": round(self.saved.paid, 10) if self.saved else None,
            "provider_usd": round(self.provider_usd, 10) + 0.0,  # no minus zero
            "weeks": round(self.weeks, 6),
            "returned_on": iso(self.returned_on) if self.returned_on else None,
            "confounders": [asdict(one) for one in self.confounders],
            "left_out": self.left_out,
            "share": round(self.share, 10),
            "together_with": list(self.together_with),
        }


def verify(calls: pl.DataFrame, fix: Fix) -> Verdict:
    """Judges a fix by the calls of its family.

    Args:
        calls: all calls of the finding's service, provider, model and family: ``queries/lifecycle/family_calls`` with
            costs (``audit.with_costs``).
        fix: what was fixed, when, and which calls may be compared.
    """
    calls = with_stratum(calls)
    usable = calls.filter((pl.col("usage_state") == "reported") & pl.col("rate_uncached").is_not_null())
    on = naive(fix.on)
    began = max(on - BEFORE, naive(fix.begin) if fix.begin else on - BEFORE)
    before = usable.filter(pl.col("started_at").is_between(began, on, closed="left"))
    after = usable.filter(pl.col("started_at") >= on)
    verdict = Verdict(NOT_ENOUGH, fix.on, left_out=calls.height - usable.height)
    counted = after.filter(pl.col("started_at") < naive(fix.end)) if fix.end else after
    returned = returned_on(after, fix.causes, _share(before, fix.causes))
    if returned is not None:
        head = counted.filter(pl.col("started_at") < returned)
        found = _judged(before, head, fix, verdict)
        if found.status == "verified":
            return replace(found, status="regressed", returned_on=in_utc(returned))
    return _judged(before, counted, fix, verdict)


def returned_on(after: pl.DataFrame, causes: frozenset[str], former: float) -> datetime | None:
    """The day from which on to the end the causes are above ``BACK`` of their former share by most; None = not back.

    Most is meant in calls, so that neither a bad morning begins a return nor a quiet one ends it.
    """
    days = (
        after.group_by(day=pl.col("started_at").dt.truncate("1d"))
        .agg(calls=pl.len(), hits=pl.col("cause").is_in(causes).sum())
        .sort("day", descending=True)
        .with_columns(pl.col("calls", "hits").cum_sum())
        .with_columns(excess=pl.col("hits") - BACK * former * pl.col("calls"))
    )
    since = days.filter(pl.col("excess") == pl.col("excess").max()).head(1).to_dicts()
    enough = former > 0 and since and since[0]["calls"] >= _BACK_CALLS and since[0]["hits"] >= _BACK_HITS
    return since[0]["day"] if enough and since[0]["excess"] > 0 else None


def missing(before: pl.DataFrame, after: pl.DataFrame) -> tuple[str, ...]:
    """What the calls lack to be judged by; empty = nothing."""
    found = []
    for side, frame in (("before", before), ("after", after)):
        days = frame["started_at"].dt.date().n_unique()
        if frame.height < MIN_CALLS:
            found.append(f"{MIN_CALLS} calls {side} the fix, there are {frame.height}")
        if days < MIN_DAYS:
            found.append(f"calls on {MIN_DAYS} days {side} the fix, there are {days}")
    return tuple(found)


def _judged(before: pl.DataFrame, after: pl.DataFrame, fix: Fix, verdict: Verdict) -> Verdict:
    sides = [_side(frame, fix.causes) for frame in (before, after)]
    verdict = replace(verdict, before=sides[0], after=sides[1], missing=missing(before, after))
    if verdict.missing:
        return verdict
    found = saved(before, after)
    without_cache = float(after.select(pl.col("usd_without_cache").cast(pl.Float64).sum()).item())
    return replace(
        verdict,
        status="verified" if found.low > _NOTHING * without_cache else "not_confirmed",
        saved=found,
        provider_usd=without_cache - found.expected,
        weeks=max(_ends(after)[1] - naive(fix.on), timedelta(days=1)) / timedelta(days=7),
        confounders=confounders.told(before, after, fix.causes),
    )


def _side(frame: pl.DataFrame, causes: frozenset[str]) -> Side | None:
    if frame.is_empty():
        return None
    tokens = int(frame.select(pl.sum_horizontal(INPUT_BUCKETS).sum()).item())
    usd = float(frame.select(pl.col("usd_input").cast(pl.Float64).sum()).item())
    first, last = _ends(frame)
    return Side(
        calls=frame.height,
        days=frame["started_at"].dt.date().n_unique(),
        first=iso(first),
        last=iso(last),
        input_tokens=tokens,
        usd=round(usd, 10),
        usd_per_call=round(usd / frame.height, 12),
        usd_per_million=round(usd / tokens * 1e6, 10) if tokens else 0.0,
        read_share=round(int(frame["read"].sum()) / tokens, 6) if tokens else 0.0,
        cause_share=round(_share(frame, causes), 6),
    )


def _ends(frame: pl.DataFrame) -> tuple[datetime, datetime]:
    """Times of the first and the last call."""
    first, last = frame["started_at"].min(), frame["started_at"].max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    return first, last


def _share(frame: pl.DataFrame, causes: frozenset[str]) -> float:
    """Share of calls with one of the causes; 0 without calls."""
    return int(frame["cause"].is_in(causes).sum()) / max(frame.height, 1)


def _rounded(ends: Mapping[str, float]) -> dict[str, float]:
    return {name: round(usd, 10) for name, usd in ends.items()}
