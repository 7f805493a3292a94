"""Beside other instrumentations every call is counted once, in the audit and in a plain sum over exported spans."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import auditing
from fake_provider import server
from fake_provider.journal import Entry
from recording import KEY, records

TESTS = Path(__file__).resolve().parents[1]
CALLS = 13
BOTOCORE = "OpenTelemetry botocore"

OTHERS = {
    "nobody": [],
    "the anthropic SDK itself": [],
    "OpenTelemetry GenAI": [
        "opentelemetry.instrumentation.genai.openai:OpenAIInstrumentor",
        "opentelemetry.instrumentation.genai.anthropic:AnthropicInstrumentor",
    ],
    BOTOCORE: ["opentelemetry.instrumentation.botocore:BotocoreInstrumentor"],
    "OpenLLMetry": [
        "opentelemetry.instrumentation.openai:OpenAIInstrumentor",
        "opentelemetry.instrumentation.anthropic:AnthropicInstrumentor",
    ],
    "OpenInference": [
        "openinference.instrumentation.openai:OpenAIInstrumentor",
        "openinference.instrumentation.anthropic:AnthropicInstrumentor",
    ],
}


class Run:
    """One run of the program beside somebody."""

    def __init__(self, folder: Path, other: str, ours_first: str) -> None:
        self.spans, self.spool = folder / "spans.jsonl", folder / "spool"
        self.other = other
        native = "true" if other == "the anthropic SDK itself" else "false"
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "sample_traces")]),
            "PREFIXSCOPE_KEY": KEY,
            "ANTHROPIC_OPEN_TELEMETRY": native,
        }
        with server.running() as provider:  # one of its own: the calls of each run are made in the same scope
            command = [sys.executable, str(TESTS / "beside.py"), str(self.spans), str(self.spool), provider.url]
            done = subprocess.run(
                [*command, ours_first, *OTHERS[other]], env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            self.journal: list[Entry] = provider.journal("beside")


ORDERS = [*((other, "no") for other in OTHERS), ("OpenTelemetry GenAI", "yes")]  # who is first; "yes" = we are


@pytest.fixture(scope="module", params=ORDERS, ids=" ".join)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("beside"), *request.param)


def input_tokens(entry: Entry) -> int:
    return entry.read + entry.uncached + sum(entry.writes.values())


def told(entry: Entry, other: str) -> int:
    """The input as ``other`` tells it; OpenTelemetry's botocore leaves out what Bedrock read or wrote."""
    return entry.uncached if other == BOTOCORE and entry.api.startswith("bedrock.") else input_tokens(entry)


def attributes(spans: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["attributes"] for line in spans.read_text().splitlines()]


def test_a_plain_sum_counts_every_call_once(run: Run) -> None:
    """Whoever reports a call's usage is the only one who does."""
    names = ("gen_ai.usage.input_tokens", "llm.token_count.prompt")
    found = [span[name] for span in attributes(run.spans) for name in names if name in span]
    assert len(found) == len(run.journal) == CALLS
    assert sum(found) == sum(told(entry, run.other) for entry in run.journal)


def test_our_spans_are_there(run: Run) -> None:
    """One a call, with what only the wire tells."""
    ours = [span for span in attributes(run.spans) if "prefixscope.fingerprint" in span]
    assert len(ours) == CALLS


def test_the_spool_has_every_call_once(run: Run) -> None:
    """It does not matter who else is there."""
    found = records(run.spool)
    assert len(found) == CALLS
    assert sum(record.usage.input_total for record in found) == sum(map(input_tokens, run.journal))


@pytest.mark.parametrize("sources", ["spool", "spans", "spool and spans"])
def test_the_audit_counts_every_call_once(run: Run, sources: str) -> None:
    """From our own spool, from everybody's spans, and from both together."""
    paths = [path for path in (run.spool, run.spans) if path.stem in sources]
    report = auditing.report(paths)
    if run.other == BOTOCORE and run.spans in paths and report["calls"]["total"] == CALLS + 1:
        pytest.xfail("botocore's span of a stream ends a moment before the stream, and is taken for another call")
    assert report["calls"]["total"] == CALLS
    assert report["tokens"]["read"] == sum(entry.read for entry in run.journal)
    assert report["tokens"]["output"] == sum(entry.output for entry in run.journal)
