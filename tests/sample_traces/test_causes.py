"""The traffic with one leak per cause: its files agree with its answers, and the answers with what is planted."""

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import answers
import cause_answers
import cause_fixes
import causes
import planted
from cause_answers import Planted, cost, gains, tolerance
from cause_services import SERVICES
from planted import Sent, input_tokens, outcomes, unread
from planted_service import verdict

Json = dict[str, Any]

SMALL_SEED, ONE_DAY = 7, 0.1
NAMES = [service.name for service in SERVICES]
PAYING = [service.name for service in SERVICES if verdict(service) == "actionable"]


@cache
def made() -> dict[str, Planted]:
    return {traffic.service.name: traffic for traffic in causes.traffic()}


@cache
def known() -> Json:
    return causes.answer(list(made().values()), causes.SEED, 1.0)


@cache
def log() -> list[Json]:
    return [json.loads(line) for line in causes.request_log(made().values())]


# --- The files --------------------------------------------------------------------------------------------------------


def test_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    """Two runs differ in nothing."""
    runs = [tmp_path / "one", tmp_path / "two"]
    for folder in runs:
        causes.write(folder, SMALL_SEED, ONE_DAY)
    found = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in runs]
    assert set(found[0]) == {"request_log.jsonl.gz", "answers.json"}
    assert found[0] == found[1]


def test_command_line_writes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--out``, ``--seed`` and ``--scale`` are obeyed; no prompt of one seed occurs with another."""
    monkeypatch.setattr("sys.argv", ["causes.py", "--out", str(tmp_path), "--seed", "3", "--scale", "0.1"])
    causes.main()
    found = json.loads((tmp_path / "answers.json").read_text(encoding="utf-8"))
    lines = gzip.decompress((tmp_path / "request_log.jsonl.gz").read_bytes()).splitlines()
    assert (found["seed"], found["scale"], found["calls"]) == (3, 0.1, len(lines))
    fresh = {json.dumps(json.loads(line)["request"]) for line in lines}
    assert not fresh & {json.dumps(line["request"]) for line in log()}


def test_too_large_a_scale_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Days before a model had a price are refused with a sentence, not a traceback."""
    monkeypatch.setattr("sys.argv", ["causes.py", "--out", "."])
    monkeypatch.setattr(causes, "write", lambda *_: answers.cost({"read": 1}, "openai", "gpt-5.1", 0))
    with pytest.raises(SystemExit, match="2"):
        causes.main()
    assert "choose a smaller scale" in capsys.readouterr().err


def test_every_call_has_an_answer_of_its_own() -> None:
    """Response ids, or request ids where an API has none, are unique, and each is in the answers."""
    ids = [line["request_id"] if "request_id" in line else line["response"].get("id") for line in log()]
    ids = [name or line["response"]["responseId"] for name, line in zip(ids, log(), strict=True)]
    assert len(ids) == len(set(ids)) == known()["calls"]
    assert set(ids) == set(known()["causes"])


# --- The answers agree with the files ---------------------------------------------------------------------------------


def usage(line: Json) -> Counter[str] | None:
    """Tokens by bucket as the provider's response states them."""
    response = line["response"]
    if found := response.get("usageMetadata"):
        read = found.get("cachedContentTokenCount", 0)
        return Counter(uncached=found["promptTokenCount"] - read, read=read, output=found["candidatesTokenCount"])
    if not (found := response.get("usage")):
        return None
    if "cache_creation" in found:
        writes = {f"write_{ttl}": found["cache_creation"][f"ephemeral_{ttl}_input_tokens"] for ttl in ("5m", "1h")}
        cached = {"uncached": found["input_tokens"], "read": found["cache_read_input_tokens"]}
        return Counter(cached | writes | {"output": found["output_tokens"]})
    if "inputTokens" in found:
        writes = {f"write_{detail['ttl']}": detail["inputTokens"] for detail in found["cacheDetails"]}
        assert sum(writes.values()) == found["cacheWriteInputTokens"]
        cached = {"uncached": found["inputTokens"], "read": found["cacheReadInputTokens"]}
        return Counter(cached | writes | {"output": found["outputTokens"]})
    details = found.get("input_tokens_details") or found["prompt_tokens_details"]
    total, output = (found.get(f"{new}_tokens", found.get(f"{old}_tokens")) for new, old in _OPENAI_NAMES)
    assert found["total_tokens"] == total + output
    read, written = details["cached_tokens"], details.get("cache_write_tokens", 0)
    return Counter(uncached=total - read - written, read=read, write_30m=written, output=output)


