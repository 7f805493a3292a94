"""A program whose calls are instrumented by prefixscope and by somebody else as well.

``python beside.py <spans> <spool> <url> <scope> <ours first?> <module:Instrumentor>…`` writes all spans to the file
<spans>, one JSON object a line, as the SDK's console exporter has them.
"""

import asyncio
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anthropic
import openai
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from fake_provider.plan import Plan
from prefixscope.otel_plugin import instrument, uninstrument
from sdks import prompts
from sdks.clients import Clients, headers_of_bedrock

_CHAT: Any = prompts.CHAT | {"model": "gpt-4.1"}
_CLAUDE: Any = prompts.MESSAGES | {"model": "claude-sonnet-4-6"}
_CONVERSE: Any = {
    "modelId": prompts.CLAUDE_ON_BEDROCK,
    "system": prompts.CONVERSE["system"],
    "messages": [{"role": "user", "content": [{"text": prompts.QUESTION}]}],
}
_KEY = "of no account"


def main() -> None:
    """Instrument, call, and leave."""
    file, spool, url, scope, ours_first, *others = sys.argv[1:]
    plan = Plan(scope).headers
    with Path(file).open("w", encoding="utf-8") as out:
        provider = TracerProvider()
        exporter = ConsoleSpanExporter(out=out, formatter=lambda span: span.to_json(indent=None) + "\n")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        steps = [*others, ""] if ours_first == "no" else ["", *others]
        for step in steps:
            _instrument(step, spool)
        _call(url, plan)
        asyncio.run(_call_asynchronously(url, plan))
        uninstrument()
        provider.shutdown()


def _instrument(other: str, spool: str) -> None:
    if not other:
        instrument(spool=spool, service="beside", reraise=True)
        return
    module, _, name = other.partition(":")
    getattr(import_module(module), name)().instrument()


def _call(url: str, plan: dict[str, str]) -> None:
    sent: Any = {"extra_headers": plan}
    gpt = openai.OpenAI(api_key=_KEY, base_url=f"{url}/v1")
    gpt.chat.completions.create(**_CHAT, **sent)
    list(gpt.chat.completions.create(**_CHAT, **prompts.CHAT_STREAM, **sent))
    gpt.responses.create(**prompts.RESPONSES, **sent)
    list(gpt.responses.create(**prompts.RESPONSES, stream=True, **sent))
    claude = anthropic.Anthropic(api_key=_KEY, base_url=url)
    claude.messages.create(**_CLAUDE, **sent)
    list(claude.messages.create(**_CLAUDE, stream=True, **sent))
    with claude.messages.stream(**_CLAUDE, **sent) as stream:
        stream.get_final_message()
    headers_of_bedrock.set(plan)
    bedrock = Clients(url).get("bedrock")
    bedrock.converse(**_CONVERSE)
    list(bedrock.converse_stream(**_CONVERSE)["stream"])


async def _call_asynchronously(url: str, plan: dict[str, str]) -> None:
    sent: Any = {"extra_headers": plan}
    async with openai.AsyncOpenAI(api_key=_KEY, base_url=f"{url}/v1") as gpt:
        await gpt.chat.completions.create(**_CHAT, **sent)
        async for _ in await gpt.chat.completions.create(**_CHAT, **prompts.CHAT_STREAM, **sent):
            pass
    async with anthropic.AsyncAnthropic(api_key=_KEY, base_url=url) as claude:
        await claude.messages.create(**_CLAUDE, **sent)
        async for _ in await claude.messages.create(**_CLAUDE, stream=True, **sent):
            pass


if __name__ == "__main__":
    main()
