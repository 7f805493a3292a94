"""Request bodies -> prompts: golden tables, one an API."""

import json
from types import MappingProxyType
from typing import Any

import pytest

from prefixscope.otel_plugin import segments
from prefixscope.otel_plugin.record import Prompt, Segment

Row = tuple[str, str, str, str, str]  # level, kind, role, text, marker


def rows(prompt: Prompt | None) -> list[Row]:
    assert prompt is not None
    return [(s.level, s.kind, s.role, s.text, s.marker) for s in prompt.segments]


def parsed(body: Any, api: str = "", path: str = "") -> Prompt:
    prompt = segments.parse(body, api=api, path=path)
    assert prompt is not None
    return prompt


MARK = {"cache_control": {"type": "ephemeral"}}
MARK_1H = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
USER = [{"role": "user", "content": "hi"}]
HI: Row = ("messages", "text", "user", "hi", "")
FUNCTION = {"type": "function", "function": {"name": "f", "description": "d"}}

GOLDEN: list[tuple[str, str, dict[str, Any], list[Row]]] = [
    (
        "anthropic: tools, system, messages, whatever the order sent",
        "anthropic.messages",
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "text", "text": "ok"},
                        {"type": "tool_use", "id": "t1", "name": "f", "input": {"b": 1, "a": 2}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t1", "content": "line 1\nline 2", **MARK},
                        {"type": "image", "source": {"type": "base64", "data": "AA=="}},
                        {"type": "document", "source": {"type": "text", "data": "x"}},
                    ],
                },
                {"role": "system", "content": "later"},
            ],
            "system": [{"type": "text", "text": "be brief", **MARK_1H}],
            "tools": [{"name": "f", "input_schema": {"type": "object"}, **MARK}, {"type": "bash_1", "name": "bash"}],
        },
        [
            ("tools", "tool", "", '{"name":"f","input_schema":{"type":"object"}}', "5m"),
            ("tools", "tool", "", '{"type":"bash_1","name":"bash"}', ""),
            ("system", "text", "system", "be brief", "1h"),
            HI,
            ("messages", "thinking", "assistant", '{"type":"thinking","thinking":"hm","signature":"s"}', ""),
            ("messages", "text", "assistant", "ok", ""),
            (
                "messages",
                "tool_call",
                "assistant",
                '{"type":"tool_use","id":"t1","name":"f","input":{"b":1,"a":2}}',
                "",
            ),
            (
                "messages",
                "tool_result",
                "user",
                '{"type":"tool_result","tool_use_id":"t1"}\nline 1\nline 2',
                "5m",
            ),
            ("messages", "image", "user", '{"type":"image","source":{"type":"base64","data":"AA=="}}', ""),
            ("messages", "file", "user", '{"type":"document","source":{"type":"text","data":"x"}}', ""),
            ("messages", "text", "system", "later", ""),
        ],
    ),
    (
        "anthropic: a marker inside a tool result marks its end",
        "anthropic.messages",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a", **MARK}]}
                    ],
                }
            ]
        },
        [("messages", "tool_result", "user", '{"type":"tool_result","tool_use_id":"t"}\na', "5m")],
    ),
    (
        "anthropic: what a text part says beside its text comes first",
        "anthropic.messages",
        {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a", "citations": [{"n": 1}]}]}]},
        [("messages", "text", "assistant", '{"citations":[{"n":1}]}\na', "")],
    ),
    (
        "openai chat: system messages at the start only are the system",
        "openai.chat",
        {
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "developer", "content": [{"type": "text", "text": "d"}]},
                {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": "u"}]},
                {"role": "system", "content": "later"},
            ],
            "tools": [FUNCTION],
        },
        [
            ("tools", "tool", "", '{"type":"function","function":{"name":"f","description":"d"}}', ""),
            ("system", "text", "system", "s", ""),
            ("system", "text", "developer", "d", ""),
            HI,
            ("messages", "image", "user", '{"type":"image_url","image_url":"u"}', ""),
            ("messages", "text", "system", "later", ""),
        ],
    ),
    (
        "openai chat: an assistant turn and its tool's answer",
        "openai.chat",
        {
            "messages": [
                *USER,
                {
                    "role": "assistant",
                    "name": "bot",
                    "content": "",
                    "refusal": None,
                    "annotations": [],
                    "reasoning_content": "hm",
                    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c", "content": "42"},
                {"role": "assistant", "content": "no", "refusal": "sorry", "mood": "bad"},
            ]
        },
        [
            HI,
            ("messages", "text", "assistant", "bot", ""),
            ("messages", "thinking", "assistant", "hm", ""),
            (
                "messages",
                "tool_call",
                "assistant",
                '{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}',
                "",
            ),
            ("messages", "tool_result", "tool", '{"tool_call_id":"c"}\n42', ""),
            ("messages", "text", "assistant", "no", ""),
            ("messages", "text", "assistant", "sorry", ""),
            ("messages", "opaque", "assistant", '{"mood":"bad"}', ""),
        ],
    ),
    (
        "openai chat: markers as LiteLLM and OpenRouter send them",
        "openai.chat",
        {
            "tools": [{**FUNCTION, **MARK}, {"type": "function", "function": {"name": "g", **MARK_1H}}],
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "s", **MARK}]},
                {"role": "user", "content": "hi", **MARK},
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "42", **MARK_1H}]},
            ],
        },
        [
            ("tools", "tool", "", '{"type":"function","function":{"name":"f","description":"d"}}', "5m"),
            ("tools", "tool", "", '{"type":"function","function":{"name":"g"}}', "1h"),
            ("system", "text", "system", "s", "5m"),
            ("messages", "text", "user", "hi", "5m"),
            ("messages", "tool_result", "tool", '{"tool_call_id":"c"}\n42', "1h"),
        ],
    ),
    (
        "openai chat: breakpoints of its own, 30 minutes unless said",
        "openai.chat",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}},
                        {"type": "text", "text": "b", "prompt_cache_breakpoint": {"mode": "explicit", "ttl": "12h"}},
                    ],
                }
            ]
        },
        [("messages", "text", "user", "a", "30m"), ("messages", "text", "user", "b", "12h")],
    ),
    (
        "openai chat: functions of before 2023-11",
        "openai.chat",
        {"functions": [{"name": "f"}], "messages": [{"role": "function", "name": "f", "content": "1"}]},
        [("tools", "tool", "", '{"name":"f"}', ""), ("messages", "tool_result", "function", '{"name":"f"}\n1', "")],
    ),
    (
        "openai responses: instructions and items",
        "openai.responses",
        {
            "instructions": "i",
            "input": [
                {"role": "developer", "content": "d"},
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "e"},
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "42\n43"},
                {
                    "type": "message",
                    "id": "m",
                    "status": "completed",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "ok", "annotations": []}],
                },
                {"type": "compaction", "encrypted_content": "z"},
            ],
            "tools": [{"type": "mcp", "server_url": "u", "authorization": "secret", "headers": {"a": "b"}}],
        },
        [
            ("tools", "tool", "", '{"type":"mcp","server_url":"u"}', ""),
            ("system", "text", "system", "i", ""),
            ("system", "text", "developer", "d", ""),
            HI,
            ("messages", "thinking", "", '{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"}', ""),
            ("messages", "tool_call", "", '{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}', ""),
            ("messages", "tool_result", "", '{"type":"function_call_output","call_id":"c"}\n42\n43', ""),
            ("messages", "text", "assistant", "ok", ""),
            ("messages", "opaque", "", '{"type":"compaction","encrypted_content":"z"}', ""),
        ],
    ),
    ("openai responses: a bare string", "openai.responses", {"input": "hi"}, [HI]),
    (
        "openai responses: a stored template is opaque",
        "openai.responses",
        {"prompt": {"id": "pmpt_1", "version": "2"}, "input": "hi"},
        [("system", "opaque", "", '{"id":"pmpt_1","version":"2"}', ""), HI],
    ),
    (
        "openai completions: prompt and suffix",
        "openai.completions",
        {"prompt": "hi", "suffix": "end"},
        [HI, ("messages", "text", "suffix", "end", "")],
    ),
    (
        "openai completions: token ids",
        "openai.completions",
        {"prompt": [1, 2]},
        [("messages", "opaque", "user", "[1,2]", "")],
    ),
    (
        "gemini: one segment a function declaration",
        "gemini.generate_content",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
                {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s"},
                    ],
                },
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": 1}}}]},
                {"role": "user", "parts": [{"fileData": {"mimeType": "application/pdf", "fileUri": "u"}}]},
                {"role": "user", "parts": [{"hologram": 1}]},
            ],
            "systemInstruction": {"parts": [{"text": "s"}]},
            "tools": [{"functionDeclarations": [{"name": "f"}, {"name": "g"}], "codeExecution": {}}],
        },
        [
            ("tools", "tool", "", '{"name":"f"}', ""),
            ("tools", "tool", "", '{"name":"g"}', ""),
            ("tools", "tool", "", '{"codeExecution":{}}', ""),
            ("system", "text", "", "s", ""),
            HI,
            ("messages", "image", "user", '{"inlineData":{"mimeType":"image/png","data":"AA"}}', ""),
            ("messages", "thinking", "model", "hm", ""),
            ("messages", "tool_call", "model", '{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s"}', ""),
            (
                "messages",
                "tool_result",
                "user",
                '{"functionResponse":{"name":"f","response":{"result":1}}}',
                "",
            ),
            ("messages", "file", "user", '{"fileData":{"mimeType":"application/pdf","fileUri":"u"}}', ""),
            ("messages", "opaque", "user", '{"hologram":1}', ""),
        ],
    ),
    (
        "gemini: snake case",
        "gemini.generate_content",
        {
            "contents": [{"parts": [{"inline_data": {"mime_type": "video/mp4"}}, {"function_call": {"name": "f"}}]}],
            "system_instruction": {"parts": [{"text": "s"}]},
            "tools": [{"function_declarations": [{"name": "f"}]}],
        },
        [
            ("tools", "tool", "", '{"name":"f"}', ""),
            ("system", "text", "", "s", ""),
            ("messages", "image", "", '{"inline_data":{"mime_type":"video/mp4"}}', ""),
            ("messages", "tool_call", "", '{"function_call":{"name":"f"}}', ""),
        ],
    ),
    (
        "gemini interactions: turns and steps",
        "gemini.interactions",
        {
            "system_instruction": "s",
            "tools": [{"type": "function", "name": "f"}],
            "input": [
                {"role": "user", "content": "hi"},
                {"type": "user_input", "content": [{"type": "text", "text": "hi"}]},
                {"type": "thought", "signature": "x"},
                {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
                {"type": "function_result", "call_id": "c", "result": "42"},
                {"type": "model_output", "content": [{"type": "text", "text": "ok"}]},
            ],
        },
        [
            ("tools", "tool", "", '{"type":"function","name":"f"}', ""),
            ("system", "text", "system", "s", ""),
            HI,
            HI,
            ("messages", "thinking", "", '{"type":"thought","signature":"x"}', ""),
            ("messages", "tool_call", "", '{"type":"function_call","id":"c","name":"f","arguments":{}}', ""),
            ("messages", "tool_result", "", '{"type":"function_result","call_id":"c"}\n42', ""),
            ("messages", "text", "model", "ok", ""),
        ],
    ),
    ("gemini interactions: a bare string", "gemini.interactions", {"input": "hi"}, [HI]),
    (
        "bedrock converse: a cache point marks what stands before it",
        "bedrock.converse",
        {
            "toolConfig": {"tools": [{"toolSpec": {"name": "f"}}, {"cachePoint": {"type": "default", "ttl": "1h"}}]},
            "additionalModelRequestFields": {"tools": [{"type": "computer_1"}]},
            "system": [{"text": "s"}, {"cachePoint": {"type": "default"}}],
            "messages": [
                {"role": "user", "content": [{"text": "hi"}, {"image": {"format": "png", "source": {"bytes": b"A"}}}]},
                {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}]},
                {
                    "role": "user",
                    "content": [
                        {"toolResult": {"toolUseId": "t", "content": [{"text": "4"}, {"json": {"a": 1}}]}},
                        {"cachePoint": {"type": "default"}},
                        {"newBlock": 1},
                    ],
                },
            ],
        },
        [
            ("tools", "tool", "", '{"toolSpec":{"name":"f"}}', "1h"),
            ("tools", "tool", "", '{"type":"computer_1"}', ""),
            ("system", "text", "system", "s", "5m"),
            HI,
            ("messages", "image", "user", '{"image":{"format":"png","source":{"bytes":"QQ=="}}}', ""),
            ("messages", "tool_call", "assistant", '{"toolUse":{"toolUseId":"t","name":"f","input":{}}}', ""),
            ("messages", "tool_result", "user", '{"toolUseId":"t"}\n4\n{"json":{"a":1}}', "5m"),
            ("messages", "opaque", "user", '{"newBlock":1}', ""),
        ],
    ),
    (
        "bedrock invoke: Anthropic's shape",
        "bedrock.invoke",
        {"anthropic_version": "bedrock-2023-05-31", "system": "s", "messages": USER},
        [("system", "text", "system", "s", ""), HI],
    ),
    ("bedrock invoke: a prompt string", "bedrock.invoke", {"prompt": "hi", "max_gen_len": 5}, [HI]),
    ("bedrock invoke: Titan", "bedrock.invoke", {"inputText": "hi"}, [HI]),
    (
        "bedrock invoke: Nova",
        "bedrock.invoke",
        {
            "schemaVersion": "messages-v1",
            "system": [{"text": "s"}],
            "messages": [{"role": "user", "content": [{"text": "hi"}]}],
        },
        [("system", "text", "system", "s", ""), HI],
    ),
    ("bedrock invoke: a shape nobody knows", "bedrock.invoke", {"steps": 50}, []),
    (
        "cohere v2: documents stand behind the history",
        "cohere.chat",
        {
            "documents": [{"id": "d", "data": {"text": "x"}}, "y"],
            "messages": [{"role": "system", "content": "s"}, *USER],
        },
        [
            ("system", "text", "system", "s", ""),
            HI,
            ("messages", "file", "document", '{"id":"d","data":{"text":"x"}}', ""),
            ("messages", "text", "document", "y", ""),
        ],
    ),
    (
        "cohere v1: preamble, history, message",
        "cohere.chat",
        {"preamble": "p", "chat_history": [{"role": "CHATBOT", "message": "ok"}], "message": "hi"},
        [("system", "text", "system", "p", ""), ("messages", "text", "chatbot", "ok", ""), HI],
    ),
]


