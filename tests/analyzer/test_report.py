"""Every format shows names from outside as plain text, and figures so that they cannot be misread."""

import csv
import io
import json
import re
import unicodedata
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import leaky_log
from prefixscope.analyzer.causes import VERDICTS
from prefixscope.analyzer.cli import main
from prefixscope.analyzer.evidence import TELL
from prefixscope.analyzer.fixes import FIXES
from prefixscope.analyzer.report import csv_table, markdown, terminal, wording

HOSTILE = {
    "terminal escape": "\x1b[31mred\x1b]0;title\x07\x9b2J",
    "rich markup": "[bold red]x[/bold red] [link=http://a]b[/link] :smile:",
    "markdown": "# x **b** [a](javascript:b) ![i](http://c) <script>d</script>",
    "code span": "a` **b** `c",
    "table": "a | b || c",
    "formula": "=HYPERLINK(A1)",
    "wide formula": "＝cmd",  # noqa: RUF001 - spreadsheets take it for an equals sign
    "formula behind blanks": " \t+1",
    "lines": "a\r\nb\u2028c\x0bd\x85e",
    "right to left": "a\u202eb\u2066c",
    "long": "x" * 5000,
    "nothing": "",
    "other scripts": "販売 🛒 é",
}


@pytest.fixture(scope="module", params=HOSTILE.values(), ids=list(HOSTILE))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def outputs(name: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All outputs on traffic whose service and model bear that name, with a bad line in a file that does."""
    folder = tmp_path_factory.mktemp("hostile")
    path = leaky_log.write(folder / "log.jsonl", *leaky_log.entries(service=name), *_renamed(name))
    with path.open("a") as file:
        file.write(json.dumps({name or "key": 1}) + "\n")
    kept = ("--db", str(folder / "calls.duckdb"))
    found = {"text": _output("audit", str(path), *kept)}
    found |= {form: _output("audit", f"--{form}", *kept) for form in ("md", "csv", "json")}
    return found | {"show": _output("show", json.loads(found["json"])["findings"][0]["id"], *kept)}


def _output(*arguments: str) -> str:
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv("PREFIXSCOPE_KEY", "a key for tests")
        assert main(arguments) == 0
    return out.getvalue()


def _renamed(name: str) -> Any:
    """Calls of a model with that name: unpriced, so that it is told in a note."""
    return list(leaky_log.entries(service="lab", model=name, day=1))[:2]


def test_no_control_character_reaches_any_output(outputs: dict[str, str]) -> None:
    """No escape, carriage return, separator or bidi override: only printable text and line feeds."""
    for form, text in outputs.items():
        odd = {c for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
        assert odd == set(), form


def test_a_name_does_not_add_lines_or_columns(outputs: dict[str, str], name: str) -> None:
    """Each row of a Markdown table has the cells of its head, each row of the CSV the columns of its head."""
    for block in outputs["md"].split("\n\n"):
        lines = block.splitlines()
        if lines[0].startswith("|"):
            cells = {len(re.findall(r"(?<!\\)\|", line)) for line in lines}
            assert len(cells) == 1, block
    rows = list(csv.reader(io.StringIO(outputs["csv"])))
    assert {len(row) for row in rows} == {len(csv_table.COLUMNS)}


def test_no_cell_of_the_csv_is_a_formula(outputs: dict[str, str]) -> None:
    """Numbers may begin with a minus, texts with nothing that a spreadsheet runs."""
    for row in list(csv.reader(io.StringIO(outputs["csv"])))[1:]:
        for cell in (row[at] for at, column in enumerate(csv_table.COLUMNS) if "usd" not in column):
            assert not re.match(r"\s*[=+\-@＝＋－＠]", cell)  # noqa: RUF001


def test_no_markdown_of_a_name_is_active(outputs: dict[str, str], name: str) -> None:
    """Names stand in code spans or escaped: what is left outside of both has no markup but ours."""
    outside = re.sub(r"`[^`\n]*`", "", outputs["md"])
    outside = re.sub(r"\\[\\`*\[\]<>|~&@:]", "", outside)
    assert not re.search(r"<|\]\(|!\[|://", outside)
    assert outside.replace("**Fix.**", "").count("**") == 0


def test_markup_of_rich_is_shown_as_it_is(outputs: dict[str, str], name: str) -> None:
    """Nothing in square brackets or colons is interpreted or lost."""
    if name == HOSTILE["rich markup"]:
        assert outputs["text"].count("[bold red]x[/bold red]") >= 2
        assert ":smile:" in outputs["text"]


def test_the_json_is_ascii_and_keeps_names_as_they_are(outputs: dict[str, str], name: str) -> None:
    """Machines get what the trace said; escapes make it harmless on a terminal."""
    assert outputs["json"].isascii()
    assert name in {row["service"] for row in json.loads(outputs["json"])["by"]}


# --- Words ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (1234.5, "$1,234.50"),
        (0.004, "$0.004"),
        (0.0000123, "$0.000012"),
        (0.0, "$0.00"),
        (-0.5, "-$0.50"),
        (-0.001, "-$0.001"),
        (0.00999, "$0.01"),
        (None, "unpriced"),
    ],
)
def test_dollars(amount: float | None, said: str) -> None:
    """Less than a cent is told from nothing, and no price from no dollars."""
    assert wording.usd(amount) == said


@pytest.mark.parametrize(
    ("low", "high", "said"), [(1.0, 2.0, "$1.00–$2.00"), (1.001, 1.004, "$1.00"), (0.0, 0.001, "$0.00–$0.001")]
)
def test_ranges(low: float, high: float, said: str) -> None:
    """One figure where both ends read the same."""
    assert wording.usd_range({"low": low, "high": high}) == said


def test_unknown_is_not_zero() -> None:
    """A share of nothing and tokens that nobody reported are unknown."""
    assert wording.share(None) == "unknown"
    assert wording.missed({"cause": "unknown_usage", "missed_tokens": 0.0}) == "unknown"
    assert wording.missed({"cause": "first_seen", "missed_tokens": 0.0}) == "0"


def test_each_cause_and_confidence_has_a_meaning() -> None:
    """What the analysis can say is explained in words."""
    assert VERDICTS.keys() == wording.CAUSES.keys()
    assert set(VERDICTS.values()) == wording.VERDICTS.keys()
    assert {cause for fix in FIXES.values() for cause in fix.causes} <= wording.FALSE_ALARM.keys()
    assert FIXES.keys() == wording.OPTIONS.keys() == TELL.keys()
    assert set(wording.CONFIDENCE) == {"A", "B", "C"}


def test_a_long_text_is_cut() -> None:
    """An ellipsis says so."""
    assert wording.plain("x" * 5000) == "x" * 499 + "…"


def test_markdown_names_at_most_twenty_rejections() -> None:
    """A folder of a thousand foreign files does not make a thousand rows."""
    calls = dict.fromkeys(
        (
            *("total", "unpriced", "usage_missing", "usage_partial", "with_prompt", "markers_inferred"),
            *("fingerprint_keys", "duplicates"),
        ),
        0,
    )
    rejected = [{"file": f"{n}.txt", "line": None, "reason": "unknown format"} for n in range(1000)]
    report = {"calls": calls | {"quarantined": 1000}, "unpriced_models": [], "quarantine": rejected}
    assert markdown.render(report).count("unknown format") == 20


def test_no_figure_is_cut_on_a_narrow_terminal(tmp_path: Path) -> None:
    """Names are folded to make room for the columns of figures."""
    long = leaky_log.entries(service="a service with a rather long name", model="gpt-4.1-2025-04-14")
    report = json.loads(_output("audit", str(leaky_log.write(tmp_path / "log.jsonl", *long)), "--json"))
    console = Console(file=io.StringIO(), width=80)
    with console.capture() as drawn:
        terminal.render(report, console)
    table = drawn.get().split("by service and model")[1].split("\n\n")[0]
    assert wording.tokens(report["tokens"]["input"]) in table
    assert "…" not in table
    assert max(map(len, drawn.get().splitlines())) <= 80