_OPENAI_NAMES = (("input", "prompt"), ("output", "completion"))


def at_ms(line: Json) -> int:
    return int(datetime.fromisoformat(line["timestamp"]).timestamp() * 1000)


def test_answers_are_what_the_log_adds_up_to() -> None:
    """Calls, tokens and spend of each service can be computed again from its responses alone."""
    tokens: dict[str, Counter[str]] = defaultdict(Counter)
    spend: dict[str, Decimal] = defaultdict(Decimal)
    for line in log():
        if found := usage(line):
            service = known()["services"][line["service"]]
            tokens[line["service"]] += found
            spend[line["service"]] += answers.cost(found, service["provider"], service["model"], at_ms(line))
    for name, service in known()["services"].items():
        assert {bucket: tokens[name][bucket] for bucket in cause_answers.BUCKETS} == service["tokens"], name
        assert spend[name] == Decimal(service["spend_usd"]), name


def test_prices_are_those_of_genai_prices() -> None:
    """The small table agrees with the library that the audit prices with, call by call."""
    prices = pytest.importorskip("genai_prices")
    for line in log()[::17]:
        if not (tokens := usage(line)):
            continue
        service = known()["services"][line["service"]]
        counted = prices.Usage(
            input_tokens=sum(tokens.values()) - tokens["output"],
            cache_read_tokens=tokens["read"],
            cache_write_tokens=tokens["write_5m"] + tokens["write_30m"] + tokens["write_1h"],
            cache_write_1h_tokens=tokens["write_1h"],
            output_tokens=tokens["output"],
        )
        when = datetime.fromisoformat(line["timestamp"])
        priced = prices.calc_price(
            counted, service["model"], provider_id=service["provider"], genai_request_timestamp=when
        )
        assert priced.total_price == answers.cost(tokens, service["provider"], service["model"], at_ms(line))


# --- What is planted --------------------------------------------------------------------------------------------------


def test_every_cause_is_planted() -> None:
    """Each cause of the design has a service of its own, and at least one call that suffers from it."""
    planted_causes = {service.cause for service in SERVICES} - {""}
    assert planted_causes == {
        *("volatile_prefix", "tools_reordered", "tools_changed", "settings_changed", "split_scope"),
        *("ttl_lapse", "ttl_class_switched", "system_edited", "history_rewritten", "history_pruned"),
        *("compacted", "forked", "parallel_cold_start", "no_marker", "marker_misplaced", "write_churn"),
        *("below_minimum", "first_seen", "provider_side", "unknown_usage"),
    }
    for traffic in made().values():
        assert not traffic.service.cause or traffic.causes.count(traffic.service.cause) > 1


@pytest.mark.parametrize("name", NAMES)
def test_calls_suffer_from_what_is_planted_or_from_nothing(name: str) -> None:
    """Beside the service's own cause there are only cold calls, lapses over pauses, and ordinary calls."""
    found = {*made()[name].causes} - {made()[name].service.cause}
    assert found <= {"", "first_seen", "ttl_lapse"}


@pytest.mark.parametrize("name", NAMES)
def test_no_answer_hangs_on_a_threshold(name: str) -> None:
    """What a fault costs a call is far from what counts as nothing, and what a call reads is far from half of it.

    Reads that are rounded may differ by a step, which counts as nothing.
    """
    traffic = made()[name]
    step = traffic.service.model.rules.granularity
    limits = [tolerance(traffic.service, outcome) for outcome in traffic.cached]
    close = [
        n for n, gain in enumerate(_measured(traffic)) if max(0.6 * limits[n], 1.01 * step) < gain < 1.3 * limits[n]
    ]
    assert len(close) <= 0.01 * len(traffic.calls) + 1
    undecided = zip(traffic.causes, traffic.served, strict=True)
    assert not [o for cause, o in undecided if cause in {"", "first_seen"} and 0.4 < o.read / input_tokens(o) < 0.6]


