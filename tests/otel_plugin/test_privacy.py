"""No text of a prompt or a response and no credential leaves the process, wherever it is written."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from exchanges import SSE, lengths, sse
from prefixscope.otel_plugin import capture as capture_module
from prefixscope.otel_plugin import spans, spool
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.metrics import Metrics
from prefixscope.otel_plugin.mounts import Mounts
from prefixscope.otel_plugin.settings import Settings

MARK = "m4rk3r"


def marked(shape: Any, path: str = "") -> Any:
    """``shape`` with a marker of its own in every text that is nobody's word but the application's or the model's."""
    if isinstance(shape, dict):
        return {key: marked(value, f"{path}.{key}") for key, value in shape.items()}
    if isinstance(shape, list):
        return [marked(value, f"{path}.{n}") for n, value in enumerate(shape)]
    return f"{MARK} {path} {MARK}" if shape == "" else shape


CHAT = {
    "model": "gpt-5.1",
    "messages": [
        {"role": "system", "content": "", "name": ""},
        {"role": "user", "content": [{"type": "text", "text": ""}, {"type": "image_url", "image_url": {"url": ""}}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "", "function": {"name": "", "arguments": ""}}]},
        {"role": "tool", "tool_call_id": "", "content": ""},
    ],
    "tools": [{"type": "function", "function": {"name": "", "description": "", "parameters": {"title": ""}}}],
    "tool_choice": {"function": {"name": ""}},
    "response_format": {"json_schema": {"name": "", "schema": {"description": ""}}},
    "prompt_cache_key": "",
    "user": "",
    "metadata": {"note": ""},
    "stop": [""],
    "temperature": "",
    "n": "",
    "tenant_id": "",
    "unknown": {"deep": [{"er": ""}]},
}
MESSAGES = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 5,
    "system": [{"type": "text", "text": "", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "document", "source": {"data": ""}, "title": "", "context": ""}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "", "content": ""}]},
    ],
    "tools": [{"name": "", "description": "", "input_schema": {"properties": {"": {"description": ""}}}}],
    "mcp_servers": [{"url": "", "authorization_token": ""}],
    "metadata": {"user_id": ""},
}
RESPONSES = {
    "model": "gpt-5.1",
    "instructions": "",
    "input": [{"role": "user", "content": [{"type": "input_text", "text": ""}]}],
    "previous_response_id": "",
    "prompt": {"id": "", "variables": {"x": ""}},
    "safety_identifier": "",
}
GEMINI = {
    "systemInstruction": {"parts": [{"text": ""}]},
    "contents": [{"role": "user", "parts": [{"text": ""}, {"inlineData": {"data": ""}}]}],
    "cachedContent": "",
    "labels": {"team": ""},
}
QUESTION = {"model": "gpt-5.1", "messages": [{"role": "user", "content": ""}]}
REQUESTS = {
    "/v1/chat/completions": CHAT,
    "/openai/v1/chat/completions": QUESTION,
    "/v1/messages": MESSAGES,
    "/v1/responses": RESPONSES,
    "/v1beta/models/gemini-2.5-pro:generateContent?key=m4rk3r-in-the-query": GEMINI,
}
ANSWER = {
    "id": "resp_1",
    "choices": [
        {
            "finish_reason": "",
            "message": {"content": "", "refusal": "", "tool_calls": [{"function": {"arguments": ""}}]},
        }
    ],
    "content": [{"type": "text", "text": ""}],
    "output": [{"content": [{"text": ""}]}],
    "candidates": [{"content": {"parts": [{"text": ""}]}}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "input_tokens": 5, "output_tokens": 1, "note": ""},
    "metadata": {"x": ""},
}
ERROR = {"error": {"type": "", "code": "", "message": "", "param": ""}}
CREDENTIALS = {
    "authorization": f"Bearer sk-{MARK}",
    "x-api-key": f"sk-ant-{MARK}",
    "x-goog-api-key": f"AIza{MARK}",
    "cookie": f"session={MARK}",
    "openai-organization": f"org-{MARK}",
    "user-agent": f"app {MARK}",
}


