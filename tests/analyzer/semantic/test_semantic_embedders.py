"""Embedders by name: a real HTTP server that speaks OpenAI's embeddings API, well and badly, and recorded vectors."""

import base64
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from prefixscope.analyzer.errors import InputError, UsageError
from prefixscope.analyzer.semantic.embedding import OpenAICompatible, Recorded, Remembering, embedder
from prefixscope.analyzer.semantic.endpoint import Endpoint

_Answer = tuple[int, Mapping[str, str], Any]  # status, headers, body
_TEXTS = ["one", "three", "fifteen"]


def _vector(text: str) -> list[float]:
    return [float(len(text)), 1.0]


def _items(texts: Sequence[str]) -> list[dict[str, Any]]:
    return [{"object": "embedding", "index": n, "embedding": _vector(text)} for n, text in enumerate(texts)]


def _well(request: Any, _: int) -> _Answer:
    return 200, {}, {"object": "list", "data": _items(request["input"]), "model": request["model"]}


class _Server(ThreadingHTTPServer):
    """Answers as a function of the request and of how many came before says."""

    def __init__(self, answer: Callable[[Any, int], _Answer]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Any] = []
        self.keys: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/"


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = len(self.server.asked)
        self.server.asked.append(request)
        self.server.keys.append(self.headers["Authorization"])
        status, headers, body = self.server.answer(request, number) if self.path == "/v1/embeddings" else (404, {}, {})
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(data))} | dict(headers)).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing is told."""


@pytest.fixture
def served() -> Iterator[Callable[[Callable[[Any, int], _Answer]], _Server]]:
    """Starts servers and ends them."""
    running: list[_Server] = []

    def start(answer: Callable[[Any, int], _Answer]) -> _Server:
        server = _Server(answer)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


_Start = Callable[[Callable[[Any, int], _Answer]], _Server]


def _endpoint(server: _Server, pauses: list[float] | None = None) -> Endpoint:
    return Endpoint("small", server.address, "secret", timeout_s=5, pause=(pauses if pauses is not None else []).append)


def test_by_name_from_the_environment(served: _Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Address and key are those of OpenAI's own clients; rows come back at length 1, each under its text."""
    server = served(_well)
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    made = embedder("openai:small")
    rows = made.embed([f"{'x' * n}" for n in range(1, 71)])
    assert made.name == "small"
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert np.allclose(rows[:, 0] / rows[:, 1], np.arange(1, 71))
    assert [len(request["input"]) for request in server.asked] == [32, 32, 6]
    assert set(server.keys) == {"Bearer secret"}


def test_a_local_server_is_sent_no_key(served: _Start) -> None:
    """An empty key would be a wrong one."""
    server = served(_well)
    Endpoint("small", server.address).rows(["x"])
    assert server.keys == [None]


def _base64(texts: Sequence[str]) -> list[dict[str, Any]]:
    coded = [base64.b64encode(np.array(_vector(text), dtype="<f4").tobytes()).decode() for text in texts]
    return [{"index": n, "embedding": text} for n, text in enumerate(coded)]


@pytest.mark.parametrize(
    "items",
    [
        lambda texts: list(reversed(_items(texts))),
        _base64,
        lambda texts: [{"embedding": _vector(text)} for text in texts],
    ],
    ids=["out of order", "base64", "without an index"],
)
def test_other_ways_to_say_the_same(served: _Start, items: Callable[[Sequence[str]], Any]) -> None:
    """Whatever the order and the encoding, each text gets its own vector."""
    server = served(lambda request, _: (200, {}, {"data": items(request["input"])}))
    assert _endpoint(server).rows(_TEXTS).tolist() == [_vector(text) for text in _TEXTS]


