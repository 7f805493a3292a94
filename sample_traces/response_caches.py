"""Makes a help desk's traffic to try response caches on: response_caches.jsonl.gz. See README.md beside this file.

Questions come again word for word, in other words, and with a number, a name, a day or a "not" exchanged, which makes
them other questions. Some conversations have a second question that means nothing without the first. The right answer
to some questions changes from day to day, to others it depends on who asks, and some must not be kept at all. A second
service has a semantic cache in front of it, as LiteLLM marks its hits in a log; it does not look at names and numbers.

The texts are in response_caches.toml. The same seed gives the same traffic, byte for byte before compression.
"""

import argparse
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import bodies
import generate
import tokenizer
from schedule import LAST_DAY
from services import GPT_5_1, SONNET_4_5, Model
from simulator import Outcome, simulate
from texts import policy
from traffic import Block, Call, Piece, compact, simulated

SEED, DAYS = 20261124, 7
NAME = "response_caches.jsonl.gz"
Json = dict[str, Any]
_CUSTOMERS = 40
_RULES = 52  # sentences of static rules in the system prompt
_CANCEL = "cancel_order"
_TOOL = {
    "name": _CANCEL,
    "description": "Cancels an order that has not left the shop.",
    "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
}


@dataclass(frozen=True, slots=True)
class Desk:
    """A service that answers customers. ``cached``: calls may be answered by a semantic cache that is in use."""

    name: str
    model: Model
    calls_a_day: int
    cached: bool = False


