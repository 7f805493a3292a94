"""The sample traffic: the same seed makes the same files, the files agree with the answers, and the leaks are leaks."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import answers
import generate
import tokenizer
from services import SERVICES
from traffic import FIXES

LOG, OTLP = "request_log.jsonl.gz", "otlp.jsonl.gz"
FOLDER = Path(generate.__file__).parent
SMALL_SEED, ONE_DAY = 7, 0.1

Json = dict[str, Any]


def read_lines(path: Path) -> list[Json]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


@cache
def log() -> list[Json]:
    return read_lines(FOLDER / LOG)


@cache
def known() -> Json:
    return dict(json.loads((FOLDER / "answers.json").read_text(encoding="utf-8")))


@cache
def made() -> list[generate.Traffic]:
    return generate.traffic()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    generate.write(folder, SMALL_SEED, ONE_DAY)
    return folder


# --- The files --------------------------------------------------------------------------------------------------------


def test_same_seed_makes_the_same_bytes(small: Path, tmp_path: Path) -> None:
    """Two runs differ in nothing."""
    generate.write(tmp_path, SMALL_SEED, ONE_DAY)
    names = sorted(path.name for path in small.iterdir())
    assert names == ["answers.json", OTLP, LOG]
    assert [(tmp_path / name).read_bytes() for name in names] == [(small / name).read_bytes() for name in names]


def test_another_seed_makes_fresh_texts(small: Path) -> None:
    """No prompt of one seed occurs in the traffic of another."""
    first, other = ({json.dumps(line["request"]) for line in lines} for lines in (read_lines(small / LOG), log()))
    assert not first & other


def test_the_committed_files_are_what_the_generator_makes() -> None:
    """Nobody edited them or changed the generator without running it. Compressed bytes may depend on zlib."""
    assert gzip.decompress((FOLDER / LOG).read_bytes()).decode().splitlines() == list(generate.request_log(made()))
    assert gzip.decompress((FOLDER / OTLP).read_bytes()).decode().splitlines() == list(generate.otlp(made()))
    assert generate.answer(made(), generate.SEED, 1.0) == known()


def test_the_folder_stays_small() -> None:
    """It is part of the repository."""
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 3_000_000


def test_command_line_writes_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--out``, ``--seed`` and ``--scale`` are obeyed."""
    monkeypatch.setattr("sys.argv", ["generate.py", "--out", str(tmp_path / "new"), "--seed", "3", "--scale", "0.2"])
    generate.main()
    found = json.loads((tmp_path / "new" / "answers.json").read_text(encoding="utf-8"))
    assert (found["seed"], found["scale"], found["from"]) == (3, 0.2, "2026-11-21T00:00:00+00:00")


def test_too_large_a_scale_is_wrong_usage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Days before a model had a price are refused with a sentence, not a traceback."""
    monkeypatch.setattr("sys.argv", ["generate.py"])
    monkeypatch.setattr(generate, "write", lambda *_: answers.cost({"read": 1}, "openai", "gpt-5.1", 0))
    with pytest.raises(SystemExit, match="2"):
        generate.main()
    assert "choose a smaller scale" in capsys.readouterr().err


def test_the_readme_names_the_number_of_calls() -> None:
    """Its first sentence is about these files."""
    assert f"{known()['total']['calls']:,} calls of twelve" in (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_line_of_the_log_is_a_whole_call() -> None:
    """Time with zone, request, response, status and durations; calls of a service in the order they were made."""
    for line in log():
        assert {"timestamp", "service", "session_id", "request", "response", "status", "ttft_ms", "duration_ms"} <= set(
            line
        )
        assert 0 < line["ttft_ms"] <= line["duration_ms"]
        assert known()["from"] <= datetime.fromisoformat(line["timestamp"]).isoformat() < known()["until"]
    for name in known()["services"]:
        times = [line["timestamp"] for line in log() if line["service"] == name]
        assert times == sorted(times)


# --- The answers agree with the files ---------------------------------------------------------------------------------


def usage(line: Json) -> tuple[Counter[str], int] | None:
    """Tokens by bucket as the provider's response states them, and the stated total of all tokens (0 = none)."""
    response = line["response"]
    if found := response.get("usageMetadata"):
        read = found.get("cachedContentTokenCount", 0)
        tokens = {"read": read, "uncached": found["promptTokenCount"] - read, "output": found["candidatesTokenCount"]}
        return Counter(tokens), found["totalTokenCount"]
    found = response.get("usage")
    if found and "input_tokens" in found:
        split = {f"write_{ttl}": found["cache_creation"][f"ephemeral_{ttl}_input_tokens"] for ttl in ("5m", "1h")}
        assert sum(split.values()) == found["cache_creation_input_tokens"]
        tokens = {"uncached": found["input_tokens"], "read": found["cache_read_input_tokens"], **split}
        return Counter(tokens | {"output": found["output_tokens"]}), 0
    if found:
        read = found["prompt_tokens_details"]["cached_tokens"]
        tokens = {"read": read, "uncached": found["prompt_tokens"] - read, "output": found["completion_tokens"]}
        return Counter(tokens), found["total_tokens"]
    return None


