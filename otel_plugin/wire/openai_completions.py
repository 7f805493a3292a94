"""OpenAI text completions and their kin with one prompt string (Bedrock Llama, Mistral, Titan)."""

from collections.abc import Iterator

from prefixscope.otel_plugin.record import Segment
from prefixscope.otel_plugin.wire import parts
from prefixscope.otel_plugin.wire.parts import JsonObject


def segments(request: JsonObject) -> list[Segment]:
    """The prompt, or the prompts of a batch, then the suffix; token ids are opaque."""
    prompt = request.get("prompt", request.get("inputText"))  # Amazon Titan says inputText
    found = list(_prompts(prompt))
    found += parts.content(request.get("suffix"), "messages", "suffix")
    return found


def _prompts(prompt: object) -> Iterator[Segment]:
    if isinstance(prompt, list) and not all(isinstance(item, str) for item in prompt):
        yield Segment("messages", "opaque", "user", parts.compact(prompt))
    else:
        yield from parts.content(prompt, "messages", "user")
