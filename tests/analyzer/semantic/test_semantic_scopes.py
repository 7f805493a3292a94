"""Which scope is chosen, and which wider ones are told."""

import argparse
import csv
import json
from collections.abc import Iterator, Mapping
from itertools import count, product
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from prefixscope.analyzer.semantic import command, labels, terminal
from prefixscope.analyzer.semantic.questions import DEFAULT_SCOPE, SCOPE_FIELDS
from prefixscope.analyzer.semantic.scopes import RISKS, SAFE, VERDICTS, WIDER
from semantic_traffic import line, write

_THINGS = ("ticket", "invoice", "parcel", "contract", "licence", "router", "bicycle", "account", "voucher", "permit",
           "card", "order", "refund", "lease", "policy", "ladder")  # fmt: skip
_VERBS = ("cancel", "renew", "print", "return")
_FORM = {verb: number for number, verb in enumerate(_VERBS, 1)}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFIXSCOPE_KEY", "test")


def _asked(*sides: Mapping[str, Any], differ: bool) -> Iterator[dict[str, Any]]:
    """Each question in two wordings from each side; ``differ``: each side has answers of its own."""
    at = count(step=20)
    for verb, (number, thing) in product(_VERBS, enumerate(_THINGS)):
        for place, side in enumerate(sides):
            answer = f"Fill in form {_FORM[verb]}{number}{place if differ else ''}."
            for wording in ("How does one {0} a {1}?", "How does one {0} a {1} please?"):
                yield line(wording.format(verb, thing), answer, next(at), **side)


def _reported(path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["semantic", str(path), "--json", *arguments])
    assert parsed.run(parsed) == 0
    return json.loads(capsys.readouterr().out)


def _rendered(told: Any) -> str:
    console = Console(width=140)
    with console.capture() as drawn:
        terminal.render(told, console)
    return drawn.get()


def _verdicts(told: Any) -> dict[tuple[str, ...], str]:
    return {tuple(row["fields"]): row["verdict"] for row in told["scopes"]}


def test_users_are_kept_apart_where_their_answers_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The default scope would serve one the answer of the other, word for word even: the narrower one is chosen."""
    path = write(tmp_path / "log.jsonl", list(_asked({"user": "ann"}, {"user": "bob"}, differ=True)))
    told = _reported(path, capsys)
    assert _verdicts(told) == {SCOPE_FIELDS: "chosen", DEFAULT_SCOPE: "too_wrong"}
    assert told["scope"]["fields"] == list(SCOPE_FIELDS)
    assert told["tiers"][0]["calls"] == 0
    added = told["scopes"][1]["added"]
    assert added["wrong"] == added["served"] > 10


def test_users_share_where_their_answers_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Then the default scope saves more, and nothing speaks against it."""
    path = write(tmp_path / "log.jsonl", list(_asked({"user": "ann"}, {"user": "bob"}, differ=False)))
    told = _reported(path, capsys)
    assert _verdicts(told) == {DEFAULT_SCOPE: "chosen", SCOPE_FIELDS: "saves_less"}
    assert told["scopes"][0]["added"]["wrong"] == 0
    assert told["scopes"][0]["saved_usd"] > told["scopes"][1]["saved_usd"] > 0


@pytest.mark.parametrize(
    ("dropped", "sides"),
    [
        ("model", ({"model": "gpt-5.1"}, {"model": "gpt-5-mini"})),
        ("service", ({"service": "help"}, {"service": "shop"})),
        ("settings", ({"temperature": 0}, {})),
    ],
)
def test_a_wider_scope_is_told_and_never_chosen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dropped: str, sides: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    """Where answers agree it is an option with its price and risk; where they do not, that is said."""
    wide = tuple(name for name in DEFAULT_SCOPE if name != dropped)
    for differ, verdict in ((False, "option"), (True, "too_wrong")):
        path = write(tmp_path / f"{differ}.jsonl", list(_asked(*sides, differ=differ)))
        told = _reported(path, capsys)
        assert _verdicts(told) == {DEFAULT_SCOPE: "chosen", wide: verdict}
        row = told["scopes"][1]
        assert row["risks"] == [{"dropped": dropped, "risk": RISKS[dropped]}]
        assert row["saved_usd"] > told["scopes"][0]["saved_usd"]
        assert row["safe"] is False
        assert (row["added"]["wrong"] > 0) is differ
        text = _rendered(told)
        assert (f"--scope {','.join(wide)}" in text) is not differ
        assert f"default without {dropped}" in text