DESKS = (Desk("help-desk", GPT_5_1, 190), Desk("chat-widget", SONNET_4_5, 45, cached=True))


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, what was said before it, and the answer."""

    question: str
    answer: str
    before: tuple[str, ...] = ()  # question, answer, question, answer...
    customer: str = ""  # "" = the log does not say
    varied: bool = False  # asked for at a temperature above 0
    acts: str = ""  # arguments of the tool that the model calls; "" = it answers
    alike: str = ""  # what two such questions have in common, as far as a careless cache can tell


@cache
def _bank() -> Json:
    return tomllib.loads((Path(__file__).parent / "response_caches.toml").read_text(encoding="utf-8"))


# --- What is asked ----------------------------------------------------------------------------------------------------


def turns(rng: Random, day: int) -> Iterator[Turn]:
    """What one customer asks on that day (0 is the first): one question, or two that belong together."""
    kind = rng.random()
    if kind < 0.12:
        yield from _talk(rng)
    elif kind < 0.15:
        text = _bank()["varied"]
        yield Turn(rng.choice(text["asked"]), rng.choice(text["answers"]), varied=True)
    elif kind < 0.18:
        order = f"F-{rng.randint(10_000, 99_999)}"
        yield Turn(rng.choice(_bank()["acting"]["asked"]).format(order=order), "", acts=compact({"order": order}))
    else:
        yield _single(rng, day)


def _single(rng: Random, day: int) -> Turn:
    topics = _bank()["topic"]
    topic = rng.choices(topics, [topic["weight"] for topic in topics])[0]
    case = _frequent(rng, topic["case"])
    customer = rng.randrange(_CUSTOMERS) if topic.get("personal") else None
    answers = [case["by_day"][min(day, len(case["by_day"]) - 1)]] if "by_day" in case else case["answers"]
    pattern = _frequent(rng, topic["asked"])
    question = pattern.format_map(case)
    return Turn(
        question=question if topic.get("button") else _polite(rng, question),
        answer=_frequent(rng, answers).format(user=7 + (customer or 0)),
        customer="" if customer is None else f"customer-{customer:03}",
        alike=f"{topic['name']} {pattern}",
    )


def _talk(rng: Random) -> Iterator[Turn]:
    talk = rng.choice(_bank()["talk"])
    case = rng.choice(talk["case"])
    opening, told = talk["opening"].format_map(case), talk["told"].format_map(case)
    yield Turn(opening, told)
    name, asked = rng.choice(list(_bank()["follow_ups"].items()))
    answer = (
        f"The {case['bike']} costs {case['facts'][name]}." if name == "price" else f"It weighs {case['facts'][name]}."
    )
    yield Turn(rng.choice(asked), answer, before=(opening, told))


def _frequent(rng: Random, choices: list[Any]) -> Any:
    """One of them, each half as often as the one before it."""
    return rng.choices(choices, [0.5**n for n in range(len(choices))])[0]


def _polite(rng: Random, question: str) -> str:
    """As people write: half of them with a greeting or thanks, some all small."""
    front = rng.choice(_bank()["before"]) if rng.random() < 0.35 else ""
    end = rng.choice(_bank()["after"]) if rng.random() < 0.35 else ""
    asked = f"{front}{question}{end}"
    return asked.lower() if rng.random() < 0.12 else asked


# --- The calls --------------------------------------------------------------------------------------------------------


def traffic(desk: Desk, seed: int) -> list[tuple[Turn, Call]]:
    """A week of calls in the order they were made."""
    rng = Random(f"{seed}/{desk.name}")
    rules = policy(Random(f"{seed}/rules"), "retail", _RULES)
    system = Block("system", "", (Piece(f"{_bank()['system'].strip()}\n\n{rules}"),), ttl="5m")
    made: list[tuple[Turn, Call]] = []
    for day in range(DAYS):
        at = sorted(_daytime(rng, day) for _ in range(desk.calls_a_day))
        sessions = iter(at)
        for start in sessions:
            for number, turn in enumerate(turns(rng, day)):
                moment = start if number == 0 else start + rng.randint(15_000, 60_000)
                made.append((turn, _call(desk, rng, turn, system, moment)))
                if number:
                    next(sessions, None)
    return sorted(made, key=lambda pair: pair[1].at_ms)


def _daytime(rng: Random, day: int) -> int:
    """A moment of that day in ms, most of them around noon."""
    midnight = datetime.combine(LAST_DAY - timedelta(days=DAYS - 1 - day), time(), UTC)
    return int(midnight.timestamp() * 1000) + int(rng.triangular(7, 20, 12) * 3_600_000)


def _call(desk: Desk, rng: Random, turn: Turn, system: Block, at_ms: int) -> Call:
    said = (*turn.before, turn.question)
    messages = [Block("text", "assistant" if n % 2 else "user", (Piece(text),)) for n, text in enumerate(said)]
    ref = f"{rng.getrandbits(64):016x}"
    answer = Block("text", "assistant", (Piece(turn.answer),))
    if turn.acts:
        answer = Block("tool_call", "assistant", (Piece(turn.acts),), name=_CANCEL, ref=ref)
    first = rng.randint(350, 900)
    blocks = (Block("tool", "", (Piece(compact(_TOOL)),)), system, *messages)
    return Call(
        service=desk.name,
        session=f"{desk.name}-{rng.getrandbits(40):010x}",
        key=rng.getrandbits(128),
        at_ms=at_ms,
        ttft_ms=first,
        duration_ms=first + 18 * tokenizer.count(answer.text, desk.model.provider),
        blocks=blocks,
        answer=answer,
    )


# --- The cache that is in use -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _CarelessCache:
    """Serves a question from another one of the same pattern, whatever stands in its slots."""

    rng: Random
    answers: dict[str, tuple[str, str]]  # pattern -> question, answer

    def serve(self, turn: Turn) -> tuple[Turn, float | None]:
        """The turn as the customer saw it, and the similarity where it was a hit."""
        known = self.answers.get(turn.alike)
        if not turn.alike or known is None or self.rng.random() < 0.6:
            self.answers[turn.alike] = turn.question, turn.answer
            return turn, None
        exact = known[0] == turn.question
        return replace(turn, answer=known[1]), 1.0 if exact else round(self.rng.uniform(0.9, 0.97), 3)


def request_log(desk: Desk, seed: int) -> Iterator[Json]:
    """The lines of a service."""
    made = traffic(desk, seed)
    rules = desk.model.rules
    served = simulate([simulated(call, desk.model.provider, desk.model.name) for _, call in made], rules)
    in_use = _CarelessCache(Random(f"{seed}/{desk.name}/cache"), {})
    for (turn, call), outcome in zip(made, served, strict=True):
        seen, similarity = in_use.serve(turn) if desk.cached else (turn, None)
        shown = replace(call, answer=Block("text", "assistant", (Piece(seen.answer),))) if similarity else call
        yield _line(desk, seen, shown, outcome, similarity)


def _line(desk: Desk, turn: Turn, call: Call, outcome: Outcome, similarity: float | None) -> Json:
    ask, answer = bodies.APIS[desk.model.provider]
    request = ask(call, desk)
    request |= {"temperature": 1.0 if turn.varied else 0.0}
    line = bodies.entry(call, request, answer(call, desk, outcome), "")
    if turn.customer:
        line["user_id"] = turn.customer
    if similarity is not None:
        line |= {
            "cache_hit": True,
            "response_headers": {"x-litellm-semantic-similarity": similarity},
            "duration_ms": 12,
        }
    return line


def lines(seed: int = SEED) -> Iterator[Mapping[str, Any]]:
    """The lines of all services, one service after the other."""
    for desk in DESKS:
        yield from request_log(desk, seed)


def write(folder: Path, seed: int = SEED) -> Path:
    """Writes the traffic into ``folder``, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NAME
    generate.write_lines(path, (compact(line) for line in lines(seed)))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a help desk's traffic to try response caches on.")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder to write to (default: this one)"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="another seed asks other questions at other times")
    arguments = parser.parse_args()
    write(arguments.out, arguments.seed)


if __name__ == "__main__":
    main()