@pytest.mark.parametrize(("case", "api", "body", "expected"), GOLDEN, ids=[case for case, *_ in GOLDEN])
def test_segments(case: str, api: str, body: dict[str, Any], expected: list[Row]) -> None:
    """Every shape gives its segments in the provider's render order."""
    assert rows(segments.parse(body, api=api)) == expected


@pytest.mark.parametrize("content", ["abc", [{"type": "text", "text": "abc"}], {"type": "text", "text": "abc"}])
@pytest.mark.parametrize("api", ["openai.chat", "anthropic.messages"])
def test_a_string_is_a_text_part(content: Any, api: str) -> None:
    """A string and a list of one text part are the same prompt."""
    prompt = segments.parse({"messages": [{"role": "user", "content": content}]}, api=api)
    assert rows(prompt) == [("messages", "text", "user", "abc", "")]


def test_tools_know_their_canonical_form() -> None:
    """The text keeps the key order sent; the canonical form does not depend on it."""
    one, other = (
        parsed({"messages": [], "tools": [tool]}, "anthropic.messages").segments[0]
        for tool in ({"name": "f", "input_schema": {"b": 1, "a": 2}}, {"input_schema": {"a": 2, "b": 1}, "name": "f"})
    )
    assert one.text != other.text
    assert one.canonical == other.canonical == '{"input_schema":{"a":2,"b":1},"name":"f"}'