def at_ms(line: Json) -> int:
    return int(datetime.fromisoformat(line["timestamp"]).timestamp() * 1000)


@pytest.mark.parametrize("name", [service.name for service in SERVICES])
def test_answers_are_what_the_log_adds_up_to(name: str) -> None:
    """Calls, tokens and spend of each service can be computed again from its responses alone."""
    answer = known()["services"][name]
    lines = [line for line in log() if line["service"] == name]
    billed = [(line, found[0]) for line in lines if (found := usage(line))]
    spend = sum((answers.cost(t, answer["provider"], answer["model"], at_ms(line)) for line, t in billed), Decimal(0))
    assert (len(lines), len(lines) - len(billed)) == (answer["calls"], answer["calls_without_usage"])
    tokens = sum((t for _, t in billed), Counter())
    assert {bucket: tokens[bucket] for bucket in answers.BUCKETS} == answer["tokens"]
    assert spend == Decimal(answer["spend_usd"])


def test_stated_totals_are_sums() -> None:
    """Where a provider states a total, it is the sum of its parts."""
    stated = [found for line in log() if (found := usage(line)) and found[1]]
    assert stated
    assert all(total == sum(tokens.values()) for tokens, total in stated)


def test_total_is_the_sum_of_the_services() -> None:
    """Nothing is counted twice and nothing is left out."""
    services = known()["services"].values()
    assert known()["total"]["calls"] == len(log()) == sum(s["calls"] for s in services)
    assert Decimal(known()["total"]["spend_usd"]) == sum(Decimal(s["spend_usd"]) for s in services)


def test_prices_are_those_of_genai_prices() -> None:
    """The small table agrees with the library that the audit prices with, call by call."""
    prices = pytest.importorskip("genai_prices")
    for line in log()[::7]:
        if not (found := usage(line)):
            continue
        tokens, answer = found[0], known()["services"][line["service"]]
        counted = prices.Usage(
            input_tokens=sum(tokens.values()) - tokens["output"],
            cache_read_tokens=tokens["read"],
            cache_write_tokens=tokens["write_5m"],
            output_tokens=tokens["output"],
        )
        when = datetime.fromisoformat(line["timestamp"])
        priced = prices.calc_price(
            counted, answer["model"], provider_id=answer["provider"], genai_request_timestamp=when
        )
        assert priced.total_price == answers.cost(tokens, answer["provider"], answer["model"], at_ms(line))


def test_a_day_without_price_is_an_error() -> None:
    """A price of another time is no price."""
    with pytest.raises(LookupError, match=r"prices\.toml: no price of openai/gpt-5\.1 on 2020-09-13"):
        answers.cost({"read": 1}, "openai", "gpt-5.1", 1_600_000_000_000)


# --- The leaks are leaks, the others are none -------------------------------------------------------------------------


