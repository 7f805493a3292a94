"""How long pages take on a large store, in a browser: first paint, everything drawn, a filter. Prints, asserts nothing.

    python tests/bench/dashboard.py [CALLS]

The store holds the sample traffic many times over: other days, other services, the same prompts.
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import duckdb

sys.path.insert(0, str(Path(__file__).parents[1]))

from browsing import SETTLING, Watch, browser, served, watched
from dashboards import TITLES
from prefixscope.analyzer import store
from prefixscope.dashboard import intake

SERVICES = 8  # copies of each service


def grow(path: Path, calls: int) -> int:
    """Copies the calls of the store in ``path`` until it holds about ``calls``; returns how many they are."""
    with duckdb.connect(str(path)) as con:
        own = con.execute("SELECT count(*) FROM calls").fetchall()[0][0]
        copies = max(calls // own - 1, 0)
        con.execute(
            "CREATE TEMP TABLE copies AS SELECT n, '/' || (n % ?) AS tail, to_days((n // ?)::INTEGER) AS back "
            "FROM range(1, ?) t(n)",
            [SERVICES, SERVICES, copies + 1],
        )
        for table in ("calls", "explained_calls"):
            moved = "c.service || tail AS service, started_at - back AS started_at, " if table == "calls" else ""
            excluded = "EXCLUDE (service, started_at, call_id)" if table == "calls" else "EXCLUDE (call_id)"
            con.execute(
                f"INSERT INTO {table} BY NAME "
                f"SELECT c.* {excluded}, {moved} c.call_id || '/' || n AS call_id FROM {table} c CROSS JOIN copies"
            )
    with store.opened(path) as opened:
        opened.sum_up()
        return int(opened.frame("store/count_calls").item())


def main(calls: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.duckdb"
        intake.take_in(path, intake.SAMPLE_NAMES)
        begun = perf_counter()
        count = grow(path, calls)
        print(
            f"{count:,} calls, {path.stat().st_size / count:.0f} bytes a call, made in {perf_counter() - begun:.1f} s"
        )
        with served("--db", str(path), log=Path(folder) / "log") as home, browser() as found:
            with watched(found, home) as watch:
                watch.open("/upload")  # imports, which a server does once
            print("page            first paint    all drawn   filter (s)")
            for title in TITLES:
                with watched(found, home) as watch:
                    measure(watch, title)


def measure(watch: Watch, title: str) -> None:
    """A page that nobody has opened since the store changed, then the same for one provider."""
    watch.open("/simulator?simulate=session" if title == "Upload" else "/upload")
    begun = perf_counter()
    watch.click_on(title)
    watch.first_seen(title)
    first = perf_counter() - begun
    watch.settle()
    whole = perf_counter() - begun - SETTLING
    begun = perf_counter()
    watch.choose("Provider", "anthropic")
    narrowed = perf_counter() - begun - SETTLING
    print(f"{title:<14} {first:12.2f} {whole:12.2f} {narrowed:12.2f}")
    assert not watch.broken()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
