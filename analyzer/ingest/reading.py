"""Files -> calls: opens, decodes and reads each file, and turns whatever goes wrong into a rejection that names it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from prefixscope.analyzer.ingest import documents, otlp_proto, unpack
from prefixscope.analyzer.ingest.files import expand
from prefixscope.analyzer.ingest.framing import Frame, UnknownFormatError, frames
from prefixscope.analyzer.ingest.loose import NotJsonError, loads
from prefixscope.analyzer.ingest.results import Observed, Pending, Place, Rejected
from prefixscope.analyzer.ingest.transcripts import Transcripts
from prefixscope.otel_plugin.fingerprint import Fingerprinter

MAX_REJECTED = 1000  # of one file are told one by one; the rest are counted
BUG = "prefixscope failed on this document"
EXPECTED = "Expected OTLP (JSON or protobuf), a request log (a JSON object a line) or the transcript of an agent"


def read(
    paths: Sequence[Path], printer: Fingerprinter, *, on_bytes: Callable[[int], None] = lambda _: None
) -> Iterator[Observed | Rejected]:
    """Every call in the files that ``paths`` name, and everything that had to be rejected, in file order.

    Streams: memory is bounded by the largest document, not by the files; of transcripts by their prints in one project.

    Args:
        paths: files, folders and patterns.
        printer: makes the fingerprints of prompts whose text is recorded.
        on_bytes: told how many bytes, as on disk, were read since it was told last.

    Raises:
        InputError: a path does not exist.
    """
    transcripts = Transcripts(printer)
    name = ""
    for path in expand(paths):
        yield from _bounded(name, _told(transcripts.opened()))
        name = str(path)
        yield from _bounded(name, _file(path, printer, on_bytes, transcripts))
    yield from _bounded(name, _told(transcripts.closed()))


def _file(
    path: Path, printer: Fingerprinter, on_bytes: Callable[[int], None], transcripts: Transcripts
) -> Iterator[Observed | Rejected]:
    name, line = str(path), None
    strangers = Strangers(name)
    try:
        for frame in frames(unpack.chunks(path, on_bytes)):
            line = frame.line
            yield from _frame(frame, printer, Place(name, line), strangers, transcripts)
    except UnknownFormatError as error:
        yield Rejected(name, None, str(error))
    except unpack.BrokenError as error:
        yield Rejected(name, line, f"after this line: {error}" if line else str(error))
    except OSError as error:
        yield Rejected(name, None, f"cannot be read: {error.strerror or error}")
    yield from strangers.told()


class Strangers:
    """Documents of no known shape: one rejection for all of a file's, or a foreign log would make a million."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._first = ""
        self._line: int | None = None
        self._count = 0

    def met(self, line: int, looks: str) -> None:
        self._count += 1
        if self._count == 1:
            self._first, self._line = looks, line

    def told(self) -> Iterator[Rejected]:
        if self._count:
            more = f" (and {self._count - 1:,} more like it)" if self._count > 1 else ""
            yield Rejected(self._file, self._line, f"unknown format: {self._first}{more}. {EXPECTED}")


def _frame(
    frame: Frame, printer: Fingerprinter, place: Place, strangers: Strangers, transcripts: Transcripts
) -> Iterator[Observed | Rejected]:
    if frame.flaw:
        yield place.rejected(frame.flaw)
        return
    try:
        if not frame.data:
            return  # in protobuf an export without spans has no bytes
        if frame.data[0] == otlp_proto.FIRST_BYTE:
            yield from documents.of_spans(otlp_proto.spans(frame.data), printer, place)
        else:
            document, met = loads(frame.data), partial(strangers.met, place.line)
            calls = transcripts.read(document, place)
            yield from documents.read(document, frame.data, printer, place, met) if calls is None else calls
    except (NotJsonError, otlp_proto.NotOtlpError) as error:
        yield place.rejected(str(error))
    except RecursionError:
        yield place.rejected("nested too deeply to be a call")
    except Exception as error:  # noqa: BLE001 - a bug of ours must not end an audit of a million other calls
        yield _bug(place, error)


def _told(pending: Iterable[Pending]) -> Iterator[Observed | Rejected]:
    for place, tell in pending:
        try:
            yield tell()
        except Exception as error:  # noqa: BLE001 - as above
            yield _bug(place, error)


def _bug(place: Place, error: Exception) -> Rejected:
    return place.rejected(f"{BUG} ({type(error).__name__}: {error}): please report it")


def _bounded(file: str, found: Iterable[Observed | Rejected]) -> Iterator[Observed | Rejected]:
    rejected = 0
    for item in found:
        rejected += isinstance(item, Rejected)
        if rejected <= MAX_REJECTED or isinstance(item, Observed):
            yield item
    if rejected > MAX_REJECTED:
        yield Rejected(file, None, f"{rejected - MAX_REJECTED:,} more rejections like those before")
