"""Chart frames hold no Decimal, which would be drawn a thousand times too large, and specifications are valid."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pytest

from prefixscope import queries
from prefixscope.analyzer import store
from prefixscope.dashboard import charts, data, finding_charts, palette, simulator_charts, strips

DAY = date(2026, 11, 16)
CELLS = pl.DataFrame({"across": ["a", "b"], "down": ["x", "x"], "value": [1.0, 2.0], "calls": [1, 2]})
PAGES = Path(str(queries.__file__)).parent / "pages"
CHARTS: dict[str, Any] = {
    "tokens": lambda: charts.tokens_by_bucket(
        pl.DataFrame({"at": [DAY], "read": [1], "write": [2], "uncached": [3]}), "day"
    ),
    "dollars": lambda: charts.dollars_by_cause(
        pl.DataFrame(
            {"at": [DAY] * 3, "cause": ["ttl_lapse", palette.NOT_CLAIMED, "a new one"], "usd": [1.0, 2.0, 3.0]}
        ),
        "day",
    ),
    "hit rates": lambda: charts.hit_rates(
        pl.DataFrame({"at": [DAY], "service": ["a"], "input": [10], "read": [5]}), "day"
    ),
    "first tokens": lambda: charts.first_tokens(
        pl.DataFrame({"service": ["a"], "hit": [True], "calls": [3], "median_ms": [1.0], "p90_ms": [2.0]})
    ),
    "ledger": lambda: charts.ledger(
        pl.DataFrame({"stage": ["Potential"], "low": [1.0], "estimate": [1.5], "high": [2.0]})
    ),
    "matrix": lambda: charts.matrix(CELLS, ",.0f"),
    "calls": lambda: finding_charts.calls_by_cause(
        pl.DataFrame({"at": [DAY, DAY], "cause": ["", "ttl_lapse"], "calls": [1, 2]})
    ),
    "pauses": lambda: finding_charts.pauses(pl.DataFrame({"label": ["1 min"], "calls": [3], "alive": [True]}), 300.0),
    "pauses without a lifetime": lambda: finding_charts.pauses(
        pl.DataFrame({"label": ["1 min"], "calls": [3], "alive": [True]}), None
    ),
    "waterfall": lambda: simulator_charts.waterfall(
        pl.DataFrame({"fix": ["move_volatile"], "saved": [1.0], "before": [3.0], "after": [2.0]}), 3.0
    ),
    "bills": lambda: simulator_charts.two_bills(
        dict.fromkeys(("read", "write_5m", "write_30m", "write_1h", "write_12h", "uncached"), 5.0),
        dict.fromkeys(("read", "write_5m", "write_30m", "write_1h", "write_12h", "uncached"), 0.0),
    ),
    "session": lambda: simulator_charts.session_cost(
        pl.DataFrame({"turn": [1], "usd": [0.1], "what": ["This session"]})
    ),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_valid_vega_lite(name: str) -> None:
    """Altair checks it against the schema."""
    chart = CHARTS[name]()
    assert isinstance(chart, alt.Chart | alt.LayerChart)
    assert chart.to_dict()["$schema"]


@pytest.mark.parametrize("broken", [100, None])
def test_strips_are_valid_vega_lite(broken: float | None) -> None:
    """With a break and without one."""
    row = {"call": "a", "begin": 0, "end": 9, "what": strips.SAME, "place": "", "kind": "", "bytes": 9, "id": "1"}
    assert finding_charts.strips(pl.DataFrame([row]), broken).to_dict()["$schema"]


def test_every_kind_of_block_has_a_colour() -> None:
    """The strips' words are those of the comparison."""
    kinds = {strips.SAME, strips.BREAK, strips.DIFFERS, strips.STRANDED, strips.AFTER}
    assert set(finding_charts.STRIP_COLOURS) == kinds


def test_decimals_do_not_reach_a_chart() -> None:
    """They are floats from the one place on where frames come from; names lose what terminals would obey."""
    found = data.drawable(pl.DataFrame({"usd": [Decimal("12.50"), None], "name": ["a\x1b[31m", None], "n": [1, 2]}))
    assert found["usd"].to_list() == [12.5, None]
    assert found["name"].to_list() == ["a\ufffd[31m", None]
    assert not [kind for kind in found.dtypes if isinstance(kind, pl.Decimal)]


@pytest.mark.parametrize("name", sorted(path.stem for path in PAGES.glob("*.sql") if path.stem != "lock_down"))
def test_no_page_query_gives_a_decimal(name: str) -> None:
    """Sums of dollars are cast in SQL already, so that no page depends on the cast above."""
    header = queries.load(f"pages/{name}")
    names = {word.strip("(,.)") for word in header.split() if word.startswith("$")}
    params = {name.removeprefix("$"): None for name in names if name.removeprefix("$").isidentifier()}
    with store.opened(None) as opened:
        found = opened.frame(f"pages/{name}", **params)
    assert not [kind for kind in found.dtypes if isinstance(kind, pl.Decimal)]


@pytest.mark.parametrize(("largest", "form"), [(1000.0, "$,.0f"), (5.0, "$,.2f"), (0.01, "$,.4f")])
def test_dollars_have_as_many_digits_as_they_need(largest: float, form: str) -> None:
    """Axis labels must not all read alike."""
    assert palette.dollars(largest) == form