_BAD: dict[str, tuple[Any, str]] = {
    "no JSON": (b"<html>", "an answer that is no JSON"),
    "no list": ({"error": "x"}, "no list of embeddings"),
    "a list": ([], "no list of embeddings"),
    "too few": ({"data": _items(_TEXTS[:2])}, "2 embeddings for 3 texts"),
    "twice": ({"data": [_items(_TEXTS)[0]] * 3}, "whose index is missing or comes twice"),
    "strange index": ({"data": [{"index": [n], "embedding": [1.0]} for n in range(3)]}, "whose index is missing"),
    "lengths": ({"data": [{"index": n, "embedding": [1.0] * (n + 1)} for n in range(3)]}, r"different lengths \(1, 2,"),
    "text": ({"data": [{"index": n, "embedding": "not base64!"} for n in range(3)]}, "no list of numbers"),
    "three bytes": ({"data": [{"index": n, "embedding": "AAAA"} for n in range(3)]}, "no list of numbers"),
    "words": ({"data": [{"index": n, "embedding": ["a"]} for n in range(3)]}, "no list of numbers"),
    "nested": ({"data": [{"index": n, "embedding": [[1.0]]} for n in range(3)]}, "no list of finite numbers"),
    "nothing": ({"data": [{"index": n} for n in range(3)]}, "no list of finite numbers"),
    "infinite": (b'{"data": [%s]}' % b",".join(b'{"index": %d, "embedding": [1e999]}' % n for n in range(3)), "finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", _BAD)
def test_what_are_no_vectors_of_these_texts_is_told(served: _Start, name: str) -> None:
    """One message each, with the address and the model."""
    body, message = _BAD[name]
    server = served(lambda *_: (200, {}, body))
    with pytest.raises(InputError, match=message) as raised:
        _endpoint(server).rows(_TEXTS)
    assert f"{server.address}embeddings (small)" in str(raised.value)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "body", "kind", "message"),
    [
        (401, {"error": {"message": "Incorrect API key\nprovided"}}, UsageError,
         "401: Incorrect API key provided. Set OPENAI_API_KEY to a key"),
        (403, b"", UsageError, "403: Forbidden. Set OPENAI_API_KEY"),
        (404, {"error": {"message": "no such model"}}, UsageError, "404: no such model. Is there a model 'small'"),
        (400, {"error": "too long"}, InputError, "400: too long"),
        (413, {"detail": "batch"}, InputError, "413: "),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do_and_is_not_repeated(
    served: _Start, status: int, body: Any, kind: type[Exception], message: str
) -> None:
    """What the endpoint said, on one line."""
    server = served(lambda *_: (status, {}, body))
    with pytest.raises(kind, match=message):
        _endpoint(server).rows(_TEXTS)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("status", "headers", "pauses"),
    [
        (429, {"Retry-After": "7"}, [7.0, 7.0]),
        (429, {}, [1.0, 2.0]),
        (503, {"Retry-After": "soon"}, [1.0, 2.0]),
        (429, {"Retry-After": "3600"}, [60.0, 60.0]),
        (429, {"Retry-After": "-5"}, [0.0, 0.0]),
        (429, {"Retry-After": format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True)}, [0.0, 0.0]),
    ],
)
def test_a_busy_endpoint_is_asked_again_when_it_says(
    served: _Start, status: int, headers: Mapping[str, str], pauses: list[float]
) -> None:
    """After the time it asks for, or after twice as long each time; never more than a minute."""
    server = served(lambda request, number: (status, headers, {}) if number < 2 else _well(request, number))
    waited: list[float] = []
    assert len(_endpoint(server, waited).rows(_TEXTS)) == 3
    assert waited == pauses


