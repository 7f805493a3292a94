"""Reads recorded HTTP exchanges of LLM providers: VCR, rig's when/then documents, HAR and single-exchange JSON."""

import base64
import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from prefixscope.otel_plugin import eventstream, sse

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
CASSETTES = DATA / "cassettes"

_HOSTS = {  # rig records the path alone: the folder names the provider
    "anthropic": "api.anthropic.com",
    "cohere": "api.cohere.com",
    "deepseek": "api.deepseek.com",
    "gemini": "generativelanguage.googleapis.com",
    "llamacpp": "localhost",
    "mistral": "api.mistral.ai",
    "openai": "api.openai.com",
    "openrouter": "openrouter.ai",
    "venice": "api.venice.ai",
    "xai": "api.x.ai",
}


@dataclass(frozen=True)
class Exchange:
    """One request and its answer, bodies decompressed."""

    source: Path
    method: str
    url: str
    request_body: bytes
    response_body: bytes
    status: int
    request_headers: Mapping[str, str]  # lower-case names
    response_headers: Mapping[str, str]

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def request(self) -> Any:
        """The request body as JSON, or None."""
        return _json(self.request_body)

    @property
    def response(self) -> Any:
        """The response body as JSON, or None (a stream, an empty body)."""
        return _json(self.response_body)

    @property
    def events(self) -> list[Mapping[str, Any]]:
        """The response's stream events; empty if it is no stream."""
        body = self.response_body
        if self.response is not None:
            return []
        framed = list(eventstream.decode(body))
        return [*framed] if framed else [*sse.decode(body)]


def exchanges(*folders: str) -> Iterator[Exchange]:
    """Every exchange below ``CASSETTES``/folder (all folders if none is named), in file order."""
    for folder in folders or ("",):
        for path in sorted((CASSETTES / folder).rglob("*")):
            yield from read(path)


def read(path: Path) -> Iterator[Exchange]:
    """The exchanges of one recording; nothing for files that record none (web sockets, SDK messages)."""
    if not path.is_file():
        return
    name = path.name.removesuffix(".gz")
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if name.endswith((".yaml", ".yml")):
        for document in yaml.load_all(raw, Loader=yaml.CSafeLoader):
            yield from _document(path, document)
    elif name.endswith((".har", ".json")):
        yield from _document(path, json.loads(raw))


def documents(*folders: str) -> Iterator[Mapping[str, Any]]:
    """JSON objects of the recordings that are no HTTP: web-socket frames, SDK messages, managed-agent events."""
    for folder in folders or ("",):
        for path in sorted((CASSETTES / folder).rglob("*.*l")):
            raw = path.read_bytes()
            if path.suffix == ".jsonl":
                lines = [json.loads(line) for line in raw.splitlines() if line]
                yield from (value for _, value in lines if isinstance(value, dict))
            elif path.suffix == ".yaml":
                for document in yaml.load_all(raw, Loader=yaml.CSafeLoader):
                    yield from _frames(document)


def _frames(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for item in document.get("interactions", ()):
        if isinstance(item.get("data"), dict):
            yield item["data"]
    for message in document.get("messages", ()):
        if isinstance(message, dict):
            yield message


def _document(path: Path, document: Mapping[str, Any]) -> Iterator[Exchange]:
    if "when" in document:
        yield _rig(path, document["when"], document["then"])
    elif "interactions" in document:
        pairs = [(item["request"], item["response"]) for item in document["interactions"] if "request" in item]
        yield from (_vcr(path, *pair) for pair in pairs)
    elif "requests" in document:  # langchain-aws keeps two lists
        yield from (_vcr(path, *pair) for pair in zip(document["requests"], document["responses"], strict=True))
    elif "log" in document:
        yield from (_har(path, entry["request"], entry["response"]) for entry in document["log"]["entries"])
    elif "request" in document:
        yield _vcr(path, document["request"], document["response"])


def _vcr(path: Path, request: Mapping[str, Any], response: Mapping[str, Any]) -> Exchange:
    headers = _headers(response.get("headers"))
    return Exchange(
        source=path,
        method=request["method"],
        url=request.get("uri") or request["url"],
        request_body=_body(request),
        response_body=_plain(_body(response), headers),
        status=response["status"]["code"],
        request_headers=_headers(request.get("headers")),
        response_headers=headers,
    )


def _rig(path: Path, when: Mapping[str, Any], then: Mapping[str, Any]) -> Exchange:
    provider = path.relative_to(CASSETTES / "rig" / "tests" / "cassettes").parts[0]
    query = "&".join(f"{item['name']}={item['value']}" for item in when.get("query_param") or ())
    return Exchange(
        source=path,
        method=when["method"],
        url=f"https://{_HOSTS.get(provider, 'unknown')}{when['path']}" + (f"?{query}" if query else ""),
        request_body=_bytes(when.get("body")),
        response_body=_bytes(then.get("body")),
        status=then["status"],
        request_headers={item["name"].lower(): item["value"] for item in when.get("header") or ()},
        response_headers={item["name"].lower(): item["value"] for item in then.get("header") or ()},
    )


def _har(path: Path, request: Mapping[str, Any], response: Mapping[str, Any]) -> Exchange:
    content = response["content"]
    body = _bytes(content.get("text"))
    headers = {item["name"].lower(): item["value"] for item in response["headers"]}
    return Exchange(
        source=path,
        method=request["method"],
        url=request["url"],
        request_body=_bytes(request.get("postData", {}).get("text")),
        response_body=_plain(base64.b64decode(body) if content.get("encoding") == "base64" else body, headers),
        status=response["status"],
        request_headers={item["name"].lower(): item["value"] for item in request["headers"]},
        response_headers=headers,
    )


def _body(message: Mapping[str, Any]) -> bytes:
    if "parsed_body" in message:
        return _bytes(message["parsed_body"])
    body = message.get("body")
    if isinstance(body, dict):
        body = base64.b64decode(body["base64_string"]) if "base64_string" in body else body.get("string")
    return _bytes(body)


def _bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    return b"" if body is None else json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _plain(body: bytes, headers: Mapping[str, str]) -> bytes:
    """Decompressed; recordings often keep the header of an encoding that the body no longer has."""
    if body[:2] == b"\x1f\x8b":
        return gzip.decompress(body)
    if headers.get("content-encoding") == "deflate":
        return zlib.decompress(body)
    return body


def _headers(headers: Mapping[str, Any] | None) -> dict[str, str]:
    """Lower-case names; of repeated headers the first."""
    first = {name.lower(): value[0] if isinstance(value, list) else value for name, value in (headers or {}).items()}
    return {name: str(value) for name, value in first.items()}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:  # a stream or no text at all
        return None