def test_only_tools_have_a_canonical_form() -> None:
    """Nothing else is compared without its key order."""
    prompt = parsed({"messages": USER, "system": "s"}, "anthropic.messages")
    assert {segment.canonical for segment in prompt.segments} == {""}


SETTINGS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    (
        "anthropic.messages",
        {
            "tool_choice": {"type": "auto"},
            "thinking": None,
            "output_config": {"effort": "high"},
            "speed": "fast",
            "betas": ["b", "a"],
            "mcp_servers": [{"url": "u", "authorization_token": "secret"}],
            "container": {"id": "c", "skills": [1]},
            "max_tokens": 5,
            "temperature": 1,
            "metadata": {"user_id": "u"},
        },
        {
            "tool_choice": '{"type":"auto"}',
            "output_config.effort": '"high"',
            "speed": '"fast"',
            "anthropic_beta": '["a","b"]',
            "mcp_servers": '[{"url":"u"}]',
            "container.skills": "[1]",
        },
    ),
    ("anthropic.messages", {"thread": {"type": "continue", "previous_message_id": "m"}}, {"history": "server"}),
    ("anthropic.messages", {"thread": {"type": "create"}}, {}),
    (
        "openai.chat",
        {
            "parallel_tool_calls": False,
            "reasoning_effort": "low",
            "response_format": {"type": "json_object"},
            "seed": 1,
        },
        {"parallel_tool_calls": "false", "reasoning_effort": '"low"', "response_format": '{"type":"json_object"}'},
    ),
    (
        "openai.responses",
        {"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low", "format": {"type": "text"}}},
        {"reasoning.effort": '"low"', "text.verbosity": '"low"', "text.format": '{"type":"text"}'},
    ),
    ("openai.responses", {"previous_response_id": "r"}, {"history": "server"}),
    ("openai.responses", {"previous_response_id": None}, {}),
    ("openai.responses", {"conversation": {"id": "c"}}, {"history": "server"}),
    ("openai.responses", {"input": [{"type": "item_reference", "id": "i"}]}, {"history": "server"}),
    ("gemini.interactions", {"previous_interaction_id": "i"}, {"history": "server"}),
    (
        "gemini.generate_content",
        {"tool_config": {"a": 1}, "generation_config": {"thinking_config": {"thinkingBudget": 0}, "topK": 1}},
        {"toolConfig": '{"a":1}', "generationConfig.thinkingConfig": '{"thinkingBudget":0}'},
    ),
    (
        "bedrock.converse",
        {"toolConfig": {"toolChoice": {"any": {}}}, "additionalModelRequestFields": {"thinking": {"type": "adaptive"}}},
        {"tool_choice": '{"any":{}}', "thinking": '{"type":"adaptive"}'},
    ),
    (
        "bedrock.invoke",
        {"anthropic_version": "x", "messages": [], "thinking": {"type": "enabled"}},
        {"thinking": '{"type":"enabled"}'},
    ),
]


