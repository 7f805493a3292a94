"""A published load test as arithmetic: what a task costs without caches, with the provider's, and with a semantic one.

10,000 tasks, 60 % of them repeats in meaning, a system prompt of 1,500 tokens, a question of 50, an answer of 250.
Every repeat is taken as served: that is the most a semantic cache can do, and says nothing of wrong answers. The tasks
follow each other within the lifetime of the provider's cache, so its one write is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from prefixscope.analyzer.cards import card_for
from prefixscope.analyzer.errors import UsageError
from prefixscope.analyzer.prices.money import PriceBook, Rates

MODELS: Final = (("openai", "gpt-6.1-terra"), ("anthropic", "claude-sonnet-5-5"), ("google", "gemini-3.8-flash"))
EMBEDDER: Final = ("openai", "text-embedding-3-small")


@dataclass(frozen=True, slots=True)
class Scenario:
    """The load. Tokens are of one task."""

    tasks: int = 10_000
    repeats: Decimal = Decimal("0.6")
    system: int = 1500
    question: int = 50
    answer: int = 250


@dataclass(frozen=True, slots=True)
class Line:
    """One option at one model, with its arithmetic spelled out. Dollars."""

    model: str
    option: str
    usd_per_task: Decimal
    usd: Decimal
    formula: str


def table(at: datetime, models: Sequence[tuple[str, str]] = MODELS, load: Scenario | None = None) -> list[Line]:
    """Three options for each model at the prices of ``at``.

    Raises:
        UsageError: a model has no price then.
    """
    book, load = PriceBook(), load or Scenario()
    embed = _rates(book, *EMBEDDER, at, load.question).uncached * load.question
    return [line for provider, model in models for line in _lines(book, provider, model, at, load, embed)]


def _rates(book: PriceBook, provider: str, model: str, at: datetime, size: int) -> Rates:
    found = book.rates(provider, model, at, input_total=size)
    if found is None:
        raise UsageError(f"{provider}/{model} has no price at {at:%Y-%m-%d}: choose another model")
    return found


def _lines(  # noqa: PLR0913, PLR0917 - one model under one load
    book: PriceBook, provider: str, model: str, at: datetime, load: Scenario, embed: Decimal
) -> Iterator[Line]:
    rates = _rates(book, provider, model, at, load.system + load.question)
    name = f"{provider}/{model}"
    cached = _cached(provider, model, at, load.system)
    new = load.system + load.question - cached
    plain = rates.uncached * (load.system + load.question) + rates.output * load.answer
    warm = rates.read * cached + rates.uncached * new + rates.output * load.answer
    hit = load.repeats
    both = embed + (1 - hit) * warm
    p_in, p_read, p_out = (f"{_per_million(price)}" for price in (rates.uncached, rates.read, rates.output))
    model_part = f"{cached:,}·{p_read} + {new:,}·{p_in} + {load.answer:,}·{p_out}"
    unit = "$/M"
    yield _line(
        name, "no cache", plain, load, f"{load.system + load.question:,}·{p_in} + {load.answer:,}·{p_out} {unit}"
    )
    yield _line(name, "prompt cache", warm, load, f"{model_part} {unit}")
    tail = f"{load.question}·{_per_million(embed / load.question)} + (1 - {hit})·({model_part}) {unit}"
    yield _line(name, "semantic + prompt cache", both, load, tail)


def _line(model: str, option: str, usd: Decimal, load: Scenario, formula: str) -> Line:
    return Line(model, option, usd, usd * load.tasks, f"{load.tasks:,}·({formula})")


def _per_million(price: Decimal) -> str:
    return f"{(price * 1_000_000).normalize():f}"


def _cached(provider: str, model: str, at: datetime, system: int) -> int:
    """How much of the system prompt the provider's cache can hold: none below its minimum, whole steps above it."""
    card = card_for(provider, model, at.date()).card
    if system < card.min_tokens or card.cache not in {"automatic", "explicit"}:
        return 0
    step = max(int(card.granularity), 1)
    return system // step * step
