"""Who is called: hosts, paths, models and telemetry names -> genai-prices ids."""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pytest

from prefixscope.otel_plugin import providers

FACTS = tomllib.loads(files("prefixscope.otel_plugin").joinpath("providers.toml").read_text("utf-8"))

CALLS: list[tuple[dict[str, str], str]] = [
    ({"host": "api.anthropic.com"}, "anthropic"),
    ({"host": "API.OpenAI.com"}, "openai"),
    ({"host": "eu.api.openai.com"}, "openai"),
    ({"host": "evil-api.openai.com.example.org"}, ""),
    ({"host": "my-unit.openai.azure.com", "model": "claude-opus-5"}, "azure"),
    ({"host": "us-east5-aiplatform.googleapis.com", "model": "claude-opus-5"}, "google"),
    ({"host": "bedrock-runtime.us-east-1.amazonaws.com"}, "aws"),
    ({"host": "bedrock-mantle.us-east-1.api.aws"}, "aws"),
    ({"host": "aws-external-anthropic.us-east-1.api.aws", "path": "/v1/messages"}, "anthropic"),
    ({"host": "router.huggingface.co", "path": "/together/v1/chat/completions"}, "huggingface_together"),
    ({"host": "router.huggingface.co", "path": "/nobody/v1/chat/completions"}, ""),
    ({"host": "gateway.ai.cloudflare.com", "path": "/v1/acc/gw/google-ai-studio/v1/models"}, "google"),
    ({"host": "openrouter.ai", "model": "anthropic/claude-opus-5"}, "openrouter"),
    ({"host": "localhost", "model": "gpt-6"}, "openai"),
    ({"host": "localhost", "model": "glm-5.3"}, ""),
    ({"model": "glm-5.3"}, "zhipuai"),
    ({"model": "deepseek-chat"}, "deepseek"),
    ({"model": "command-a-03-2025"}, "cohere"),
    ({"host": "localhost", "model": "llama"}, ""),
    ({"host": "localhost", "path": "/model/x/converse"}, "aws"),
    ({"host": "localhost", "api": "bedrock.converse", "model": "anthropic.claude-5"}, "aws"),
    ({"api": "gemini.generate_content"}, "google"),
    ({"model": "claude-opus-5"}, "anthropic"),
    ({"model": "us.anthropic.claude-opus-5-v1:0"}, "aws"),
    ({"model": "arn:aws:bedrock:us-east-1:1:inference-profile/x"}, "aws"),
    ({"model": "claude-opus-4@20250514"}, "google"),
    ({"model": "o3-mini"}, "openai"),
    ({"model": "gpt-oss-120b"}, ""),
    ({"model": "models/gemini-3-pro"}, "google"),
    ({"model": "accounts/fireworks/models/kimi-k3"}, "fireworks"),
    ({"model": "bedrock/anthropic.claude-5"}, "aws"),
    ({"model": "vertex_ai/claude-opus-5"}, "google"),
    ({"model": "openrouter/anthropic/claude-opus-5"}, "openrouter"),
    ({"model": "groq/llama-4"}, "groq"),
    ({"model": "meta-llama/Llama-4"}, ""),
    ({}, ""),
]


@pytest.mark.parametrize(("call", "provider"), CALLS)
def test_identify(call: dict[str, str], provider: str) -> None:
    """The URL decides, then the shape of the request, then the model's name."""
    assert providers.identify(**call) == provider


@pytest.mark.parametrize(
    ("name", "provider"),
    [
        ("openai", "openai"),
        ("aws.bedrock", "aws"),
        ("AWS", "aws"),
        ("gcp.gemini", "google"),
        ("gcp.vertex_ai", "google"),
        ("gcp.gen_ai", "google"),
        ("azure.ai.openai", "azure"),
        ("az.ai.inference", "azure"),
        ("xai", "x-ai"),
        ("vertex_ai", "google"),
        ("mistral_ai", "mistral"),
        (" Groq ", "groq"),
        ("openai.responses", "openai"),
        ("google.generative-ai", "google"),
        ("amazon-bedrock", "aws"),
        ("hosted_vllm", "vllm"),
        ("ibm.watsonx.ai", ""),
        ("_OTHER", ""),
        ("", ""),
    ],
)
def test_canonical(name: str, provider: str) -> None:
    """Telemetry's names for a provider are one id."""
    assert providers.canonical(name) == provider


def _named(facts: Mapping[str, Any]) -> set[str]:
    rows = [row["provider"] for row in (*facts["url"], *facts["model"]) if "{" not in row["provider"]]
    tables = (facts["hosts"], facts["aliases"], facts["apis"])
    return {*rows, *facts["routed_ids"], *facts["open_weights"], *(v for table in tables for v in table.values())}


def test_ids_are_those_of_genai_prices() -> None:
    """Every id can be priced, except the few that are said to be our own, and those it does not have."""
    data = pytest.importorskip("genai_prices.data")
    known = {provider.id for provider in data.providers}
    assert _named(FACTS) - known <= set(FACTS["own_ids"])
    assert not known & set(FACTS["own_ids"])


def test_models_agree_with_genai_prices() -> None:
    """Where both name one provider for a vendor's own model they agree."""
    data = pytest.importorskip("genai_prices.data")
    vendors = {"anthropic", "openai", "google", "deepseek", "x-ai", "mistral", "moonshotai", "cohere", "minimax"}
    for provider in data.providers:
        matched = [m.id for m in provider.models if provider.model_match and provider.model_match.is_match(m.id)]
        for model in matched if provider.id in vendors else ():
            assert providers.identify(model=model) in {provider.id, ""}, model


def test_every_id_and_alias_is_canonical() -> None:
    """Ids name themselves and aliases lead to ids in one step, in lower case."""
    assert all(providers.canonical(provider) == provider for provider in _named(FACTS))
    assert all(alias == alias.lower() for alias in FACTS["aliases"])
