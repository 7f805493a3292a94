"""The tap: what is reported to it is handed on once, whole up to the cap, and never raises."""

import threading
from typing import Any

import pytest

from exchanges import CHAT, ENDPOINTS, tap
from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.guard import Guard
from prefixscope.otel_plugin.tap import Tap


def begun(found: Tap, body: object = b"{}") -> Exchange:
    exchange = found.begin("POST", *CHAT, {}, body)
    assert exchange is not None
    return exchange


@pytest.mark.parametrize(
    ("method", "host", "path"),
    [("GET", *CHAT), ("POST", "example.com", "/v1/form"), ("POST", "api.openai.com", "/v1/embeddings")],
)
def test_other_requests_are_not_reported(method: str, host: str, path: str) -> None:
    """Nothing is kept of them."""
    found = tap([])
    assert found.begin(method, host, path, {}, b"secret") is None
    assert found._open == {}


def test_an_exchange_is_delivered_once() -> None:
    """However often, and from how many threads, its end is told; the first word stands."""
    delivered: list[Exchange] = []
    exchange = begun(tap(delivered))
    exchange.failed(OSError("text that may quote a prompt"))
    threads = [threading.Thread(target=exchange.finish, args=(how,)) for how in ("ended", "closed", "dropped") * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert delivered == [exchange]
    assert (exchange.outcome, exchange.error) == ("failed", "OSError")


def test_a_race_for_the_end_has_one_winner() -> None:
    """Of many threads that start at once."""
    delivered: list[Exchange] = []
    found = tap(delivered)
    exchanges = [begun(found) for _ in range(200)]
    barrier = threading.Barrier(4)

    def finish() -> None:
        barrier.wait()
        for exchange in exchanges:
            exchange.finish("closed")

    threads = [threading.Thread(target=finish) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(id, delivered)) == sorted(map(id, exchanges))


def test_nothing_is_kept_after_the_end() -> None:
    """A body that is drained once more, as OpenAI's asynchronous SDK does, adds nothing."""
    exchange = begun(tap([]))
    exchange.chunk(b"one")
    exchange.finish("closed")
    exchange.chunk(b"two")
    assert (exchange.chunks, exchange.size) == ([b"one"], 3)


def test_a_long_body_keeps_its_beginning_and_its_end() -> None:
    """Anthropic tells its usage first, all others last."""
    exchange = begun(tap([], response_cap=100))
    for number in range(50):
        exchange.chunk(b"%010d" % number)
    exchange.finish("ended")
    kept = [int(chunk) for chunk in (*exchange.chunks, *(exchange.tail or ()))]
    assert kept == [0, 1, 2, 3, 4, 45, 46, 47, 48, 49]
    assert (exchange.size, exchange.kept, exchange.cut, exchange.weight) == (500, 100, True, 102)


@pytest.mark.parametrize(("size", "kept"), [(100, True), (101, False)])
def test_a_body_that_came_in_one_piece(size: int, kept: bool) -> None:
    """Is kept, or not."""
    exchange = begun(tap([], response_cap=100))
    exchange.whole(b"x" * size)
    exchange.finish("ended")
    assert (bool(exchange.chunks), exchange.cut) == (kept, not kept)


@pytest.mark.parametrize("body", [b"x" * 101, None, "text", [b"x"]], ids=["too large", "none", "text", "list"])
def test_a_request_body_that_is_not_kept(body: object) -> None:
    """The call is still one."""
    assert begun(tap([], request_cap=100), body).request_body is None


def test_what_a_library_sends_through_another_is_seen_once() -> None:
    """The outer one reports it."""
    found = tap([])
    begun(found)
    with found.sending():
        assert found.begin("POST", *CHAT, {}, b"") is None
    begun(found)


def test_open_exchanges_are_reported_at_exit() -> None:
    """As they stand; and those of before a fork are not the child's."""
    delivered: list[Exchange] = []
    found = tap(delivered)
    first = begun(found)
    found.exit()
    found.exit()
    second = begun(found)
    found.forget()
    second.finish("ended")
    assert [(exchange, exchange.outcome) for exchange in delivered] == [(first, "exited")]


class _Bad:
    def api(self, *_: Any) -> str:
        raise RuntimeError("a bug")


def _raise(*_: Any) -> Any:
    raise RuntimeError("a bug")


def test_our_errors_stay_with_us(caplog: pytest.LogCaptureFixture) -> None:
    """They are counted, logged once without their message, and the application goes on."""
    guard = Guard()
    limits: dict[str, Any] = {"request_cap": 1, "response_cap": 1}
    assert Tap(_Bad(), _raise, guard, **limits).begin("POST", *CHAT, {}, b"") is None  # type: ignore[arg-type]
    found = Tap(ENDPOINTS, _raise, guard, amend=_raise, **limits)
    for _ in range(3):
        exchange = begun(found)
        assert found.amended(exchange) is None
        exchange.finish("ended")
    assert guard.errors == {"capture of a request": 1, "changing a request": 3, "handing over a call": 3}
    assert [record.message.split("(")[0] for record in caplog.records] == [
        "prefixscope: capture of a request failed ",
        "prefixscope: changing a request failed ",
        "prefixscope: handing over a call failed ",
    ]
    assert "a bug" not in caplog.text
    assert "test_tap.py:" in caplog.text
