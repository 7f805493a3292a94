"""What was part of the cache's key beside the text: settings, account, region, cache key, breakpoints, lifetimes."""

from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer.evidence.case import Case, Told, duration, median, parting
from prefixscope.analyzer.fixes import keys, lifetimes
from prefixscope.analyzer.ragged import Bools, Floats
from prefixscope.analyzer.traffic import WRITE_BUCKETS, Traffic


def of_settings(case: Case) -> Told:
    """Which settings differ between the calls of the family."""
    varied = _varied_settings(case)
    facts: dict[str, Any] = {"settings": varied, "calls": int(case.hit.sum()), "family_calls": int(case.members.sum())}
    names = ", ".join(f"{name} ({values} values)" for name, values in varied.items()) or "a setting"
    headline = f"{case.size} could not read the same text because settings differ: {names}"
    first = next(iter(varied), "the setting")
    return Told(
        headline, f"Keep {first} the same for all calls that share this prompt, at least within a session.", facts
    )


def _varied_settings(case: Case) -> dict[str, int]:
    """Setting -> how many values it has among the family's calls (absent is one), those that vary and invalidate."""
    cards = [case.traffic.cards[number] for number in np.unique(case.traffic.card[case.members]).tolist()]
    known = {name for card in cards for name in card.invalidates}
    values: dict[str, set[str]] = {}
    lines = case.traffic.calls.filter(pl.Series(case.members))["settings"].unique().to_list()
    parsed = [dict(pair.partition("=")[::2] for pair in line.split(",") if pair) for line in lines]
    for name in sorted({name for line in parsed for name in line} & known):
        values[name] = {line.get(name, "") for line in parsed}
    return {name: len(found) for name, found in values.items() if len(found) > 1}


def of_scope(case: Case) -> Told:
    """What the calls of one prompt are spread over."""
    spread = {name: len(np.unique(number[case.members])) for name, number in keys.scope_parts(case.traffic).items()}
    spread = {name: count for name, count in spread.items() if count > 1}
    facts: dict[str, Any] = {
        "spread_over": spread,
        "scopes": len(np.unique(case.traffic.scope[case.members])),
        "calls": int(case.hit.sum()),
        "family_calls": int(case.members.sum()),
    }
    parts = [f"{count:,} {name.replace('_', ' ')}s" for name, count in spread.items()] or ["several scopes"]
    headline = f"one prompt is spread over {' and '.join(parts)}: {case.size} met a cache that had not seen it"
    named = " and ".join(name.replace("_", " ") for name in spread) or "place"
    return Told(
        headline,
        f"Send the calls of this prompt to one {named}; a cache key that differs per call keeps them apart.",
        facts,
    )


def of_markers(case: Case) -> Told:
    """Where breakpoints stand today, and where they should."""
    traffic = case.traffic
    marked = traffic.rows.marker_ms > 0
    number = np.bincount(traffic.rows.call[marked], minlength=len(traffic))[case.members]
    facts = {
        "breakpoints_median": int(median(number)),
        "calls_without": int((number == 0).sum()),
        "family_calls": int(case.members.sum()),
    } | parting(case)
    targets = {
        "mark_static": "behind the static part of the prompt (system prompt and tools)",
        "mark_last": "behind the last message (top-level cache_control does that)",
        "mark_both": "behind the static part of the prompt, and another behind the last message",
        "mark_trail": "behind the static part and behind the last message, and two more on the way, 20 blocks apart",
    }
    if case.cause == "no_marker":
        headline = f"{case.size} repeat a prompt of this family, and none of them sets a cache breakpoint"
        return Told(headline, f"Set a cache breakpoint {targets[case.fix]}.", facts)
    headline = (
        f"{case.size} have a breakpoint where no entry can be found: behind text that changes, or farther back than "
        "the provider looks"
    )
    return Told(headline, f"Set the cache breakpoint {targets[case.fix]}.", facts)


def of_writes(case: Case) -> Told:
    """What was written at a premium, and what was read of it."""
    calls = case.traffic.calls.filter(pl.Series(case.members))
    written = int(calls.select(pl.sum_horizontal(WRITE_BUCKETS).sum()).item())
    read = int(calls["read"].sum())
    facts = {"written_tokens": written, "read_tokens": read, "family_calls": calls.height}
    share = f"{read / written:.2f}" if written else "0"
    headline = f"{written:,} tokens were written to the cache at a premium, and {share} times as many were read"
    texts = {
        "keep_static_marker": "Keep the breakpoint behind the static part alone: nobody reads what stands behind it.",
        "drop_markers": "Set no cache breakpoint on these prompts: nobody comes back to them in time.",
        "shorten_ttl": "Write with the shorter lifetime, which costs less: nobody comes back in the time beyond it.",
    }
    return Told(headline, texts[case.fix], facts)


