"""The key that fingerprints are made with: ``PREFIXSCOPE_KEY``, or a key file made on first use."""

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_BYTES = 32


def load_key(environment: Mapping[str, str] = os.environ) -> bytes:
    """The fingerprint key.

    ``PREFIXSCOPE_KEY`` may hold any text. Without it the key is read from ``prefixscope/key`` in the user's
    configuration folder; the first use makes that file, readable by its owner only.

    Raises:
        OSError: the key file can be neither read nor made.
    """
    given = environment.get("PREFIXSCOPE_KEY")
    if given:
        return given.encode("utf-8", "surrogateescape")
    path = key_file(environment)
    with suppress(FileNotFoundError):
        return path.read_bytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    return _created(path)


def key_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the key file is, or would be made."""
    home = environment.get("XDG_CONFIG_HOME") or str(Path(environment.get("HOME") or Path.home()) / ".config")
    return Path(home) / "prefixscope" / "key"


def _created(path: Path) -> bytes:
    """Writes a new key and gives it back; where another process was first, that one's."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_BYTES).encode())
        with suppress(FileExistsError):
            os.link(draft, path)  # atomic, and never replaces a key that is in use
    finally:
        draft.unlink()
    return path.read_bytes()