@pytest.mark.parametrize(("api", "body", "expected"), SETTINGS)
def test_settings(api: str, body: dict[str, Any], expected: dict[str, str]) -> None:
    """Cache-keyed fields are settings; sampling parameters, users, secrets and nulls are not."""
    assert parsed(body, api).settings == expected


REQUEST_WIDE: list[tuple[dict[str, Any], dict[str, str]]] = [
    ({"cache_control": {"type": "ephemeral"}}, {"auto_marker": "5m"}),
    ({"cache_control": {"type": "ephemeral", "ttl": "1h"}}, {"auto_marker": "1h"}),
    ({"cache_control": None}, {"auto_marker": ""}),
    ({"prompt_cache_options": {"mode": "explicit", "ttl": "12h"}}, {"cache_mode": "explicit", "cache_ttl": "12h"}),
    ({"prompt_cache_retention": "in-memory"}, {"cache_ttl": "in_memory"}),
    ({"prompt_cache_retention": "24h"}, {"cache_ttl": "24h"}),
    ({"prompt_cache_key": "k"}, {"cache_key": "k"}),
    ({"x_grok_conv_id": "k"}, {"cache_key": "k"}),
    ({"cachedContent": "cachedContents/1"}, {"cached_content": "cachedContents/1"}),
    ({"cached_content": "cachedContents/1"}, {"cached_content": "cachedContents/1"}),
    ({"conversation": "conv_1"}, {"session": "conv_1"}),
    ({"conversation": {"id": "conv_1"}}, {"session": "conv_1"}),
    ({"previous_response_id": "r"}, {"session": ""}),
    ({"metadata": {"session_id": "s"}}, {"session": "s"}),
    (
        {"metadata": {"user_id": "user_0a_account_1_session_0123abcd-0123-4567-89ab-0123456789ab"}},
        {"session": "0123abcd-0123-4567-89ab-0123456789ab"},
    ),
    (
        {"metadata": {"user_id": '{"session_id":"0123abcd-0123-4567-89ab-0123456789ab"}'}},
        {"session": "0123abcd-0123-4567-89ab-0123456789ab"},
    ),
    ({"model": "m"}, {"model": "m"}),
]


