"""Marks that response caches leave on the calls they served, in the shapes in which they were recorded."""

import json
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixscope.analyzer.semantic import existing
from prefixscope.analyzer.semantic.hits import Hit, hit_in
from semantic_traffic import START, line, questions, write


def _langchain(**usage: Any) -> dict[str, Any]:
    """What OpenInference records of a chat model of LangChain."""
    message = {"kwargs": {"content": "It is open.", "usage_metadata": {"input_tokens": 10, **usage}}}
    return {"output.value": json.dumps({"generations": [[{"text": "It is open.", "message": message}]]})}


def _bifrost(**debug: Any) -> dict[str, Any]:
    return {"extra_fields": {"provider": "openai", "cache_debug": {"cache_id": "550e", **debug}}}


MARKED: list[tuple[dict[str, Any], Hit]] = [
    ({"cache_hit": True, "cache_key": "02b0"}, Hit("LiteLLM", None, None)),
    ({"cache_hit": "True", "metadata": {"semantic-similarity": 0.93}}, Hit("LiteLLM", True, 0.93)),
    ({"litellm.cache_hit": True, "gen_ai.system": "openai"}, Hit("LiteLLM", None, None)),
    ({"hidden_params": '{"model_id": null, "cache_key": "02b0"}'}, Hit("LiteLLM", None, None)),
    ({"x-litellm-cache-key": "4b08", "x-litellm-semantic-similarity": "0.91"}, Hit("LiteLLM", True, 0.91)),
    (_langchain(total_cost=0), Hit("LangChain", None, None)),
    ({"usage_metadata": {"input_tokens": 10, "total_cost": 0}}, Hit("LangChain", None, None)),
    ({"gptcache": True, "saved_token": [9, 3]}, Hit("GPTCache", None, None)),
    ({"x-portkey-cache-status": "SEMANTIC HIT"}, Hit("Portkey", True, None)),
    ({"x-portkey-cache-status": "HIT"}, Hit("Portkey", False, None)),
    ({"cf-aig-cache-status": "HIT"}, Hit("Cloudflare AI Gateway", False, None)),
    ({"http.response.header.cf-aig-cache-status": ["HIT"]}, Hit("Cloudflare AI Gateway", False, None)),
    ({"Helicone-Cache": "HIT", "Helicone-Cache-Bucket-Idx": "0"}, Hit("Helicone", False, None)),
    (_bifrost(cache_hit=True, hit_type="semantic", similarity=0.95, threshold=0.8), Hit("Bifrost", True, 0.95)),
    (_bifrost(cache_hit=True, hit_type="direct"), Hit("Bifrost", False, None)),
    ({"X-AI-Cache-Status": "HIT-L2", "X-AI-Cache-Similarity": "0.97"}, Hit("APISIX", True, 0.97)),
    ({"X-AI-Cache-Status": "HIT-L1"}, Hit("APISIX", False, None)),
    ({"X-Cache-Status": "Hit", "X-Cache-Key": "ab", "Age": "3"}, Hit("Kong", None, None)),
    ({"cache.hit": True, "cache.similarity": 0.9}, Hit("response cache", True, 0.9)),
]
UNMARKED: list[dict[str, Any]] = [
    {"cache_hit": False, "cache_key": "02b0"},
    {"cache_hit": None},
    {"litellm.cache_hit": "False", "metadata": {"semantic-similarity": 0.99}},
    {"hidden_params": '{"model_id": null, "cache_key": null}'},
    {"hidden_params": '{"cache_key": broken'},
    _langchain(),
    _langchain(total_cost=0.002),
    {"output.value": '{"generations": "total_cost"}'},
    {"x-portkey-cache-status": "SEMANTIC MISS"},
    {"x-portkey-cache-status": "DISABLED"},
    {"cf-aig-cache-status": "MISS"},
    {"Helicone-Cache": "MISS", "Helicone-Cache-Enabled": "true"},
    _bifrost(cache_hit=False, input_tokens=20),
    {"X-AI-Cache-Status": "MISS"},
    {"X-Cache-Status": "Bypass"},
    {"gen_ai.usage.cache_read.input_tokens": 1024, "cached_tokens": 1024},
    {},
]


