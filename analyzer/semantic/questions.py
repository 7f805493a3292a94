"""Calls with their texts -> questions: who may share an answer with whom, what was asked, and what came before it.

Everything is numbered densely, so that replay works on integers: ``scope`` (who may share), ``text`` (the last user
message in its scope), ``context`` (the conversation before it), ``key`` (all of it: an exact repeat has the same).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from prefixscope.analyzer.semantic.cacheable import LONGEST, SEMANTIC_ONLY, Content, bar, recorded_bar
from prefixscope.analyzer.semantic.words import canonical

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

SCOPE_FIELDS: Final = ("service", "model", "system", "tools", "settings", "account", "tenant", "user")
"""What may have to be the same before an answer is shared. All but ``user`` by default."""
DEFAULT_SCOPE: Final = SCOPE_FIELDS[:-1]
_IN_KEY: Final = frozenset({"model", "system", "tools", "settings", "tenant"})
"""What the exact key that capture keeps is made of, beside the conversation."""


@dataclass(frozen=True, slots=True)
class Questions:
    """Calls in time order as arrays; ``texts`` by text number. Times are UTC nanoseconds."""

    calls: pl.DataFrame
    contents: tuple[Content | None, ...]
    bar: tuple[str, ...]  # "" = may be served; else a key of cacheable.BARS
    scope: Ints  # -1 = unknown
    text: Ints  # -1 = no question in words, or one too long
    context: Ints
    key: Ints  # -1 = prompt not known
    started: Ints
    ended: Ints  # when its answer was there
    texts: tuple[str, ...]
    text_scope: Ints  # text -> scope
    with_text: bool  # False: only fingerprints, tier 1 alone

    def __len__(self) -> int:
        return len(self.bar)

    @property
    def exact(self) -> Bools:
        """Calls that may be served from an exact cache."""
        return (self.key >= 0) & np.array([not b or b in SEMANTIC_ONLY for b in self.bar], dtype=np.bool_)

    @property
    def semantic(self) -> Bools:
        """Calls that may be served from a semantic cache too."""
        return (self.text >= 0) & np.array([not b for b in self.bar], dtype=np.bool_)

    @property
    def multi_turn(self) -> Bools:
        """Calls with a conversation before the question."""
        return np.array([bool(c and c.before) for c in self.contents], dtype=np.bool_)

    def question(self, call: int) -> str:
        """The question in words, "" where there is none."""
        text = int(self.text[call])
        return self.texts[text] if text >= 0 else ""

    def answer(self, call: int) -> str:
        """The recorded answer's text, "" where none is recorded."""
        found = self.contents[call]
        return found.answer.text if found and found.answer else ""

    def previous(self, call: int) -> tuple[tuple[str, str], ...]:
        """(role, beginning of the text) of the turn before the question; empty where it is the first."""
        found = self.contents[call]
        return found.previous if found else ()

    def same_answer(self, one: int, other: int) -> bool | None:
        """Whether two calls were answered in the same words; None where that is not known."""
        texts = self.answer(one), self.answer(other)
        if all(texts):
            return canonical(texts[0]) == canonical(texts[1])
        keys = self.calls["answer_key"][one], self.calls["answer_key"][other]
        return keys[0] == keys[1] if all(keys) else None

    def user(self, call: int) -> str:
        found = self.contents[call]
        return found.user if found else ""


