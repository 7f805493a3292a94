"""How a service puts its prompts together: well, or with a planted fault. One function a way, one call a turn.

Faults of texts that stand in front (a clock, an id, a customer) are in fronts.py and are only put to use here.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from random import Random

import fronts
import texts
from fronts import Front, Now, Static
from planted import Level, Sent, Setting, vocabulary
from schedule import LAST_DAY
from services import Model
from traffic import Block, Call, Piece, compact
from turns import Turn, call, last_marked, plain_front, system, text


@dataclass(frozen=True, slots=True)
class Setup:
    """What all calls of a service have in common. TTLs are those of its markers, "" sets none."""

    name: str
    model: Model
    domain: str
    static: Static
    front_ttl: str
    last_ttl: str
    assemble: "Assembly"

    def call(self, turn: Turn, blocks: tuple[Block, ...]) -> Call:
        return call(self.name, turn, self.ending(blocks), vocabulary(self.model))

    def ending(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        return last_marked(blocks, self.last_ttl) if self.last_ttl else blocks

    @property
    def front(self) -> tuple[Block, ...]:
        return plain_front(self.static, self.front_ttl)


Assembly = Callable[[Setup, Turn], Sent]
_WINDOW = 9  # messages that a sliding window keeps; odd, so that it begins with a question
_KEPT_RESULTS = 3
_COMPACTED_AT = 6  # the turn at which the history is replaced by a summary


def plain(setup: Setup, turn: Turn) -> Sent:
    return Sent(setup.call(turn, (*setup.front, *turn.messages)))


def fronted(front: Front) -> Assembly:
    """The front that fronts.py makes, with the service's marker behind it."""

    def assemble(setup: Setup, turn: Turn) -> Sent:
        made = front(setup.static, Now(turn.at_ms, turn.session_random("front"), turn.random("front")))
        marked = (*made[:-1], replace(made[-1], ttl=setup.front_ttl))
        return Sent(setup.call(turn, (*marked, *turn.messages)))

    return assemble


