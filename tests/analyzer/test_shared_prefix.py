"""Three hundred one-call sessions that share a prefix behind a clock are one leak, not three hundred cold starts."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import auditing
from simulator import Marker, Outcome, Part, Rules, SimCall, simulate

SESSIONS = 300
STATIC = "\n".join(f"Rule {n}: answer questions about item {n} of the catalogue before any other." for n in range(220))
START = datetime(2026, 11, 16, 9, tzinfo=UTC)
# USD a million tokens: input, read, write (5m); gpt-5.1 and claude-sonnet-4-5 as of November 2026
PRICES = {
    "openai": (Decimal("1.25"), Decimal("0.125"), Decimal(0)),
    "anthropic": (Decimal(3), Decimal("0.3"), Decimal("3.75")),
}
RULES = {
    "openai": Rules("automatic", min_tokens=1024, granularity=128, ttl_ms=600_000),
    "anthropic": Rules("explicit", min_tokens=1024),
}


def _tokens(text: str) -> int:
    return len(text) // 4


def _call(provider: str, index: int, *, fixed: bool) -> SimCall:
    """The clock in front of the rules, or behind everything."""
    clock, question = Part(f"clock {index}", 8, 9 if fixed else 0), Part(f"question {index}", 12, 1)
    static = Part("static", _tokens(STATIC), 0)
    parts = (static, question, clock) if fixed else (clock, static, question)
    marker = (Marker(parts.index(static), 300_000),) if provider == "anthropic" else ()
    at = 45_000 * index
    return SimCall(at, at + 900, "scope", parts, marker)


def _cost(provider: str, outcomes: list[Outcome]) -> Decimal:
    base, read, write = PRICES[provider]
    return sum(o.uncached * base + o.read * read + sum(o.writes.values()) * write for o in outcomes) / Decimal(10**6)


def _line(provider: str, index: int, outcome: Outcome) -> dict[str, Any]:
    now = START + timedelta(milliseconds=45_000 * index)
    system = f"It is {now:%Y-%m-%d %H:%M:%S} now.\n{STATIC}"
    question = {"role": "user", "content": f"Where is parcel {chr(97 + index % 26)}{chr(97 + index // 26)} today?"}
    written = sum(outcome.writes.values())
    if provider == "openai":
        request: dict[str, Any] = {"model": "gpt-5.1", "messages": [{"role": "system", "content": system}, question]}
        usage = {
            "prompt_tokens": outcome.read + outcome.uncached,
            "completion_tokens": 40,
            "prompt_tokens_details": {"cached_tokens": outcome.read},
        }
    else:
        block = {"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}
        request = {"model": "claude-sonnet-4-5", "system": [block], "messages": [question], "max_tokens": 100}
        usage = {
            "input_tokens": outcome.uncached,
            "cache_read_input_tokens": outcome.read,
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": 40,
        }
    response = {"id": f"{provider}-{index}", "model": request["model"], "usage": usage}
    return {
        "timestamp": now.isoformat(),
        "service": "support",
        "session_id": f"session {index}",
        "ttft_ms": 900,
        "request": request,
        "response": response,
    }


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_one_finding_with_the_right_value(provider: str, tmp_path: Path) -> None:
    """The saving is what the sequential model says the same calls cost less with the clock moved behind the rules."""
    as_is = simulate([_call(provider, i, fixed=False) for i in range(SESSIONS)], RULES[provider])
    fixed = simulate([_call(provider, i, fixed=True) for i in range(SESSIONS)], RULES[provider])
    log = tmp_path / "calls.jsonl"
    log.write_text("\n".join(json.dumps(_line(provider, i, outcome)) for i, outcome in enumerate(as_is)))
    report = auditing.report([log])
    assert [f["cause"] for f in report["findings"]] == ["volatile_prefix"]
    finding = report["findings"][0]
    assert finding["saving_usd"]["high"] == pytest.approx(
        float(_cost(provider, as_is) - _cost(provider, fixed)), rel=0.02
    )
    assert finding["calls"] == SESSIONS - 1
    assert finding["evidence"]["kinds"] == {"timestamp": SESSIONS}
    assert {row["cause"]: row["calls"] for row in report["causes"] if not row["claimed"]} == {"first_seen": 1}
