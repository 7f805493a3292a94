"""Processes end in many ways; what was captured is in the spool, and every file of it can be read."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from fake_provider.plan import Plan, Reply
from fake_provider.server import FakeProvider
from prefixscope.analyzer.ingest import Observed, Rejected, read
from prefixscope.otel_plugin import spool
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord

HEAD = """
import os, sys, threading, time
import httpx
from prefixscope.otel_plugin import instrument
instrument(http_spans=False, spans="off", reraise=True)
url, plan = sys.argv[1:3]
client = httpx.Client(headers={"x-fake-plan": plan})
def ask(stream=False):
    body = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    return client.send(client.build_request("POST", url + "/v1/chat/completions", json=body), stream=stream)
"""


def run(
    script: str, provider: FakeProvider, folder: Path, reply: Reply | None = None, *, waits: bool = True
) -> subprocess.Popen[str]:
    """A program that starts with ``HEAD``; what it prints goes to a pipe."""
    plan = Plan(folder.name, (reply or Reply(),)).headers["x-fake-plan"]
    environment = os.environ | {"PREFIXSCOPE_SPOOL": str(folder), "PREFIXSCOPE_KEY": "test"}
    command = [sys.executable, "-c", HEAD + script]
    process = subprocess.Popen(
        [*command, provider.url, plan], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    if waits:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    return process


def records(folder: Path) -> Sequence[CallRecord]:
    """What the audit reads."""
    found = list(read([folder], Fingerprinter(b"test")))
    assert not [one for one in found if isinstance(one, Rejected)]
    return [one.record for one in found if isinstance(one, Observed)]


def test_an_exit_in_the_middle_of_a_stream(provider: FakeProvider, tmp_path: Path) -> None:
    """The call is told as it stood; what had ended before is there whole."""
    script = "ask()\nresponse = ask(stream=True)\nnext(response.iter_raw())\nsys.exit()\n"
    run(script, provider, tmp_path, Reply(words=50, pause=0.01))
    first, second = records(tmp_path)
    assert (first.usage.state, first.aborted) == ("reported", False)
    assert (second.status, second.usage.state, second.aborted) == (200, "missing", True)
    assert not [path for path in spool.files(tmp_path) if path.name.endswith(spool.LIVE)]


def test_an_exit_in_the_middle_of_the_first_stream(provider: FakeProvider, tmp_path: Path) -> None:
    """Nothing had ended before, so nothing was running yet."""
    run("response = ask(stream=True)\nnext(response.iter_raw())\n", provider, tmp_path, Reply(words=50, pause=0.01))
    (record,) = records(tmp_path)
    assert (record.status, record.aborted) == (200, True)


def test_an_exit_with_much_to_do(provider: FakeProvider, tmp_path: Path) -> None:
    """The queue is emptied first."""
    run("for _ in range(50): ask()\n", provider, tmp_path)
    assert len(records(tmp_path)) == 50


def test_an_exit_that_must_not_take_long(provider: FakeProvider, tmp_path: Path) -> None:
    """A spool that hangs does not keep the process."""
    script = """
from prefixscope.otel_plugin.spool import Spool
Spool.write = lambda *_: time.sleep(60)
instrumentor = __import__("prefixscope.otel_plugin").otel_plugin.PrefixscopeInstrumentor()
object.__setattr__(instrumentor.capture.settings, "exit_timeout", 0.2)
ask()
"""
    before = time.monotonic()
    process = run(script, provider, tmp_path, waits=False)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert time.monotonic() - before < 30
    assert "1 calls were not written in time" in errors


def test_kill_9(provider: FakeProvider, tmp_path: Path) -> None:
    """Everything that was flushed is there, in a file that can be read."""
    script = """
from prefixscope.otel_plugin import PrefixscopeInstrumentor
for _ in range(5): ask()
assert PrefixscopeInstrumentor().capture.flush(10)
response = ask(stream=True)
next(response.iter_raw())
print("ready", flush=True)
time.sleep(60)
"""
    process = run(script, provider, tmp_path, Reply(words=50, pause=0.01), waits=False)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(records(tmp_path)) == 5


ENDS = {
    "os.fork": """
ask()
child = os.fork()
client = httpx.Client(headers={"x-fake-plan": plan})
for _ in range(3): ask()
if child: os.waitpid(child, 0)
""",
    "a fork in the middle of a stream": """
response = ask(stream=True)
pieces = response.iter_raw()
next(pieces)
child = os.fork()
if child:
    os.waitpid(child, 0)
    list(pieces)
    for _ in range(3): ask()
else:
    client = httpx.Client(headers={"x-fake-plan": plan})
    for _ in range(3): ask()
""",
    "multiprocessing": """
import multiprocessing
def work():
    global client
    client = httpx.Client(headers={"x-fake-plan": plan})
    for _ in range(3): ask()
for _ in range(4): ask()
process = multiprocessing.get_context("fork").Process(target=work)
process.start()
process.join()
assert process.exitcode == 0
""",
    "threads": """
threads = [threading.Thread(target=ask) for _ in range(7)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "an error": """
for _ in range(7): ask()
raise SystemExit(0)
""",
}


@pytest.mark.parametrize("name", ENDS)
def test_children_and_threads(name: str, provider: FakeProvider, tmp_path: Path) -> None:
    """Each call once, in a file of the process that made it."""
    run(ENDS[name], provider, tmp_path)
    found = records(tmp_path)
    assert len({record.span_id for record in found}) == len(found) == 7
    assert {record.usage.state for record in found} <= {"reported", "missing"}
    pids = {path.name.split("-")[2] for path in spool.files(tmp_path)}
    assert len(pids) == (2 if "fork" in ENDS[name] else 1)


GUNICORN = """
import os
from prefixscope.otel_plugin import instrument
instrument(http_spans=False, spans="off", reraise=True)
import httpx
client = httpx.Client(headers={"x-fake-plan": os.environ["PLAN"]})
def app(environ, start_response):
    body = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hi"}]}
    client.post(os.environ["URL"] + "/v1/chat/completions", json=body)
    start_response("200 OK", [("content-length", "2")])
    return [b"ok"]
client.post(os.environ["URL"] + "/v1/chat/completions", json={"model": "gpt-5.1", "messages": []})
client.close()
client = httpx.Client(headers={"x-fake-plan": os.environ["PLAN"]})
"""


def test_gunicorn_with_preload(provider: FakeProvider, tmp_path: Path) -> None:
    """Two workers that were forked after capture had begun, ended by a signal."""
    (tmp_path / "webapp.py").write_text(GUNICORN)
    folder = tmp_path / "spool"
    environment = os.environ | {"PREFIXSCOPE_SPOOL": str(folder), "PREFIXSCOPE_KEY": "test", "URL": provider.url}
    environment |= {"PLAN": Plan("gunicorn").headers["x-fake-plan"], "PYTHONPATH": str(tmp_path)}
    socket = tmp_path / "socket"
    command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "2", "-b", f"unix:{socket}", "webapp:app"]
    import httpx  # noqa: PLC0415 - the client of this test, not of those above

    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        deadline = time.monotonic() + 30
        while not socket.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(12):
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(socket))) as client:
                assert client.get("http://app/").text == "ok"
        process.terminate()
        process.communicate(timeout=30)
    assert len(records(folder)) == 13