def test_a_date_to_come_is_waited_for(served: _Start) -> None:
    """Retry-After may be a date."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server = served(lambda request, number: _well(request, number) if number else (429, {"Retry-After": date}, {}))
    waited: list[float] = []
    _endpoint(server, waited).rows(_TEXTS)
    assert 0 < waited[0] <= 30


def test_an_endpoint_that_stays_busy_is_given_up(served: _Start) -> None:
    """After five times."""
    server = served(lambda *_: (429, {}, {"error": {"message": "Rate limit reached"}}))
    waited: list[float] = []
    with pytest.raises(InputError, match=r"429: Rate limit reached. Asked 5 times"):
        _endpoint(server, waited).rows(_TEXTS)
    assert (len(server.asked), waited) == (5, [1.0, 2.0, 4.0, 8.0])


def test_an_address_that_is_wrong(served: _Start) -> None:
    """Nobody answers, the answer breaks off, or it is no address."""
    server = served(lambda *_: (200, {"Content-Length": "100"}, b"{"))
    with pytest.raises(InputError, match=r"no answer: .*Is OPENAI_BASE_URL right"):
        _endpoint(server).rows(["x"])
    free = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    address = f"http://127.0.0.1:{free.server_address[1]}"
    free.server_close()
    with pytest.raises(InputError, match=r"no answer: .*refused.*Is OPENAI_BASE_URL right"):
        Endpoint("small", address).rows(["x"])
    with pytest.raises(UsageError, match="OPENAI_BASE_URL: 'ftp://x' is no http address"):
        Endpoint("small", "ftp://x").rows(["x"])


def test_a_text_is_embedded_once(served: _Start) -> None:
    """What was made is remembered, also when it comes twice in one call."""
    server = served(_well)
    made = Remembering(OpenAICompatible(_endpoint(server)))
    first, again = made.embed(["a", "bb", "a"]), made.embed(["bb", "ccc"])
    assert [request["input"] for request in server.asked] == [["a", "bb"], ["ccc"]]
    assert (first[0] == first[2]).all()
    assert (first[1] == again[0]).all()
    assert made.ms_per_text(["a", "ccc"]) > 0
    assert made.ms_per_text([]) == 0
    assert made.embed([]).shape[0] == 0


def test_recorded_vectors() -> None:
    """Found by the canonical question; a text without one is like no other; lengths must be the same."""
    made = Recorded({"is it open?": (3.0, 4.0)})
    assert np.allclose(made.embed(["Is it  OPEN?", "other"]), [[0.6, 0.8], [0.0, 0.0]])
    with pytest.raises(InputError, match=r"vectors of different lengths \(1, 2\)"):
        Recorded({"a": (1.0,), "b": (1.0, 2.0)}).embed(["a"])


def _library(monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> list[str]:
    """A module that stands for sentence-transformers, which is too large for the tests; what it was asked to load."""
    loaded: list[str] = []

    class SentenceTransformer:
        def __init__(self, model: str) -> None:
            loaded.append(model)
            if error:
                raise error

        def encode(self, texts: list[str], *, convert_to_numpy: bool, show_progress_bar: bool) -> Any:
            assert convert_to_numpy
            assert not show_progress_bar
            return np.array([_vector(text) for text in texts], dtype=np.float32)

    module = ModuleType("sentence_transformers")
    module.__dict__["SentenceTransformer"] = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return loaded


def test_sentence_transformers_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model is loaded once; one that cannot be loaded, or a library that is not there, is told."""
    loaded = _library(monkeypatch)
    made = embedder("st:some/model")
    assert np.allclose(made.embed(["aaa"]), [[3 / 10**0.5, 1 / 10**0.5]])
    made.embed(["b"])
    assert loaded == ["some/model"]
    _library(monkeypatch, OSError("We couldn't connect\nlong story"))
    with pytest.raises(UsageError, match="st:some/model: sentence-transformers cannot load this model: We couldn't c"):
        embedder("st:some/model").embed(["a"])
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(UsageError, match="pip install sentence-transformers"):
        embedder("st:some/model").embed(["a"])


@pytest.mark.parametrize("name", ["st:", "openai:", "magic"])
def test_an_embedder_needs_its_model(name: str) -> None:
    """Names are told."""
    with pytest.raises(UsageError, match="use minilm, trace, st:MODEL or openai:MODEL"):
        embedder(name)
