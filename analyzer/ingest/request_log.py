"""Request logs: one JSON object a call, with the request as it was sent and the answer or its usage -> ``CallRecord``.

Field names are in request_log.toml. A log whose objects are request bodies themselves, with a time beside, works too.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from prefixscope.analyzer.ingest.content import BODY_KEYS
from prefixscope.analyzer.ingest.loose import count, embedded, hex_id, mapping, moment, number, text, url
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.otel_plugin import providers, segments, sse
from prefixscope.otel_plugin import usage as wire
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import CallRecord, Prompt, Usage
from prefixscope.otel_plugin.wire import apis

_NO_TIME = 'a call without a time: add "timestamp" (ISO 8601, or seconds, ms, µs or ns since 1970 UTC)'
_NO_CALL = "neither a prompt that any known API takes, nor a model, nor usage: is this a log of model calls?"
_PAYLOAD_STARTS = ("{", "data:", "event:")
_NO_BODY = "the request is not a JSON object that any known API takes: log the body as it was sent"


def is_entry(document: Mapping[str, Any]) -> bool:
    """Whether ``document`` tells of a call: it has a request or an answer, or is a request body with a time."""
    known, keys = _table(), document.keys()
    if any(_is_payload(document.get(name)) for name in known.payloads):
        return True
    return not known.times.isdisjoint(keys) and not (known.usages | BODY_KEYS).isdisjoint(keys)


def _is_payload(value: Any) -> bool:
    """A JSON body or an event stream, not the "GET /" or "200" of a web server's log."""
    return isinstance(value, dict | list) or (isinstance(value, str) and value.lstrip().startswith(_PAYLOAD_STARTS))


def observed(document: Mapping[str, Any], printer: Fingerprinter, place: Place) -> Observed | Rejected | None:
    """The call that ``document`` describes; None if it asks for an embedding, a ranking or an image."""
    found = known_fields(document)
    body, address = body_of(document, found), url(found.get("url"))
    model = text(found.get("model")) or text(mapping(body).get("model"))
    if apis.by_path(address.path) == "" or _table().skipped_models.search(model):
        return None
    started = moment(found.get("started"))
    if started is None:
        return place.rejected(_NO_TIME)
    prompt = _prompt(body, address.path)
    service, model = text(found.get("service")), model or (prompt.model if prompt else "")
    api = prompt.api if prompt else ""
    provider = _provider(found, address.hostname or "", address.path, model, api)
    usage = _usage(found, provider)
    if prompt is None and not model and usage.state == "missing":
        return place.rejected(_NO_CALL)
    record = CallRecord(
        started_ns=started,
        service=service,
        provider=provider,
        api=api,
        model=model,
        usage=usage,
        fingerprint=printer.fingerprint(prompt) if prompt and prompt.segments else None,
        duration_ms=_duration_ms(found, started),
        ttft_ms=number(found.get("ttft_ms")),
        status=_status(found),
        error=_error(found),
        account=printer.keyed(text(found.get("account"))),
        region=text(found.get("region")),
        session_id=text(found.get("session")) or (prompt.session if prompt else ""),
        trace_id=hex_id(found.get("trace"), 32),
        span_id=hex_id(found.get("span"), 16),
        request_id=text(found.get("request_id")),
        instrumentation="request_log",
        aborted=found.get("aborted") is True,
    )
    return place.observed(record, "" if prompt or body is None else _NO_BODY)


@dataclass(frozen=True)
class _Table:
    """request_log.toml as loaded."""

    fields: Mapping[str, tuple[str, int]]  # field name -> (what it means, rank); rank 0 is the best
    payloads: frozenset[str]  # fields of requests and answers
    times: frozenset[str]
    usages: frozenset[str]
    skipped_models: re.Pattern[str]


@cache
def _table() -> _Table:
    raw = tomllib.loads((resources.files(__package__) / "request_log.toml").read_text("utf-8"))
    names = raw["fields"]
    return _Table(
        fields={name: (key, rank) for key, found in names.items() for rank, name in enumerate(found)},
        payloads=frozenset((*names["request"], *names["response"])),
        times=frozenset(names["started"]),
        usages=frozenset(names["usage"]),
        skipped_models=re.compile(raw["skipped"]["models"]),
    )


def known_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    fields = _table().fields
    found: dict[str, tuple[int, Any]] = {}
    for name, value in document.items():
        key, rank = fields.get(name, ("", 0))
        if key and value is not None and (key not in found or rank < found[key][0]):
            found[key] = rank, value
    return {key: value for key, (_, value) in found.items()}


def body_of(document: Mapping[str, Any], found: Mapping[str, Any]) -> Any:
    """The request body: the field that holds it, or ``document`` itself; None if there is neither."""
    request = found.get("request")
    if request is None and not BODY_KEYS.isdisjoint(document):
        return document
    return request if not isinstance(request, str) else embedded(request) or request


def _prompt(body: Any, path: str) -> Prompt | None:
    if not isinstance(body, dict):
        return None
    # a log of bare texts names no model, by which the shape would be told
    bare = "model" not in body and isinstance(body.get("input"), str | list)
    return segments.parse(body, path=path) or (segments.parse(body, api="openai.responses") if bare else None)


def _provider(found: Mapping[str, Any], host: str, path: str, model: str, api: str) -> str:
    named = text(found.get("provider"))
    return (providers.canonical(named) if named else "") or providers.identify(
        host=host, path=path, model=model, api=api
    )


def _usage(found: Mapping[str, Any], provider: str) -> Usage:
    """From the answer; from a usage field beside it where the answer tells nothing."""
    told = _of_answer(found.get("response"), provider)
    beside = embedded(found.get("usage"))
    if told.state == "missing" and isinstance(beside, dict):
        return wire.from_usage(beside, provider=provider)
    return told


def _of_answer(response: Any, provider: str) -> Usage:
    if isinstance(response, str):
        if not response.lstrip().startswith("{"):
            return wire.from_events(sse.decode(response, wanted=wire.telling()), provider=provider)
        response = embedded(response)
    if isinstance(response, list):
        events = (_event(e) for e in response)
        return wire.from_events((e for e in events if isinstance(e, dict)), provider=provider)
    return wire.from_body(mapping(response), provider=provider)


def _event(raw: Any) -> Any:
    """One stream event: decoded, or its JSON text, or {"event": …, "data": …} as event-stream clients give it."""
    event = embedded(raw.removeprefix("data:")) if isinstance(raw, str) else raw
    return embedded(event["data"]) if isinstance(event, dict) and "event" in event and "data" in event else event


def _duration_ms(found: Mapping[str, Any], started: int) -> float | None:
    if (given := number(found.get("duration_ms"))) is not None:
        return given
    ended = moment(found.get("ended"))
    return (ended - started) / 1e6 if ended is not None and ended >= started else None


def _status(found: Mapping[str, Any]) -> int | None:
    status = count(found.get("status"))
    return status if status is not None and 100 <= status < 600 else None


def _error(found: Mapping[str, Any]) -> str:
    """The error's type, never its message, which may quote the prompt."""
    for source in (
        found,
        mapping(embedded(found.get("response")) if isinstance(found.get("response"), dict) else None),
    ):
        error = source.get("error")
        if isinstance(error, dict):
            return next((text(error[k]) for k in ("type", "code", "status") if text(error.get(k))), "error")
        if isinstance(error, str) and error:
            return error if error.isascii() and " " not in error else "error"
    return ""
