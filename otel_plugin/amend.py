"""Changes to requests, for options that say so: usage at the end of chat streams, and cache diagnostics.

A change is spliced in behind the opening brace, so that every other byte stays as the application wrote it.
"""

import json
import re
from collections import OrderedDict
from typing import Any

from prefixscope.otel_plugin import naming, providers
from prefixscope.otel_plugin.exchange import Exchange
from prefixscope.otel_plugin.record import CallRecord

_REMEMBERED = 10_000  # conversations
_OPENAI_MODELS = re.compile(r"gpt-(?:5\.(?:[6-9]|\d\d)|[6-9]|\d\d)")  # openai 3.57.0: "gpt-5.6 and later models"


class Amender:
    """Gives the body to send instead. Runs on the request's thread; ``learn`` on the worker's.

    Args:
        include_usage: ask for usage where a chat stream does not; the stream has one chunk more, without choices.
        diagnostics: ask why a prefix was missed since the conversation's last response, where the API can tell.
    """

    def __init__(self, *, include_usage: bool, diagnostics: bool) -> None:
        self._include_usage = include_usage
        self._diagnostics = diagnostics
        self._last: OrderedDict[str, str] = OrderedDict()  # conversation -> id of its last response

    def __call__(self, exchange: Exchange) -> bytes | None:
        """The changed body, None if it stays as it is."""
        body = exchange.request_body
        if not body or body[:1] != b"{":
            return None
        request = json.loads(body)
        more = self._more(exchange, request)
        if not more:
            return None
        members = json.dumps(more, separators=(",", ":"))[1:-1].encode()
        return b"{" + members + (b"," if request else b"") + body[1:]

    def learn(self, exchange: Exchange, record: CallRecord) -> None:
        """Remembers the response of a conversation."""
        conversation = naming.names(exchange.context).conversation_id
        if self._diagnostics and conversation and record.usage.response_id:
            self._last[conversation] = record.usage.response_id
            self._last.move_to_end(conversation)
            if len(self._last) > _REMEMBERED:
                self._last.popitem(last=False)

    def _more(self, exchange: Exchange, request: dict[str, Any]) -> dict[str, Any]:
        if exchange.api == "openai.chat" and self._include_usage:
            wanted = request.get("stream") is True and "stream_options" not in request
            return {"stream_options": {"include_usage": True}} if wanted else {}
        return self._diagnosis(exchange, request) if self._diagnostics else {}

    def _diagnosis(self, exchange: Exchange, request: dict[str, Any]) -> dict[str, Any]:
        conversation = naming.names(exchange.context).conversation_id
        provider = providers.identify(host=exchange.host)
        last = self._last.get(conversation)
        if not conversation:
            return {}
        if provider == "anthropic" and exchange.api == "anthropic.messages" and "diagnostics" not in request:
            return {"diagnostics": {"previous_message_id": last}}  # null opts in on the first turn
        known = exchange.api == "openai.responses" and provider == "openai" and "prompt_cache_options" not in request
        if known and last and _OPENAI_MODELS.match(str(request.get("model"))):
            return {"prompt_cache_options": {"comparison_response_id": last}}
        return {}
