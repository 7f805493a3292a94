"""A call of the traffic with one leak per cause: its prompt, and what else decides over what is read from cache."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from services import Model
from simulator import Outcome, Part, Rules, SimCall, simulate
from traffic import Block, Call
from traffic import simulated as simulated_prompt

Level = Literal["tools", "system", "messages"]
TTL_MS = {"5m": 300_000, "30m": 1_800_000, "1h": 3_600_000}
_LEVELS: tuple[Level, ...] = ("tools", "system", "messages")


@dataclass(frozen=True, slots=True)
class Setting:
    """A request field that is part of what a prefix is known by, though it is no text."""

    path: str  # in the request body: "reasoning.effort"
    value: str  # JSON
    level: Level  # the first level that it invalidates when it changes


@dataclass(frozen=True, slots=True)
class Sent:
    """One request with all that its provider's cache looks at."""

    call: Call
    intact: tuple[Block, ...] = ()  # what would have been sent without the planted change; () = what was sent
    settings: tuple[Setting, ...] = ()
    account: str = ""
    region: str = ""
    cache_key: str = ""
    batch: str = ""  # requests that were sent together
    is_diagnosed: bool = False  # its session asks the provider why a prefix was missed

    @property
    def id(self) -> str:
        """Names the call within all of the traffic."""
        return f"{self.call.key:032x}"

    def with_blocks(self, blocks: Iterable[Block]) -> "Sent":
        return replace(self, call=replace(self.call, blocks=tuple(blocks)))


Fix = Callable[[Sequence[Sent]], list[Sent]]


def outcomes(calls: Sequence[Sent], model: Model, rules: Rules | None = None) -> list[Outcome]:
    """What the cache of ``model`` does with one service's calls; under ``rules`` if they are given."""
    return simulate([simulated(sent, model) for sent in calls], rules or model.rules)


def simulated(sent: Sent, model: Model) -> SimCall:
    """``sent`` as the simulator takes it: settings change the first part of their level, the rest is the scope."""
    prompt = simulated_prompt(sent.call, vocabulary(model), model.name)
    parts = tuple(_placed(part, sent.call.blocks[part.block]) for part in prompt.parts)
    scope = (model.provider, model.name, sent.account, sent.region, sent.cache_key)
    return replace(prompt, parts=_with_settings(parts, sent.settings), scope=scope)


def _placed(part: Part, block: Block) -> Part:
    kind = "text" if block.kind == "system" else block.kind
    return Part(part.content, part.tokens, part.block, _LEVELS[level_of(block)], kind, block.role)


def _with_settings(parts: tuple[Part, ...], settings: Iterable[Setting]) -> tuple[Part, ...]:
    found = list(parts)
    for setting in settings:
        level = _LEVELS.index(setting.level)
        first = next(n for n, part in enumerate(found) if _LEVELS.index(part.level) >= level)
        content = (found[first].content, setting.path, setting.value)
        found[first] = replace(found[first], content=content)
    return tuple(found)


def vocabulary(model: Model) -> str:
    """Whose tokenizer counts: Bedrock serves Claude."""
    return "anthropic" if model.provider == "aws" else model.provider


def level_of(block: Block) -> int:
    """0 = tools, 1 = system, 2 = messages."""
    return {"tool": 0, "system": 1}.get(block.kind, 2)


def input_tokens(outcome: Outcome) -> int:
    return outcome.read + outcome.uncached + sum(outcome.writes.values())


def unread(outcome: Outcome) -> int:
    """Input tokens that were not read from cache."""
    return input_tokens(outcome) - outcome.read


def marked(blocks: Sequence[Block], places: Iterable[int], ttl: str) -> tuple[Block, ...]:
    """The blocks with a marker behind each of ``places`` (negative ones count from the end) and no other."""
    chosen = {place % len(blocks) for place in places}
    return tuple(replace(block, ttl=ttl if n in chosen else "") for n, block in enumerate(blocks))


def last_static(blocks: Sequence[Block]) -> int:
    """The place of the last tool or system block."""
    return max(n for n, block in enumerate(blocks) if level_of(block) < 2)
