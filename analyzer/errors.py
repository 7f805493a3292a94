"""What can go wrong for a reason the user can mend. Each class carries the exit code of the command line."""

from typing import ClassVar


class PrefixscopeError(Exception):
    """Says what happened, where, and what to do; printed without a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(PrefixscopeError):
    """The command line was used in a way that cannot work."""

    exit_code = 2


class InputError(PrefixscopeError):
    """No input could be read."""

    exit_code = 3


class StoreError(PrefixscopeError):
    """The DuckDB store cannot be opened, is locked, or was written by a newer version."""

    exit_code = 3
