"""How figures and names are put into words, once for all formats."""

from collections.abc import Mapping
from math import floor, log10
from typing import Any

CAUSES = {
    "volatile_prefix": "text that changes stands in front of text that does not",
    "tools_reordered": "the same tools are sent in changing order",
    "tools_changed": "tools come and go between calls that share the rest of their prompt",
    "settings_changed": "a setting that is part of the cache's key differs, though the text is the same",
    "split_scope": "one prompt is spread over several accounts, regions or cache keys",
    "history_rewritten": "earlier messages are changed in place",
    "history_pruned": "older messages are dropped from in front of others",
    "no_marker": "the provider caches up to a breakpoint, and the request sets none",
    "marker_misplaced": "the breakpoint stands behind text that changes, or too far back to be found",
    "ttl_lapse": "calls come after their prefix has expired",
    "ttl_class_switched": "entries are written to live shorter than before, and expire between calls",
    "parallel_cold_start": "sent before the first response with the same prefix had begun",
    "write_churn": "prefixes are written at a premium and hardly ever read",
    "below_minimum": "prompts shorter than the provider caches",
    "system_edited": "the system prompt is another one than before, as after a deploy",
    "compacted": "the conversation was summed up: a new, shorter history begins",
    "forked": "a new session goes on from the middle of another one's conversation",
    "first_seen": "nothing to reuse: these prompts were sent for the first time",
    "provider_side": "the prefix should have been alive and was not read: not the caller's doing",
    "unknown_usage": "the trace does not say what was cached",
    "unknown_prompt": "the trace has no prompt to compare",
}
VERDICTS = {
    "actionable": "you can change it",
    "informational": "as it should be, or not worth a change",
    "provider_side": "the provider's side: nothing is claimed",
}
OPTIONS = {
    "sort_tools": "one order of tools",
    "pin_tools": "all tools always",
    "keep_history": "a history that is only added to",
    "pin_settings": "the same settings in all calls",
    "one_scope": "one account, region and cache key",
    "move_volatile": "changing text behind the static text",
    "raise_to_minimum": "a static part as long as the minimum",
    "mark_static": "a breakpoint behind the static part",
    "mark_last": "a breakpoint behind the last message",
    "mark_both": "breakpoints behind both",
    "mark_trail": "breakpoints behind both and on the way",
    "keep_static_marker": "no breakpoint but the one behind the static part",
    "extend_ttl": "the longest lifetime on offer",
    "keep_alive": "the static part sent again before it expires",
    "shorten_ttl": "the shortest lifetime on offer",
    "warm_up": "the first call of a burst ahead",
    "drop_markers": "no breakpoint",
}
CONFIDENCE = {
    "A": "the provider itself said so",
    "B": "where the replay predicts a read, this provider reported it at least nine times in ten",
    "C": "usage bears the replay out in part, or could not be compared with it",
}
_LONGEST = 500  # characters of a text from outside


def plain(text: str) -> str:
    """A text from outside as one line of printable characters: no terminal escape, line break or bidi override."""
    shown = "".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in text[: _LONGEST + 1])
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"