def of_ttl(case: Case) -> Told:
    """Pauses of the calls that found their prefix expired, against the time to live."""
    traffic = case.traffic
    hit = np.flatnonzero(case.hit)
    before = case.breaks.before[hit]  # the call that it goes on from; others of the family may lie between
    since_ms = traffic.at_ms[hit] - traffic.at_ms[before]
    pauses = np.where(before >= 0, since_ms, _pauses_ms(traffic, case.members)[hit]) / 60_000
    marked = traffic.rows.marker_ms[case.hit[traffic.rows.call]]
    now_ms = int((marked[marked > 0] if marked.any() else traffic.ttl_ms[hit]).min())
    longest_ms = int(lifetimes.longest_ttl_ms(traffic)[hit].max(initial=0))
    facts = {
        "ttl_seconds": now_ms // 1000,
        "offered_ttl_seconds": longest_ms // 1000,
        "pause_minutes_median": round(float(np.median(pauses)), 1),
        "lapses": len(hit),
        "family_calls": int(case.members.sum()),
    }
    now, longest = duration(now_ms), duration(longest_ms)
    if all(traffic.cards[card].default_ttl == "assumed" for card in set(traffic.card[hit].tolist())):
        facts["ttl_assumed"] = True
        now += " (assumed: the provider publishes none)"
    since = "; its entries lived longer before" if case.cause == "ttl_class_switched" else ""
    headline = (
        f"{len(hit):,} of {facts['family_calls']:,} calls came after their prefix had expired: "
        f"median pause {facts['pause_minutes_median']} min against a lifetime of {now}{since}"
    )
    if case.fix == "keep_alive":
        return Told(headline, _pinged(case, facts), facts)
    return Told(headline, f"Cache this prompt for {longest} instead of {now}; other prompts may keep theirs.", facts)


def _pinged(case: Case, facts: dict[str, Any]) -> str:
    """How to keep the prompt alive; how often goes into the facts."""
    mine = np.ones(int(case.members.sum()), dtype=np.bool_)
    pings = lifetimes.keep_alive(case.traffic.only(case.members), case.families.only(case.members), mine).pings
    if pings is None:  # it is by the fixes before it that there is something to keep alive
        return "While nobody calls, send the static part again shortly before it expires, a few times in a row."
    followed = np.flatnonzero(pings.count > 0)
    every_ms, most = int(pings.every_ms[followed].min()), int(pings.count[followed].max())
    facts |= {"ping_seconds": every_ms // 1000, "most_pings": most, "pings": int(pings.count[followed].sum())}
    times = "once" if most == 1 else f"at most {most:,} times in a row"
    return (
        f"While nobody calls, send the static part again every {duration(every_ms)}, {times}, "
        "with an answer as short as the provider allows."
    )


def of_bursts(case: Case) -> Told:
    """How many calls ran side by side before the first of them had an answer."""
    wait = (case.traffic.first_token_ms - case.traffic.at_ms)[case.members]
    facts = {
        "calls": int(case.hit.sum()),
        "family_calls": int(case.members.sum()),
        "first_token_seconds_median": round(median(wait) / 1000, 1),
    } | parting(case)
    headline = (
        f"{case.size} were sent before the first response with the same prefix had begun "
        f"(median {facts['first_token_seconds_median']} s), so each wrote or paid the prefix again"
    )
    fix = "Send the first call of a burst ahead, and the others once its first token is there; or warm the prefix up."
    return Told(headline, fix, facts)


def of_minimum(case: Case) -> Told:
    """How short the prompts are of what is cached."""
    traffic = case.traffic
    minimum = int(traffic.per_card("min_tokens")[case.members].max(initial=0))
    total = round(median(traffic.input_total[case.members]))
    facts = {"minimum_tokens": minimum, "prompt_tokens_median": total, "family_calls": int(case.members.sum())}
    headline = f"{case.size} repeat a prompt that is shorter than the {minimum:,} tokens which are cached at the least"
    fix = f"Make the static part at least {minimum:,} tokens long, with examples or fuller instructions."
    return Told(headline, fix, facts)


def _pauses_ms(traffic: Traffic, members: Bools) -> Floats:
    """Time since the family's call before, ms."""
    at = np.flatnonzero(members)
    pauses = np.zeros(len(members))
    pauses[at[1:]] = np.diff(traffic.at_ms[at])
    return pauses
