"""Embeddings from an endpoint that speaks OpenAI's API (``/embeddings``): OpenAI, vLLM, Ollama, LiteLLM and others.

Texts are sent there, so it is used only where somebody names it. Requests that the endpoint is too busy for are sent
again after the time that it asks for.
"""

import base64
import binascii
import json
import math
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prefixscope.analyzer.errors import InputError, PrefixscopeError, UsageError

ADDRESS, KEY = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_DEFAULT: Final = "https://api.openai.com/v1"
_BATCH: Final = 32  # texts: what text-embeddings-inference takes at most, if nobody changed it
_TRIES: Final = 5
_LONGEST_PAUSE_S: Final = 60.0
_BUSY: Final = frozenset({
    HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT,
})  # fmt: skip
_SHOWN: Final = 200  # characters of what the endpoint says

Row = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where embeddings are made. ``pause`` waits for so many seconds."""

    model: str
    address: str
    key: str = ""  # "" = none is sent: local servers want none
    timeout_s: float = 60.0
    pause: Callable[[float], None] = time.sleep

    def rows(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """(texts, dimensions), as the endpoint made them.

        Raises:
            UsageError: the address is none, the key or the model is refused.
            InputError: it does not answer, is busy for too long, or answers with what are no vectors of these texts.
        """
        parts = [self._batch(texts[start : start + _BATCH]) for start in range(0, len(texts), _BATCH)]
        rows = [row for part in parts for row in part]
        sizes = sorted({len(row) for row in rows})
        if len(sizes) > 1:
            raise self._wrong(f"vectors of different lengths ({', '.join(map(str, sizes))})")
        return np.array(rows, dtype=np.float32)

    def _batch(self, texts: Sequence[str]) -> list[Row]:
        found = self._sent(json.dumps({"model": self.model, "input": list(texts)}).encode())
        data = found.get("data") if isinstance(found, dict) else None
        if not isinstance(data, list):
            raise self._wrong("no list of embeddings")
        if len(data) != len(texts):
            raise self._wrong(f"{len(data)} embeddings for {len(texts)} texts")
        return [self._row(item) for item in self._in_order(data)]

    def _in_order(self, data: Sequence[Any]) -> list[Mapping[str, Any]]:
        """By their index, which says what text each is of: nothing promises that they come in order."""
        said = [item.get("index", n) if isinstance(item, dict) else None for n, item in enumerate(data)]
        index = [n for n in said if type(n) is int]
        if sorted(index) != list(range(len(data))):
            raise self._wrong("embeddings whose index is missing or comes twice")
        return [data[index.index(n)] for n in range(len(data))]

    def _row(self, item: Mapping[str, Any]) -> Row:
        """One vector: a list of numbers, or float32 in base64, as the OpenAI SDKs ask for."""
        found = item.get("embedding")
        try:
            row = _decoded(found) if isinstance(found, str) else np.array(found, dtype=np.float32)
        except (ValueError, TypeError, binascii.Error) as error:
            raise self._wrong("an embedding that is no list of numbers") from error
        if row.ndim != 1 or not len(row) or not np.isfinite(row).all():
            raise self._wrong("an embedding that is no list of finite numbers")
        return row

    def _sent(self, body: bytes) -> Any:
        """The answer to a request; a busy endpoint is asked again."""
        for attempt in range(1, _TRIES + 1):
            try:
                return self._answer(body)
            except urllib.error.HTTPError as error:
                if error.code not in _BUSY or attempt == _TRIES:
                    raise self._refused(error) from error
                self.pause(_pause(error.headers.get("Retry-After"), attempt))
            except (OSError, HTTPException) as error:
                reason = getattr(error, "reason", None) or error
                raise InputError(f"{self._url}: no answer: {reason}. Is {ADDRESS} right?") from error
        raise AssertionError  # the last attempt returns or raises

    @property
    def _url(self) -> str:
        if not self.address.startswith(("https://", "http://")):
            raise UsageError(f"{ADDRESS}: {self.address!r} is no http address")
        return f"{self.address.rstrip('/')}/embeddings"

    def _answer(self, body: bytes) -> Any:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {self.key}"} if self.key else {})
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310 - its scheme was looked at
        with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310 - as above
            read = response.read()
        try:
            return json.loads(read)
        except ValueError as error:
            raise self._wrong("an answer that is no JSON") from error

    def _refused(self, error: urllib.error.HTTPError) -> PrefixscopeError:
        said = f"{self._url} answered {error.code}: {_said(error)}"
        if error.code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return UsageError(f"{said}. Set {KEY} to a key that may make embeddings")
        if error.code == HTTPStatus.NOT_FOUND:
            return UsageError(f"{said}. Is there a model {self.model!r} at {ADDRESS}?")
        if error.code in _BUSY:
            return InputError(f"{said}. Asked {_TRIES} times; try again later")
        return InputError(said)

    def _wrong(self, what: str) -> InputError:
        return InputError(f"{self._url} ({self.model}) gave {what}: it does not speak OpenAI's embeddings API")


def from_environment(model: str) -> Endpoint:
    """The endpoint that the environment names, as for OpenAI's own clients."""
    return Endpoint(model, os.environ.get(ADDRESS) or _DEFAULT, os.environ.get(KEY, ""))


def _decoded(text: str) -> Row:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f4").astype(np.float32)


def _pause(asked: str | None, attempt: int) -> float:
    """Seconds: what the endpoint asks for (seconds or a date, RFC 9110 10.2.3), else twice as long each time."""
    try:
        seconds = float(asked) if asked else math.nan
    except ValueError:
        seconds = _until(asked or "")
    return min(max(seconds, 0.0) if math.isfinite(seconds) else 2.0 ** (attempt - 1), _LONGEST_PAUSE_S)


def _until(date: str) -> float:
    try:
        return parsedate_to_datetime(date).timestamp() - time.time()
    except (ValueError, TypeError):
        return math.nan


def _said(error: urllib.error.HTTPError) -> str:
    """The message in the body of an error, on one line; the status where there is none."""
    try:
        found = json.loads(error.read())
        message = found["error"]["message"] if isinstance(found["error"], dict) else found["error"]
    except (OSError, ValueError, KeyError, TypeError):
        message = error.reason
    return " ".join(str(message).split())[:_SHOWN]