def _measured(traffic: Planted) -> list[int]:
    return gains(traffic) if traffic.service.cause not in {"", "write_churn"} else []


@pytest.mark.parametrize("name", PAYING)
def test_every_fix_is_worth_a_tenth_of_its_service(name: str) -> None:
    """A leak that nobody would mend is no test of a tool that finds leaks."""
    answer = known()["services"][name]
    assert Decimal(answer["spend_usd"]) > Decimal(answer["saving_usd"]) > Decimal(answer["spend_usd"]) / 10


def test_what_is_only_told_of_does_not_pay_much() -> None:
    """1h for quick-agent would cost more than it saves; nothing is gained where nothing can be mended."""
    for name in ("quick-agent", "summarised", "tiny-prompts", "below-the-minimum", "one-off-reports", "silent-streams"):
        assert made()[name].saving <= 0, name


def test_savings_add_up() -> None:
    """What all fixes together are worth is what they are worth one by one: services share no prefix."""
    models: dict[str, list[Planted]] = defaultdict(list)
    for traffic in made().values():
        models[traffic.service.model.name].append(traffic)
    for together in models.values():
        model = together[0].service.model
        mended = [sent for traffic in together for sent in _mended(traffic)]
        alone = [outcome for traffic in together for outcome in outcomes(_mended(traffic), model)]
        assert outcomes(mended, model) == alone
    assert Decimal(known()["saving_usd"]) == sum(map(Decimal, known()["savings"].values()))
    assert set(known()["savings"]) == set(PAYING)


def _mended(traffic: Planted) -> list[Sent]:
    return traffic.mended if verdict(traffic.service) == "actionable" else traffic.calls


MARKERS = (
    cause_fixes.hour_long,
    cause_fixes.marked_static,
    cause_fixes.marked_static_and_last,
    cause_fixes.marked_last_two_turns,
    cause_fixes.unmarked_documents,
)
TEXTS = (cause_fixes.moved_volatile, cause_fixes.one_order, cause_fixes.all_tools)
SCOPES = (cause_fixes.pinned, cause_fixes.one_scope, cause_fixes.first_ahead)


@pytest.mark.parametrize("name", NAMES)
def test_no_other_fix_pays(name: str) -> None:
    """Once a service's own fix is on, no other saves more than a few per mille; three days show it."""
    service = made()[name].service
    traffic = cause_answers.plant(service, causes.SEED, 3)
    start = _mended(traffic)
    as_is = cost(service, start, outcomes(start, service.model))
    for fix in (*TEXTS, *SCOPES, *(MARKERS if service.api in {"messages", "converse"} else ())):
        mended = fix(start)
        if mended != start:
            assert cost(service, mended, outcomes(mended, service.model)) > as_is * Decimal("0.99"), fix.__name__


def test_healthy_services_read_what_they_can() -> None:
    """Most of what they send is read from cache."""
    for service in SERVICES:
        if not service.cause:
            tokens = known()["services"][service.name]["tokens"]
            share = tokens["read"] / sum(count for bucket, count in tokens.items() if bucket != "output")
            assert share > 0.6, service.name


# --- What single services are about -----------------------------------------------------------------------------------


def sessions(name: str) -> Iterator[list[Sent]]:
    found: dict[str, list[Sent]] = defaultdict(list)
    for sent in made()[name].calls:
        found[sent.call.session].append(sent)
    yield from found.values()


def test_forks_go_on_from_another_session() -> None:
    """A child's first prompt begins with one of its parent's, further back than a marker looks, and reads nothing."""
    prompts = {tuple(block.text for block in sent.call.blocks) for sent in made()["forked-sessions"].calls}
    traffic = made()["forked-sessions"]
    for sent, outcome, cause in zip(traffic.calls, traffic.served, traffic.causes, strict=True):
        if cause == "forked":
            texts = tuple(block.text for block in sent.call.blocks)
            shared = max(n for n in range(len(texts)) if texts[:n] in prompts)
            assert len(texts) - shared >= 20
            assert outcome.read == 0


