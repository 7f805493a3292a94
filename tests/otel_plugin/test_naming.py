"""Names that callers give to their calls."""

import asyncio
from contextlib import suppress

from opentelemetry import baggage, context
from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import set_span_in_context

from prefixscope.otel_plugin import attributes
from prefixscope.otel_plugin.naming import Names, names

EMPTY = Context()


def here() -> Names:
    return names(context.get_current())


def test_names_hold_inside_the_block() -> None:
    """An inner block overrides name by name; outside, nothing is left, whatever happened inside."""
    with attributes(service="shop", conversation_id="1"):
        with suppress(ValueError), attributes(conversation_id="2", prompt_name="greet"):
            assert here() == Names("shop", "greet", "2")
            raise ValueError
        assert here() == Names("shop", "", "1")
    assert here() == Names()


def test_tasks_have_names_of_their_own() -> None:
    """Although they run at the same time."""

    async def task(number: int) -> Names:
        with attributes(conversation_id=str(number)):
            await asyncio.sleep(0)
            return here()

    async def main() -> list[Names]:
        return await asyncio.gather(*map(task, range(3)))

    assert [found.conversation_id for found in asyncio.run(main())] == ["0", "1", "2"]


def test_a_conversation_that_other_tools_name() -> None:
    """In the context, in baggage, on the span around the call; ours stands first."""
    span = TracerProvider().get_tracer("t").start_span("chat", attributes={"session.id": "by-span"})
    around = set_span_in_context(span, EMPTY)
    carried = baggage.set_baggage("gen_ai.conversation.id", "by-baggage", around)
    by_genai = context.set_value(context.create_key("opentelemetry.util.genai.conversation_id"), "by-genai", carried)
    token = context.attach(by_genai)
    with attributes(conversation_id="ours"):
        ours = context.get_current()
    context.detach(token)
    found = [names(where).conversation_id for where in (EMPTY, around, carried, by_genai, ours)]
    assert found == ["", "by-span", "by-baggage", "by-genai", "ours"]


def test_what_is_no_text_names_nothing() -> None:
    """Contexts come from anybody."""
    assert names(baggage.set_baggage("session.id", 7, EMPTY)) == Names()
