"""Makes the sample traffic: request_log.jsonl.gz, otlp.jsonl.gz and answers.json. See README.md beside this file.

The same seed and scale give the same traffic, byte for byte before compression.
"""

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import answers
import bodies
import sessions
import spans
from schedule import LAST_DAY
from services import SERVICES, Service
from simulator import Outcome
from traffic import Call, compact

DAYS = 10  # at scale 1
SEED = 20261122


@dataclass(frozen=True, slots=True)
class Traffic:
    """A service, its calls in the order they were made, and what the simulator says of each."""

    service: Service
    calls: list[Call]
    outcomes: list[Outcome]


def traffic(seed: int = SEED, scale: float = 1.0) -> list[Traffic]:
    """The traffic of every service; ``scale`` multiplies the days, and the calls with them."""
    made = [(service, sessions.calls(service, seed, _days(scale))) for service in SERVICES]
    return [Traffic(service, calls, answers.outcomes(service, calls)) for service, calls in made]


def _days(scale: float) -> int:
    return max(1, round(DAYS * scale))


def request_log(made: Iterable[Traffic]) -> Iterator[str]:
    """The lines of the request log, one service after the other, as if their logs had been put together."""
    for t in made:
        for call, outcome in zip(t.calls, t.outcomes, strict=True):
            yield compact(bodies.log_line(call, t.service, outcome))


def otlp(made: Iterable[Traffic]) -> Iterator[str]:
    """The lines of the OTLP export, one service after the other."""
    for t in made:
        for line in spans.lines(t.service, list(zip(t.calls, t.outcomes, strict=True))):
            yield compact(line)


def answer(made: list[Traffic], seed: int, scale: float) -> dict[str, Any]:
    """The known answers: per service, in total, per planted leak, and who is healthy."""
    services = {t.service.name: answers.service_answer(t.service, t.calls, t.outcomes) for t in made}
    midnight = datetime.combine(LAST_DAY + timedelta(days=1), time(), UTC)
    return {
        "seed": seed,
        "scale": scale,
        "from": (midnight - timedelta(days=_days(scale))).isoformat(),
        "until": midnight.isoformat(),
        "total": answers.total(list(services.values())),
        "services": services,
        "leaks": [
            answers.leak_answer(t.service, t.calls, t.outcomes, t.service.cause) for t in made if t.service.cause
        ],
        "healthy": [t.service.name for t in made if not t.service.cause],
    }


def write(folder: Path, seed: int = SEED, scale: float = 1.0) -> None:
    """Writes the three files into ``folder``, which is made if it is not there."""
    made = traffic(seed, scale)
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "request_log.jsonl.gz", request_log(made))
    write_lines(folder / "otlp.jsonl.gz", otlp(made))
    text = json.dumps(answer(made, seed, scale), indent=2, ensure_ascii=False)
    (folder / "answers.json").write_text(text + "\n", encoding="utf-8")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Gzip without name and time of day, so that equal lines make equal files."""
    with path.open("wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
        file.writelines(f"{line}\n".encode() for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Make sample traffic with known answers.")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parent, help="folder to write to (default: this one)"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="another seed makes fresh texts, times and ids")
    parser.add_argument("--scale", type=float, default=1.0, help="times ten days, some 2,100 calls; at most 20")
    arguments = parser.parse_args()
    try:
        write(arguments.out, arguments.seed, arguments.scale)
    except LookupError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