@pytest.mark.parametrize("apart", ["tenant", "account"])
def test_tenants_and_accounts_are_never_put_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], apart: str
) -> None:
    """However well their answers agree: no such scope is even told."""
    path = write(tmp_path / "log.jsonl", list(_asked({apart: "a"}, {apart: "b"}, differ=False)))
    told = _reported(path, capsys)
    assert _verdicts(told) == {DEFAULT_SCOPE: "chosen"}
    kept = {"tenant", "account", "system", "tools"}
    assert all(kept <= set(fields) for fields in (*SAFE, *WIDER))


def test_where_none_keeps_the_budget_the_strictest_is_replayed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the most alike pairs are wrong, they forbid every threshold: they are named, and nobody shares more."""
    queue = tmp_path / "queue.csv"
    path = write(tmp_path / "log.jsonl", list(_asked({"user": "ann"}, {"user": "bob"}, differ=True)))
    _reported(path, capsys, "--review", str(queue))
    with queue.open(encoding="utf-8", newline="") as file:
        pairs = sorted(csv.DictReader(file), key=lambda pair: -float(pair["cosine"]))
    judged = [pair | {"same_answer": "no" if at < len(pairs) / 2 else "yes"} for at, pair in enumerate(pairs)]
    labels.write(queue, judged)
    told = _reported(path, capsys, "--labels", str(queue))
    assert told["budget"]["verdict"]["status"] == "none"
    assert told["scope"]["fields"] == list(SCOPE_FIELDS)
    forbidding = {row["pair"] for row in told["budget"]["forbidden_by"]}
    assert 0 < len(forbidding) <= 5
    assert forbidding <= {pair["pair"] for pair in judged if pair["same_answer"] == "no"}
    assert [way["way"] for way in told["budget"]["ways_out"]] == ["allow_more", "keep_out", "exact_only"]
    needed = told["budget"]["ways_out"][0]["budget"]
    assert _reported(path, capsys, "--labels", str(queue), "--budget", f"{100 * needed:.1f}%")["budget"]["kept"]
    assert "no threshold removes these" in _rendered(told)


def test_what_the_user_names_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A scope or a threshold by name is replayed as it is."""
    path = write(tmp_path / "log.jsonl", list(_asked({"user": "ann"}, {"user": "bob"}, differ=True)))
    for options in (("--scope", ",".join(SCOPE_FIELDS)), ("--threshold", "0.9")):
        assert _reported(path, capsys, *options)["scopes"] == []


def test_no_label_no_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Answers that neither agree nor clearly differ judge nothing: a wider scope is told as not judged."""
    rows = []
    for place, model in enumerate(("gpt-5.1", "gpt-5-mini")):
        for number, thing in enumerate(_THINGS):
            answer = (f"Ask the {thing} desk.", f"The people who handle a {thing} can help you with that.")[place]
            rows.append(line(f"Who knows about a {thing}?", answer, 1000 * place + 20 * number, model=model))
    told = _reported(write(tmp_path / "log.jsonl", rows), capsys)
    wide = tuple(name for name in DEFAULT_SCOPE if name != "model")
    assert _verdicts(told) == {DEFAULT_SCOPE: "chosen", wide: "not_judged"}
    assert told["scopes"][1]["added"]["unjudged"] > 0


KEYS: dict[str, type | tuple[type, ...]] = {
    "fields": list, "verdict": str, "meaning": str, "safe": bool, "calls": int, "share": float, "saved_usd": float,
    "policy": (dict, type(None)), "chosen_on": dict, "checked_on": dict, "shown": bool, "added": (dict, type(None)),
    "risks": list,
}  # fmt: skip


def test_the_contract_of_scopes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys and types of a row, and a meaning for every verdict."""
    path = write(tmp_path / "log.jsonl", list(_asked({"model": "gpt-5.1"}, {"model": "gpt-5-mini"}, differ=False)))
    for row in _reported(path, capsys)["scopes"]:
        assert row.keys() == KEYS.keys()
        assert [name for name, kind in KEYS.items() if not isinstance(row[name], kind)] == []
        assert row["meaning"] == VERDICTS[row["verdict"]]
        measured = [row["chosen_on"], row["checked_on"], *([row["added"]] if row["added"] else [])]
        assert all({"served", "wrong", "rate", "at_most"} <= m.keys() for m in measured)
