"""A server on loopback that answers at once with what it has prepared: little of what is measured is its own."""

import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 200,
    "total_tokens": 1200,
    "prompt_tokens_details": {"cached_tokens": 512},
}
_HEAD = {"id": "chatcmpl-1", "created": 1, "model": "gpt-5.1"}


def _answer() -> bytes:
    message = {"role": "assistant", "content": "word " * 200}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps(_HEAD | {"object": "chat.completion", "choices": [choice], "usage": _USAGE}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def _stream() -> list[bytes]:
    """Headers, then one chunk an event, as providers send them."""
    deltas = [*({"content": f"word{n} "} for n in range(199)), {}]
    head = _HEAD | {"object": "chat.completion.chunk"}
    events = [
        json.dumps(head | {"choices": [{"index": 0, "delta": d, "finish_reason": None if d else "stop"}]})
        for d in deltas
    ]
    events += [json.dumps(head | {"choices": [], "usage": _USAGE}), "[DONE]"]
    chunks = [f"data: {event}\n\n".encode() for event in events]
    return [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        *(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks),
        b"0\r\n\r\n",
    ]


ANSWER, STREAM = _answer(), _stream()


def _serve(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, suppress(ConnectionError):  # a client that ends closes without a word
        while body := _request(connection):
            if b'"stream":true' in body:
                for chunk in STREAM:
                    connection.sendall(chunk)
            else:
                connection.sendall(ANSWER)


def _request(connection: socket.socket) -> bytes:
    """One request's body, empty when the connection is closed."""
    data = bytearray()
    while (end := data.find(b"\r\n\r\n")) < 0:
        if not (more := connection.recv(1 << 16)):
            return b""
        data += more
    length = _LENGTH.search(data, 0, end)
    size = end + 4 + (int(length[1]) if length else 0)
    while len(data) < size:
        data += connection.recv(1 << 20)
    return bytes(data[end + 4 :])


def main() -> None:
    """Prints its port and serves until standard input ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


@contextmanager
def running() -> Iterator[str]:
    """The URL of a server in a process of its own."""
    command = [sys.executable, __file__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.stdin.close()


if __name__ == "__main__":
    main()
