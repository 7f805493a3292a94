"""Event streams of answers: deltas that are nothing but words are told by their form, and not parsed.

They come by the hundred, and parsing each would cost more than all else that is done with a call. Every other event is
parsed; one that carries usage, an end, a tool call, a second choice, or has a form that is not known here, is one of
these.
"""

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from prefixscope.otel_plugin import sse
from prefixscope.otel_plugin.answers import Answer, Draft

_STRING: Final = rb'"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+"'
_NO_MORE: Final = rb'(?:, ?"(?:\w+": ?(?:null|\[\]|"")|index": ?0))*+'
# Whole events; the group is the words, in JSON.
_CHAT: Final = re.compile(
    rb'data: ?\{[^{}\n]*"choices": ?\[\{(?:"index": ?0, ?)?"delta": ?\{(?:"role": ?"assistant", ?)?"content": ?('
    + _STRING + rb')(?:, ?"role": ?"assistant")?' + _NO_MORE + rb"\}" + _NO_MORE + rb"\}\][^{}\n]*\}\n\n"
)  # fmt: skip
_RESPONSES: Final = re.compile(
    rb'event: ?[\w.]+\ndata: ?\{"type": ?"response\.output_text\.delta",(?: ?"(?!delta")\w+": ?(?:'
    + _STRING + rb"|\d+|\[\]),)*+" + rb' ?"delta": ?(' + _STRING + rb")[^{}\n]*\}\n\n"
)  # fmt: skip
_CLAUDE: Final = re.compile(
    rb'event: ?\w+\ndata: ?\{"type": ?"content_block_delta", ?"index": ?\d+, ?"delta": ?\{"type": ?"text_delta", ?'
    rb'"text": ?(' + _STRING + rb")\} *\}\n\n"
)  # fmt: skip
_FIRST: Final = 2048  # bytes in which a stream shows whose it is


class Stream(NamedTuple):
    """The bytes of an event stream, taken apart."""

    others: bytes  # events that have to be parsed, the first of all among them
    parts: Sequence[bytes]  # these, and between each two of them the words of a delta, in JSON

    def answer(self) -> Answer | None:
        """The answer; None if there is none."""
        words, done = self.parts[1::2], 0
        draft = Draft(seen=bool(words))
        for at, others in enumerate(self.parts[::2]):
            if others:
                draft.texts += _decoded(words[done:at])
                done = at
                for event in sse.decode(others):
                    draft.take(event)
        draft.texts += _decoded(words[done:])
        return draft.answer(streamed=True)


def take_apart(data: bytes) -> Stream:
    """The events of a whole stream."""
    first = data[:_FIRST]
    form = _CHAT if b'"choices"' in first else _RESPONSES if b'"response.' in first else _CLAUDE
    end = sse.end_of_event(data, data.find(b"data:"))
    head, *parts = form.split(data[end:])
    parts = [data[:end] + head, *parts]
    return Stream(b"".join(parts[::2]), parts)


def _decoded(words: Sequence[bytes]) -> Sequence[str]:
    """JSON strings, all at once."""
    return json.loads(f"[{b','.join(words).decode('utf-8', 'replace')}]") if words else ()
