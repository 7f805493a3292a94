"""Text in one spelling: what an exact response cache compares of prompts and answers. Pure."""

import unicodedata
from typing import Final

_KEPT_FORMS: Final = ("<super>", "<sub>", "<fraction>")  # x² is not x2


def canonical(text: str) -> str:
    """Text in one spelling: NFKC, case and white space aside. Code, and digits set high or low, stay what they are."""
    if not text.isascii() and not unicodedata.is_normalized("NFKC", text):
        kept = {char for char in set(text) if unicodedata.decomposition(char).startswith(_KEPT_FORMS)}
        parts = (char if char in kept else unicodedata.normalize("NFKC", char) for char in text) if kept else ()
        text = unicodedata.normalize("NFC", "".join(parts)) if kept else unicodedata.normalize("NFKC", text)
    return " ".join((text if "```" in text else text.casefold()).split())
