"""The file of decisions: append-only lines that survive crashes, merges, newer fields and hostile bytes."""

import json
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixscope.analyzer.errors import StoreError
from prefixscope.analyzer.lifecycle import decisions
from prefixscope.analyzer.lifecycle.decisions import Decision

AT = datetime(2026, 11, 30, 9, tzinfo=UTC)
ENDS = {"estimate": 2.0, "low": 1.0, "high": 3.0}
MEASURE = {"saved_usd": ENDS, "saved_usd_per_week": ENDS}
ACCEPTED = Decision("c1b8cf45c4a0", "accepted", AT, "ana", owner="team search", due=date(2026, 12, 15))
DISMISSED = Decision("ccf912571d59", "dismissed", AT, "bo", reason="the clock must stand there", until=date(2027, 1, 1))
FIXED = Decision("c1b8cf45c4a0", "fixed", AT, "ana", also=("d2",), on=AT - timedelta(days=3))
VERIFIED = Decision("c1b8cf45c4a0", "verified", AT, "prefixscope", measure=MEASURE)
LINE = {"v": 1, "finding": "a", "status": "accepted", "at": "2026-11-30T09:00:00Z", "by": "ana"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return decisions.path_beside(tmp_path / "calls.duckdb")


def written(path: Path, *lines: Any) -> Path:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def test_the_file_stands_beside_the_store(path: Path) -> None:
    """Its name is the store's and what it is."""
    assert path.name == "calls.duckdb.decisions.jsonl"
    assert decisions.read(path) == decisions.Decisions()


def test_what_is_appended_is_read(path: Path) -> None:
    """Every field of every status, in the order of the lines."""
    made = (ACCEPTED, DISMISSED, FIXED, VERIFIED)
    for decision in made:
        decisions.append(path, decision)
    assert decisions.read(path) == decisions.Decisions(made)


def test_a_line_is_text_that_people_can_read(path: Path) -> None:
    """One JSON object with its version first, and nothing that is empty."""
    decisions.append(path, ACCEPTED)
    assert path.read_text() == (
        '{"v": 1, "finding": "c1b8cf45c4a0", "status": "accepted", "at": "2026-11-30T09:00:00Z", "by": "ana", '
        '"owner": "team search", "due": "2026-12-15"}\n'
    )


def test_nothing_is_ever_rewritten(path: Path) -> None:
    """What was there stays byte by byte, whatever it is."""
    before = b'{"v": 1, "new": "field"}\r\n\xff\xfe not text\n\n'
    path.write_bytes(before)
    decisions.append(path, ACCEPTED)
    assert path.read_bytes().startswith(before)
    assert decisions.read(path).made == (ACCEPTED,)


def test_fields_of_a_later_time_are_kept(path: Path) -> None:
    """They are handed on with the decision, and stand in the line made of it."""
    line = {**LINE, "ticket": "FIN-7", "nested": {"a": [1]}}
    (decision,) = decisions.read(written(path, line)).made
    assert decision.extra == {"ticket": "FIN-7", "nested": {"a": [1]}}
    assert decisions.as_json(decision) == line


def test_a_later_format_is_refused(path: Path) -> None:
    """It may mean something else, so nothing is guessed."""
    with pytest.raises(StoreError, match=r"decisions\.jsonl:2: written in format version 2; update prefixscope"):
        decisions.read(written(path, LINE, {**LINE, "v": 2}))


@pytest.mark.parametrize("kept", range(1, 30, 7))
def test_a_torn_last_line_costs_only_itself(path: Path, kept: int) -> None:
    """It is told, and the next decision does not fall into it."""
    decisions.append(path, ACCEPTED)
    decisions.append(path, DISMISSED)
    torn = path.read_bytes()[: -kept - 1]
    path.write_bytes(torn)
    found = decisions.read(path)
    assert found.made == (ACCEPTED,)
    assert found.notes == (f"{path}:2: not a decision (torn: it has no end), ignored: no JSON",)
    decisions.append(path, FIXED)
    assert decisions.read(path).made == (ACCEPTED, FIXED)
    assert decisions.read(path).notes == (f"{path}:2: not a decision, ignored: no JSON",)


def test_a_last_line_without_an_end_counts_if_it_is_whole(path: Path) -> None:
    """An editor may have left out the line break; the next decision begins a line of its own."""
    path.write_text(json.dumps(LINE))
    decisions.append(path, DISMISSED)
    assert [decision.finding for decision in decisions.read(path).made] == ["a", DISMISSED.finding]
    assert decisions.read(path).notes == ()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("<<<<<<< HEAD", "no JSON"),
        ("[" * 100_000, "longer than 65536 bytes"),
        ("[" * 60_000, "no JSON"),
        ("[]", "no JSON object"),
        ("{}", "no format version"),
        ({**LINE, "v": True}, "no format version"),
        ({**LINE, "v": "1"}, "no format version"),
        ({**LINE, "status": "done"}, "unknown status 'done'"),
        ({**LINE, "status": ["fixed"]}, "status is no text"),
        ({**LINE, "finding": ""}, "it names no finding"),
        ({**LINE, "at": ""}, "it has no time"),
        ({**LINE, "at": "today"}, "at is no time: 'today'"),
        ({**LINE, "at": "0001-01-01T00:00+23:00"}, "at is no time"),
        ({**LINE, "due": "2026-02-30"}, "due is no date: '2026-02-30'"),
        ({**LINE, "also": "a"}, "also is no list of texts"),
        ({**LINE, "also": [1]}, "also is no list of texts"),
        ({**LINE, "measure": MEASURE}, "accepted with a measure"),
        ({**LINE, "status": "verified"}, "verified without a measure"),
        ({**LINE, "status": "verified", "measure": {"saved_usd": ENDS}}, "verified without a measure"),
        ({**LINE, "status": "verified", "measure": {**MEASURE, "saved_usd": 1e9}}, "verified without a measure"),
        (
            {**LINE, "status": "verified", "measure": {**MEASURE, "saved_usd": dict.fromkeys(ENDS, float("nan"))}},
            "verified",
        ),
    ],
)
def test_a_line_that_is_no_decision_is_told(path: Path, line: Any, reason: str) -> None:
    """With its number and what is wrong with it; the lines around it count."""
    found = decisions.read(written(path, LINE, line, LINE))
    assert len(found.made) == 2
    (note,) = found.notes
    assert note.startswith(f"{path}:2: not a decision, ignored: {reason}")


