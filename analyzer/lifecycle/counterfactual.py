"""What calls would have cost at the cache behaviour of earlier calls, and how sure that is.

The earlier calls tell which share of their input tokens was read, written and billed in full; the later calls, with
their own number, sizes and prices, are billed at these shares. So neither volume nor price nor, in proportion, prompt
size is taken for a saving.

Shares are taken pause by pause (direct standardisation): what a cache can still hold depends on how long ago the last
call was, so more traffic alone makes prefixes live, and that too must not count as somebody's fix.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from math import sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import polars as pl

from prefixscope.analyzer import ragged
from prefixscope.analyzer.ragged import Floats, Ints
from prefixscope.analyzer.traffic import INPUT_BUCKETS

PAUSES: Final = (timedelta(minutes=5), timedelta(hours=1), timedelta(days=1))
"""Pauses at which providers' lifetimes end, as a rule: the classes are up to each of them, and longer."""
STRATA: Final = 2 * (len(PAUSES) + 1)
CONFIDENCE: Final = 0.95
_RESAMPLES: Final = 10_000
_SEED: Final = 9  # any: the same calls give the same interval


@dataclass(frozen=True, slots=True)
class Saved:
    """USD that the later calls cost less than at the earlier calls' shares, with its interval."""

    estimate: float
    low: float
    high: float
    expected: float  # USD that they would have cost
    paid: float  # USD that they did cost


@dataclass(frozen=True, slots=True)
class _Tables:
    """Only strata and buckets with tokens in them: resampling the others would be most of the work."""

    before: Floats  # (days before, strata, buckets): tokens
    worth: Floats  # (days after, strata, buckets): USD of their input tokens if all of them were billed in that bucket
    in_full: Floats  # (days after): USD if all input tokens were billed as uncached
    paid: Floats  # (days after): USD


def with_stratum(calls: pl.DataFrame) -> pl.DataFrame:
    """Calls of one family in time order with ``stratum``: the class of the pause before each, and where it stands.

    The pause is since the call before in the same session, or, for a session's first call and calls without one, since
    the last call that could have left the prefix in the cache: the family's last under the same account.
    """
    calls = calls.sort("started_at", "call_id")
    before = pl.col("started_at") - pl.col("started_at").shift(1)
    in_session = pl.when(pl.col("session_id") != "").then(before.over("session_id"))
    pause = pl.coalesce(in_session, before.over("account", "region", "cache_key"))
    longer = pl.sum_horizontal((pause > limit).cast(pl.Int64) for limit in PAUSES)
    pause_class = pl.when(pause.is_null()).then(len(PAUSES)).otherwise(longer)
    return calls.with_columns(stratum=pause_class + (len(PAUSES) + 1) * in_session.is_not_null().cast(pl.Int64))


def saved(before: pl.DataFrame, after: pl.DataFrame) -> Saved:
    """What ``after`` saved against the shares of ``before``.

    Args:
        before: calls with reported usage and known prices, at least on two days: the token buckets, their rates,
            ``started_at`` and ``stratum``.
        after: the same.
    """
    tables = _tables(before, after)
    days = [len(tables.before), len(tables.paid)]
    once = [np.ones((1, number)) for number in days]
    expected, paid = (float(usd[0]) for usd in _costs(tables, *once))
    rng = np.random.default_rng(_SEED)
    draws = [rng.multinomial(n, np.full(n, 1 / n), size=_RESAMPLES).astype(np.float64) for n in days]
    low, high = np.quantile(_savings(tables, *draws), list(_tails(min(days))))
    estimate = expected - paid
    return Saved(estimate, min(float(low), estimate), max(float(high), estimate), expected, paid)


def _savings(tables: _Tables, before: Floats, after: Floats) -> Floats:
    """USD saved in each resample of days, on the volume of all later calls.

    Days are drawn, not calls: calls of a day share caches, incidents and kinds of traffic, so they bear each other out
    less than as many calls would that have nothing to do with each other. How much was called is known and not drawn.
    """
    expected, paid = _costs(tables, before, after)
    volume = after @ tables.in_full
    share = np.divide(expected - paid, volume, out=np.zeros_like(paid), where=volume > 0)
    savings: Floats = share * tables.in_full.sum()
    return savings


def _costs(tables: _Tables, before: Floats, after: Floats) -> tuple[Floats, Floats]:
    """USD expected and paid, for each row of weights of the days before and after."""
    tokens = np.tensordot(before, tables.before, axes=1)
    of_stratum = tokens.sum(axis=2, keepdims=True)
    overall = tokens.sum(axis=1, keepdims=True) / of_stratum.sum(axis=1, keepdims=True)
    # a pause that was not seen before takes the shares of all pauses
    share = np.divide(tokens, of_stratum, out=np.broadcast_to(overall, tokens.shape).copy(), where=of_stratum > 0)
    worth = np.tensordot(after, tables.worth, axes=1)
    return (share * worth).sum(axis=(1, 2)), after @ tables.paid


def _tails(blocks: int) -> Iterator[float]:
    """Percentiles to take of the resamples, for ``CONFIDENCE``.

    With few blocks a plain percentile interval is too short. Expanded as T. Hesterberg does (What Teachers Should Know
    About the Bootstrap, 2015, section 5.3): by the t quantile and the bias of the variance.
    """
    tail = NormalDist().cdf(-sqrt(blocks / (blocks - 1)) * _t_quantile(1 - (1 - CONFIDENCE) / 2, blocks - 1))
    yield from (tail, 1 - tail)


def _t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t: Abramowitz and Stegun 26.7.5, within 0.01 from four degrees of freedom on."""
    x = NormalDist().inv_cdf(probability)
    terms = (
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
    )
    return x + sum(term / freedom**power for power, term in enumerate(terms, 1))


def _tables(before: pl.DataFrame, after: pl.DataFrame) -> _Tables:
    rates = after.select(f"rate_{bucket}" for bucket in INPUT_BUCKETS).cast(pl.Float64).to_numpy()
    tokens = _tokens(after)
    shares = _by_day(before, _tokens(before))
    worth = _by_day(after, tokens.sum(axis=1, keepdims=True) * rates)
    strata = shares.any(axis=(0, 2)) | worth.any(axis=(0, 2))
    buckets = shares.any(axis=(0, 1))
    return _Tables(
        before=shares[:, strata][:, :, buckets],
        worth=worth[:, strata][:, :, buckets],
        in_full=worth[:, :, INPUT_BUCKETS.index("uncached")].sum(axis=1),
        paid=_by_day(after, tokens * rates).sum(axis=(1, 2)),
    )


def _tokens(calls: pl.DataFrame) -> Floats:
    return calls.select(INPUT_BUCKETS).cast(pl.Float64).to_numpy()


def _by_day(calls: pl.DataFrame, values: Floats) -> Floats:
    """Sums of the rows of ``values`` by UTC day and stratum."""
    _, day = ragged.factorize(calls["started_at"].dt.date().to_physical().cast(pl.Int64).to_numpy())
    stratum: Ints = calls["stratum"].to_numpy()
    sums = np.zeros((int(day.max()) + 1, STRATA, values.shape[1]))
    np.add.at(sums, (day, stratum), values)
    return sums
