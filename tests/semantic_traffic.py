"""Small request logs of questions and answers, and the calls they become, for tests of the response caches."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from prefixscope.analyzer import store
from prefixscope.analyzer.semantic.questions import Questions, of_calls
from prefixscope.analyzer.semantic.reading import Reader

START = datetime(2026, 11, 30, 8, tzinfo=UTC)
KEY = b"test"
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "semantic"


def line(question: str, answer: str, at_s: float = 0.0, **changes: Any) -> dict[str, Any]:
    """One chat call; ``changes`` go into the request where they are its fields, else into the line."""
    fields = {"temperature", "n", "tools", "user", "messages", "web_search_options", "model"}
    request = {
        "model": "gpt-5.1",
        "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": question}],
    }
    request |= {name: value for name, value in changes.items() if name in fields}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 0}}
    message = {"role": "assistant", "content": answer}
    found = {
        "timestamp": (START + timedelta(seconds=at_s)).isoformat(),
        "service": "help",
        "request": request,
        "response": {
            "id": f"chatcmpl-{at_s}-{abs(hash(question)) % 10**6}",
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        },
        "duration_ms": 800,
    }
    return found | {name: value for name, value in changes.items() if name not in fields}


def write(path: Path, lines: Sequence[Mapping[str, Any]]) -> Path:
    """A request log of these lines."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in lines), "utf-8")
    return path


def questions(path: Path, **options: Any) -> Questions:
    """The calls of a log, taken apart."""
    reader = Reader(KEY)
    with store.opened(None) as opened:
        opened.ingest(reader.read([path]), at=START)
        calls = opened.frame("analysis/calls", service=None, since=None, until=None)
        prompts = opened.arrow("analysis/prompts", service=None, since=None, until=None)
    return of_calls(calls, prompts.column("segments"), reader.text_of, KEY, **options)


def made_up(
    texts: Sequence[int], contexts: Sequence[int], scopes: Sequence[int], at_s: Sequence[int], last_s: Sequence[int]
) -> Questions:
    """Questions without a log: a text is a number within its scope; all calls may be served from a cache."""
    named = {(s, t): n for n, (s, t) in enumerate(dict.fromkeys(zip(scopes, texts, strict=True)))}
    text = np.array([named[s, t] for s, t in zip(scopes, texts, strict=True)], dtype=np.int64)
    context = np.array(contexts, dtype=np.int64)
    started = np.array(at_s, dtype=np.int64) * 10**9
    return Questions(
        calls=pl.DataFrame({"call_id": [str(n) for n in range(len(texts))]}),
        contents=(None,) * len(texts),
        bar=("",) * len(texts),
        scope=np.array(scopes, dtype=np.int64),
        text=text,
        context=context,
        key=text * 1000 + context,
        started=started,
        ended=started + np.array(last_s, dtype=np.int64) * 10**9,
        texts=tuple(f"question {t}" for _, t in named),
        text_scope=np.array([s for s, _ in named], dtype=np.int64),
        with_text=True,
    )
