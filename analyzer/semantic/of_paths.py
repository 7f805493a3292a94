"""Files with texts -> the analysis of what response caches would do: the way that the command and the page share."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from prefixscope.analyzer import store
from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.semantic import analysis
from prefixscope.analyzer.semantic.reading import Reader


def analysed(
    paths: Sequence[Path],
    options: analysis.Options,
    key: bytes,
    *,
    on_bytes: Callable[[int], None] = lambda _: None,
) -> analysis.Analysis:
    """Reads files into memory, texts included, and analyses them; nothing is stored.

    Args:
        paths: files, or folders that are searched.
        options: what the user asked for.
        key: what ids are keyed with.
        on_bytes: told how many bytes were read, for a progress bar.

    Raises:
        InputError: a path does not exist, or no call was found in any.
    """
    reader = Reader(key)
    with store.opened(None) as opened:
        opened.ingest(reader.read(paths, on_bytes=on_bytes), at=datetime.now(UTC))
        found = analysis.run(opened, reader.text_of, key, options)
    if not len(found.questions):
        reasons = [f"{row['file']}: {row['reason']}" for row in found.rejected.head(5).iter_rows(named=True)]
        raise InputError("\n  ".join(["no call was found, so there is nothing to replay", *reasons]))
    return found
