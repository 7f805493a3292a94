"""Realistic texts from a bank of words: policies, questions, answers, notes, tool definitions and tool results.

Every function takes its own source of random numbers, so a text depends on nothing but that.
"""

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

_SLOT = re.compile(r"{(\w+?)(_cap)?}")


@cache
def _bank() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "words.toml").read_text(encoding="utf-8"))


def _number(rng: Random, slot: str) -> str | None:
    if slot == "n":
        return str(rng.randint(2, 48))
    if slot == "pct":
        return f"{rng.randint(11, 940) / 10:.1f}"
    if slot == "amount":
        return f"€{rng.randint(5, 4800)}.{rng.choice(('00', '50', '90'))}"
    return f"{rng.choice('ABCDEFGHKLMNPRSTUVWXYZ')}{rng.randint(10**5, 10**6 - 1)}" if slot == "ref" else None


def _sentence(rng: Random, kind: str, domain: str) -> str:
    """A random sentence of ``kind`` (rules, notes, questions, answers) with its slots filled."""
    bank = _bank()
    slots = bank["slots"] | bank["domains"][domain]

    def fill(match: re.Match[str]) -> str:
        text = _number(rng, match[1]) or str(rng.choice(slots[match[1]]))
        return text[0].upper() + text[1:] if match[2] else text

    return _SLOT.sub(fill, rng.choice(bank[kind]))


def policy(rng: Random, domain: str, sentences: int) -> str:
    """Numbered sections of static rules, about 20 tokens a sentence."""
    lines: list[str] = []
    for n in range(sentences):
        if n % 7 == 0:
            heading = rng.choice(_bank()["domains"][domain]["thing"]).split(" ", 1)[1]
            lines.append(f"\n## {n // 7 + 1}. {heading.capitalize()}")
        lines.append(f"- {_sentence(rng, 'rules', domain)}")
    return "\n".join(lines).strip() + "\n"


def notes(rng: Random, domain: str, sentences: int) -> str:
    """Paragraphs of prose with figures in them, about 25 tokens a sentence."""
    lines = [_sentence(rng, "notes", domain) for _ in range(sentences)]
    return "\n\n".join(" ".join(lines[i : i + 4]) for i in range(0, len(lines), 4))


def question(rng: Random, domain: str) -> str:
    return _sentence(rng, "questions", domain)


def answer(rng: Random, domain: str) -> str:
    return " ".join(_sentence(rng, "answers", domain) for _ in range(rng.randint(1, 3)))


def customer(rng: Random) -> str:
    """A sentence about a customer: it differs from customer to customer, and no pattern tells that it will."""
    names = _bank()["names"]
    person = f"{rng.choice(names['first'])} {rng.choice(names['last'])}"
    company = f"{rng.choice(names['company'])} {rng.choice(names['trade'])}"
    since = f"{rng.choice(_bank()['slots']['month'])} {rng.randint(2017, 2025)}"
    return (
        f"You are assisting {person} of {company}, a customer on the {rng.choice(names['plan'])} plan since {since}.\n"
        f"{company} looks after {rng.randint(3, 900)} seats in {rng.choice(_bank()['slots']['place'])}.\n"
    )


_VERBS = ("get", "list", "search", "update", "create", "close", "export", "compare")
_NOUNS = ("incident", "deployment", "certificate", "node", "volume", "release", "ticket", "dataset", "series", "report")


def tools(rng: Random, domain: str, number: int) -> list[dict[str, Any]]:
    """``number`` distinct tool definitions with ``name``, ``description`` and ``parameters`` (JSON Schema)."""
    names = [f"{verb}_{noun}" for verb in _VERBS for noun in _NOUNS]
    return [_tool(rng, domain, name) for name in rng.sample(names, number)]


def _tool(rng: Random, domain: str, name: str) -> dict[str, Any]:
    noun = name.split("_", 1)[1]
    fields = rng.sample(("zone", "since", "until", "owner", "limit", "severity", "format", "include_closed"), 4)
    properties = {f"{noun}_id": {"type": "string", "description": f"Identifier of the {noun}"}}
    properties |= {f: {"type": "string", "description": _sentence(rng, "rules", domain)} for f in fields}
    schema = {"type": "object", "properties": properties, "required": [f"{noun}_id"], "additionalProperties": False}
    description = f"{name.replace('_', ' ').capitalize()}. {_sentence(rng, 'rules', domain)}"
    return {"name": name, "description": description, "parameters": schema}


def arguments(rng: Random, tool: str) -> str:
    """Compact JSON of arguments for ``tool``, a definition as JSON."""
    fields = list(json.loads(tool)["parameters"]["properties"])
    values = {fields[0]: _number(rng, "ref"), fields[1]: rng.choice(_bank()["slots"]["place"])}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def rows(rng: Random, domain: str, number: int) -> str:
    """What a tool returned: compact JSON of ``number`` records."""
    slots = _bank()["domains"][domain]
    records = [
        {
            "id": _number(rng, "ref"),
            "subject": rng.choice(slots["thing"]),
            "owner": rng.choice(slots["team"]),
            "value": rng.randint(1, 99999) / 100,
            "comment": _sentence(rng, "notes", domain),
        }
        for _ in range(number)
    ]
    return json.dumps({"count": number, "records": records}, ensure_ascii=False, separators=(",", ":"))
