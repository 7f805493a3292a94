"""What to say where a package of the extra "semantic" is not installed."""

from prefixscope.analyzer.errors import UsageError


def missing(package: str | None) -> UsageError:
    """The error to raise."""
    return UsageError(f"{package} is not installed. For semantic matching: pip install 'prefixscope[semantic]'")
