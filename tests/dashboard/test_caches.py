"""The page on response caches: what it says is what the analysis says, and texts stay texts."""

import argparse
import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from caches_page import LINES, log_of, press, shown, text_of, uploaded
from dashboards import APP, HOSTILE, TIMEOUT, Run, choice
from prefixscope.analyzer.errors import InputError
from prefixscope.analyzer.semantic import analysis, labels, report
from prefixscope.analyzer.semantic.analysis import Analysis, Options
from prefixscope.analyzer.semantic.bench import Bench
from prefixscope.analyzer.semantic.questions import DEFAULT_SCOPE, SCOPE_FIELDS
from prefixscope.analyzer.semantic.tiers import Policy
from prefixscope.dashboard import command
from prefixscope.dashboard.caches import given, judged, pairs, sharing, source, told
from prefixscope.dashboard.caches.source import Looked
from prefixscope.dashboard.command import LOGS_VARIABLE, STORE_VARIABLE
from prefixscope.dashboard.data import Source
from prefixscope.otel_plugin.keys import load_key
from semantic_traffic import line, write

# --- What is looked at ------------------------------------------------------------------------------------------------


def test_a_store_alone_tells_exact_repeats_and_what_is_missing(sample: Path, show: Run) -> None:
    """The same figures as an analysis of the store, and the ways to give it texts."""
    app = show(sample, "caches")
    assert not app.exception
    expected = report.build(source._replayed(Source(sample, (0, 0)), Options()))
    told_ = shown(app)
    assert text_of(told.verdict(expected)) in text_of(told_)
    assert "What is missing" in told_
    assert app.file_uploader
    assert any("--logs" in code.value for code in app.code)
    assert list(app.dataframe[0].value["calls"]) == [
        row["calls"] for row in expected["tiers"] if row["tier"] != "semantic"
    ]
    assert "Judge pairs" not in told_


def test_a_big_store_is_replayed_when_asked(sample: Path, show: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at the page does not set off minutes of work."""
    monkeypatch.setattr(given, "_AT_ONCE", 1000)
    app = show(sample, "caches")
    assert not app.metric
    assert app.file_uploader
    app.toggle[0].set_value(True).run()
    assert not app.exception
    assert app.metric


def test_uploaded_texts_give_the_figures_of_the_analysis(empty: Path, show: Run, found: Analysis) -> None:
    """Verdict, tiers, unit cost, false and stale matches are those of the report; the store is not needed."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    assert not app.exception
    assert not app.error
    expected, words = report.build(found), text_of(shown(app))
    assert told.verdict(expected) in words
    for told_ in (told.why_wrong, told.instead, told.age, told.lasts):
        assert told_(expected)
        assert told_(expected) in words
    tiers, model = app.dataframe[0].value, expected["tiers"][-1]
    caches = [row["calls"] for row in expected["tiers"][:2]]
    assert list(tiers["calls"]) == [*caches, model["calls"] - model["left_out"], model["left_out"]]
    assert tiers["share"].sum() == pytest.approx(1)
    assert list(tiers["saved"])[:2] == [row["saved_usd"] for row in expected["tiers"][:2]]
    costs = app.dataframe[1].value
    assert list(costs["total"]) == [row["usd"] for row in expected["unit_cost"]]
    assert "Is the office open on Sunday?" in words
    assert "8 calls of log.jsonl" in words


def test_a_click_lets_go_of_the_texts(empty: Path, show: Run) -> None:
    """Nothing of them is left in the session."""
    app = press(uploaded(show(empty, "caches"), log_of(LINES)), "Other logs")
    assert "Sunday" not in shown(app)
    assert source._OWN not in app.session_state
    assert source._KNOWN not in app.session_state


def test_logs_of_the_command_line_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, show: Run) -> None:
    """To every session, without an upload; they cannot be dropped, and no longer there they are an error."""
    log = write(tmp_path / "log.jsonl", LINES)
    monkeypatch.setenv(LOGS_VARIABLE, str(log))
    app = show(tmp_path / "none.duckdb", "caches")
    assert not app.error
    assert "Is the office open on Sunday?" in text_of(shown(app))
    assert "Other logs" not in [button.label for button in app.button]
    own = uploaded(app, log_of([line("What is the height of the tower?", "80 m.")]), "own.jsonl")
    assert "1 call of own.jsonl" in text_of(shown(own))
    app = press(own, "Other logs")
    assert "8 calls of log.jsonl" in text_of(shown(app))
    log.unlink()
    app.run()
    assert "log.jsonl: no such file" in app.text[0].value