@pytest.mark.parametrize(("fields", "expected"), REQUEST_WIDE)
def test_request_wide_fields(fields: dict[str, Any], expected: dict[str, str]) -> None:
    """What is asked of the cache for the whole request."""
    prompt = parsed({"messages": USER, **fields}, "openai.chat")
    assert {name: getattr(prompt, name) for name in expected} == expected


def test_a_breakpoint_takes_the_ttl_of_its_request() -> None:
    """OpenAI: a breakpoint without a TTL inherits prompt_cache_options.ttl."""
    part = {"type": "input_text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}
    body = {"input": [{"role": "user", "content": [part]}], "prompt_cache_options": {"ttl": "12h"}}
    assert rows(segments.parse(body, api="openai.responses")) == [("messages", "text", "user", "a", "12h")]


@pytest.mark.parametrize(
    ("path", "api", "model", "stream"),
    [
        ("/v1/chat/completions", "openai.chat", "", False),
        ("/openai/deployments/my-gpt/chat/completions?api-version=1", "openai.chat", "my-gpt", False),
        ("https://api.openai.com/v1/responses", "openai.responses", "", False),
        ("/v1/responses/compact", "openai.responses", "", False),
        ("/v1/messages", "anthropic.messages", "", False),
        ("/v1/messages?beta=true", "anthropic.messages", "", False),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-5@20260101:streamRawPredict",
            "anthropic.messages",
            "claude-opus-5@20260101",
            True,
        ),
        ("/v1beta/models/gemini-3-pro:generateContent", "gemini.generate_content", "gemini-3-pro", False),
        ("/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "gemini.generate_content", "gemini-3-pro", True),
        ("/v1beta/interactions", "gemini.interactions", "", False),
        ("/model/us.anthropic.claude-5-v1%3A0/converse", "bedrock.converse", "us.anthropic.claude-5-v1:0", False),
        ("/model/us.anthropic.claude-5-v1:0/converse-stream", "bedrock.converse", "us.anthropic.claude-5-v1:0", True),
        ("/model/amazon.titan/invoke-with-response-stream", "bedrock.invoke", "amazon.titan", True),
        ("/v2/chat", "cohere.chat", "", False),
        ("/v1/chat", "cohere.chat", "", False),
        ("/v1/completions", "openai.completions", "", False),
    ],
)
def test_paths(path: str, api: str, model: str, stream: bool) -> None:
    """The path tells the API, and on some providers the model and the stream."""
    prompt = parsed({}, path=path)
    assert (prompt.api, prompt.model, prompt.stream) == (api, model, stream)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/embeddings",
        "/v1/files",
        "/v1/messages/count_tokens",
        "/v1/messages/batches",
        "/v1/responses/input_tokens",
        "/v1/images/generations",
        "/v1/threads/t/messages",
        "/v1beta/cachedContents",
        "/v1beta/models/g:countTokens",
    ],
)
def test_paths_of_other_endpoints(path: str) -> None:
    """No call to a language model, whatever the body looks like."""
    assert segments.parse({"model": "m", "messages": USER, "input": "x"}, path=path) is None


