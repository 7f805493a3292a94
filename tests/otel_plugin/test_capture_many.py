"""Many calls at once: retries, timeouts, cancelled tasks, threads, an event loop under load, forked workers."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import openai
import pytest

from bench_of_capture import Bench, billed
from fake_provider.journal import Entry
from fake_provider.plan import Plan, Reply
from prefixscope.otel_plugin.record import CallRecord
from recording import KEY, records
from sdks import prompts
from sdks.clients import Clients, headers_of_bedrock
from sdks.seeing import Ending, Seen, items, shown, wait
from sdks.ways import Way

TESTS = Path(__file__).resolve().parents[1]
SOON = Reply(status=429, retry_after="0.01")
CHAT: Any = prompts.CHAT | {"model": "gpt-4.1"}
CHAT_STREAM: Any = CHAT | prompts.CHAT_STREAM


def _counted(found: list[CallRecord]) -> Counter[Any]:
    return Counter((record.api, record.status, record.usage) for record in found)


def _expected(journal: list[Entry]) -> Counter[Any]:
    return Counter((entry.api, entry.status, billed(entry)) for entry in journal)


# --- Retries and timeouts ---------------------------------------------------------------------------------------------


async def _retrying(clients: Clients, plan: Any, seen: Seen, _: Ending, *, client: str, is_async: bool) -> None:
    found = clients.get(f"{client} retrying", is_async=is_async)
    if client == "openai":
        answer = found.chat.completions.create(**CHAT, extra_headers=plan)
    elif client == "anthropic":
        answer = found.messages.create(**prompts.MESSAGES, model="claude-sonnet-4-6", extra_headers=plan)
    else:
        headers_of_bedrock.set(plan)
        answer = found.converse(modelId=prompts.CLAUDE_ON_BEDROCK, **prompts.CONVERSE)["output"]
    seen.append(shown(await wait(answer)))


@pytest.mark.parametrize(
    ("client", "is_async"),
    [("openai", False), ("openai", True), ("anthropic", False), ("anthropic", True), ("bedrock", False)],
)
def test_each_attempt_is_a_call(bench: Bench, client: str, is_async: bool) -> None:
    """Two refusals and an answer are three calls, and only the answer has usage."""
    way = Way(client, partial(_retrying, client=client, is_async=is_async), is_async=is_async)
    found = bench.compare(way, SOON, Reply(status=500, retry_after="0.01"), Reply())
    assert found.plain.seen == found.tapped.seen
    assert found.tapped.seen[-1] == "returned"
    assert [record.status for record in found.records] == [429, 500, 200]
    assert [record.usage.state for record in found.records] == ["missing", "missing", "reported"]
    assert found.records[-1].usage == billed(found.tapped.journal[-1])
    if client != "bedrock":  # boto3 does not say which attempt it is
        assert [record.retries for record in found.records] == [0, 1, 2]


async def _impatient(clients: Clients, plan: Any, seen: Seen, _: Ending, *, is_async: bool) -> None:
    found = clients.get("openai", is_async=is_async).with_options(timeout=0.2)
    seen.append(shown(await wait(found.chat.completions.create(**CHAT, extra_headers=plan))))


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_timeouts(bench: Bench, is_async: bool) -> None:
    """A call without an answer is one all the same; what it cost is unknown."""
    found = bench.compare(Way("", partial(_impatient, is_async=is_async), is_async=is_async), Reply(delay=0.5))
    assert found.plain.seen == found.tapped.seen
    (record,) = found.records
    assert (record.status, record.error, record.usage.state) == (None, "ReadTimeout", "missing")
    assert record.duration_ms is not None
    assert record.duration_ms >= 200


async def _unreachable(_: Clients, plan: Any, seen: Seen, __: Ending) -> None:
    with openai.OpenAI(api_key="x", base_url="http://127.0.0.1:1/v1", max_retries=0) as client:  # nobody listens there
        seen.append(shown(client.chat.completions.create(**CHAT, extra_headers=plan)))


def test_nobody_there(bench: Bench) -> None:
    """A refused connection is a call that failed."""
    found = bench.compare(Way("", _unreachable))
    assert found.plain.seen == found.tapped.seen
    (record,) = found.records
    assert (record.status, record.error, record.aborted) == (None, "ConnectError", False)


# --- Cancelled tasks --------------------------------------------------------------------------------------------------


async def _cancelled(clients: Clients, plan: Any, seen: Seen, _: Ending, *, stream: bool, client: str) -> None:
    """Cancel a task while it waits for the answer, or for the next chunk."""

    async def call() -> None:
        if client == "openai":
            found = clients.get("openai", is_async=True)
            answer = await found.chat.completions.create(**(CHAT_STREAM if stream else CHAT), extra_headers=plan)
        else:
            models = clients.get("google", is_async=True).models
            method = models.generate_content_stream if stream else models.generate_content
            config = {"system_instruction": prompts.SYSTEM, "http_options": {"headers": plan}}
            answer = await method(model="gemini-2.5-flash", contents=prompts.QUESTION, config=config)
        await items(answer, seen)

    task = asyncio.create_task(call())
    while stream and not seen:  # noqa: ASYNC110 - the program knows of no event
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.1)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        seen.append("cancelled")


@pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")  # google-genai's
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # what a cancelled task leaves open, without capture as well
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("client", ["openai", "google"])
def test_cancelled_tasks(bench: Bench, client: str, stream: bool) -> None:
    """The task ends at once, and its call has a record that says so."""
    way = Way("", partial(_cancelled, stream=stream, client=client), is_async=True)
    found = bench.compare(way, Reply(hold_after=1) if stream else Reply(delay=1))
    assert found.plain.seen == found.tapped.seen
    assert found.tapped.seen[-2:] == ["cancelled", "returned"]
    (record,) = found.records
    assert record.status == (200 if stream else None)
    assert record.aborted == stream
    assert record.error in {"CancelledError", ""} if stream else record.error == "CancelledError"


# --- Many at once -----------------------------------------------------------------------------------------------------


def test_threads_share_a_client(bench: Bench) -> None:
    """Eight threads, each with its own scope: every call has its record, and none has two."""
    client = bench.clients.get("openai")

    def work(number: int) -> None:
        plan = Plan(f"thread {number}").headers
        for turn in range(8):
            found = client.chat.completions.create(**(CHAT_STREAM if turn % 2 else CHAT), extra_headers=plan)
            if turn % 2:
                list(found)

    with bench.recorder.on(), ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    journal = [entry for number in range(8) for entry in bench.provider.journal(f"thread {number}")]
    found = bench.recorder.new()
    assert len(found) == len(journal) == 64
    assert _counted(found) == _expected(journal)


def test_event_loop_under_load(bench: Bench) -> None:
    """A hundred tasks at once, of three SDKs, streaming and not."""

    async def one(number: int) -> None:
        plan = Plan(f"task {number}").headers
        stream = number % 2 == 1
        if number % 3 == 0:
            found = bench.clients.get("openai", is_async=True).chat.completions
            answer = await found.create(**(CHAT_STREAM if stream else CHAT), extra_headers=plan)
        elif number % 3 == 1:
            found = bench.clients.get("anthropic", is_async=True).messages
            body: Any = prompts.MESSAGES | {"model": "claude-sonnet-4-6", "stream": stream}
            answer = await found.create(**body, extra_headers=plan)
        else:
            found = bench.clients.get("groq", is_async=True).chat.completions
            answer = await found.create(**(CHAT | {"model": "llama-3.3-70b", "stream": stream}), extra_headers=plan)
        if stream:
            await items(answer, [])

    async def load() -> None:
        await asyncio.gather(*(one(number) for number in range(100)))

    with bench.recorder.on():
        bench.runner.run(load())
    journal = [entry for number in range(100) for entry in bench.provider.journal(f"task {number}")]
    found = bench.recorder.new()
    assert len(found) == len(journal) == 100
    assert _counted(found) == _expected(journal)


def test_other_requests_are_left_alone(bench: Bench) -> None:
    """Embeddings, lists of models and other paths are no calls to a language model."""
    client = bench.clients.get("openai")
    with bench.recorder.on():
        for call in (lambda: client.embeddings.create(model="m", input="x"), client.models.list):
            with pytest.raises(openai.NotFoundError):
                call()
        bench.clients.get("requests").post(f"{bench.provider.url}/search", json={"query": "x"})
    assert bench.recorder.new() == []


# --- Forked workers ---------------------------------------------------------------------------------------------------


def test_gunicorn_with_a_preloaded_application(bench: Bench, tmp_path: Path) -> None:
    """Instrumented before the fork: both workers write, each its own file, and no call is lost or told twice."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent / "sample_traces")]),
        "PREFIXSCOPE_SPOOL": str(tmp_path / "spool"),
        "PREFIXSCOPE_KEY": KEY,
        "PREFIXSCOPE_SPANS": "off",
        "PROVIDER_URL": bench.provider.url,
    }
    command = [sys.executable, "-m", "gunicorn", "--preload", "--workers", "2", "--bind", "127.0.0.1:0", "forked:app"]
    log = tmp_path / "log"
    with log.open("w") as stderr, subprocess.Popen(command, env=environment, stderr=stderr) as process:
        try:
            url = _listening(log)
            workers = _ask_both(url)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=20)
    found = records(tmp_path / "spool")
    assert len({path.name for path in (tmp_path / "spool").iterdir()}) == len(workers) == 2
    journal = [entry for worker in workers for entry in bench.provider.journal(f"worker {worker}")]
    assert len(found) == len(journal) == sum(workers.values())
    assert _counted(found) == _expected(journal)


def _listening(log: Path) -> str:
    """The URL that gunicorn says it listens on."""
    for _ in range(400):
        for word in log.read_text().split():
            if word.startswith("http://"):
                return word
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def _ask_both(url: str) -> Counter[int]:
    """Requests until both workers have answered some: worker -> answers."""
    answers: Counter[int] = Counter()
    while len(answers) < 2 or sum(answers.values()) < 10:
        with ThreadPoolExecutor(4) as pool:
            answers.update(pool.map(_ask, [url] * 4))
        assert sum(answers.values()) < 400
    return answers


def _ask(url: str) -> int:
    with urllib.request.urlopen(url, timeout=20) as response:
        return int(json.loads(response.read()))
