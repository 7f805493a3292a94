"""Files -> calls as ingest sees them, and beside them what is kept of their texts for the run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from prefixscope.analyzer.ingest import content as prompts
from prefixscope.analyzer.ingest import dialects, documents, dumps, otlp_proto, unpack
from prefixscope.analyzer.ingest.block_hashes import BlockHashes
from prefixscope.analyzer.ingest.documents import spans_in
from prefixscope.analyzer.ingest.files import expand
from prefixscope.analyzer.ingest.framing import Frame, UnknownFormatError, frames
from prefixscope.analyzer.ingest.loose import NotJsonError, loads, mapping
from prefixscope.analyzer.ingest.reading import Strangers
from prefixscope.analyzer.ingest.request_log import body_of, known_fields
from prefixscope.analyzer.ingest.results import Observed, Place, Rejected
from prefixscope.analyzer.ingest.span import Span
from prefixscope.analyzer.ingest.transcripts import Transcripts
from prefixscope.analyzer.observations import call_id
from prefixscope.analyzer.semantic import answers
from prefixscope.analyzer.semantic.cacheable import Content, Reducer
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.record import Fingerprint, Prompt

Item = Observed | Rejected
_BESIDE = ("response_headers", "headers", "metadata", "response_metadata")  # where a line may name a cache


_TRANSCRIPT = (
    "the transcript of an agent: its calls are steps of one task, with tools between them, which no response cache may "
    "serve. `prefixscope audit` reads it; here give request logs, or traces with prompts and answers"
)
_BLOCKS = "a trace of block hashes: it has no questions to compare. `prefixscope audit` reads it"


class _OtherFormatError(Exception):
    """The file is of a format that holds nothing for response caches."""


class Reader:
    """Reads calls and keeps their texts: ``text_of`` finds them again by what the store says of a call."""

    def __init__(self, key: bytes) -> None:
        self._printer = _Keeper(key)
        self._reducer = Reducer(key)
        self._transcripts: Transcripts | None = None  # tells them at a file's beginning, before any call of it was met
        self._by_id: dict[str, Content] = {}
        self._by_place: dict[tuple[str, int], Content] = {}

    def read(self, paths: Sequence[Path], *, on_bytes: Callable[[int], None] = lambda _: None) -> Iterator[Item]:
        """Every call in the files that ``paths`` name, and what had to be rejected.

        Raises:
            InputError: a path does not exist.
        """
        for path in expand(paths):
            yield from self._file(path, on_bytes)

    def text_of(self, row: Mapping[str, Any]) -> Content | None:
        """The text of a call of the store (columns ``call_id``, ``file``, ``line``); None if none is recorded."""
        return self._by_id.get(row["call_id"]) or self._by_place.get((row["file"], row["line"]))

    def _file(self, path: Path, on_bytes: Callable[[int], None]) -> Iterator[Item]:
        name, line = str(path), None
        strangers, self._transcripts = Strangers(name), Transcripts(self._printer)
        try:
            for frame in frames(unpack.chunks(path, on_bytes)):
                line = frame.line
                yield from self._frame(frame, Place(name, line), strangers)
        except _OtherFormatError as error:
            yield Rejected(name, line, str(error))
            return
        except UnknownFormatError as error:
            yield Rejected(name, None, str(error))
        except unpack.BrokenError as error:
            yield Rejected(name, line, f"after this line: {error}" if line else str(error))
        except OSError as error:
            yield Rejected(name, None, f"cannot be read: {error.strerror or error}")
        yield from strangers.told()

    def _frame(self, frame: Frame, place: Place, strangers: Strangers) -> Iterator[Item]:
        if frame.flaw:
            yield place.rejected(frame.flaw)
        elif frame.data:
            try:
                if frame.data[0] == otlp_proto.FIRST_BYTE:
                    yield from self._spans(otlp_proto.spans(frame.data), place)
                else:
                    yield from self._document(loads(frame.data), frame.data, place, strangers)
            except (NotJsonError, otlp_proto.NotOtlpError) as error:
                yield place.rejected(str(error))
            except RecursionError:
                yield place.rejected("nested too deeply to be a call")

    def _document(self, document: Any, data: bytes, place: Place, strangers: Strangers) -> Iterator[Item]:
        if isinstance(document, list):
            for element in dumps.whole_numbers(document, data):
                yield from self._document(element, data, place, strangers)
            return
        if self._transcripts and self._transcripts.read(document, place) is not None:
            raise _OtherFormatError(_BLOCKS if BlockHashes.is_trace(document) else _TRANSCRIPT)
        spans = spans_in(document, data) if isinstance(document, dict) else None
        if spans is not None:
            yield from self._spans(spans, place)
            return
        self._printer.prompt = None
        for item in documents.read(document, data, self._printer, place, partial(strangers.met, place.line)):
            yield self._kept(item, partial(self._of_line, document))

    def _spans(self, spans: Any, place: Place) -> Iterator[Item]:
        for span in spans:
            self._printer.prompt = None
            for item in documents.of_spans((span,), self._printer, place):
                yield self._kept(item, partial(self._of_span, span))

    def _kept(self, item: Item, content_of: Callable[[Prompt], Content]) -> Item:
        """The item, after what is kept of its text was put by."""
        prompt = self._printer.prompt
        if isinstance(item, Observed):
            self._transcripts = None
        if not isinstance(item, Observed) or prompt is None:
            return item
        found = content_of(prompt)
        if found.hit:
            item = _by_itself(item)
        if item.record.usage.response_id or item.record.span_id:
            known = self._by_id.get(name := call_id(item.record, None))
            if known is None or known.answer is None:
                self._by_id[name] = found
        else:
            self._by_place[item.file, item.line] = found
        return item

    def _of_line(self, document: Any, prompt: Prompt) -> Content:
        """The content of a line of a request log."""
        found = known_fields(document)
        response = answers.decoded(found.get("response"))
        last = (
            response[-1] if isinstance(response, list) and response else response
        )  # of a stream: marks are at its end
        holders = (document, mapping(last), *(mapping(document.get(name)) for name in _BESIDE))
        return self._reducer.content(prompt, mapping(body_of(document, found)), answers.of_response(response), holders)

    def _of_span(self, span: Span, prompt: Prompt) -> Content:
        """The content of a span."""
        found = prompts.request(span, dialects.meanings(span.attributes))
        return self._reducer.content(prompt, found.body if found else {}, answers.of_span(span), (span.attributes,))


def _by_itself(item: Observed) -> Observed:
    """A call that a cache served, without its response id: that is the one of the call whose answer it got.

    Told under it, the two would count as one call. Seen with litellm 1.110.2.
    """
    usage = replace(item.record.usage, response_id="")
    return replace(item, record=replace(item.record, usage=usage))


class _Keeper(Fingerprinter):
    """Makes fingerprints, and holds on to the last prompt it made one of."""

    prompt: Prompt | None = None

    def fingerprint(self, prompt: Prompt) -> Fingerprint:
        self.prompt = prompt
        return super().fingerprint(prompt)
