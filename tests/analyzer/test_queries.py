"""Every SQL statement is a file that tells what it does, is used, and runs."""

import ast
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from prefixscope import queries
from prefixscope.analyzer import store
from prefixscope.analyzer.store import Ingested

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "queries").rglob("*.sql"))
NAMES = [path.relative_to(ROOT / "queries").with_suffix("").as_posix() for path in FILES]
STATEMENT = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|COPY|ATTACH|INSTALL|PRAGMA|ALTER|DROP)\b")
NAME = re.compile(rf"({'|'.join(sorted({name.partition('/')[0] for name in NAMES}))})/\w+")


def split(name: str) -> tuple[str, str]:
    """Header comment as one line, and the statement."""
    lines = queries.load(name).splitlines()
    header = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
    return " ".join(header), "\n".join(line for line in lines if not line.startswith("--"))


def selects(name: str) -> bool:
    return split(name)[1].startswith(("SELECT", "WITH"))


def texts(path: Path) -> Iterator[str]:
    """String literals of a module that are not docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.value


def all_texts() -> list[str]:
    return [text for part in ("analyzer", "dashboard") for path in (ROOT / part).rglob("*.py") for text in texts(path)]


@pytest.mark.parametrize("name", NAMES)
def test_a_header_says_what_a_statement_does(name: str) -> None:
    """Purpose and parameters always; grain and columns where it selects; and the parameters are those it has."""
    header, statement = split(name)
    parts = ["Purpose:", "Parameters:"] + (["Grain:", "Columns:"] if selects(name) else [])
    assert [part for part in parts if part not in header] == []
    assert set(re.findall(r"\$\w+", statement)) == set(re.findall(r"\$\w+", header))


def test_every_statement_is_used_and_every_use_exists() -> None:
    """Names of statements are written out in the code, so that they can be searched for."""
    assert {text for text in all_texts() if NAME.fullmatch(text)} == set(NAMES)


def test_there_is_no_sql_elsewhere() -> None:
    """No module but a ``.sql`` file holds a statement."""
    assert [text for text in all_texts() if STATEMENT.match(text)] == []


@pytest.mark.parametrize("name", [name for name in NAMES if selects(name)])
def test_a_selection_of_an_empty_store_is_empty(name: str) -> None:
    """No row, or the one row that its grain promises, in the columns that its header lists."""
    header, statement = split(name)
    with store.opened(None) as empty:
        found = empty.frame(name, **dict.fromkeys(set(re.findall(r"\$(\w+)", statement))))
    if "Grain: one row" in header:
        assert found.height == 1
    elif name != "store/tables":
        assert found.is_empty()
    listed = re.search(r"Columns: ((?:\w+, )*\w+)(?: \([^)]*\))?\.", header)
    assert listed is None or found.columns == listed[1].split(", ")


def test_an_ingest_of_nothing_works() -> None:
    """They are valid on the current schema even where there is nothing to write."""
    with store.opened(None) as empty:
        assert empty.ingest([], at=datetime.now(UTC)) == Ingested(calls=0, duplicates=0, rejected=0)
        assert empty.frame("analysis/calls", service=None, since=None, until=None).is_empty()


def test_an_unknown_name_is_an_error() -> None:
    """A typo in a name is told as a missing file."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        queries.load("store/nowhere")
