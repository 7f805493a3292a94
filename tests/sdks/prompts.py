"""The request that all programs send, in each API's shape: a long system prompt and a question, with breakpoints."""

from typing import Any

Body = dict[str, Any]

_RULES = " ".join(f"Rule {n}: answer questions of kind {n % 7} with the facts of page {n % 91}." for n in range(150))
SYSTEM = f"You answer for a shop in Köln. Naïve questions are welcome, 日本語 too.\n{_RULES}"
QUESTION = "What is the answer — in one “word”?"

CHAT: Body = {"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]}
CHAT_STREAM: Body = {"stream": True, "stream_options": {"include_usage": True}}

RESPONSES: Body = {"model": "gpt-5.1", "instructions": SYSTEM, "input": [{"role": "user", "content": QUESTION}]}

_ONE_HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
_FIVE_MINUTES = {"cache_control": {"type": "ephemeral"}}
MESSAGES: Body = {
    "max_tokens": 64,
    "system": [{"type": "text", "text": SYSTEM} | _ONE_HOUR],
    "messages": [{"role": "user", "content": [{"type": "text", "text": QUESTION} | _FIVE_MINUTES]}],
}

CONVERSE: Body = {
    "system": [{"text": SYSTEM}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
    "messages": [{"role": "user", "content": [{"text": QUESTION}, {"cachePoint": {"type": "default"}}]}],
}
CLAUDE_ON_BEDROCK = "anthropic.claude-sonnet-4-5-20250929-v1:0"
INVOKE: Body = MESSAGES | {"anthropic_version": "bedrock-2023-05-31"}

GEMINI: Body = {
    "systemInstruction": {"parts": [{"text": SYSTEM}]},
    "contents": [{"role": "user", "parts": [{"text": QUESTION}]}],
}