def test_logs_that_are_not_there_are_told_at_the_start(tmp_path: Path) -> None:
    """By the command, and not by the page hours later; several may be named."""
    log = write(tmp_path / "log.jsonl", LINES[:1])
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    named = parser.parse_args(["dashboard", "--logs", str(log), str(tmp_path), "--db", "x"])
    assert command._logs(named).split("\n") == [str(log), str(tmp_path)]
    assert command._logs(parser.parse_args(["dashboard", "--demo"])) == str(command.SAMPLE_OF_CACHES)
    assert command._logs(parser.parse_args(["dashboard", "--db", "x"])) == ""
    with pytest.raises(InputError, match="no such file"):
        command._logs(parser.parse_args(["dashboard", "--logs", str(tmp_path / "none")]))


@pytest.mark.parametrize("content", [b"", b"no log at all\n", b'{"json": 1}\n'])
def test_files_without_calls_are_refused(empty: Path, show: Run, content: bytes) -> None:
    """With the reason, by the name that their owner knows."""
    app = uploaded(show(empty, "caches"), content, "my.log")
    assert not app.exception
    assert app.error[0].value == "The files could not be taken in."
    assert "no call was found" in app.text[-1].value
    assert "prefixscope-logs" not in shown(app)


def test_two_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    """Each call keeps its own text, and is told by a name of its own."""
    one, two = (write(tmp_path / f"{n}.jsonl", [line(f"What is {n}?", f"It is {n}.", n)]) for n in (1, 2))
    names = {one: "log.jsonl", two: source._unused("log.jsonl", ["log.jsonl"])}
    asked = Bench(names, b"k").analysed(Options()).questions
    assert sorted(asked.calls["file"]) == ["log.jsonl", "log.jsonl (2)"]
    assert [asked.question(call) for call in range(2)] == ["What is 1?", "What is 2?"]


def test_nothing_alike_is_said_in_words(empty: Path, show: Run) -> None:
    """No curve to speak of, no pair to judge, and no error."""
    lines = [line("What is the height of the tower?", "80 m.", 0), line("May I bring my dog along?", "Yes.", 60)]
    app = uploaded(show(empty, "caches"), log_of(lines))
    assert not app.exception
    words = text_of(shown(app))
    assert "no two questions are as alike" in words
    assert "No pair is left to judge." in words


def test_calls_without_answers_are_left_out_by_reason(empty: Path, show: Run) -> None:
    """Where no answer is recorded there is nothing to serve, and the page says so."""
    lines = [line("Where is the tower?", "", 60 * n) for n in range(3)]
    app = uploaded(show(empty, "caches"), log_of(lines))
    assert not app.exception
    assert "No answers are recorded in these logs (3 of 3 calls): nothing can be replayed." in text_of(shown(app))
    assert [list(table.value["calls"]) for table in app.dataframe] == [[3]]
    assert not app.metric


# --- Controls ---------------------------------------------------------------------------------------------------------


