"""``prefixscope doctor``: what works is said to work, and what is broken on purpose is found."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import httpx
import pytest

from collecting import START, span, traces
from prefixscope.analyzer import spool_losses
from prefixscope.analyzer.collect import arrivals
from prefixscope.analyzer.doctor import command as doctor_command
from prefixscope.analyzer.doctor import examination as doctor
from prefixscope.analyzer.doctor import files as doctor_files
from prefixscope.analyzer.doctor import install as doctor_install
from prefixscope.analyzer.doctor.examination import Check
from prefixscope.analyzer.ingest import read
from prefixscope.otel_plugin import mounts
from prefixscope.otel_plugin.capture import Capture
from prefixscope.otel_plugin.fingerprint import Fingerprinter
from prefixscope.otel_plugin.mounts import Mounts
from prefixscope.otel_plugin.settings import Settings

NOW = datetime.fromtimestamp(START / 1e9, UTC) + timedelta(days=1)
QUIET = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}
KEY = "a key that nobody may see"
BIN = Path(sys.executable).parent
NEWEST_CARD = doctor_files._newest_card

Found = Callable[..., list[Check]]


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch) -> None:
    """This version is of a day that these tests know, whatever rule cards come later."""
    monkeypatch.setattr(doctor_files, "_newest_card", lambda: date(2026, 11, 29))


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a service whose files are in a folder of the test's own."""
    return {"HOME": str(tmp_path), "PREFIXSCOPE_KEY": KEY} | QUIET


@pytest.fixture
def found(environment: dict[str, str]) -> Found:
    """Examines, with variables beside those of ``environment``; gives the checks of one name."""

    def found(name: str, store: Path | None = None, now: datetime = NOW, **variables: str) -> list[Check]:
        checks = doctor.examine(environment | variables, now, store)
        return [check for check in checks if check.name == name]

    return found


def states(checks: list[Check]) -> list[str]:
    return [check.state for check in checks]


def test_all_is_well(environment: dict[str, str]) -> None:
    """Every part is looked at, and nothing is made by looking."""
    checks = doctor.examine(environment, NOW)
    assert [check for check in checks if check.state != "ok"] == []
    assert doctor.is_well(checks)
    names = ["settings", "entry_points", "libraries", "exporters", "others", "spool", "key", "losses", "clock", "store"]
    assert list(dict.fromkeys(check.name for check in checks)) == names
    assert list(Path(environment["HOME"]).iterdir()) == []


def test_libraries_are_really_mounted(found: Found) -> None:
    """With their versions; afterwards they are as they were."""
    before = vars(httpx.Client)["send"]
    facts = {check.facts["library"]: check.facts for check in found("libraries") if "library" in check.facts}
    assert facts["httpx"] == {"library": "httpx", "version": httpx.__version__, "mounted": True}
    assert set(facts) == {"httpx", "httpx2", "botocore", "aiohttp", "requests"}
    assert vars(httpx.Client)["send"] is before


