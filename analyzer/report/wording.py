"""How figures and names are put into words, once for all formats."""

from collections.abc import Mapping
from typing import Any

CAUSES = {
    "volatile_prefix": "text that changes stands in front of text that does not",
    "tools_reordered": "the same tools are sent in changing order",
    "ttl_lapse": "calls come after their prefix has expired",
    "first_seen": "nothing to reuse: these prompts were sent for the first time",
    "below_minimum": "prompts shorter than the provider caches",
    "unknown_usage": "the trace does not say what was cached",
    "unknown_prompt": "the trace has no prompt to compare",
    "parallel_cold_start": "sent before the first response with the same prefix had begun",
    "unexplained": "the prefix should have been alive and was not read",
}


def usd(amount: float | None, *, cents: int = 2) -> str:
    """Dollars; small amounts keep enough digits to be told from nothing."""
    if amount is None:
        return "unpriced"
    if 0 < abs(amount) < 10**-cents:
        return f"${amount:.4g}"
    return f"${amount:,.{cents}f}"


def usd_range(ends: Mapping[str, float]) -> str:
    """``$low–$high``, or one figure where they are the same to the cent."""
    low, high = usd(ends["low"]), usd(ends["high"])
    return high if low == high else f"{low}–{high}"


def share(part: float | None) -> str:
    return "unknown" if part is None else f"{part:.1%}"


def tokens(count: float) -> str:
    return f"{count:,.0f}"


def headline(report: Mapping[str, Any]) -> str:
    """The whole report in one sentence or two."""
    if not report["calls"]["total"]:
        return "No calls were found."
    spend, window = report["spend_usd"], report["window"]
    findings = report["findings"]
    first = (
        f"{report['calls']['total']:,} calls in {window['days']:g} days cost {usd(spend['total'])}; "
        f"{share(report['hit_rate'])} of the prompt tokens were read from cache."
    )
    if not findings:
        return f"{first} No leak was found."
    leaks = "1 leak" if len(findings) == 1 else f"{len(findings)} leaks"
    return f"{first} {leaks}: {usd_range(report['recoverable_usd'])} recoverable."


def caveats(report: Mapping[str, Any]) -> list[str]:
    """What a reader must know before trusting the figures; empty when there is nothing."""
    calls = report["calls"]
    found = [
        (calls["unpriced"], "{:,} calls have no known price and are in no dollar figure"),
        (calls["usage_missing"], "{:,} calls came without usage: their cost is unknown, not zero"),
        (calls["usage_partial"], "{:,} calls do not say what was cached: priced as uncached, an upper bound"),
        (calls["total"] - calls["with_prompt"], "{:,} calls have no prompt to compare: no leak can be seen in them"),
        (calls["markers_inferred"], "{:,} calls show no cache breakpoint: it was inferred from what was read and written"),
        (calls["duplicates"], "{:,} observations were of a call seen already and count once"),
        (calls["quarantined"], "{:,} lines or files could not be read"),
    ]
    return [text.format(count) for count, text in found if count]
