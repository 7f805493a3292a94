"""What can be set, from ``PREFIXSCOPE_*`` in the environment or as arguments of ``instrument``: one frozen object."""

import os
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args

from prefixscope.otel_plugin.embedding import Embed

Spans = Literal["auto", "on", "off"]

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _count(text: str) -> int:
    """A natural number; ``8M`` is 8 MiB."""
    bare = text.lower().removesuffix("b").removesuffix("i")
    number = int(bare[:-1]) * _UNITS[bare[-1]] if bare[-1:] in _UNITS else int(bare)
    if number < 0:
        raise ValueError("negative")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError("no duration")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise ValueError("not between 0 and 1")
    return number


def _switch(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError("neither true nor false")
    return text.lower() in _TRUE


def _spans(text: str) -> str:
    if text.lower() not in get_args(Spans):
        raise ValueError("unknown")
    return text.lower()


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _setting(default: Any, about: str, reader: Callable[[str], Any] = str, *, shown: str = "") -> Any:
    """A field with its reader and its line in the table; ``shown`` is its default in words."""
    return field(default=default, metadata={"about": about, "reader": reader, "shown": shown})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with its default. Sizes are bytes, times seconds."""

    spool: str = _setting(
        "",
        "Folder of the spool; `off` writes none",
        shown="`$XDG_STATE_HOME/prefixscope/spool`",
    )
    spool_rotate: int = _setting(64 << 20, "A spool file is finished when it has this size", _count, shown="64M")
    spool_age: float = _setting(3600.0, "… or this age in seconds", _seconds)
    spool_quota: int = _setting(
        1 << 30, "Size of all spool files together: the oldest finished ones make room", _count, shown="1G"
    )
    db: str = _setting(
        "",
        "Store (a DuckDB file) that `OTEL_TRACES_EXPORTER=prefixscope_duckdb` writes",
        shown="`$XDG_STATE_HOME/prefixscope/calls.duckdb`",
    )
    service: str = _setting("", "Name of the service", shown="`OTEL_SERVICE_NAME`")
    endpoints: tuple[str, ...] = _setting(
        (), "More endpoints, separated by commas: `host/path` with `*`, then `=api` if the path does not tell", _list
    )
    spans: str = _setting(
        "auto",
        "Span `chat {model}` per call: `on` with `gen_ai.usage.*`; `auto` without it where another instrumentation "
        "covers the call; `off`",
        _spans,
    )
    log_events: bool = _setting(False, "Log event `gen_ai.client.inference.operation.details` per call", _switch)
    content: bool = _setting(False, "Write prompts and responses into the spool as text", _switch)
    fingerprint_share: float = _setting(
        1.0, "Share of conversations whose prompts are fingerprinted; usage is always kept", _share
    )
    exact_keys: bool = _setting(
        True,
        "Keyed hashes of requests and answers, by which exact repeats and changed answers are told, and what decides "
        "whether a response cache may serve a call",
        _switch,
    )
    embed: str | Embed = _setting(  # noqa: RUF009 - a field, as the others
        "",
        "Function that makes vectors of questions (`module:function`, a list of texts in, a list of vectors out): they "
        "are kept, and are nearer to text than to a hash",
    )
    memory: int = _setting(
        64 << 20, "Text of prompts held in memory, which need not be parsed and hashed again", _count, shown="64M"
    )
    request_cap: int = _setting(32 << 20, "Larger request bodies are not fingerprinted", _count, shown="32M")
    response_cap: int = _setting(8 << 20, "What is kept of a response: its beginning and its end", _count, shown="8M")
    queue_calls: int = _setting(2048, "Finished calls that may wait for the worker; more are dropped", _count)
    queue_bytes: int = _setting(128 << 20, "… and the bytes they may hold", _count, shown="128M")
    exit_timeout: float = _setting(5.0, "Seconds that the end of the process waits for calls in the queue", _seconds)
    include_usage: bool = _setting(
        False,
        "Changes requests: asks for `stream_options.include_usage` where a chat stream does not; one more chunk comes",
        _switch,
    )
    cache_diagnostics: bool = _setting(
        False,
        "Changes requests: asks Anthropic and OpenAI Responses why a prefix was missed since the last response of the "
        "same conversation",
        _switch,
    )
    reraise: bool = _setting(False, "For tests: raise prefixscope's own errors instead of logging them", _switch)

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ, /, **given: Any) -> tuple["Settings", list[str]]:
        """Settings from ``given``, then the environment, then the defaults; and what was wrong with them.

        A value that cannot be read leaves the default standing: a spelling mistake must not stop a service.

        Raises:
            TypeError: ``given`` names no setting; that is a mistake in code.
        """
        found: dict[str, Any] = {}
        problems: list[str] = []
        for entry in fields(cls):
            text = environment.get(variable(entry.name), "").strip()
            if entry.name in given or not text:
                continue
            try:
                found[entry.name] = entry.metadata["reader"](text)
            except (ValueError, KeyError) as problem:
                problems.append(f"{variable(entry.name)}={text!r} is ignored: {problem}. {entry.metadata['about']}")
        return cls(**{**found, **given}), problems

    def spool_folder(self, environment: Mapping[str, str] = os.environ) -> Path | None:
        """Where the spool is; None if there is none."""
        if self.spool.lower() == "off":
            return None
        return Path(self.spool) if self.spool else _state(environment) / "spool"

    def db_file(self, environment: Mapping[str, str] = os.environ) -> Path:
        """Where the store of the DuckDB exporter is."""
        return Path(self.db) if self.db else _state(environment) / "calls.duckdb"


def _state(environment: Mapping[str, str]) -> Path:
    """The user's folder for what is kept between two runs (freedesktop.org's base directories)."""
    state = environment.get("XDG_STATE_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".local/state")
    return Path(state) / "prefixscope"


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"PREFIXSCOPE_{name.upper()}"


def table() -> str:
    """All settings as a Markdown table."""
    rows = ["| variable | default | meaning |", "|---|---|---|"]
    for entry in fields(Settings):
        assert entry.default is not MISSING
        default = entry.metadata["shown"] or _shown(entry.default)
        rows.append(f"| `{variable(entry.name)}` | {default} | {entry.metadata['about']} |")
    return "\n".join(rows) + "\n"


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "on" if default else "off"
    return f"{default:g}" if isinstance(default, float) else str(default or "")