def test_controls_are_the_options_of_the_command(empty: Path, show: Run) -> None:
    """A threshold of one's own without guards serves the trap; its figures are those of the same options."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    choice(app, "button_group").set_value("My own").run()
    app.slider(key="caches_threshold").set_value(0.85).run()
    app.toggle(key="caches_guards").set_value(False).run()
    assert not app.exception
    words = text_of(shown(app))
    assert "Going by a similarity (cosine) of 0.85" in words
    assert "without guards" in words
    assert app.dataframe[0].value["calls"].sum() == len(LINES)


@pytest.fixture(scope="module")
def looked() -> Looked:
    """The sample, where the budget keeps users apart."""
    bench = Bench({command.SAMPLE_OF_CACHES: "sample"}, b"readme")
    known: dict[str, Analysis] = {}
    return Looked(
        "sample", "1", bench.services, bench.calls, True,
        lambda options: known.setdefault(repr(options), bench.analysed(options)),
    )  # fmt: skip


@pytest.mark.parametrize("guarded", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_a_threshold_of_ones_own_keeps_the_scope(looked: Looked, *, guarded: bool, given: bool) -> None:
    """Figures of two settings do not differ by who shares; the scopes that were compared stay to be seen."""
    asked = Options(threshold_given=given, policy=Policy(guarded=guarded))
    replayed = sharing.replayed(looked, asked)
    assert replayed.found.scope == SCOPE_FIELDS
    assert replayed.compared.scopes
    assert (replayed.found.policy.threshold == 0.92) == given
    assert replayed.found.policy.guarded == guarded


def test_a_scope_of_ones_own_is_taken(looked: Looked) -> None:
    """Even where the budget would choose another."""
    asked = Options(scope=("service",), scope_given=True)
    assert sharing.replayed(looked, asked).found.scope == ("service",)


@pytest.mark.parametrize(
    ("scope", "before", "expected"),
    [
        (("a", "b"), ("a", "b"), ("a", "b")),
        (("a",), ("a", "b"), ("a", "b")),  # judging must not widen it
        (("a", "b"), ("a",), ("a", "b")),
    ],
)
def test_judging_never_widens_the_scope(
    scope: tuple[str, ...], before: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """What was kept apart before anybody judged stays apart."""
    assert sharing._never_wider(scope, before) == expected


def test_answers_that_may_reach_others_are_a_red_line(empty: Path, show: Run) -> None:
    """Across tenants and system prompts; across services they are not. The scope in use is told."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    assert "In use: shared only where service, model, system, tools, settings, account and tenant are the same." in (
        text_of(shown(app))
    )
    scope = app.multiselect(key="caches_scope")
    scope.set_value([name for name in DEFAULT_SCOPE if name != "service"]).run()
    assert not app.error
    app.multiselect(key="caches_scope").set_value(["service", "model", "tools", "account"]).run()
    assert "Answers may now cross tenants and system prompts" in app.error[0].value
    app.multiselect(key="caches_scope").set_value([]).run()
    assert not app.exception
    assert "Answers may now cross tenants, accounts, system prompts and tools" in app.error[0].value
    assert "In use: shared among all calls." in text_of(shown(app))


def test_the_sidebar_is_off_where_it_filters_nothing(sample: Path, show: Run) -> None:
    """Logs with texts are not of the store; its own calls are, and other pages have their filters back."""
    app = show(sample, "caches")
    assert not any(box.disabled for box in app.sidebar.selectbox)
    uploaded(app, log_of(LINES))
    assert len(app.sidebar.selectbox) == 4
    assert all(box.disabled for box in app.sidebar.selectbox)
    app.switch_page("app_pages/weekly.py").run()
    assert not any(box.disabled for box in app.sidebar.selectbox)


def test_the_explanation_is_open_once(empty: Path, show: Run) -> None:
    """Then it is folded, and the figures are next to the settings."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    assert explanation(app).proto.expanded
    app.number_input(key="caches_budget").set_value(5.0).run()
    assert not explanation(app).proto.expanded


def explanation(app: AppTest) -> Any:
    return next(box for box in app.expander if "Two caches" in box.label)


def test_an_analysis_is_made_once(empty: Path, show: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Back at a setting that was there before, nothing is computed again."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    made: list[Options] = []
    run = analysis.run

    def counted(*arguments: Any, **named: Any) -> Analysis:
        made.append(arguments[3])
        return run(*arguments, **named)

    monkeypatch.setattr(analysis, "run", counted)
    for budget in (5.0, 1.0, 5.0):
        app.number_input(key="caches_budget").set_value(budget).run()
    assert [options.budget for options in made] == [0.05]


def test_texts_can_be_hidden(empty: Path, show: Run) -> None:
    """Then no question and no answer is on the page, and calls are told by their ids."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    app.toggle(key="caches_texts").set_value(False).run()
    words = shown(app)
    assert not app.exception
    for entry in LINES:
        assert entry["request"]["messages"][1]["content"] not in words
    assert "chatcmpl-" in words
    assert "log.jsonl:" in words


# --- Texts from outside -----------------------------------------------------------------------------------------------


def test_hostile_texts_are_text(empty: Path, show: Run) -> None:
    """Questions, answers, services and a file's name that are Markdown, HTML, escapes, broken or endless."""
    evil = (*HOSTILE, "\ud800 alone", "مرحبا **كيف**", "x" * 900, "    code\n\n# heading\n| a |\n|---|\n| b |")
    lines = [
        line(f"How do I get {n} of {name}?", f"{n} {name}\n\n{'very ' * 3000}", 100 * at + n, service=name)
        for at, name in enumerate(evil)
        for n in (5, 6, 5)
    ]
    app = uploaded(show(empty, "caches"), log_of(lines), f"{HOSTILE[1]}.jsonl")
    assert not app.exception
    assert not app.error
    written = shown(app)
    for active in (r"!\[", r"\]\(", "<img", ":material/home", r"\$x", r":red\[", "# heading", r"\|---"):
        assert not re.search(rf"(?<!\\){active}", written), active
    assert not {"\x1b", "\u202e", "\ud800"} & set(written)
    assert written.count("very") < 40_000
    for table in app.dataframe:
        for column in table.value.select_dtypes(include=["object", "string"]):
            assert not table.value[column].dropna().astype(str).str.startswith(("=", "+", "@")).any()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("one\n two", "one\n two"),
        ("a\x1b[31mb\u202ec", "a\ufffd[31mb\ufffdc"),
        ("\ud800", "\ufffd"),
        ("  \n ", ""),
        ("tab\there", "tab here"),
    ],
)
def test_texts_are_made_readable(words: str, expected: str) -> None:
    """Line breaks stay, what does not print is shown as such."""
    assert pairs.readable(words) == expected