def test_a_library_that_has_changed(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is found by mounting on it."""
    monkeypatch.setitem(mounts.LIBRARIES, "requests.adapters", "json")  # a module without a mount
    (check,) = [check for check in found("libraries") if check.facts.get("library") == "requests"]
    assert (check.state, check.facts["mounted"]) == ("failed", False)
    assert "please report it" in check.message


def test_libraries_that_are_absent(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is no matter, all of them are."""
    real = doctor_install._version
    monkeypatch.setattr(doctor_install, "_version", lambda name: "" if name == "httpx2" else real(name))
    assert found("libraries")[-1].facts == {"absent": ["httpx2"]}
    monkeypatch.setattr(doctor_install, "_version", lambda _: "")
    assert states(found("libraries")) == ["failed"]


def test_a_library_that_cannot_be_imported(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's broken installation is named."""
    monkeypatch.setitem(mounts.LIBRARIES, "no_such_library", "prefixscope.otel_plugin.mounts.httpx")
    monkeypatch.setattr(doctor_install, "_version", lambda _: "1.0")
    assert "no_such_library 1.0: calls are not seen (cannot be imported: ModuleNotFoundError)" in [
        check.message for check in found("libraries") if check.state == "failed"
    ]


BAD: dict[str, tuple[str, dict[str, str], str, str]] = {
    "a bad value": ("settings", {"PREFIXSCOPE_SPOOL_QUOTA": "much"}, "failed", "'much' is ignored"),
    "a spelling mistake": ("settings", {"PREFIXSCOPE_SPOLL": "x"}, "warning", "PREFIXSCOPE_SPOLL is no setting"),
    "switched off": ("entry_points", {"OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "a, prefixscope"}, "failed", "off"),
    "no exporter": ("exporters", {"OTEL_METRICS_EXPORTER": "otlp"}, "failed", "metrics go to otlp_proto_grpc"),
    "a misspelt exporter": ("exporters", {"OTEL_TRACES_EXPORTER": "console,dukdb"}, "failed", "traces go to dukdb"),
    "a bad protocol": (
        "exporters",
        {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "x"},
        "failed",
        "x",
    ),
    "no SDK": ("exporters", {"OTEL_SDK_DISABLED": "true"}, "warning", "the spool is written"),
    "counted twice": ("others", {"PREFIXSCOPE_SPANS": "on"}, "warning", "opentelemetry.instrumentation.botocore"),
    "no spool": ("spool", {"PREFIXSCOPE_SPOOL": "off"}, "warning", "only in spans"),
    "a spool that cannot be": ("spool", {"PREFIXSCOPE_SPOOL": "/dev/null/x"}, "failed", "/dev/null is no folder"),
    "a spool without room": ("spool", {"PREFIXSCOPE_SPOOL_QUOTA": "99999999G"}, "warning", "are free for the spool"),
    "a key file that cannot be": (
        "key",
        {"PREFIXSCOPE_KEY": "", "XDG_CONFIG_HOME": "/dev/null"},
        "failed",
        "/dev/null",
    ),
}


@pytest.mark.parametrize(("name", "variables", "state", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong(name: str, variables: dict[str, str], state: str, message: str, found: Found) -> None:
    """Is found, by its name."""
    assert [check.message for check in found(name, **variables) if check.state == state and message in check.message]


GOOD: dict[str, tuple[str, dict[str, str], str]] = {
    "a store": ("exporters", {"OTEL_TRACES_EXPORTER": "prefixscope_duckdb"}, "traces: prefixscope_duckdb"),
    "OTLP over HTTP": (
        "exporters",
        {"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
        "logs: otlp_proto_http",
    ),
    "a key file to be": ("key", {"PREFIXSCOPE_KEY": ""}, "the first call makes"),
    "others": ("others", {}, "our spans leave the usage to them"),
    "no spans": ("others", {"PREFIXSCOPE_SPANS": "off"}, "no spans of ours"),
    "no losses": ("losses", {}, "unknown"),
}


@pytest.mark.parametrize(("name", "variables", "message"), GOOD.values(), ids=GOOD)
def test_what_is_right(name: str, variables: dict[str, str], message: str, found: Found) -> None:
    """Is told as it is."""
    checks = found(name, **variables)
    assert set(states(checks)) == {"ok"}
    assert message in " ".join(check.message for check in checks)


def test_a_missing_exporter_is_as_bad_as_that(environment: dict[str, str], found: Found) -> None:
    """What the doctor says of the distribution's defaults is true: the program is not captured."""
    bare = {name: value for name, value in environment.items() if name not in QUIET} | {"PATH": os.environ["PATH"]}
    script = "from prefixscope.otel_plugin import PrefixscopeInstrumentor as P; print(P().capture)"
    command = [str(BIN / "opentelemetry-instrument"), sys.executable, "-c", script]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "None\n"
    assert "otlp_proto_grpc" in done.stderr
    del environment["OTEL_TRACES_EXPORTER"]
    assert states(found("exporters")) == ["failed"]


def test_without_a_distribution(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exporters are never set up: no matter unless somebody counts on one."""

    def bare(**chosen: Any) -> Any:
        absent = {"opentelemetry_distro", "opentelemetry_configurator"}
        return () if chosen["group"] in absent else entry_points(**chosen)

    monkeypatch.setattr(doctor_install, "entry_points", bare)
    assert states(found("exporters")) == ["ok"]
    assert states(found("exporters", OTEL_TRACES_EXPORTER="prefixscope_duckdb")) == ["failed"]


@pytest.mark.parametrize("times", [0, 2])
def test_entry_points_that_are_not_there_once(times: int, found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old installation beside the new one, or none."""
    point = EntryPoint("prefixscope", "json", "opentelemetry_instrumentor")
    monkeypatch.setattr(doctor_install, "entry_points", lambda **_: (point,) * times)
    monkeypatch.setattr(doctor_install, "which", lambda *_, **__: None)
    assert states(found("entry_points")) == ["failed", "failed", "warning"]


def test_a_check_that_breaks(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told, and hides none of the others."""

    def broken(*_: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(doctor_install, "Capture", broken)
    (check,) = found("libraries")
    assert (check.state, check.message) == ("failed", "this check could not be made: RuntimeError: out of order")
    assert states(found("key")) == ["ok"]


def test_the_spool(found: Found, tmp_path: Path) -> None:
    """Its files are counted, and trying to write leaves none."""
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "calls-20261130T090000-1-00000000.live.jsonl").write_text("{}\n")
    (folder / "calls-20261130T090000-1-00000001.jsonl").write_text("{}\n")
    (check,) = found("spool", PREFIXSCOPE_SPOOL=str(folder))
    assert check.facts == {"folder": str(folder), "files": 2, "live": 1, "bytes": 6}
    assert len(list(folder.iterdir())) == 2


def test_a_spool_that_refuses(found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is found by writing, since rights and mounts cannot be told from looking."""

    def read_only(**_: Any) -> Any:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", read_only)
    (check,) = found("spool", PREFIXSCOPE_SPOOL=str(tmp_path))
    assert (check.state, check.message) == ("failed", f"{tmp_path} cannot be written: Read-only file system")


@pytest.mark.parametrize("source", ["environment", "file"])
def test_the_key_is_named_by_its_id(source: str, environment: dict[str, str], tmp_path: Path, found: Found) -> None:
    """And never told."""
    if source == "file":
        environment["PREFIXSCOPE_KEY"] = ""
        path = tmp_path / ".config/prefixscope/key"
        path.parent.mkdir(parents=True)
        path.write_text(KEY)
        path.chmod(0o640)
    checks = found("key")
    assert checks[0].facts["key_id"] == Fingerprinter(KEY.encode()).key_id
    assert states(checks[1:]) == (["warning"] if source == "file" else [])
    assert KEY not in json.dumps(doctor.as_json(doctor.examine(environment, NOW)))


def test_losses(tmp_path: Path, found: Found) -> None:
    """What capture could not keep is read from its spool, once per process, however often it was told."""
    url = "https://api.openai.com/v1/responses"
    for _ in range(2):
        capture = Capture(Settings(spool=str(tmp_path), spans="off", queue_calls=0), {"PREFIXSCOPE_KEY": "test"})
        mounted = Mounts(capture.tap)
        with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, json={}))) as client:
            for _ in range(3):
                client.post(url, json={"model": "gpt-5.1", "input": "hi"})
                capture._tell_losses()
        mounted.undo()
        capture.close()
    assert spool_losses.in_spool(tmp_path).calls == {"queue_full": 6}
    (check,) = found("losses", PREFIXSCOPE_SPOOL=str(tmp_path))
    assert (check.state, check.facts["calls"], check.facts["errors"]) == ("warning", {"queue_full": 6}, {})
    assert "6 queue_full" in check.message


def test_no_losses(tmp_path: Path, found: Found) -> None:
    """Calls and torn lines are none."""
    (tmp_path / "calls-20261130T090000-1-00000001.jsonl").write_text(
        '{"resourceSpans":[]}\n{"resourceMetrics":[]}\n{"reso'
    )
    (check,) = found("losses", PREFIXSCOPE_SPOOL=str(tmp_path))
    assert (check.state, check.facts) == ("ok", {"known": True, "calls": {}, "errors": {}})


CLOCKS: Mapping[str, tuple[datetime, str]] = {
    "right": (NOW, "ok"),
    "after a dead battery": (datetime(1970, 1, 1, tzinfo=UTC), "failed"),
    "last year": (datetime(2025, 11, 1, tzinfo=UTC), "failed"),
    "broken": (datetime(2200, 1, 1, tzinfo=UTC), "failed"),
}


@pytest.mark.parametrize(("now", "state"), CLOCKS.values(), ids=CLOCKS)
def test_the_clock(now: datetime, state: str, found: Found) -> None:
    """It cannot be before this version was written."""
    assert states(found("clock", now=now)) == [state]


def test_the_day_of_this_version() -> None:
    """Is that of the rule card which was checked last."""
    assert NEWEST_CARD() >= date(2026, 11, 30)


def test_a_clock_that_was_set_back(found: Found, tmp_path: Path) -> None:
    """Shows in files of the future."""
    path = tmp_path / "calls-20261130T090000-1-00000001.jsonl"
    path.write_text("{}\n")
    later = (NOW + timedelta(hours=1)).timestamp()
    os.utime(path, (later, later))
    assert states(found("clock", PREFIXSCOPE_SPOOL=str(tmp_path))) == ["ok", "warning"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two calls."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "calls.jsonl").write_text(json.dumps(traces(span(1), span(2))))
    arrivals.append(folder / "calls.duckdb", list(read([folder / "calls.jsonl"], Fingerprinter(b"test"))))
    return folder / "calls.duckdb"


def test_the_store(kept: Path, found: Found) -> None:
    """With its last call, which cannot be of the future."""
    (check,) = found("store", kept)
    assert (check.state, check.facts["calls"], check.facts["last_at"]) == ("ok", 2, "2026-11-30T00:53:22")
    assert states(found("clock", kept, now=NOW - timedelta(hours=25))) == ["ok", "warning"]


@pytest.mark.parametrize("shown", [True, False])
def test_who_has_the_store_open(shown: bool, kept: Path, found: Found, tmp_path: Path) -> None:
    """By process and program, with the script that it runs; options are not shown, since they may be secret."""
    script = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(1, flush=True); input()"
    (tmp_path / "holder.py").write_text(script)
    arguments = [str(tmp_path / "holder.py"), str(kept)] if shown else ["-Wsecret", "-c", script, str(kept)]
    holder = subprocess.Popen([sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline()
    (check,) = found("store", kept)
    holder.communicate("\n", timeout=20)
    assert (check.state, check.facts["holder"]["process"]) == ("warning", holder.pid)
    assert check.facts["holder"]["command"] == " ".join([sys.executable, *arguments[:shown]])
    assert "secret" not in check.message


def test_no_store_of_ours(found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file, a newer version: each needs a hand. No DuckDB does not."""
    (tmp_path / "text").write_text("hello hello hello")
    assert states(found("store", tmp_path / "text")) == ["failed"]
    monkeypatch.setattr(doctor_files, "find_spec", lambda _: None)
    assert states(found("store", tmp_path / "text")) == ["ok"]


def test_the_base_install_is_enough() -> None:
    """Nothing of the extra is imported, unless there is a store to look at."""
    script = f"""
import sys
from datetime import datetime, UTC
from importlib import util
for name in ("duckdb", "polars", "pyarrow", "numpy", "orjson", "rich", "zstandard", "genai_prices"):
    sys.modules[name] = None
real = util.find_spec
util.find_spec = lambda name, *rest: None if name == "duckdb" else real(name, *rest)
from prefixscope.analyzer.doctor import command, examination as doctor
environment = {{"HOME": "/nowhere", "PREFIXSCOPE_KEY": "k", **{QUIET!r}}}
checks = doctor.examine(environment, datetime.fromtimestamp({NOW.timestamp()}, UTC))
print([check.message for check in checks if "could not be made" in check.message or check.name == "store"])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "['DuckDB is not installed; capture does not need it']\n"


@pytest.mark.parametrize("broken", [False, True])
def test_the_command(
    broken: bool, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exits with 1 if something failed; text for people, JSON for programs."""
    for name, value in (environment | ({"PREFIXSCOPE_MEMORY": "?"} if broken else {})).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_STATE_HOME", environment["HOME"])
    monkeypatch.setattr(doctor_files, "_newest_card", lambda: date(2000, 1, 1))  # the time is the machine's here
    parser = argparse.ArgumentParser()
    doctor_command.add_parser(parser.add_subparsers())
    text, as_json = parser.parse_args(["doctor"]), parser.parse_args(["doctor", "--json"])
    assert text.run(text) == broken
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("FAILED   settings ") for line in lines) is broken
    assert as_json.run(as_json) == broken
    shown = json.loads(capsys.readouterr().out)
    assert (shown["schema_version"], shown["well"]) == (1, not broken)
    assert {"name", "state", "message", "advice", "facts"} == set(shown["checks"][0])
