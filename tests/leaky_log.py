"""A small request log with one leak in it: a clock in front of a long system prompt, on an automatic cache."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

CALLS = 40
STATIC = " ".join(f"Rule {n}: answer questions of kind {n % 7} with the facts of page {n % 91}." for n in range(250))
START = datetime(2026, 11, 2, 9, tzinfo=UTC)


def entries(*, service: str = "shop", model: str = "gpt-4.1", day: int = 0) -> Iterator[dict[str, Any]]:
    """One call every two minutes. What the clock moves is never read, so every token is billed in full."""
    for number in range(CALLS):
        at = START + timedelta(days=day, minutes=2 * number)
        system = f"It is {at:%Y-%m-%d %H:%M:%S}. {STATIC}"
        messages = [{"role": "system", "content": system}, {"role": "user", "content": f"question {number}"}]
        details = {"cached_tokens": 0}
        usage = {"prompt_tokens": len(system) // 4, "completion_tokens": 20, "prompt_tokens_details": details}
        yield {
            "timestamp": at.isoformat(),
            "service": service,
            "request": {"model": model, "messages": messages},
            "response": {
                "id": f"{service}-{day}-{number}",
                "object": "chat.completion",
                "model": model,
                "usage": usage,
            },
        }


def write(path: Path, *entries_: dict[str, Any]) -> Path:
    """The entries as JSON lines; without any, those of ``entries()``."""
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries_ or entries()), encoding="utf-8")
    return path
