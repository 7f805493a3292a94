"""A WSGI application that is loaded, and instrumented, before its server forks: each request makes one call."""

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import openai

from fake_provider.plan import Plan
from prefixscope.otel_plugin import instrument
from sdks import prompts

instrument(http_spans=False, service="forked")
client = openai.OpenAI(api_key="of no account", base_url=f"{os.environ['PROVIDER_URL']}/v1", max_retries=0)
_BODY: Any = prompts.CHAT | {"model": "gpt-4.1"}


def app(_: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answers with the number of the process that made the call."""
    client.chat.completions.create(**_BODY, extra_headers=Plan(f"worker {os.getpid()}").headers)
    time.sleep(0.02)  # the other worker gets its share
    start_response("200 OK", [("Content-Type", "application/json")])
    return [str(os.getpid()).encode()]
