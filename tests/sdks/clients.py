"""SDK clients that talk to the fake provider. Each is made once, an asynchronous one in the loop that it is used in."""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import aiohttp
import anthropic
import boto3  # type: ignore[import-untyped]
import groq
import httpx
import httpx2
import openai
import requests
from botocore.config import Config  # type: ignore[import-untyped]
from google import genai
from mistralai.client import Mistral

KEY = "sk-of-no-account-0123456789"
_TIMEOUT = 20.0

headers_of_bedrock: ContextVar[dict[str, str]] = ContextVar("headers_of_bedrock")
"""boto3 takes no headers with a call: what is set here is sent."""


class Clients:
    """Clients by name, for one provider's URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._made: dict[tuple[str, bool], Any] = {}

    def get(self, name: str, *, is_async: bool = False) -> Any:
        key = name, is_async
        if key not in self._made:
            self._made[key] = _FACTORIES[key](self.url)
        return self._made[key]

    async def close(self) -> None:
        """Close all. What is asynchronous belongs to the loop that runs this."""
        for (_, is_async), client in self._made.items():
            if is_async:
                await (client.__aexit__(None, None, None) if hasattr(client, "__aexit__") else client.close())
            elif hasattr(client, "close"):
                client.close()
            else:
                client.__exit__(None, None, None)
        await asyncio.sleep(0)  # aiohttp closes its connections one round later


def _openai(url: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(api_key=KEY, base_url=f"{url}/v1", **({"max_retries": 0, "timeout": _TIMEOUT} | options))


def _async_openai(url: str, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=KEY, base_url=f"{url}/v1", **({"max_retries": 0, "timeout": _TIMEOUT} | options))


def _anthropic(kind: Any, **options: Any) -> Callable[[str], Any]:
    return lambda url: kind(api_key=KEY, base_url=url, **({"max_retries": 0, "timeout": _TIMEOUT} | options))


def _groq(kind: Any, **options: Any) -> Callable[[str], Any]:
    return lambda url: kind(api_key=KEY, base_url=url, **({"max_retries": 0, "timeout": _TIMEOUT} | options))


def _google(url: str) -> genai.Client:
    return genai.Client(api_key=KEY, http_options={"base_url": url, "timeout": int(_TIMEOUT * 1000)})


def _mistral(url: str) -> Mistral:
    return Mistral(api_key=KEY, server_url=url, timeout_ms=int(_TIMEOUT * 1000))


def _bedrock(attempts: int) -> Callable[[str], Any]:
    def make(url: str) -> Any:
        config = Config(retries={"mode": "standard", "total_max_attempts": attempts}, read_timeout=_TIMEOUT)
        client = boto3.client(
            "bedrock-runtime",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="AKIAIOSFODNN7EXAMPLE",
            aws_secret_access_key="of no account",
            config=config,
        )
        client.meta.events.register("before-send.bedrock-runtime.*", _add_headers)
        return client

    return make


def _add_headers(request: Any, **_: Any) -> None:
    request.headers.update(headers_of_bedrock.get())


_FACTORIES: dict[tuple[str, bool], Callable[[str], Any]] = {
    ("openai", False): _openai,
    ("openai", True): _async_openai,
    ("openai retrying", False): lambda url: _openai(url, max_retries=3),
    ("openai retrying", True): lambda url: _async_openai(url, max_retries=3),
    ("openai http2", False): lambda url: _openai(url, http_client=httpx2.Client(http1=False, http2=True)),
    ("openai http2", True): lambda url: _async_openai(url, http_client=httpx2.AsyncClient(http1=False, http2=True)),
    ("openai httpx", False): lambda url: _openai(url, http_client=httpx.Client()),
    ("openai httpx", True): lambda url: _async_openai(url, http_client=httpx.AsyncClient()),
    ("openai aiohttp", True): lambda url: _async_openai(url, http_client=openai.DefaultAioHttpClient()),
    ("anthropic", False): _anthropic(anthropic.Anthropic),
    ("anthropic", True): _anthropic(anthropic.AsyncAnthropic),
    ("anthropic retrying", False): _anthropic(anthropic.Anthropic, max_retries=3),
    ("anthropic retrying", True): _anthropic(anthropic.AsyncAnthropic, max_retries=3),
    ("groq", False): _groq(groq.Groq),
    ("groq", True): _groq(groq.AsyncGroq),
    ("google", False): _google,
    ("google", True): lambda url: _google(url).aio,
    ("mistral", False): _mistral,
    ("mistral", True): _mistral,
    ("bedrock", False): _bedrock(1),
    ("bedrock retrying", False): _bedrock(3),
    ("requests", False): lambda _: requests.Session(),
    ("aiohttp", True): lambda _: aiohttp.ClientSession(),
}
