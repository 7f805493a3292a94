"""INGEST: files of traces and logs, in whatever format they were exported -> call records."""

from prefixscope.analyzer.ingest.files import expand
from prefixscope.analyzer.ingest.reading import read
from prefixscope.analyzer.ingest.results import Observed, Rejected

__all__ = ["Observed", "Rejected", "expand", "read"]