def clean(value: Any) -> Any:
    """Report data with every text, keys too, made ``plain``: what a renderer starts from."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {clean(name): clean(inner) for name, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list | tuple) else value


FALSE_ALARM = {
    "volatile_prefix": "the text must stand there, because the model answers worse with it at the end: try it first",
    "tools_reordered": "the order of tools carries meaning for this model, or each call needs another set",
    "tools_changed": "a call must not even know of the tools that it lacks, or answers get worse with more of them",
    "settings_changed": "the calls with other settings are other work, and need them",
    "split_scope": "accounts, regions or keys are apart on purpose: tenants, limits, residency",
    "history_rewritten": "the change makes room that the context window needs, or takes out what must not be kept",
    "history_pruned": "the window is full, or the model answers better with less",
    "no_marker": "the traffic to come repeats less: a write costs more than a plain token",
    "marker_misplaced": "breakpoints of the trace were inferred, and stand elsewhere",
    "forked": "sessions seldom take over each other's conversations",
    "ttl_lapse": "the pauses to come are not like these: a longer lifetime costs more where nobody comes back",
    "ttl_class_switched": "somebody chose the shorter lifetime for traffic that is still to come",
    "parallel_cold_start": "the burst cannot wait for one first token",
    "write_churn": "readers come later than this window, or through another log",
    "below_minimum": "there is nothing useful to add to the prompt",
}


def usd(amount: float | None) -> str:
    """Dollars and cents; less than a cent keeps enough digits to be told from nothing.

    >>> usd(1234.5), usd(-0.5), usd(0.00123), usd(0.0000968), usd(0), usd(None)
    ('$1,234.50', '-$0.50', '$0.0012', '$0.000097', '$0.00', 'unpriced')
    """
    if amount is None:
        return "unpriced"
    sign, size = "-" if amount < 0 else "", abs(amount)
    if not 0 < size < 0.01:
        return f"{sign}${size:,.2f}"
    return f"{sign}${size:.{1 - floor(log10(size))}f}".rstrip("0")


def usd_range(ends: Mapping[str, float]) -> str:
    """``$low–$high``, or one figure where they are the same to the cent."""
    low, high = usd(ends["low"]), usd(ends["high"])
    return high if low == high else f"{low}–{high}"


def share(part: float | None) -> str:
    return "unknown" if part is None else f"{part:.1%}"


def tokens(count: float) -> str:
    return f"{count:,.0f}"


def missed(cause: Mapping[str, Any]) -> str:
    """Missed tokens of a row of ``causes``; where the trace does not say, they are not nothing."""
    return "unknown" if cause["cause"].startswith("unknown_") else tokens(cause["missed_tokens"])


def hit_rate(row: Mapping[str, Any]) -> str:
    """Share of a row's input tokens that were read from cache."""
    return share(row["read"] / row["input"] if row["input"] else None)


def model(row: Mapping[str, Any]) -> str:
    """``provider/model``, or the model alone where nobody knows the provider."""
    return f"{row['provider']}/{row['model']}" if row["provider"] else str(row["model"])


def headline(report: Mapping[str, Any]) -> str:
    """The whole report in one sentence or two."""
    calls = report["calls"]
    if not calls["total"]:
        return "No calls were found."
    spent = usd(report["spend_usd"]["total"]) if calls["priced"] else "an unknown amount"
    first = (
        f"{counted(calls['total'], 'call')} in {report['window']['days']:.1f} days cost {spent}; "
        f"{share(report['hit_rate'])} of their prompt tokens were read from cache."
    )
    if not report["findings"]:
        return f"{first} No leak was found."
    return f"{first} {counted(len(report['findings']), 'leak')}: {usd_range(report['recoverable_usd'])} recoverable."


def counted(number: int, noun: str) -> str:
    """``1 call``, ``2,119 calls``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def caveats(report: Mapping[str, Any]) -> list[str]:
    """What a reader must know before trusting the figures; empty when there is nothing."""
    calls = report["calls"]
    unpriced = ", ".join(f"{model(row)} ({row['calls']:,})" for row in report["unpriced_models"][:5])
    found = [
        (calls["unpriced"], "call", f" without a known price, in no dollar figure: {unpriced}"),
        (calls["usage_missing"], "call", " without usage: what they cost is unknown, not zero"),
        (calls["usage_partial"], "call", " without cache counts: priced as uncached, an upper bound"),
        (calls["total"] - calls["with_prompt"], "call", " without a prompt to compare: no leak can be seen in them"),
        (calls["markers_inferred"], "call", " without a cache breakpoint in the trace: inferred from reads and writes"),
        (calls["fingerprint_keys"] - 1, "further key", " made fingerprints: calls of two keys cannot be compared"),
        (calls["duplicates"], "observation", " of calls that were known already: each call counts once"),
        (calls["quarantined"], "rejection", ": lines or files that could not be read"),
    ]
    return [f"{counted(number, noun)}{text}" for number, noun, text in found if number > 0]
