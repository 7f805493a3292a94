"""Beside other instrumentations every call is counted once, in the audit and in a plain sum over exported spans."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import auditing
from fake_provider.journal import Entry
from fake_provider.server import FakeProvider
from recording import KEY, records

TESTS = Path(__file__).resolve().parents[1]
CALLS = 13
BOTOCORE = "OpenTelemetry botocore"
INPUT = ("gen_ai.usage.input_tokens", "llm.token_count.prompt")  # all input tokens; the second is OpenInference's

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


ORDERS = [*((other, "no") for other in OTHERS), ("OpenTelemetry GenAI", "yes")]  # who is first; "yes" = we are


def run(provider: FakeProvider, folder: Path, other: str, ours_first: str) -> tuple[Path, Path]:
    """Runs the program beside ``other``: the file with all spans, and our spool."""
    spans, spool = folder / "spans.jsonl", folder / "spool"
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "sample_traces")]),
        "PREFIXSCOPE_KEY": KEY,
        "ANTHROPIC_OPEN_TELEMETRY": "true" if other == "the anthropic SDK itself" else "false",
    }
    command = [sys.executable, str(TESTS / "beside.py"), str(spans), str(spool), provider.url, folder.name, ours_first]
    done = subprocess.run([*command, *OTHERS[other]], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return spans, spool


def input_tokens(entry: Entry) -> int:
    return entry.read + entry.uncached + sum(entry.writes.values())


def told(entry: Entry, other: str) -> int:
    """The input as ``other`` tells it; OpenTelemetry's botocore leaves out what Bedrock read or wrote."""
    return entry.uncached if other == BOTOCORE and entry.api.startswith("bedrock.") else input_tokens(entry)


def attributes(spans: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["attributes"] for line in spans.read_text().splitlines()]


@pytest.mark.parametrize(("other", "ours_first"), ORDERS)
def test_every_call_is_counted_once(provider: FakeProvider, tmp_path: Path, other: str, ours_first: str) -> None:
    """Whoever reports a call's usage is the only one; our spans and our spool have what only the wire tells."""
    spans, spool = run(provider, tmp_path, other, ours_first)
    journal = provider.journal(tmp_path.name)
    assert len(journal) == CALLS
    exported = attributes(spans)
    counts = [span[name] for span in exported for name in INPUT if name in span]
    assert len(counts) == CALLS
    assert sum(counts) == sum(told(entry, other) for entry in journal)
    assert sum("prefixscope.fingerprint" in span for span in exported) == CALLS
    assert [record.usage.input_total for record in records(spool)] == [input_tokens(entry) for entry in journal]
    check_audit([spool], journal)
    check_audit([spans], journal)
    check_audit([spool, spans], journal)


def check_audit(paths: Sequence[Path], journal: Sequence[Entry]) -> None:
    """The report on ``paths`` has the provider's calls and counts."""
    report = auditing.report(paths)
    assert report["calls"]["total"] == len(journal)
    assert report["tokens"]["read"] == sum(entry.read for entry in journal)
    assert report["tokens"]["output"] == sum(entry.output for entry in journal)