def test_bursts_are_sent_before_the_first_response_begins() -> None:
    """Six to ten requests on one document, all of them under way when the first token comes."""
    for name in ("burst-of-questions", "burst-unmarked"):
        batches: dict[str, list[Sent]] = defaultdict(list)
        for sent in made()[name].calls:
            batches[sent.batch].append(sent)
        for batch in batches.values():
            assert 6 <= len(batch) <= 10
            assert max(s.call.at_ms for s in batch) < min(s.call.at_ms + s.call.ttft_ms for s in batch)


def test_a_deploy_is_felt_once_by_each_conversation() -> None:
    """One deploy leaves a handful of calls that read less: the first with the new prompt, and those under way."""
    found = made()["deployed-once"].causes.count("system_edited")
    assert 1 < found < 10


@pytest.mark.parametrize("name", [service.name for service in SERVICES if service.is_diagnosed])
def test_providers_name_the_planted_cause(name: str) -> None:
    """Half of the sessions ask for a diagnosis; a reason is given where the planted fault cost something, else none."""
    lines = [line for line in log() if line["service"] == name]
    asked = [line for line in lines if "diagnostics" in line["request"] or "prompt_cache_options" in line["request"]]
    assert 0.2 * len(lines) < len(asked) < 0.8 * len(lines)
    told = [(known()["causes"][line["response"]["id"]], _reason(line)) for line in asked]
    assert {reason for cause, reason in told if cause == made()[name].service.cause} >= {_expected(name)}
    assert {reason for cause, reason in told if cause != made()[name].service.cause} <= {""}


def _reason(line: Json) -> str:
    response = line["response"]
    if "prompt_cache_diagnostics" in response:
        return str(response["prompt_cache_diagnostics"].get("reason", ""))
    return str(response["diagnostics"]["cache_miss_reason"]["type"]) if response.get("diagnostics") else ""


def _expected(name: str) -> str:
    return {
        "request-id": "system_changed",
        "tool-keys-shuffled": "tools_changed",
        "tools-of-a-marked-server": "tools_changed",
        "effort-alternating": "reasoning_effort_changed",
        "fresh-cache-key": "prompt_cache_key_changed",
        "results-cleared": "messages_changed",
        "summarised": "messages_changed",
    }[name]


def test_lost_reads_are_the_providers() -> None:
    """Where the simulator's cache holds more than the provider read, nothing about the calls explains it."""
    traffic = made()["reads-lost-at-random"]
    lost = [n for n, o in enumerate(traffic.served) if o.read < traffic.cached[n].read]
    assert 0.1 * len(traffic.calls) < len(lost) < 0.3 * len(traffic.calls)
    assert {traffic.causes[n] for n in lost} == {"provider_side"}


def test_settings_and_scopes_decide_in_the_simulator() -> None:
    """Two calls that differ in nothing but a setting, an account, a region or a key share no more than they should."""
    for name, changed in (
        ("effort-alternating", "settings"),
        ("two-accounts", "account"),
        ("three-regions", "region"),
        ("fresh-cache-key", "cache_key"),
    ):
        assert len({getattr(sent, changed) for sent in made()[name].calls}) > 1
    traffic = made()["thinking-toggled"]
    first, second = next(turns for turns in sessions("thinking-toggled"))[:2]
    assert (
        planted.simulated(first, traffic.service.model).parts[0]
        == planted.simulated(second, traffic.service.model).parts[0]
    )
    assert (
        planted.simulated(first, traffic.service.model).parts[1]
        != planted.simulated(second, traffic.service.model).parts[1]
    )


def test_unread_is_what_is_not_read() -> None:
    """Unread and read make the input."""
    assert all(unread(o) + o.read == input_tokens(o) for traffic in made().values() for o in traffic.served)
