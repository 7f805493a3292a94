"""Observations as Langfuse's API and export write them -> ``Span``, in the attributes of its own SDK.

Source: langfuse 5.0.4 (API v2 observation) and the server's OTel ingestion, whose ``usageDetails`` are disjoint parts.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prefixscope.analyzer.ingest.loose import embedded, hex_id, items, mapping, moment, text
from prefixscope.analyzer.ingest.span import Span


def is_observation(document: Mapping[str, Any]) -> bool:
    return "traceId" in document and "type" in document and ("usageDetails" in document or "usage" in document)


def export(document: Mapping[str, Any]) -> Iterator[Span]:
    """The spans of {"trace": {…}, "observations": […]}."""
    trace = mapping(document.get("trace"))
    for observation in map(mapping, items(document.get("observations"))):
        yield span(observation, trace)


def span(observation: Mapping[str, Any], trace: Mapping[str, Any]) -> Span:
    metadata = mapping(embedded(observation.get("metadata")))
    scope = mapping(metadata.get("scope"))
    resource = {"service.name": trace.get("name"), **mapping(metadata.get("resourceAttributes"))}
    return Span(
        attributes={**mapping(metadata.get("attributes")), **_attributes(observation, trace)},
        resource=resource,
        scope=text(scope.get("name")),
        scope_version=text(scope.get("version")),
        trace_id=hex_id(observation.get("traceId"), 32),
        span_id=hex_id(observation.get("id"), 16),
        parent_span_id=hex_id(observation.get("parentObservationId"), 16),
        start_ns=moment(observation.get("startTime")),
        end_ns=moment(observation.get("endTime")),
        failed=observation.get("level") == "ERROR",
    )


def _attributes(observation: Mapping[str, Any], trace: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "langfuse.observation.type": text(observation.get("type")).lower(),
        "langfuse.observation.model.name": observation.get("model"),
        "langfuse.observation.usage_details": observation.get("usageDetails") or observation.get("usage"),
        "langfuse.observation.input": observation.get("input"),
        "langfuse.observation.output": observation.get("output"),
        "langfuse.observation.completion_start_time": observation.get("completionStartTime"),
        "langfuse.session.id": observation.get("sessionId") or trace.get("sessionId"),
    }
    return {name: value for name, value in found.items() if value}