def answered(request: httpx2.Request) -> httpx2.Response:
    """Every kind of answer, by a header of the request."""
    kind = request.headers["x-kind"]
    if kind == "stream":
        events = [marked({"choices": [{"delta": {"content": ""}}]}), marked(ANSWER | {"choices": []}), marked(ERROR)]
        return httpx2.Response(200, content=sse(events), headers=SSE)
    if kind == "error":
        return httpx2.Response(429, json=marked(ERROR), headers={"x-amzn-errortype": f"{MARK} is a text"})
    if kind == "exception":
        raise httpx2.ConnectError(MARK)
    return httpx2.Response(200, json=marked(ANSWER)) if kind == "answer" else httpx2.Response(200, text=MARK)


class Everything:
    """Whatever prefixscope writes anywhere."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.spans, self.metrics = InMemorySpanExporter(), InMemoryMetricReader()
        self.logs: Any = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self.logs))
        patch.setattr(trace, "get_tracer_provider", lambda: tracers)
        patch.setattr(spans, "get_logger_provider", lambda: loggers)
        meters = Metrics(MeterProvider([self.metrics]).get_meter("prefixscope"))
        patch.setattr(capture_module, "metrics", lambda: meters)

    def read(self) -> dict[str, str]:
        """As text, by kind."""
        data = self.metrics.get_metrics_data()
        assert data is not None
        return {
            "spool": "".join(path.read_text() for path in spool.files(self.folder)),
            "spans": "".join(span.to_json() for span in self.spans.get_finished_spans()),
            "log events": "".join(log.to_json() for log in self.logs.get_finished_logs()),
            "metrics": data.to_json(),
        }


@pytest.fixture
def everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Everything:
    return Everything(tmp_path, monkeypatch)


def call_all(settings: Settings) -> None:
    """Every API with every kind of answer."""
    capture = Capture(settings, {"PREFIXSCOPE_KEY": "key"})
    mounts = Mounts(capture.tap)
    try:
        with httpx2.Client(transport=httpx2.MockTransport(answered), headers=CREDENTIALS) as client:
            for path, shape in REQUESTS.items():
                for kind in ("answer", "stream", "error", "text", "exception"):
                    call(client, path, marked(shape), kind)
            call(client, "/v1/chat/completions", f"no JSON {MARK}", "answer")
    finally:
        mounts.undo()
        capture.close()


def call(client: httpx2.Client, path: str, body: Any, kind: str) -> None:
    try:
        client.post(f"https://gateway.test{path}", json=body, headers={"x-kind": kind})
    except httpx2.ConnectError:
        assert kind == "exception"


@pytest.mark.parametrize(("spans_setting", "embed"), [("on", ""), ("auto", ""), ("auto", lengths)])
def test_nothing_is_written_of_what_was_said(
    everything: Everything, caplog: pytest.LogCaptureFixture, spans_setting: str, embed: Any
) -> None:
    """A marker stands in every field of requests, answers, errors and headers; no byte that is written has one."""
    caplog.set_level("DEBUG", "prefixscope")
    call_all(Settings(spool=str(everything.folder), spans=spans_setting, log_events=True, embed=embed))
    found = everything.read()
    assert all("claude-sonnet-4-5" in text for text in found.values())
    found |= {"log": "\n".join(r.getMessage() for r in caplog.records if r.name == "prefixscope")}
    assert {where: text.count(MARK) for where, text in found.items()} == dict.fromkeys(found, 0)
    keyed = len(REQUESTS) * 5  # whatever the answer; what is no JSON has no key
    assert [found[where].count('prefixscope.exact.key"') for where in ("spool", "spans", "log events")] == [keyed] * 3
    assert ("prefixscope.embedding.vector" in found["spool"]) == bool(embed)
    assert found["spool"].count('"traceId"') == found["spans"].count('"span_id"') == 5 * len(REQUESTS) + 1


def test_markers_would_be_found(everything: Everything) -> None:
    """With content capture on they are in the spool, and in the spool alone."""
    call_all(Settings(spool=str(everything.folder), spans="on", log_events=True, content=True))
    found = everything.read()
    counts = {where: text.count(MARK) for where, text in found.items()}
    assert counts.pop("spool") > 100
    assert set(counts.values()) == {0}
    assert MARK not in json.dumps([line for line in found["spool"].splitlines() if "sk-" in line])
