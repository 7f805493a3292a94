"""Runs the fake provider in a process of its own and reads its journal."""

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from fake_provider.journal import Entry

_TESTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class FakeProvider:
    """A running server."""

    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def journal(self, scope: str) -> list[Entry]:
        """The requests of ``scope`` in the order they came."""
        return [Entry.from_json(found) for found in json.loads(self._ask("GET", f"/journal/{quote(scope)}"))]

    def release(self, scope: str) -> None:
        """Let a held response of ``scope`` go on."""
        self._ask("POST", f"/release/{quote(scope)}")

    def _ask(self, method: str, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path)
            return connection.getresponse().read()
        finally:
            connection.close()


@contextmanager
def running() -> Iterator[FakeProvider]:
    """A server that stops with the block."""
    paths = os.pathsep.join([str(_TESTS), str(_TESTS.parent / "sample_traces")])
    command = [sys.executable, "-m", "fake_provider"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": paths}
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield FakeProvider(int(process.stdout.readline()))
        finally:
            process.stdin.close()
            process.wait(timeout=10)
