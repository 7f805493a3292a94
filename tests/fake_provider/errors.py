"""Error answers as each provider writes them, and the errors they send when a stream has already begun."""

from typing import Any

from fake_provider.answers import Event

Json = dict[str, Any]

_ANTHROPIC = {400: "invalid_request_error", 429: "rate_limit_error", 529: "overloaded_error"}
_OPENAI = {400: "invalid_request_error", 401: "invalid_api_key", 429: "rate_limit_exceeded"}
_GOOGLE = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
_AWS = {400: "ValidationException", 403: "AccessDeniedException", 429: "ThrottlingException"}


def body(api: str, status: int) -> Json:
    """The document that comes with an error status."""
    text = f"the fake provider was told to answer {status}"
    if api == "anthropic.messages":
        return {
            "type": "error",
            "error": {
                "type": _ANTHROPIC.get(status, "api_error"),
                "message": text,
            },
        }
    if api == "gemini.generate_content":
        return {"error": {"code": status, "message": text, "status": _GOOGLE.get(status, "INTERNAL")}}
    if api.startswith("bedrock."):
        return {"message": text}
    return {"error": {"message": text, "type": _OPENAI.get(status, "server_error"), "param": None, "code": None}}


def name(api: str, status: int) -> str:
    """What the provider calls the error."""
    error = body(api, status).get("error", {})
    return str(headers(api, status).get("x-amzn-errortype") or error.get("type") or error.get("status"))


def headers(api: str, status: int) -> dict[str, str]:
    """Headers that belong to the error: boto3 takes its class from one."""
    return {"x-amzn-errortype": _AWS.get(status, "InternalServerException")} if api.startswith("bedrock.") else {}


def event(api: str) -> Event:
    """What is sent in place of the rest of a stream."""
    if api == "anthropic.messages":
        return Event("error", {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    if api.startswith("bedrock."):
        return Event(":throttlingException", {"message": "Too many tokens"})
    if api == "openai.responses":
        return Event("error", {"type": "error", "code": "server_error", "message": "Broken", "param": None})
    return Event("", {"error": {"message": "Broken", "type": "server_error", "code": 500, "status": "INTERNAL"}})
