"""Names that callers give to their calls: service, prompt, conversation. They travel in the OpenTelemetry context."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from opentelemetry import baggage, trace
from opentelemetry.context import Context, attach, create_key, detach, get_current, get_value, set_value

_KEY: Final = create_key("prefixscope.names")
_UTIL_GENAI: Final = "opentelemetry.util.genai.conversation_id"  # followed by a random part: context.create_key
_CONVERSATION: Final = ("gen_ai.conversation.id", "session.id")  # in baggage or on the span around the call


class Names(NamedTuple):
    """Empty where nobody named it."""

    service: str = ""
    prompt_name: str = ""
    conversation_id: str = ""


@contextmanager
def attributes(*, service: str = "", prompt_name: str = "", conversation_id: str = "") -> Iterator[None]:
    """Names the calls made inside the ``with`` block; an inner block overrides an outer one name by name.

    Args:
        service: the service they belong to, instead of the process's.
        prompt_name: a stable name of the prompt or template (``gen_ai.prompt.name``).
        conversation_id: what ties the calls of one conversation together (``gen_ai.conversation.id``).
    """
    given = Names(service, prompt_name, conversation_id)
    outer = _given(get_current())
    token = attach(set_value(_KEY, Names(*(inner or before for inner, before in zip(given, outer, strict=True)))))
    try:
        yield
    finally:
        detach(token)


def names(context: Context) -> Names:
    """The names of a call that was made in ``context``: those given here first, then what other tools put there."""
    given = _given(context)
    return given if given.conversation_id else given._replace(conversation_id=_conversation(context))


def _given(context: Context) -> Names:
    found = get_value(_KEY, context)
    return found if isinstance(found, Names) else Names()


def _conversation(context: Context) -> str:
    by_genai = [value for key, value in context.items() if key.startswith(_UTIL_GENAI)]
    around: Mapping[str, Any] = getattr(trace.get_current_span(context), "attributes", None) or {}
    in_baggage = [baggage.get_baggage(name, context) for name in _CONVERSATION]
    found = [*by_genai, *in_baggage, *(around.get(name) for name in _CONVERSATION)]
    return next((value for value in found if isinstance(value, str) and value), "")