def minute_in_front(fixed: Static, now: Now) -> tuple[Block, ...]:
    clock = datetime.fromtimestamp(now.at_ms // 1000, UTC).strftime("%Y-%m-%d %H:%M")
    return (system(Piece(f"Local time: {clock}\n\n", volatile=True), Piece(fixed.head + fixed.tail)),)


def keys_in_random_order(fixed: Static, now: Now) -> tuple[Block, ...]:
    tools = (replace(tool, pieces=(Piece(_shuffled(tool.text, now.call)),)) for tool in fixed.tools)
    return (*tools, system(Piece(fixed.head + fixed.tail)))


def clock_behind_shuffled_tools(fixed: Static, now: Now) -> tuple[Block, ...]:
    *tools, _ = fronts.tools_in_random_order(fixed, now)
    return (*tools, *fronts.clock_in_front(fixed, now))


def _shuffled(tool: str, rng: Random) -> str:
    """The tool with the keys of its parameters in a random order."""
    definition = json.loads(tool)
    properties = definition["parameters"]["properties"]
    definition["parameters"]["properties"] = {
        name: properties[name] for name in rng.sample([*properties], len(properties))
    }
    return compact(definition)


def toggled(path: str, level: Level, values: tuple[str, ...]) -> Assembly:
    """A setting with one value after the other, turn by turn; "" leaves it out."""

    def assemble(setup: Setup, turn: Turn) -> Sent:
        value = values[turn.number % len(values)]
        settings = (Setting(path, value, level),) if value else ()
        return replace(plain(setup, turn), settings=settings)

    return assemble


def fresh_key(setup: Setup, turn: Turn) -> Sent:
    return replace(plain(setup, turn), cache_key=f"{turn.random('cache key').getrandbits(64):016x}")


def one_key(setup: Setup, turn: Turn) -> Sent:
    return replace(plain(setup, turn), cache_key=setup.name)


def alternating_accounts(setup: Setup, turn: Turn) -> Sent:
    return replace(plain(setup, turn), account=turn.random("account").choice(("team-blue", "team-green")))


def alternating_regions(setup: Setup, turn: Turn) -> Sent:
    return replace(plain(setup, turn), region=turn.random("region").choice(("eu-central-1", "eu-west-1", "eu-north-1")))


def one_region(setup: Setup, turn: Turn) -> Sent:
    return replace(plain(setup, turn), region="eu-central-1")


def tools_come_and_go(setup: Setup, turn: Turn) -> Sent:
    """The last two tools are those of a server that connects after the first turn and drops out again at times."""
    rng = turn.session_random("tools")
    absent = [0 if number and rng.random() < 0.6 else rng.choice((1, 2)) for number in range(turn.number + 1)][-1]
    tools = setup.static.tools[: len(setup.static.tools) - absent]
    front = plain_front(replace(setup.static, tools=tools), setup.front_ttl)
    return Sent(setup.call(turn, (*front, *turn.messages)))


def edited_on(days_back: tuple[int, ...], hour: int) -> Assembly:
    """A deploy on each of those days (counted back from the last) changes a few lines amid the system prompt.

    It comes twelve minutes after the hour, when conversations are under way.
    """
    last = datetime.combine(LAST_DAY, time(hour, 12), UTC)
    deploys = [(last - timedelta(days=back)).timestamp() * 1000 for back in days_back]

    def assemble(setup: Setup, turn: Turn) -> Sent:
        made, intact = (
            (*_versioned(setup, version), *turn.messages) for version in (sum(turn.at_ms >= d for d in deploys), 0)
        )
        return Sent(setup.call(turn, made), setup.ending(intact))

    return assemble


def _versioned(setup: Setup, version: int) -> tuple[Block, ...]:
    line = texts.policy(Random(f"{setup.name}/{version}"), "research", 3)
    pieces = Piece(setup.static.head), Piece(f"\n# In force now\n\n{line}"), Piece(setup.static.tail)
    return (*setup.static.tools, system(*pieces, ttl=setup.front_ttl))


def old_results_cleared(setup: Setup, turn: Turn) -> Sent:
    """Of the tools' results only the latest are sent; older ones are replaced by a word where they stand."""
    results = [n for n, block in enumerate(turn.messages) if block.kind == "tool_result"]
    old = set(results[:-_KEPT_RESULTS])
    kept = tuple(replace(b, pieces=(Piece("[cleared]"),)) if n in old else b for n, b in enumerate(turn.messages))
    return Sent(setup.call(turn, (*setup.front, *kept)), setup.ending((*setup.front, *turn.messages)))


def sliding_window(setup: Setup, turn: Turn) -> Sent:
    """Only the latest messages are sent."""
    whole = (*setup.front, *turn.messages)
    return Sent(setup.call(turn, (*setup.front, *turn.messages[-_WINDOW:])), setup.ending(whole))


def compacted(setup: Setup, turn: Turn) -> Sent:
    """From some turn on a summary stands for everything before it."""
    whole = (*setup.front, *turn.messages)
    if turn.number < _COMPACTED_AT:
        return Sent(setup.call(turn, whole))
    answers = [n for n, block in enumerate(turn.messages) if block.role == "assistant"]
    summary = texts.notes(turn.session_random("summary"), "research", 26)
    opening = text("user", f"This conversation continues an earlier one. Summary of what was said:\n\n{summary}")
    recent = turn.messages[answers[_COMPACTED_AT - 1] + 1 :]
    return Sent(setup.call(turn, (*setup.front, opening, *recent)), setup.ending(whole))


def hour_until(days_back: int) -> Assembly:
    """Markers ask for 1h until that day (counted back from the last), for 5m from then on."""
    midnight = datetime.combine(LAST_DAY - timedelta(days=days_back), time(), UTC)
    switch_ms = midnight.timestamp() * 1000

    def assemble(setup: Setup, turn: Turn) -> Sent:
        long = replace(setup, front_ttl="1h", last_ttl="1h")
        now = long if turn.at_ms < switch_ms else replace(setup, front_ttl="5m", last_ttl="5m")
        whole = long.ending((*long.front, *turn.messages))
        return Sent(now.call(turn, (*now.front, *turn.messages)), whole)

    return assemble