SHAPES: list[tuple[str, dict[str, Any]]] = [
    ("openai.chat", {"model": "gpt-6", "messages": USER}),
    ("openai.chat", {"model": "anthropic/claude-opus-5", "messages": USER}),
    ("openai.chat", {"model": "claude-opus-5", "messages": [{"role": "system", "content": "s"}, *USER]}),
    ("openai.chat", {"model": "claude-opus-5", "messages": USER, "tools": [FUNCTION]}),
    ("anthropic.messages", {"model": "claude-opus-5", "messages": USER}),
    ("anthropic.messages", {"model": "x", "messages": USER, "system": "s"}),
    ("anthropic.messages", {"model": "x", "messages": USER, "tools": [{"name": "f", "input_schema": {}}]}),
    ("anthropic.messages", {"anthropic_version": "bedrock-2023-05-31", "messages": USER}),
    ("bedrock.converse", {"modelId": "m", "messages": [], "system": []}),
    ("bedrock.converse", {"messages": [], "inferenceConfig": {}}),
    ("gemini.generate_content", {"contents": []}),
    ("openai.responses", {"model": "gpt-6", "input": "hi"}),
    ("gemini.interactions", {"model": "gemini-3-pro", "input": "hi"}),
    ("gemini.interactions", {"agent": "deep-research", "input": "hi"}),
    ("cohere.chat", {"model": "command-a", "message": "hi"}),
    ("cohere.chat", {"model": "command-a", "messages": USER, "documents": []}),
    ("openai.completions", {"model": "m", "prompt": "hi"}),
]


