"""What a check of a fix found, for a terminal and as JSON."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prefixscope.analyzer.lifecycle.known import Told
from prefixscope.analyzer.lifecycle.verify import NOT_ENOUGH, Side, Verdict
from prefixscope.analyzer.report.wording import clean, counted, share, tokens, usd
from prefixscope.analyzer.times import iso

_ROWS: tuple[tuple[str, Callable[[Side], str]], ...] = (
    ("calls", lambda side: f"{side.calls:,}"),
    ("days with calls", lambda side: f"{side.days:,}"),
    ("input tokens a call", lambda side: tokens(side.input_tokens / side.calls)),
    ("input $ a call", lambda side: f"{side.usd_per_call:.6f}"),
    ("input $ a million tokens", lambda side: f"{side.usd_per_million:.4f}"),
    ("read from cache", lambda side: share(side.read_share)),
    ("calls with this cause", lambda side: share(side.cause_share)),
)
_SAYS = {
    "verified": "verified: the fix saves",
    "not_confirmed": "not confirmed: no saving can be told from nothing",
    "regressed": "regressed: the fix had saved, and the cause is back",
    NOT_ENOUGH: "not enough data yet",
}


def as_json(told: Told, verdict: Verdict) -> dict[str, Any]:
    """The finding, the verdict, what is missing, and the measure where there is one."""
    names = {name: told.finding[name] for name in ("cause", "service", "provider", "model")}
    head = {"id": told.id, **names, "status": verdict.status, "missing": list(verdict.missing)}
    return head | {"measure": verdict.as_json() if verdict.saved else None}


def lines(told: Told, verdict: Verdict) -> Iterator[str]:
    """The verdict, the money, the calls before and after, and what else changed. All lines are printable."""
    finding = clean(told.finding)
    yield f"{told.id}  {finding['cause']}  {finding['service']}  {finding['model']}"
    back = f", back since {iso(verdict.returned_on)}" if verdict.returned_on else ""
    yield f"   {_SAYS[verdict.status]} (live since {iso(verdict.fixed_on)}{back})"
    yield from (f"   needs {need}" for need in clean(verdict.missing))
    if verdict.missing:
        yield "   what counts are the calls of the last audit: let it see all, without --service, --since or --until"
    if verdict.saved:
        yield from _money(verdict.as_json(), verdict)
    if verdict.before and verdict.after:
        yield from _sides(verdict.before, verdict.after)
    yield from _confounders(verdict)
    if verdict.left_out:
        yield f"   {counted(verdict.left_out, 'call')} without usage or price left out"


def _money(measure: Mapping[str, Any], verdict: Verdict) -> Iterator[str]:
    saved, weekly = measure["saved_usd"], measure["saved_usd_per_week"]
    interval = f"95 % interval {usd(saved['low'])} to {usd(saved['high'])}"
    did = "difference" if verdict.status == "not_confirmed" else "saved"
    yield f"   {did} {usd(saved['estimate'])} ({interval}), {usd(weekly['estimate'])} a week"
    expected, paid = measure["expected_usd"], measure["paid_usd"]
    yield f"   at the old rate these calls would have cost {usd(expected)}, they did cost {usd(paid)}"
    anyway = measure["provider_usd"]
    would = "saves" if anyway >= 0 else "costs, in write premiums,"
    yield f"   without the fix the provider's cache {would} {usd(abs(anyway))} on them; that is not counted"
    if verdict.together_with:
        others = ", ".join(verdict.together_with)
        yield f"   went live with {others}: {share(verdict.share)} of what they saved together, as was promised"


def _sides(before: Side, after: Side) -> Iterator[str]:
    yield f"   {'':26}{'before':>14}{'after':>14}"
    for label, figure in _ROWS:
        yield f"   {label:26}{figure(before):>14}{figure(after):>14}"


def _confounders(verdict: Verdict) -> Iterator[str]:
    if verdict.saved and not verdict.confounders:
        yield "   nothing else changed that the calls tell of"
    for one in verdict.confounders:
        old, new, what = (clean(text) for text in (one.before, one.after, one.what))
        yield f"   also changed: {what}: {old} before, {new} after ({one.treated})"