def saving(t: generate.Traffic, cause: str) -> Decimal:
    return Decimal(answers.leak_answer(t.service, t.calls, t.outcomes, cause)["saving_usd"])


def test_planted_causes() -> None:
    """Five leaks of three causes, each with calls that suffer and a saving below what they cost."""
    planted = {leak["service"]: leak["cause"] for leak in known()["leaks"]}
    assert planted == {
        "support-bot": "volatile_prefix",
        "billing-assistant": "volatile_prefix",
        "crm-copilot": "volatile_prefix",
        "agent-tools": "tools_reordered",
        "research-agent": "ttl_lapse",
    }
    assert set(known()["healthy"]) == set(known()["services"]) - set(planted)


def test_every_fix_is_worth_a_quarter_of_its_service() -> None:
    """A leak that nobody would mend is no test of a tool that finds leaks."""
    for leak in known()["leaks"]:
        cost_usd, saving_usd = Decimal(leak["cost_usd"]), Decimal(leak["saving_usd"])
        assert saving_usd == cost_usd - Decimal(leak["fixed_cost_usd"])
        assert cost_usd > saving_usd > cost_usd / 4
        assert 0 < leak["affected_calls"] < known()["services"][leak["service"]]["calls"]


def test_no_other_fix_pays() -> None:
    """Each service has the planted fault or none: every other fix saves nothing, whether alone or after its own."""
    for t in made():
        for cause, fix in FIXES.items():
            if cause == t.service.cause:
                continue
            assert saving(t, cause) <= 0
            if t.service.cause:
                mended = [FIXES[t.service.cause](call) for call in t.calls]
                both = [fix(call) for call in mended]
                costs = [_cost(t, calls) for calls in (mended, both)]
                assert costs[1] >= costs[0]


def _cost(t: generate.Traffic, calls: list[Any]) -> Decimal:
    leak = answers.leak_answer(t.service, calls, answers.outcomes(t.service, calls), "tools_reordered")
    return Decimal(leak["cost_usd"])


def test_healthy_services_read_what_they_can() -> None:
    """Of what the caching ones send, most is read; the tiny and the one-off prompts read nothing."""
    for name in known()["healthy"]:
        tokens = known()["services"][name]["tokens"]
        share = tokens["read"] / sum(count for bucket, count in tokens.items() if bucket != "output")
        assert share == 0 if name in {"tiny-prompts", "one-off-reports"} else share > 0.7


# --- OTLP -------------------------------------------------------------------------------------------------------------


def spans(lines: Iterable[Json]) -> Iterator[tuple[str, str, Json, Json]]:
    """(service, scope, span, its attributes) of every span."""
    for line in lines:
        for resource in line["resourceSpans"]:
            service = plain(resource["resource"]["attributes"])["service.name"]
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    yield service, scope["scope"]["name"], span, plain(span["attributes"])


def plain(attributes: list[Json]) -> Json:
    return {a["key"]: next(iter(a["value"].values())) for a in attributes}


@cache
def all_spans() -> list[tuple[str, str, Json, Json]]:
    return list(spans(read_lines(FOLDER / OTLP)))


def test_the_same_calls_with_the_same_usage() -> None:
    """Every response of the log is in the export under its id, with input that includes reads and writes."""
    recorded = {a["gen_ai.response.id"]: a for _, _, _, a in all_spans() if "gen_ai.response.id" in a}
    assert len(recorded) == len(log())
    for line in log():
        attributes = recorded[line["response"].get("id") or line["response"]["responseId"]]
        found = usage(line)
        tokens = found[0] if found else Counter()
        names = {"input_tokens": sum(tokens.values()) - tokens["output"], "cache_read.input_tokens": tokens["read"]}
        names |= {"cache_write.input_tokens": tokens["write_5m"], "output_tokens": tokens["output"]}
        assert {n: int(attributes.get(f"gen_ai.usage.{n}", 0)) for n in names} == names
        assert attributes["gen_ai.conversation.id"] == line["session_id"]


