"""Our prices against bills that others were sent: per message of a coding agent, per request of two routers."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from prefixscope.analyzer.prices.money import PriceBook
from prefixscope.otel_plugin.record import Usage
from prefixscope.otel_plugin.usage import from_usage

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
PI, INFRON = DATA / "transcripts" / "pi", DATA / "usage" / "infron"
BOOK = PriceBook()
CENT_OF_A_MICRODOLLAR = Decimal("1e-8")  # the agent adds up floats

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the recorded data is not here")


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line, parse_float=Decimal)


@pytest.mark.parametrize("name", ["before-compaction.jsonl", "large-session.jsonl"])
def test_every_message_of_a_coding_session_costs_what_the_agent_recorded(name: str) -> None:
    """Opus 4.5 and Sonnet 4.5 with five-minute writes: 910 messages, 842 of them with a price above zero."""
    priced = 0
    for message in (line.get("message", {}) for line in _lines(PI / name)):
        if usage := message.get("usage"):
            ours, theirs = _message_cost(message, usage), usage["cost"]["total"]
            assert abs(ours - theirs) < CENT_OF_A_MICRODOLLAR, message["timestamp"]
            priced += theirs > 0
    assert priced > 400


def _message_cost(message: dict[str, Any], usage: dict[str, Any]) -> Decimal:
    tokens = Usage(
        uncached=usage["input"], read=usage["cacheRead"], write_unknown=usage["cacheWrite"], output=usage["output"]
    )
    at = datetime.fromtimestamp(int(message["timestamp"]) / 1000, UTC)
    # the agent knows no size thresholds: its bill is that of a short prompt
    rates = BOOK.rates(message["provider"], message["model"], at)
    assert rates is not None
    return rates.cost(tokens)


# Who sold, who served -> the list that has the price, and USD per million read tokens that the bill is higher by.
# The list lacks the other upstreams (GMICloud, WandB, StreamLake, DeepInfra, Morph, Alibaba, Wafer, Cloudflare), which
# have prices of their own: a router's list price is one for all upstreams, so it fits Baidu's and nobody else's.
KNOWN = {
    ("infron", "deepseek"): ("deepseek", "deepseek-v4-flash", Decimal(0)),
    ("infron", "fireworks"): ("fireworks", "accounts/fireworks/models/deepseek-v4-flash", Decimal("0.0028")),
    ("openrouter", "Fireworks"): ("fireworks", "accounts/fireworks/models/deepseek-v4-flash", Decimal(0)),
    ("openrouter", "Baidu"): ("openrouter", "deepseek/deepseek-v4-flash-20260423", Decimal(0)),
}
CALLS = {("infron", "deepseek"): 218, ("infron", "fireworks"): 315, ("openrouter", "Fireworks"): 10}


@pytest.mark.parametrize("route", KNOWN)
def test_every_request_through_a_router_costs_what_was_billed(route: tuple[str, str]) -> None:
    """To the digits the bill has; one router adds 10 % to Fireworks' read price and to nothing else."""
    provider, model, read_markup = KNOWN[route]
    requests = [row for row in _requests() if (row["provider"], row["provider_name"]) == route]
    assert len(requests) >= CALLS.get(route, 600)
    for row in requests:
        # one upstream counts more reasoning than output; the bill goes by the completion tokens alone
        usage = replace(from_usage(row["usage"], provider=provider), output=row["completion_tokens"])
        rates = BOOK.rates(provider, model, row["at"], input_total=usage.input_total)
        assert rates is not None
        ours = rates.cost(usage) + usage.read * read_markup / 1_000_000
        bill: Decimal = row["cost"]
        rounding = Decimal(1).scaleb(int(bill.as_tuple().exponent)) / 2 if route[0] == "infron" else 0
        assert abs(ours - bill) <= rounding, row["response_id"]


def _requests() -> Iterator[dict[str, Any]]:
    for path in sorted(INFRON.glob("*/benchmark_requests.jsonl")):
        day = datetime.fromisoformat(path.parent.name[-10:]).replace(hour=2)  # in what became DeepSeek's peak hours
        for row in _lines(path):
            yield {**row, "at": day}