@pytest.mark.parametrize(("place", "expected"), MARKED)
def test_the_marks_of_known_caches(place: dict[str, Any], expected: Hit) -> None:
    """Which cache, and whether it matched word for word or by similarity, as far as the mark says."""
    assert hit_in((place,)) == expected
    assert hit_in(({}, {"other": 1}, place)) == expected


@pytest.mark.parametrize("place", UNMARKED)
def test_a_miss_is_no_hit(place: dict[str, Any]) -> None:
    """Nor is a lookup that found nothing near enough, or what the provider's prompt cache read."""
    assert hit_in((place,)) is None


_ANY = st.text() | st.none() | st.integers() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers())


@given(st.dictionaries(st.sampled_from(["cache_hit", "output.value", "hidden_params", "metadata"]), _ANY))
def test_any_value_can_stand_there(place: dict[str, Any]) -> None:
    """Nothing raises, whatever a log holds under these names, and only what says so is a hit."""
    said = place.get("cache_hit")
    said = said[0] if isinstance(said, list) and len(said) == 1 else said
    assert (hit_in((place,)) is not None) == (isinstance(said, str) and said.strip().lower() == "true")


def test_each_row_says_where_it_is_from() -> None:
    """Source and date of every row, and marks that some test above shows."""
    rows = tomllib.loads(resources.files("prefixscope.analyzer.semantic").joinpath("hits.toml").read_text("utf-8"))
    for row in rows["cache"]:
        assert row["source"]
        assert row["checked"].year >= 2026
    assert {row["name"] for row in rows["cache"]} == {hit.cache for _, hit in MARKED}


def test_a_hit_under_the_response_id_of_its_source_is_a_call_of_its_own(tmp_path: Path) -> None:
    """A gateway repeats the stored answer, its id included: told under that id the two would count as one call."""
    first = line("Is the office open on Monday?", "Yes, from 9.", 0)
    again = line("Is the office open on Sunday?", "Yes, from 9.", 60, response_headers={"x-litellm-cache-key": "4b08"})
    again["response"] = first["response"]
    asked = questions(write(tmp_path / "log.jsonl", [first, again]))
    found = existing.audit(asked, lambda _: False)
    assert [(hit.call, hit.source, hit.cache, "date" in hit.reasons) for hit in found] == [(1, 0, "LiteLLM", True)]


def test_the_same_in_spans(tmp_path: Path) -> None:
    """As LiteLLM's callback for OpenTelemetry writes them."""

    def span(number: int, question: str, *, hit: bool) -> dict[str, Any]:
        start = int(START.timestamp() * 1e9) + number * 60 * 10**9
        said = {"role": "assistant", "parts": [{"type": "text", "content": "Yes, from 9."}], "finish_reason": "stop"}
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "gpt-4o",
            "gen_ai.response.id": "chatcmpl-1",
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 20,
            "gen_ai.input.messages": json.dumps([
                {"role": "user", "parts": [{"type": "text", "content": question}]}
            ]),
            "gen_ai.output.messages": json.dumps([said]),
            "litellm.cache_hit": hit,
        }  # fmt: skip
        return {
            "traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}", "name": "litellm_request",
            "startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 10**6),
            "attributes": [{"key": name, "value": _any_value(value)} for name, value in attributes.items()],
        }  # fmt: skip

    spans = [span(0, "Is it open on Monday?", hit=False), span(1, "Is it open on Sunday?", hit=True)]
    document = {"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [{"scope": {}, "spans": spans}]}]}
    found = existing.audit(questions(write(tmp_path / "spans.jsonl", [document])), lambda _: False)
    assert [(hit.call, hit.source, hit.exact) for hit in found] == [(1, 0, False)]


def _any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def test_the_mark_at_the_end_of_a_stream(tmp_path: Path) -> None:
    """GPTCache and Bifrost put it on the last chunk."""
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": {"content": "Yes."}, "finish_reason": None}]},
        {"gptcache": True, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
    ]
    as_text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    rows = [line("Is it open?", "", 60 * n) | {"response": response} for n, response in enumerate((chunks, as_text))]
    for number, row in enumerate(rows):
        row["usage"] = {"prompt_tokens": 10 + number, "completion_tokens": 3}
    asked = questions(write(tmp_path / "log.jsonl", rows))
    assert [hit.cache for hit in existing.audit(asked, lambda _: False)] == ["GPTCache", "GPTCache"]
