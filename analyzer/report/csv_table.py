"""The findings as CSV, for a spreadsheet."""

import csv
import io
from collections.abc import Mapping
from typing import Any

from prefixscope.analyzer.report.wording import clean

COLUMNS = (
    *("id", "cause", "service", "provider", "model", "calls", "missed_tokens", "confidence"),
    *("saving_usd_low", "saving_usd_high", "saving_usd_per_week_low", "saving_usd_per_week_high", "headline", "fix"),
)
_STARTS_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - spreadsheets take the wide ones as well


def render(report: Mapping[str, Any]) -> str:
    """One row a finding, with a header."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([safe_cell(value) for value in _row(finding)] for finding in clean(report["findings"]))
    return out.getvalue()


def _row(finding: Mapping[str, Any]) -> list[Any]:
    ends = [finding[name][end] for name in ("saving_usd", "saving_usd_per_week") for end in ("low", "high")]
    return [*(finding[name] for name in COLUMNS[:8]), *ends, finding["headline"], finding["fix"]["text"]]


def safe_cell(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(_STARTS_FORMULA) else value