def of_calls(  # noqa: PLR0913 - what questions depend on
    calls: pl.DataFrame,
    prints: pa.ChunkedArray,
    text_of: Callable[[Mapping[str, Any]], Content | None],
    key: bytes,
    *,
    scope_fields: Sequence[str] = DEFAULT_SCOPE,
    max_temperature: float = 0.0,
) -> Questions:
    """Takes calls apart.

    Args:
        calls: ``queries/analysis/calls``, in time order.
        prints: their prompts as numbers of contents (``segments`` of ``queries/analysis/prompts``), null where the
            prompt is not known.
        text_of: finds the text of a call by its row.
        key: what ids are keyed with.
        scope_fields: of ``SCOPE_FIELDS``.
        max_temperature: a request that asks for a higher one wants answers that vary.
    """
    rows = list(calls.iter_rows(named=True))
    contents = tuple(map(text_of, rows))
    with_text = any(content is not None for content in contents)
    printed = [None if c is not None else p.as_py() for c, p in zip(contents, prints, strict=True)]
    failed = [(row["status"] or 200) >= 400 or bool(row["error"]) or bool(row["aborted"]) for row in rows]
    bars = [
        recorded_bar(row, failed=f, max_temperature=max_temperature)
        if c is None and row["exact_key"]
        else bar(c, failed=f, max_temperature=max_temperature)
        for row, c, f in zip(rows, contents, failed, strict=True)
    ]
    if not with_text:  # fingerprints only: an exact repeat can be told, what its answer was cannot
        bars = ["" if b == "no_content" and p is not None else b for b, p in zip(bars, printed, strict=True)]
    number, texts = _Numbers(key), _Texts(key)
    shares = [_scope(row, c, p, scope_fields) for row, c, p in zip(rows, contents, printed, strict=True)]
    scope = [-1 if share is None else number(("scope", share)) for share in shares]
    text = [
        texts(s, c.question) if c and 0 < len(c.question) <= LONGEST else -1
        for s, c in zip(scope, contents, strict=True)
    ]
    context = [number(("context", c.before if c else b"")) for c in contents]
    exact = [
        _key(number, row, s, c, p, scope_fields) for row, s, c, p in zip(rows, scope, contents, printed, strict=True)
    ]
    started = calls["started_at"].dt.epoch("ns").to_numpy().astype(np.int64)
    waited = (calls["duration_ms"].fill_null(0.0).to_numpy() * 1e6).astype(np.int64)
    return Questions(
        calls=calls,
        contents=contents,
        bar=tuple(bars),
        scope=_array(scope),
        text=_array(text),
        context=_array(context),
        key=_array(exact),
        started=started,
        ended=started + waited,
        texts=tuple(texts.texts),
        text_scope=_array(texts.scopes),
        with_text=with_text,
    )


def _array(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


class _Numbers:
    """Dense numbers of anything that has a representation; kept as keyed hashes, so that no text is held twice."""

    def __init__(self, key: bytes) -> None:
        self._hash = blake2b(digest_size=16, key=key[:64]).copy
        self._known: dict[bytes, int] = {}

    def __call__(self, value: object) -> int:
        state = self._hash()
        state.update(repr(value).encode("utf-8", "surrogatepass"))
        return self._known.setdefault(state.digest(), len(self._known))


class _Texts:
    """Numbers of questions in their scopes."""

    def __init__(self, key: bytes) -> None:
        self._number = _Numbers(key)
        self.texts: list[str] = []
        self.scopes: list[int] = []

    def __call__(self, scope: int, question: str) -> int:
        found = self._number((scope, canonical(question)))
        if found == len(self.texts):
            self.texts.append(question)
            self.scopes.append(scope)
        return found


def _scope(
    row: Mapping[str, Any], found: Content | None, printed: Sequence[int] | None, fields: Sequence[str]
) -> object | None:
    """What must be the same before an answer may be shared; None where it is not known."""
    if found is None and printed is None:
        return None
    values: dict[str, object] = {
        "service": row["service"],
        "model": (row["provider"], row["model"]),
        "system": found.system if found else b"",
        "tools": found.tools if found else b"",
        "settings": found.parameters if found else row["settings"],
        "account": row["account"],
        "tenant": found.tenant if found else "",
        "user": found.user if found else "",
    }
    return [values[name] for name in SCOPE_FIELDS if name in fields]


def _key(  # noqa: PLR0913, PLR0917 - what a key is made of
    number: _Numbers,
    row: Mapping[str, Any],
    scope: int,
    found: Content | None,
    printed: Sequence[int] | None,
    fields: Sequence[str],
) -> int:
    """The number of the whole prompt, by its exact key where the scope has all that this is made of.

    So a call whose text is at hand and one that only capture saw can be told as repeats of each other.
    """
    if scope < 0:
        return -1
    exact_key = row["exact_key"] if found is None else found.key.hex() if _IN_KEY.issubset(fields) else ""
    if exact_key:
        who = _scope(row, None, (), [name for name in fields if name in {"service", "model", "account"}])
        return number(("exact", who, found.tenant if found else "", _user(found, fields), exact_key))
    if found is None:
        return number(("print", scope, printed))
    return number(("key", scope, found.before, canonical(found.question), found.attached))


def _user(found: Content | None, fields: Sequence[str]) -> str:
    return found.user if found and "user" in fields else ""