def test_some_calls_are_recorded_twice() -> None:
    """A quarter of one service's calls have a second span inside the first, with the same response id."""
    counts = Counter(a["gen_ai.response.id"] for _, _, _, a in all_spans() if "gen_ai.response.id" in a)
    twice = {response_id for response_id, count in counts.items() if count == 2}
    found = [(service, scope) for service, scope, _, a in all_spans() if a.get("gen_ai.response.id") in twice]
    assert set(counts.values()) == {1, 2}
    assert {service for service, _ in found} == {"claude-healthy"}
    assert len({scope for _, scope in found}) == 2
    assert len(twice) == -(-known()["services"]["claude-healthy"]["calls"] // 4)


def test_span_ids_are_unique_and_parents_exist() -> None:
    """Ids are lower-case hex of the right length; a parent is in the same trace."""
    ids = Counter((span["traceId"], span["spanId"]) for _, _, span, _ in all_spans())
    assert set(ids.values()) == {1}
    assert all(len(trace) == 32 and len(span) == 16 and int(trace, 16) and int(span, 16) for trace, span in ids)
    assert all((s["traceId"], s["parentSpanId"]) in ids for _, _, s, _ in all_spans() if "parentSpanId" in s)


def log_texts(request: Json) -> list[str]:
    """Every text of the request body that the model reads, but for tool definitions."""
    blocks = [{"content": request.get("system", [])}, *request["messages"]]
    contents = [block["content"] for block in blocks if block["content"]]
    flat = [part for content in contents for part in (content if isinstance(content, list) else [{"text": content}])]
    return sorted(text for part in flat if (text := part.get("text") or part.get("content")))


def otlp_texts(attributes: Json) -> list[str]:
    messages = json.loads(attributes["gen_ai.input.messages"])
    parts = [part for message in messages for part in message["parts"]]
    parts += json.loads(attributes.get("gen_ai.system_instructions", "[]"))
    return sorted(text for part in parts if (text := part.get("content") or part.get("response")))


def test_content_is_the_same_text_as_in_the_log() -> None:
    """Where the export has content, it has the log's texts and tools, to the letter."""
    requests = {line["response"].get("id"): line["request"] for line in log()}
    with_content = [a for _, _, _, a in all_spans() if "gen_ai.input.messages" in a]
    assert len(with_content) > len(log()) / 2
    for attributes in with_content:
        request = requests[attributes["gen_ai.response.id"]]
        assert otlp_texts(attributes) == log_texts(request)
        tools = [tool.get("function", tool)["name"] for tool in request.get("tools", [])]
        assert [t["name"] for t in json.loads(attributes.get("gen_ai.tool.definitions", "[]"))] == tools


# --- The tokenizer ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "provider", "tokens"),
    [
        ("", "openai", 0),
        ("A short sentence.", "openai", 4),
        ("understanding", "openai", 2),
        ("understanding", "anthropic", 3),
        ('{"limit":12345}', "openai", 6),
        ("a\n\n  b", "openai", 4),
        ("Zürich", "openai", 3),
    ],
)
def test_tokens(text: str, provider: str, tokens: int) -> None:
    """Words, digits in threes, punctuation in pairs, white space in runs."""
    assert tokenizer.count(text, provider) == tokens


def test_bytes_per_token_are_those_of_real_tokenizers() -> None:
    """Prose takes 4 to 4.6 bytes a token, JSON less, and Claude counts more tokens than OpenAI."""
    support, agent = (next(t for t in made() if t.service.name == name) for name in ("support-bot", "agent-tools"))
    prose = support.calls[0].blocks[0].text
    tools = "".join(block.text for block in agent.calls[0].blocks if block.kind == "tool")
    rates = [len(text.encode()) / tokenizer.count(text, "openai") for text in (prose, tools)]
    assert 4.0 < rates[0] < 4.6
    assert 3.4 < rates[1] < rates[0]
    assert 1.1 < tokenizer.count(prose, "anthropic") / tokenizer.count(prose, "openai") < 1.35
