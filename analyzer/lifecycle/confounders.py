"""What else changed when a fix went live: whatever could be taken for its effect, and how the figures treat it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import polars as pl

from prefixscope.analyzer.lifecycle.counterfactual import PAUSES
from prefixscope.analyzer.traffic import INPUT_BUCKETS, WRITE_BUCKETS

_MIX: Final = 0.10  # share of calls that a mix must move to be told
_SIZE: Final = 0.10  # relative change of tokens a call
_VOLUME: Final = 0.25  # relative change of calls a day
_PRICE: Final = 0.005  # relative change of a token's price
_OUT, _IN_PROPORTION = "taken out", "taken out in proportion"
_NOT_OUT: Final = "not taken out: it is the fix itself, or could pass for it"
_PAUSE_NAMES: Final = ("up to 5 min", "up to 1 h", "up to 1 d", "longer")
_MIXES: Final = {
    "account": "API key or account",
    "region": "region",
    "cache_key": "cache key",
    "key_id": "fingerprint key",
    "tier": "service tier",
    "markers": "lifetime of breakpoints",
    "auto_marker": "lifetime of the automatic breakpoint",
    "cache_ttl": "retention",
}


@dataclass(frozen=True, slots=True)
class Confounder:
    """One thing that was not the same before and after."""

    what: str
    before: str
    after: str
    treated: str  # how the saving deals with it


def told(before: pl.DataFrame, after: pl.DataFrame, fixed: frozenset[str]) -> tuple[Confounder, ...]:
    """What differs between the compared calls, and of the causes all but those that were fixed."""
    return (*_prices(before, after), *_sizes(before, after), *_mixes(before, after), *_causes(before, after, fixed))


def of_mix(before: pl.DataFrame, after: pl.DataFrame, column: str, what: str) -> Iterator[Confounder]:
    """The share of calls whose ``column`` has the value that moved most, where the mix moved far enough to be told."""
    shares = [
        frame.group_by(value=pl.col(column).cast(pl.String)).agg(share=pl.len() / frame.height)
        for frame in (before, after)
    ]
    joined = shares[0].join(shares[1], on="value", how="full", coalesce=True).fill_null(0.0)
    grew = pl.col("share_right") - pl.col("share")
    if not (before.height and after.height) or joined.select(grew.abs().sum() / 2).item() < _MIX:
        return
    # of two equal moves the one that grew, then the first by name
    row = joined.sort(grew.abs().round(9), grew, "value", descending=[True, True, False]).row(0, named=True)
    name = row["value"] or "none"
    yield Confounder(what, f"{name} {row['share']:.0%}", f"{name} {row['share_right']:.0%}", _NOT_OUT)


def _prices(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Confounder]:
    """List prices; that of a bucket nobody used is of no interest."""
    for bucket in INPUT_BUCKETS:
        old, new = _price(before, bucket), _price(after, bucket)
        used = any((frame[bucket] > 0).any() for frame in (before, after))
        if used and _differ(old, new, by=_PRICE):
            what = f"price of {bucket.replace('_', ' ')} tokens"
            yield Confounder(what, f"${1e6 * old:.4g} a million", f"${1e6 * new:.4g} a million", _OUT)


def _price(frame: pl.DataFrame, bucket: str) -> float:
    """USD a token, averaged over input tokens."""
    tokens = pl.sum_horizontal(INPUT_BUCKETS).cast(pl.Float64)
    weighted = frame.select((pl.col(f"rate_{bucket}").cast(pl.Float64) * tokens).sum() / tokens.sum()).item()
    return float(weighted)


def _sizes(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Confounder]:
    old, new = _size(before), _size(after)
    if _differ(old, new, by=_SIZE):
        yield Confounder("prompt size", f"{old:,.0f} tokens", f"{new:,.0f} tokens", _IN_PROPORTION)
    old, new = _volume(before), _volume(after)
    if _differ(old, new, by=_VOLUME):
        yield Confounder("volume", f"{old:,.0f} calls a day", f"{new:,.0f} calls a day", _OUT)
    for found in of_mix(_with_pause(before), _with_pause(after), "pause", "pauses between calls"):
        yield replace(found, treated=_OUT)


def _size(frame: pl.DataFrame) -> float:
    """Input tokens of a call on average."""
    return float(frame.select(pl.sum_horizontal(INPUT_BUCKETS).mean()).item())


def _volume(frame: pl.DataFrame) -> float:
    """Calls a day, of days with any."""
    return frame.height / frame["started_at"].dt.date().n_unique()


def _with_pause(frame: pl.DataFrame) -> pl.DataFrame:
    names = dict(enumerate(_PAUSE_NAMES))
    return frame.with_columns(pause=(pl.col("stratum") % (len(PAUSES) + 1)).replace_strict(names))


def _mixes(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Confounder]:
    for column, what in _MIXES.items():
        yield from of_mix(before, after, column, what)
    written = [_written(frame) for frame in (before, after)]
    for bucket in WRITE_BUCKETS:
        old, new = (tokens.get(bucket, 0.0) for tokens in written)
        if all(written) and abs(new - old) >= _MIX:
            what = f"tokens written for {bucket.removeprefix('write_')}"
            yield Confounder(what, f"{old:.0%}", f"{new:.0%}", _NOT_OUT)


def _written(frame: pl.DataFrame) -> dict[str, float]:
    """The share of each lifetime in the tokens written; empty where none were."""
    sums: dict[str, Any] = frame.select(pl.col(WRITE_BUCKETS).sum()).row(0, named=True)
    total = sum(sums.values())
    return {bucket: tokens / total for bucket, tokens in sums.items()} if total else {}


def _causes(before: pl.DataFrame, after: pl.DataFrame, fixed: frozenset[str]) -> Iterator[Confounder]:
    """Other causes that came or went: a second leak hides what the first fix saved."""
    for cause in sorted({*before["cause"].unique(), *after["cause"].unique()} - {"", *fixed}):
        old, new = (float((frame["cause"] == cause).sum() / frame.height) for frame in (before, after))
        if abs(new - old) >= _MIX:
            yield Confounder(f"calls with {cause}", f"{old:.0%}", f"{new:.0%}", _NOT_OUT)


def _differ(old: float, new: float, *, by: float) -> bool:
    return abs(new - old) > by * max(old, new)
