"""The same leak in the shapes that programs give it: each priced as the sequential model prices it."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import auditing
from simulator import Marker, Outcome, Part, Rules, SimCall, simulate

CALLS = 120
START = datetime(2026, 11, 10, tzinfo=UTC)
WORDS = [
    "policy",
    "refund",
    "customer",
    "order",
    "charge",
    "account",
    "invoice",
    "review",
    "travel",
    "budget",
    "market",
]
_RNG = random.Random(5)


def _prose(lines: int) -> str:
    return "\n".join(f"- When {' '.join(_RNG.choices(WORDS, k=10))}, {_RNG.choice(WORDS)} it." for _ in range(lines))


POLICY = _prose(160)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": f"tool_{number}",
            "description": _prose(3),
            "parameters": {"type": "object", "properties": {f"a{number}": {"type": "string"}, "b": {}, "c": {}}},
        },
    }
    for number in range(12)
]


@dataclass(frozen=True)
class Sent:
    """A request, what it is made of as sent, and with the leak mended; a part is (content, block)."""

    request: dict[str, Any]
    parts: Sequence[tuple[str, int]]
    mended: Sequence[tuple[str, int]]
    marked: str = ""  # Anthropic: the content in front of the breakpoint as sent
    mended_marked: str = ""


Shape = Callable[[int, datetime, random.Random], Sent]


def _question(number: int, rng: random.Random) -> str:
    return f"Where is {rng.choice(WORDS)} {number}?"


def clock_to_the_minute(number: int, now: datetime, rng: random.Random) -> Sent:
    """A clock in the instructions of the Responses API that stands still within a minute."""
    clock, question = f"Today is {now:%A, %d %B %Y %H:%M}.", _question(number, rng)
    request = {"model": "gpt-5.1", "instructions": f"{clock}\n{POLICY}", "input": question}
    return Sent(request, [(clock, 0), (POLICY, 0), (question, 1)], [(POLICY, 0), (question, 1), (clock, 2)])


def question_in_front(number: int, now: datetime, rng: random.Random) -> Sent:
    """No system prompt: the question stands in front of the instructions, in one message."""
    question = _question(number, rng)
    text = f"Question: {question}\n\nInstructions:\n{POLICY}"
    request = {"model": "gpt-5.1", "messages": [{"role": "user", "content": text}]}
    return Sent(request, [(question, 0), (POLICY, 0)], [(POLICY, 0), (question, 1)])


def keys_in_any_order(number: int, now: datetime, rng: random.Random) -> Sent:
    """Tools in one order, the keys of their schemas in another one each time."""
    tools = json.loads(json.dumps(TOOLS))
    for tool in tools:
        keys = list(tool["function"]["parameters"]["properties"].items())
        rng.shuffle(keys)
        tool["function"]["parameters"]["properties"] = dict(keys)
    question = _question(number, rng)
    request = {"model": "gpt-5.1", "tools": tools, "messages": [{"role": "user", "content": question}]}
    sent, sorted_ = ([(json.dumps(tool), i) for i, tool in enumerate(these)] for these in (tools, TOOLS))
    return Sent(request, [*sent, (question, 50)], [*sorted_, (question, 50)])


def folder_in_a_tool(number: int, now: datetime, rng: random.Random) -> Sent:
    """A user's folder in the description of one tool."""
    folder = f"/home/user{rng.randrange(10**6)}/projects"
    tools = json.loads(json.dumps(TOOLS))
    tools[1]["function"]["description"] = f"Runs a command in {folder} and returns what it prints."
    question = _question(number, rng)
    messages = [{"role": "system", "content": POLICY}, {"role": "user", "content": question}]
    before, after = json.dumps(tools[1]).split(folder)
    static = [(json.dumps(tools[0]), 0), (before, 1), (after, 1)]
    static += [(json.dumps(tool), i) for i, tool in enumerate(tools) if i > 1]
    rest = [(POLICY, 50), (question, 51)]
    as_sent = [*static[:2], (folder, 1), *static[2:], *rest]
    return Sent({"model": "gpt-5.1", "tools": tools, "messages": messages}, as_sent, [*static, *rest, (folder, 52)])


def breakpoint_behind_an_id(number: int, now: datetime, rng: random.Random) -> Sent:
    """The only breakpoint stands behind a request id at the end of the system block."""
    tail, question = f"\nRequest {rng.getrandbits(64):016x} at {now.isoformat()}", _question(number, rng)
    block = {"type": "text", "text": POLICY + tail, "cache_control": {"type": "ephemeral"}}
    request = {"model": "claude-sonnet-4-5", "system": [block], "messages": [{"role": "user", "content": question}]}
    return Sent(
        request,
        [(POLICY, 0), (tail, 0), (question, 1)],
        [(POLICY, 0), (question, 1), (tail, 2)],
        marked=tail,
        mended_marked=POLICY,
    )


def shuffled_tools_and_a_clock(number: int, now: datetime, rng: random.Random) -> Sent:
    """Two leaks at once: only both fixes together read the whole."""
    tools = rng.sample(TOOLS, len(TOOLS))
    clock, question = f"It is {now:%Y-%m-%d %H:%M:%S}.\n", _question(number, rng)
    messages = [{"role": "system", "content": clock + POLICY}, {"role": "user", "content": question}]
    sent, sorted_ = ([(json.dumps(tool), i) for i, tool in enumerate(these)] for these in (tools, TOOLS))
    return Sent(
        {"model": "gpt-5.1", "tools": tools, "messages": messages},
        [*sent, (clock, 50), (POLICY, 50), (question, 51)],
        [*sorted_, (POLICY, 50), (question, 51), (clock, 52)],
    )