@pytest.mark.parametrize("text", ["2026-11-30", "2026-11-30T01:00+01:00", "2026-11-30T00:00:00"])
def test_times_of_any_zone_are_utc(path: Path, text: str) -> None:
    """Without a zone they are UTC already."""
    (decision,) = decisions.read(written(path, {**LINE, "at": text})).made
    assert decision.at == datetime(2026, 11, 30, tzinfo=UTC)
    assert decision.at.tzinfo == UTC


def test_merged_files_are_read_in_the_order_of_their_times(path: Path) -> None:
    """Lines of two people may stand in any order; those of one time keep theirs."""
    lines = [
        {**LINE, "at": f"2026-11-{day}", "finding": name} for day, name in ((12, "c"), (10, "a"), (12, "d"), (11, "b"))
    ]
    assert [decision.finding for decision in decisions.read(written(path, *lines)).made] == ["a", "b", "c", "d"]


@settings(max_examples=50)
@given(st.text(max_size=600))
def test_any_text_makes_one_printable_line(text: str) -> None:
    """No line break, escape or surrogate of a reason gets into the file."""
    decision = Decision("a", "dismissed", AT, text, reason=text, owner=text)
    line = json.dumps(decisions.as_json(decision), ensure_ascii=False).encode()
    assert b"\n" not in line
    assert decisions.as_json(decision).get("reason", "").isprintable()


def test_writers_at_the_same_time_do_not_mix_their_lines(path: Path) -> None:
    """Each line is one write at the end of the file."""

    def write(name: str) -> None:
        for number in range(25):
            decisions.append(path, Decision(f"{name}{number}", "dismissed", AT, name, reason="x" * 400))

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = decisions.read(path)
    assert found.notes == ()
    assert len({decision.finding for decision in found.made}) == 100


def test_a_place_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    """Both ways: a folder in its place, and a folder that is not there."""
    folder = tmp_path / "a.decisions.jsonl"
    folder.mkdir()
    with pytest.raises(StoreError, match="cannot read the decisions: Is a directory"):
        decisions.read(folder)
    with pytest.raises(StoreError, match="cannot keep the decision: Is a directory"):
        decisions.append(folder, ACCEPTED)
    with pytest.raises(StoreError, match="cannot keep the decision: No such file"):
        decisions.append(tmp_path / "gone" / "a", ACCEPTED)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told(tmp_path: Path) -> None:
    """The decision was not kept, and the caller knows."""
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(StoreError, match="cannot keep the decision"):
        decisions.append(full, ACCEPTED)