@pytest.mark.parametrize(("api", "body"), SHAPES)
def test_shapes(api: str, body: dict[str, Any]) -> None:
    """Without a path, or with one nobody knows, the body tells the API."""
    assert parsed(body).api == parsed(body, path="/my/proxy").api == api


NOT_CALLS: list[Any] = [
    b"",
    b"{",
    b"[1]",
    b'"text"',
    b"\xff\xfe\xfd",
    b"\x1f\x8b\x08\x00",
    "null",
    b"[" * 100_000,
    b'{"messages":' + b"[" * 100_000,
    {},
    {"model": "text-embedding-3-small", "input": "x"},
    {"model": "m", "input": "x", "encoding_format": "base64"},
    {"model": "gpt-image-1", "prompt": "a cat"},
    {"model": "tts-1", "input": "x", "voice": "alloy"},
    {"input": "x"},
    {"message": {"id": 1}},
    {"jsonrpc": "2.0", "method": "tools/list"},
]


@pytest.mark.parametrize("body", NOT_CALLS, ids=range(len(NOT_CALLS)))
def test_what_is_no_call(body: Any) -> None:
    """Other JSON, broken JSON and JSON beyond reason are no prompt, and no error."""
    assert segments.parse(body) is None


def test_objects_too_deep_are_no_prompt() -> None:
    """A Mapping can be nested deeper than the encoder follows."""
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert segments.parse({"messages": [{"role": "user", "content": [deep]}]}) is None


def test_every_form_of_body_is_the_same_prompt() -> None:
    """Bytes, text, dict and any other Mapping."""
    body = {"model": "m", "stream": True, "tools": [FUNCTION], "messages": [{"role": "user", "content": "héé 函数"}]}
    text = json.dumps(body, indent=2)
    forms: list[Any] = [text, text.encode(), json.dumps(body, ensure_ascii=False).encode(), MappingProxyType(body)]
    assert all(segments.parse(form) == segments.parse(body) for form in forms)
    assert parsed(body).stream


def test_an_unknown_api_name_is_told_by_the_body() -> None:
    """A name from elsewhere does not hide a prompt."""
    assert parsed({"model": "m", "messages": USER}, api="acme.chat").segments == (
        Segment("messages", "text", "user", "hi"),
    )
