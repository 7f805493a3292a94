"""Whose account it is: stable as long as the account is, whatever becomes of the credential."""

import pytest

from prefixscope.otel_plugin.account import identity, region

HOST = "x.openai.azure.com"
SIGNED = "AWS4-HMAC-SHA256 Credential={}/20261130/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=ab"
CASES = {
    "a bearer": ({"authorization": "Bearer sk-1"}, "/", "sk-1"),
    "Anthropic's": ({"x-api-key": "sk-ant-1"}, "/", "sk-ant-1"),
    "Google's": ({"x-goog-api-key": "AIza1"}, "/", "AIza1"),
    "Azure's": ({"api-key": "k", "authorization": ""}, "/", "k"),
    "a token of an hour, by its project": (
        {"authorization": "Bearer ya29.x"},
        "/v1/projects/p-1/locations/eu/x",
        "p-1",
    ),
    "by the project's header": ({"authorization": "Bearer ya29.x", "x-goog-user-project": "p-2"}, "/", "p-2"),
    "by its host": ({"authorization": "Bearer eyJhbGciOi.eyJz.sig"}, "/", HOST),
    "none": ({"content-type": "application/json"}, "/", ""),
}


@pytest.mark.parametrize(("headers", "path", "expected"), CASES.values(), ids=CASES)
def test_what_stands_for_the_account(headers: dict[str, str], path: str, expected: str) -> None:
    """The credential, or something that outlives it."""
    assert identity(headers, HOST, path) == expected


def test_keys_of_one_aws_account_are_one_account() -> None:
    """The number is in the id of a key: AKIAIOSFODNN7EXAMPLE is the documentation's, of account 581039954779."""
    found = identity({"authorization": SIGNED.format("AKIAIOSFODNN7EXAMPLE")}, HOST, "/")
    assert found == "581039954779"
    rotated = identity({"authorization": SIGNED.format("ASIAIOSFODNN7EXAMPLE")}, HOST, "/")
    assert rotated == found


def test_an_aws_key_that_is_none_stands_for_itself() -> None:
    """As test servers accept."""
    assert identity({"authorization": SIGNED.format("AKIA0000000000000000")}, HOST, "/") == "AKIA0000000000000000"


@pytest.mark.parametrize(
    ("host", "path", "expected"),
    [
        ("bedrock-runtime.us-east-1.amazonaws.com", "/", "us-east-1"),
        ("bedrock-runtime.us-gov-west-1.amazonaws.com", "/", "us-gov-west-1"),
        ("europe-west4-aiplatform.googleapis.com", "/", "europe-west4"),
        ("aiplatform.googleapis.com", "/v1/projects/p/locations/global/publishers/x", "global"),
        ("aws-external-anthropic.eu-west-1.api.aws", "/", "eu-west-1"),
        ("api.openai.com", "/v1/responses", ""),
    ],
)
def test_where_it_runs(host: str, path: str, expected: str) -> None:
    """By the names of clouds."""
    assert region(host, path) == expected
