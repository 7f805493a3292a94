"""What tests of the dashboard share: its pages, and names that must stay text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[1] / "dashboard" / "app.py"
PAGES = ("weekly", "findings", "finding", "savings", "explore", "simulator", "caches", "quality", "upload")
TIMEOUT = 120  # seconds: the first page of a process imports all of Streamlit, Altair and Polars
HOSTILE = (
    "![x](http://127.0.0.1:9/x.png)",
    "<img src=http://127.0.0.1:9/y.png onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "[click](javascript:alert(1)) :material/home: $x^2$ :red[no]",
    "\u202etxt.exe\x1b[31m`**_~|",
)
Run = Callable[..., AppTest]
TITLES = (
    *("Weekly review", "Findings", "Finding", "Savings"),
    *("Explore", "Simulator", "Response caches"),
    *("Data quality", "Upload"),
)
SIDEBAR = "[data-testid=stSidebar]"
MAIN = "[data-testid=stMain]"


def choice(app: AppTest, kind: str, at: int = 0) -> Any:
    """A segmented control or pills: kinds that AppTest has no type for."""
    return app.get(kind)[at]
