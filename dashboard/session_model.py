"""One conversation, turn by turn, through the replay: what caching saves in it, and what a trap takes away again.

Needs no data: the calls are made up from a few sizes and run through the same rule cards and prices as real ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Final

import polars as pl

from prefixscope.analyzer import families, store, traffic
from prefixscope.analyzer.atoms import contents_of
from prefixscope.analyzer.cards import RuleCard, card_for
from prefixscope.analyzer.counting import tokens
from prefixscope.analyzer.ingest import Observed
from prefixscope.analyzer.prices.call_rates import rate_calls
from prefixscope.analyzer.replay import replay
from prefixscope.analyzer.traffic import Traffic
from prefixscope.otel_plugin.record import CallRecord, Fingerprint, Level, Piece, SegmentPrint, Usage

_BYTES: Final = 4  # a token, in made-up text
_CLOCK_BYTES: Final = 20
BUCKETS: Final = ("read", "write_5m", "write_30m", "write_1h", "write_12h", "uncached")


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation. Sizes are tokens."""

    provider: str
    model: str
    static: int  # system prompt and tools, the same in every call
    question: int  # what each turn adds
    answer: int
    turns: int
    pause_minutes: float
    ttl: str = ""  # of explicit breakpoints, behind the static text and at the end; "" = the card's default
    clock: bool = False  # the static text begins with the time
    compact_every: int = 0  # after so many turns the history becomes one summary; 0 = never
    summary: int = 500  # tokens of it


def turns(session: Session, at: datetime) -> pl.DataFrame:
    """What each turn costs. Columns: turn, at (minutes), input, BUCKETS (tokens), usd, usd_uncached; input alone.

    Dollars are null where the model has no price.
    """
    loaded = _traffic(session, at)
    counted = tokens.calibrated(loaded, families.find(loaded))
    outcome = replay(counted)
    frame = pl.DataFrame({"read": outcome.read, "uncached": outcome.uncached, **outcome.writes})
    named = loaded.calls.with_columns(input_total=pl.Series(counted.input_total))
    rates = rate_calls(named).select(pl.selectors.starts_with("rate_").cast(pl.Float64, strict=False))
    return (
        pl.concat([frame, rates], how="horizontal")
        .with_row_index("turn", offset=1)
        .with_columns(input=pl.sum_horizontal(BUCKETS), at=(pl.col("turn") - 1) * session.pause_minutes)
        .with_columns(
            usd=pl.sum_horizontal((pl.col(b) * pl.col(f"rate_{b}") for b in BUCKETS), ignore_nulls=False),
            usd_uncached=pl.col("input") * pl.col("rate_uncached"),
        )
        .select("turn", "at", "input", *BUCKETS, "usd", "usd_uncached")
    )


def card(session: Session, at: datetime) -> RuleCard:
    """The rules that the session runs under."""
    return card_for(session.provider, session.model, at.date()).card


def _traffic(session: Session, at: datetime) -> Traffic:
    """The session's calls as the replay wants them, through a store in memory."""
    everything = {"service": None, "since": None, "until": None}
    with store.opened(None) as opened:
        opened.ingest(_calls(session, at), at=at)
        calls = opened.frame("analysis/calls", **everything)
        contents = contents_of(opened.arrow("analysis/contents"))
        return traffic.load(calls, opened.arrow("analysis/prompts", **everything), contents)


def _calls(session: Session, at: datetime) -> Iterator[Observed]:
    explicit = card(session, at).cache == "explicit"
    ttl = (session.ttl or card(session, at).default_ttl) if explicit else ""
    for turn in range(session.turns):
        prompt = tuple(_prompt(session, turn, ttl))
        sent = at + timedelta(minutes=turn * session.pause_minutes)
        size = sum(segment.size for segment in prompt) // _BYTES
        yield Observed(_record(session, sent, prompt, size), "simulated", turn + 1)


def _record(session: Session, sent: datetime, prompt: tuple[SegmentPrint, ...], size: int) -> CallRecord:
    return CallRecord(
        started_ns=int(sent.timestamp()) * 1_000_000_000,
        service="simulated",
        provider=session.provider,
        model=session.model,
        usage=Usage(
            state="reported", uncached=size, output=session.answer, response_id=f"simulated-{sent:%H%M%S%f}{sent.day}"
        ),
        fingerprint=Fingerprint(1, "simulated", prompt, cache_ttl="" if prompt[0].marker else session.ttl),
        ttft_ms=500.0,
        status=200,
        session_id="simulated",
    )


def _prompt(session: Session, turn: int, ttl: str) -> Iterator[SegmentPrint]:
    """System, history, question; breakpoints behind the system prompt and at the end."""
    clock = (Piece(_id(f"clock {turn}"), _CLOCK_BYTES, "timestamp"),) if session.clock else ()
    static = Piece(_id("static"), max(session.static * _BYTES - _CLOCK_BYTES * len(clock), 1))
    yield _segment("system", "system", (*clock, static), ttl)
    since = turn - turn % session.compact_every if session.compact_every else 0
    if since:
        yield _segment("messages", "user", (Piece(_id(f"summary {since}"), session.summary * _BYTES),), "")
    for earlier in range(since, turn):
        yield _segment("messages", "user", (Piece(_id(f"question {earlier}"), session.question * _BYTES),), "")
        yield _segment("messages", "assistant", (Piece(_id(f"answer {earlier}"), session.answer * _BYTES),), "")
    yield _segment("messages", "user", (Piece(_id(f"question {turn}"), session.question * _BYTES),), ttl)


def _segment(level: Level, role: str, pieces: tuple[Piece, ...], marker: str) -> SegmentPrint:
    content = _id("".join(f"{piece.content_id:x}" for piece in pieces))
    return SegmentPrint(
        level, "text", role, sum(piece.size for piece in pieces), content, content, content, pieces, marker
    )


def _id(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def today() -> datetime:
    """This morning, UTC: prices and rules as they are now."""
    return datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC) + timedelta(hours=8)
