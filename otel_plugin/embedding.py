"""Vectors of questions as they are kept: of length 1, 16-bit floats, little endian; base64 in a span attribute."""

import math
import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from typing import Final

Embed = Callable[[list[str]], Sequence[Sequence[float]]]
"""Questions -> vectors, one each and all of one length."""

LONGEST: Final = 4096  # numbers in a vector


def packed(vector: Sequence[float]) -> bytes:
    """``vector`` as it is kept.

    Raises:
        ValueError: it is empty, longer than ``LONGEST``, holds no finite numbers, or nothing but zeros.
    """
    if not 0 < len(vector) <= LONGEST:
        raise ValueError(f"a vector of {len(vector)} numbers")
    numbers = [float(number) for number in vector]
    length = math.sqrt(math.fsum(number * number for number in numbers))
    if not 0 < length < math.inf:  # false for NaN as well
        raise ValueError("a vector without a direction")
    return struct.pack(f"<{len(numbers)}e", *(number / length for number in numbers))


def encoded(vector: bytes) -> str:
    """A kept vector as text."""
    return b64encode(vector).decode()


def decoded(text: str) -> bytes:
    """The kept vector that was made a text.

    Raises:
        ValueError: it was something else.
    """
    data = b64decode(text, validate=True)
    count = len(data) // 2
    if len(data) % 2 or not 0 < count <= LONGEST:
        raise ValueError("no vector")
    if not all(map(math.isfinite, struct.unpack(f"<{count}e", data))):
        raise ValueError("a vector with numbers that are none")
    return data