def test_an_endless_text_is_cut_and_says_so() -> None:
    """Nobody reads a megabyte; how long it was is told."""
    shown_ = pairs.readable("word " * 10_000)
    assert len(shown_) < 5_000
    assert "50,000 characters in all" in shown_


# --- Judging ----------------------------------------------------------------------------------------------------------


def test_judgements_count_and_outlive_the_page(empty: Path, show: Run) -> None:
    """They are counted at once, are still there after a visit elsewhere, and can be taken back."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    assert "a reload drops them" in shown(app)
    press(app, "Same answer does")
    press(app, "Needs its own answer")
    made = dict(app.session_state["caches_labels"])
    assert sorted(made.values()) == [False, True]
    assert "2 pairs judged by hand" in progress(app)
    app.switch_page("app_pages/upload.py").run().switch_page("app_pages/caches.py").run()
    assert "2 pairs judged by hand" in progress(app)
    press(app, "Take the last one back")
    assert len(app.session_state["caches_labels"]) == 1


def progress(app: AppTest) -> str:
    return text_of(" ".join(str(element.proto.text) for element in app.get("progress")))


def test_a_pair_can_be_skipped(empty: Path, show: Run) -> None:
    """It is not asked again, not judged, and still waits for somebody."""
    app = uploaded(show(empty, "caches"), log_of(LINES))
    before, need = shown(app), re.search(r"\d+ pairs? needs? you", progress(app))
    assert need
    press(app, "Skip")
    assert shown(app) != before
    assert "caches_labels" not in app.session_state
    assert f"0 pairs judged by hand; {need[0]} (1 skipped)" in progress(app)


def test_the_queue_is_that_of_the_command(found: Analysis, tmp_path: Path) -> None:
    """Same pairs in the same order; labels of other traffic are kept; what is read back is what was judged."""
    first, second, *_ = analysis.review_rows(found)
    given = {str(first["pair"]): False, str(second["pair"]): True, "f" * 16: True}
    path = tmp_path / "queue.csv"
    path.write_bytes(judged.as_csv(found, given))
    assert labels.read(path) == given
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    assert tuple(rows[0]) == labels.COLUMNS
    assert {row["pair"] for row in rows} == {c.name for c in found.candidates} | {"f" * 16}


def test_an_earlier_queue_is_taken_in(empty: Path, show: Run, found: Analysis) -> None:
    """Its judgements count like those made here; one that cannot be read is told by its own name."""
    name = found.candidates[0].name
    app = uploaded(show(empty, "caches"), log_of(LINES))
    app.file_uploader(key="caches_queue").upload("mine.csv", f"pair,same_answer\n{name},no\n".encode()).run()
    assert app.session_state["caches_labels"] == {name: False}
    app.file_uploader(key="caches_queue").upload("bad.csv", f"pair,same_answer\n{name},perhaps\n".encode()).run()
    assert "bad.csv:2: same_answer is 'perhaps'" in shown(app)
    assert app.session_state["caches_labels"] == {name: False}


def test_the_page_needs_texts_or_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without either it explains itself, and asks."""
    monkeypatch.setenv(STORE_VARIABLE, str(tmp_path / "none.duckdb"))
    app = AppTest.from_file(APP, default_timeout=TIMEOUT).run().switch_page("app_pages/caches.py").run()
    assert not app.exception
    assert "false match" in shown(app)
    assert app.file_uploader


def test_a_bench_without_calls_is_an_error(tmp_path: Path) -> None:
    """There is nothing to replay, and it says which file and why."""
    path = tmp_path / "x"
    path.write_text("nothing\n", "utf-8")
    with pytest.raises(InputError, match=r"no call was found[\s\S]*my\.log"):
        Bench({path: "my.log"}, load_key())
