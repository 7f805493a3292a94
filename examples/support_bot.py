"""A help desk that answers twenty questions twice: with OpenAI, and with Anthropic and tools. It knows no telemetry.

    export OTEL_TRACES_EXPORTER=none OTEL_METRICS_EXPORTER=none OTEL_LOGS_EXPORTER=none  # or your own
    opentelemetry-instrument python examples/support_bot.py
    prefixscope audit ~/.local/state/prefixscope/spool

Two habits of it keep the prompt cache from working: the clock stands at the beginning of the system prompt, and the
tools come in whatever order a set has. ``--tidy`` shows what both cost: the same program without them.
"""

# ruff: noqa: INP001, T201 - a program to read and to run, no part of a package

import argparse
import json
import random
from datetime import UTC, datetime
from typing import Any

import anthropic
import openai

ARTICLES = ("lamp", "kettle", "bicycle", "tent", "keyboard", "violin", "globe", "telescope", "blanket", "clock")
HANDBOOK = "\n".join(
    f"{number}. The {article} (article {1000 + 37 * number}) ships within {number % 5 + 1} days, weighs "
    f"{3 * number + 1} kilograms, is taken back within {14 + number} days and repaired in workshop {number % 7}. "
    "Never promise more."
    for number, article in enumerate(ARTICLES * 8, 1)
)
QUESTIONS = [f"May I return my {ARTICLES[number % 10]} after {number + 3} days?" for number in range(20)]
TOOLS: list[Any] = [
    {
        "name": f"look_up_{topic}",
        "description": f"Look up the {topic} of an order. Ask for the order number first, and never guess it.",
        "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
    }
    for topic in ("status", "address", "invoice", "refund", "warranty", "carrier")
]


def system(*, tidy: bool) -> str:
    """What the model is told of its work."""
    rules = f"You work at the help desk of a shop. Its handbook:\n{HANDBOOK}"
    return rules if tidy else f"It is {datetime.now(UTC).isoformat()}. {rules}"


def ask_openai(client: openai.OpenAI, question: str, *, tidy: bool) -> str:
    """A streamed answer, which tells its usage because it is asked to."""
    stream = client.chat.completions.create(
        model="gpt-5.1",
        messages=[{"role": "system", "content": system(tidy=tidy)}, {"role": "user", "content": question}],
        stream=True,
        stream_options={"include_usage": True},
    )
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)


def ask_anthropic(client: anthropic.Anthropic, question: str, *, tidy: bool) -> str:
    """An answer with tools; a breakpoint behind the system prompt caches both."""
    tools = TOOLS if tidy else random.sample(TOOLS, len(TOOLS))
    answer = client.messages.create(
        model="claude-sonnet-4-5-20250929",
        max_tokens=300,
        tools=tools,
        system=[{"type": "text", "text": system(tidy=True), "cache_control": {"type": "ephemeral"}}],
        messages=[{"role": "user", "content": question}],
    )
    return "".join(block.text for block in answer.content if block.type == "text")


def main() -> None:
    """Asks everything, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tidy", action="store_true", help="without the two habits")
    tidy = parser.parse_args().tidy
    with openai.OpenAI() as first, anthropic.Anthropic() as second:
        answers = {
            question: [ask_openai(first, question, tidy=tidy), ask_anthropic(second, question, tidy=tidy)]
            for question in QUESTIONS
        }
    print(json.dumps(answers, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
