"""Event logs of Open Design's runs -> calls: token counts and models, no prompts.

Known from three recorded runs only (codeburn's fixtures): the model is told when it changes, and an event that is told
again does not count.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prefixscope.analyzer.ingest.loose import mapping, moment, text
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.otel_plugin import providers
from prefixscope.otel_plugin import usage as wire
from prefixscope.otel_plugin.record import CallRecord, Usage

_NO_TIME = 'a token count without a time: each event needs "timestamp" (ISO 8601, or ms since 1970)'


class RunEvents:
    """Reads the events of one run."""

    def __init__(self) -> None:
        self._model = ""
        self._told: set[str] = set()

    @staticmethod
    def is_event(document: Mapping[str, Any]) -> bool:
        """Whether ``document`` is an event of a run."""
        return {"id", "event", "timestamp"} <= document.keys() and isinstance(document.get("data"), dict)

    def calls(self, document: Mapping[str, Any], place: Place) -> Iterator[Observed | Rejected]:
        """The call whose tokens an event counts, if it does."""
        data, name = mapping(document["data"]), text(document["id"])
        self._model = text(data.get("model")) or self._model
        if data.get("type") != "usage" or name in self._told:
            return
        self._told.add(name)
        at = moment(document["timestamp"])
        if at is None:
            yield place.rejected(_NO_TIME)
            return
        vendor, _, model = self._model.rpartition(":")
        record = CallRecord(
            started_ns=at,
            service="open-design",
            provider=providers.canonical(vendor.partition("-")[0]) or providers.identify(model=model),
            model=model,
            usage=_usage(mapping(data.get("usage"))),
            instrumentation="open_design",
        )
        yield place.observed(record)


def _usage(raw: Mapping[str, Any]) -> Usage:
    """Whether input contains what was read, or output what was thought, differs by model: the total tells."""
    counts = {name: raw.get(name) for name in ("input_tokens", "output_tokens", "total_tokens")}
    details = {"cached_tokens": raw.get("cached_read_tokens")}
    return wire.from_usage(
        {
            **counts,
            "input_tokens_details": details,
            "output_tokens_details": {"reasoning_tokens": raw.get("thought_tokens")},
        }
    )