def one_deploy(number: int, now: datetime, rng: random.Random) -> Sent:
    """A system prompt that was edited once is no leak."""
    policy = POLICY if number < CALLS // 2 else POLICY.replace("When", "If")
    question = _question(number, rng)
    messages = [{"role": "system", "content": policy}, {"role": "user", "content": question}]
    parts = [(policy, 0), (question, 1)]
    return Sent({"model": "gpt-5.1", "messages": messages}, parts, parts)


SHAPES: list[tuple[Shape, list[str]]] = [
    (clock_to_the_minute, ["volatile_prefix"]),
    (question_in_front, ["volatile_prefix"]),
    (keys_in_any_order, ["tools_reordered"]),
    (folder_in_a_tool, ["volatile_prefix"]),
    (breakpoint_behind_an_id, ["volatile_prefix"]),
    (shuffled_tools_and_a_clock, ["tools_reordered", "volatile_prefix"]),
    (one_deploy, []),
]
# gpt-5.1 and claude-sonnet-4-5 in November 2026, USD a million tokens: input, read, write
PRICES = {"gpt-5.1": (1.25, 0.125, 0.0), "claude-sonnet-4-5": (3.0, 0.3, 3.75)}


def test_no_saving_beyond_what_reading_everything_would_save(tmp_path: Path) -> None:
    """A provider that bills no write where the model predicts one is not promised the premium back."""
    log = tmp_path / "calls.jsonl"
    with log.open("w") as file:
        for number in range(CALLS):
            now = START + timedelta(seconds=40 * number)
            one = breakpoint_behind_an_id(number, now, random.Random(number))
            counts = {"input_tokens": 3500, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
            response = {"id": f"r{number}", "model": one.request["model"], "usage": counts | {"output_tokens": 1}}
            line = {"timestamp": now.timestamp(), "service": "s", "request": one.request, "response": response}
            file.write(json.dumps(line) + "\n")
    report = auditing.report([log])
    base, read, _ = PRICES["claude-sonnet-4-5"]
    assert report["findings"]
    assert report["recoverable_usd"]["high"] <= CALLS * 3500 * (base - read) / 1e6
    for finding in report["findings"]:
        assert -sum(row["usd"] for row in finding["formula"]) == pytest.approx(finding["saving_usd"]["high"])


def _simulated(sent: Sequence[Sent], *, mended: bool) -> list[Outcome]:
    calls = []
    for number, one in enumerate(sent):
        contents = one.mended if mended else one.parts
        parts = tuple(Part(content, max(1, len(content) // 4), block) for content, block in contents)
        marked = one.mended_marked if mended else one.marked
        markers = tuple(Marker(i, 300_000) for i, part in enumerate(parts) if part.content == marked)
        calls.append(SimCall(40_000 * number, 40_000 * number + 800, "scope", parts, markers))
    explicit = bool(sent[0].marked)
    return simulate(calls, Rules("explicit", 1024) if explicit else Rules("automatic", 1024, 128, 600_000))


def _cost(outcomes: Sequence[Outcome], model: str) -> float:
    base, read, write = PRICES[model]
    return sum(o.uncached * base + o.read * read + sum(o.writes.values()) * write for o in outcomes) / 1e6


def _usage(outcome: Outcome, request: dict[str, Any]) -> dict[str, Any]:
    written, total = sum(outcome.writes.values()), outcome.read + outcome.uncached
    if "system" in request:
        counts = {"input_tokens": outcome.uncached, "cache_read_input_tokens": outcome.read, "output_tokens": 30}
        return counts | {"cache_creation_input_tokens": written}
    if "input" in request:
        details = {"cached_tokens": outcome.read}
        return {"input_tokens": total, "input_tokens_details": details, "output_tokens": 30, "total_tokens": total + 30}
    details = {"cached_tokens": outcome.read}
    return {"prompt_tokens": total, "completion_tokens": 30, "prompt_tokens_details": details}


@pytest.mark.parametrize(("shape", "causes"), SHAPES, ids=lambda value: getattr(value, "__name__", ""))
def test_shape(shape: Shape, causes: list[str], tmp_path: Path) -> None:
    """The causes are the planted ones, and together they are worth what mending them saves, within 2 %."""
    times = [START + timedelta(seconds=40 * number) for number in range(CALLS)]
    sent = [shape(number, now, random.Random(number)) for number, now in enumerate(times)]
    model = sent[0].request["model"]
    as_sent, mended = (_simulated(sent, mended=mended) for mended in (False, True))
    log = tmp_path / "calls.jsonl"
    with log.open("w") as file:
        for number, (now, one, outcome) in enumerate(zip(times, sent, as_sent, strict=True)):
            response = {"id": f"r{number}", "model": model, "usage": _usage(outcome, one.request)}
            line = {"timestamp": now.timestamp(), "service": "s", "session_id": f"s{number}", "ttft_ms": 800}
            file.write(json.dumps(line | {"request": one.request, "response": response}) + "\n")
    report = auditing.report([log])
    assert sorted(finding["cause"] for finding in report["findings"]) == causes
    saving = _cost(as_sent, model) - _cost(mended, model)
    base, read, _ = PRICES[model]
    # where reads are rounded down to 128, the last step of each call may hang on a single estimated token
    step = 0.0 if sent[0].marked else CALLS * 128 * (base - read) / 1e6
    tolerance = max(0.02 * saving, step if saving else 0.0)
    assert report["recoverable_usd"]["high"] == pytest.approx(saving, abs=tolerance)
