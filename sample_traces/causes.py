"""Makes the traffic with one leak per cause: request_log.jsonl.gz and answers.json. See README.md beside this file.

The same seed and scale give the same traffic, byte for byte before compression.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import cause_answers
import cause_bodies
import generate
from cause_answers import Planted
from cause_services import SERVICES
from traffic import compact

SEED = 20261123


def traffic(seed: int = SEED, scale: float = 1.0) -> list[Planted]:
    """The traffic of every service; ``scale`` multiplies the days, and the calls with them."""
    days = max(1, round(generate.DAYS * scale))
    return [cause_answers.plant(service, seed, days) for service in SERVICES]


def request_log(made: Iterable[Planted]) -> Iterator[str]:
    """The lines of the request log, one service after the other."""
    for planted in made:
        for line in cause_bodies.log_lines(planted):
            yield compact(line)


def answer(made: list[Planted], seed: int, scale: float) -> dict[str, Any]:
    """Per service what was planted and what mending it is worth; per call, named by its response's id, the cause."""
    services = {planted.service.name: cause_answers.service_answer(planted) for planted in made}
    savings = {name: found["saving_usd"] for name, found in services.items() if found["saving_usd"]}
    return {
        "seed": seed,
        "scale": scale,
        "calls": sum(found["calls"] for found in services.values()),
        "spend_usd": _sum(found["spend_usd"] for found in services.values()),
        "saving_usd": _sum(savings.values()),
        "savings": savings,
        "services": services,
        "causes": {
            cause_bodies.response_id(sent, planted.service): cause
            for planted in made
            for sent, cause in zip(planted.calls, planted.causes, strict=True)
        },
    }


def _sum(amounts: Iterable[str]) -> str:
    return str(sum(map(Decimal, amounts), Decimal(0)))


def write(folder: Path, seed: int = SEED, scale: float = 1.0) -> None:
    """Writes both files into ``folder``, which is made if it is not there."""
    made = traffic(seed, scale)
    folder.mkdir(parents=True, exist_ok=True)
    generate.write_lines(folder / "request_log.jsonl.gz", request_log(made))
    text = json.dumps(answer(made, seed, scale), indent=1, ensure_ascii=False)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Make traffic with one leak per cause, and the answers to it.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("--seed", type=int, default=SEED, help="another seed makes fresh texts, times and ids")
    parser.add_argument("--scale", type=float, default=1.0, help="times ten days; at most 20")
    arguments = parser.parse_args()
    try:
        write(arguments.out, arguments.seed, arguments.scale)
    except LookupError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
