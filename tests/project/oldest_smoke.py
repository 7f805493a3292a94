"""A program with the capture switched on: one call to a model over loopback, which must be in the spool afterwards.

`.ci/run` runs it in an environment with the oldest versions that the base install declares; it needs httpx and nothing
of the project's development dependencies.
"""

import json
import os
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx

from prefixscope.otel_plugin import flush, instrument, uninstrument

ANSWER = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-5.1-2025-11-13",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1500, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1408}},
}


class Model(BaseHTTPRequestHandler):
    """Answers every request alike."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


def main() -> None:
    os.environ["PREFIXSCOPE_KEY"] = "smoke"  # none is made on disk
    server = HTTPServer(("127.0.0.1", 0), Model)
    Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        instrument(service="smoke", spool=folder)
        body = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hello"}]}
        answer = httpx.post(f"http://127.0.0.1:{server.server_port}/v1/chat/completions", json=body, timeout=10)
        assert answer.json() == ANSWER
        assert flush(10)
        uninstrument()
        lines = [line for file in Path(folder).rglob("*.jsonl*") for line in file.read_text("utf-8").splitlines()]
    assert len(lines) == 1, lines
    assert "prefixscope.fingerprint" in lines[0]
    assert "Hello" not in lines[0]
    sys.stdout.write("one call, one line in the spool, no text in it\n")


if __name__ == "__main__":
    main()
