"""Which requests are calls to a model."""

import pytest

from prefixscope.otel_plugin.endpoints import Endpoints

KNOWN = {
    "OpenAI chat": ("api.openai.com", "/v1/chat/completions", "openai.chat"),
    "OpenAI responses": ("api.openai.com", "/v1/responses", "openai.responses"),
    "Anthropic": ("api.anthropic.com", "/v1/messages?beta=true", "anthropic.messages"),
    "Gemini": (
        "generativelanguage.googleapis.com",
        "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        "gemini.generate_content",
    ),
    "Bedrock": ("bedrock-runtime.eu-west-1.amazonaws.com", "/model/a.b-v1%3A0/converse-stream", "bedrock.converse"),
    "Bedrock by ARN": ("bedrock-runtime.eu-west-1.amazonaws.com", "/model/arn%3Aaws%2Fx/invoke", "bedrock.invoke"),
    "Azure": ("x.openai.azure.com", "/openai/deployments/d/chat/completions?api-version=1", "openai.chat"),
    "Cohere": ("api.cohere.com", "/v2/chat", "cohere.chat"),
    "a gateway": ("127.0.0.1", "/proxy/v1/chat/completions", "openai.chat"),
    "a gateway for Anthropic": ("llm.internal", "/v1/messages", "anthropic.messages"),
    "a host in capitals": ("API.OpenAI.com", "/v1/responses", "openai.responses"),
}
OTHERS = [
    ("api.openai.com", "/v1/embeddings"),
    ("api.anthropic.com", "/v1/messages/count_tokens"),
    ("api.openai.com", "/v1/files"),
    ("api.openai.com", "/v1/chat/completions/chatcmpl-1"),
    ("survey.example.com", "/forms/1/responses"),
    ("app.example.com", "/v1/chat"),
    ("example.com", "/"),
    ("example.com", ""),
]


@pytest.mark.parametrize(("host", "path", "api"), KNOWN.values(), ids=KNOWN)
def test_calls_are_known(host: str, path: str, api: str) -> None:
    """By host and path, or by a path that means a call wherever it is."""
    assert Endpoints().api(host, path) == api


@pytest.mark.parametrize(("host", "path"), OTHERS)
def test_others_are_left_alone(host: str, path: str) -> None:
    """Whatever else an application sends."""
    assert Endpoints().api(host, path) is None


EXTRA = [
    ("llm.corp", "llm.corp", "/anything", ""),
    ("llm.corp", "llm.corp.evil.test", "/anything", None),
    ("*.corp/ai/*=openai.chat", "eu.corp", "/ai/generate", "openai.chat"),
    ("*.corp/ai/*=openai.chat", "eu.corp", "/other", None),
    ("llm.corp/*", "llm.corp", "/v1/messages", "anthropic.messages"),
    ("llm.corp/*", "llm.corp", "/v1/messages/count_tokens", None),
    ("LLM.corp/Generate", "llm.Corp", "/generate", ""),
]


@pytest.mark.parametrize(("entry", "host", "path", "api"), EXTRA)
def test_users_add_their_own(entry: str, host: str, path: str, api: str | None) -> None:
    """Patterns of host and path; the body tells the shape where nothing else does."""
    assert Endpoints([entry]).api(host, path) == api


def test_an_unknown_api_is_told() -> None:
    """With those that are known."""
    with pytest.raises(ValueError, match=r"openai\.chat"):
        Endpoints(["llm.corp/*=openai.chatt"])


def test_the_memory_is_bounded() -> None:
    """Paths that hold ids do not pile up."""
    endpoints = Endpoints()
    for number in range(10_000):
        endpoints.api("example.com", f"/items/{number}")
    assert len(endpoints._known) <= 4096
