"""Settings: from the environment, from arguments, and what is told of those that cannot be read."""

from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest

from prefixscope.otel_plugin import settings
from prefixscope.otel_plugin.settings import Settings

READ: dict[str, tuple[str, str, Any]] = {
    "text": ("service", "shop", "shop"),
    "a list": ("endpoints", "a.test/*, b.test/x=openai.chat ,", ("a.test/*", "b.test/x=openai.chat")),
    "a size": ("request_cap", "8M", 8 << 20),
    "a size spelled out": ("request_cap", "8MiB", 8 << 20),
    "bytes": ("request_cap", "512", 512),
    "seconds": ("exit_timeout", "0.5", 0.5),
    "a share": ("fingerprint_share", "0.25", 0.25),
    "on": ("content", "Yes", True),
    "off": ("content", "0", False),
    "a choice": ("spans", "OFF", "off"),
}


@pytest.mark.parametrize(("name", "text", "value"), READ.values(), ids=READ)
def test_a_variable_is_read(name: str, text: str, value: Any) -> None:
    """Each in its own notation."""
    found, problems = Settings.read({settings.variable(name): text})
    assert (getattr(found, name), problems) == (value, [])


BAD = [
    ("request_cap", "huge"),
    ("request_cap", "-1"),
    ("queue_calls", ""),
    ("exit_timeout", "inf"),
    ("exit_timeout", "nan"),
    ("fingerprint_share", "2"),
    ("content", "maybe"),
    ("spans", "some"),
]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_a_mistake_leaves_the_default_and_is_told(name: str, text: str) -> None:
    """A service must not stop for it; an empty variable is none."""
    found, problems = Settings.read({settings.variable(name): text})
    assert found == Settings()
    assert [settings.variable(name) in problem for problem in problems] == ([True] if text else [])


def test_arguments_stand_over_the_environment() -> None:
    """Whatever the environment says, right or wrong."""
    found, problems = Settings.read({"PREFIXSCOPE_SERVICE": "a", "PREFIXSCOPE_CONTENT": "?"}, service="b", content=True)
    assert (found.service, found.content, problems) == ("b", True, [])


def test_an_unknown_argument_is_a_mistake() -> None:
    """It is in code, so it is raised."""
    with pytest.raises(TypeError):
        Settings.read({}, servic="b")


def test_settings_do_not_change() -> None:
    """One frozen object for the life of a capture."""
    with pytest.raises(FrozenInstanceError):
        Settings().service = "b"  # type: ignore[misc]


def test_every_setting_is_in_the_table() -> None:
    """With a meaning, and a default that reads back as the default."""
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in settings.table().splitlines()[2:]]
    assert [row[0] for row in rows] == [settings.variable(entry.name) for entry in fields(Settings)]
    assert all(meaning for _, _, meaning in rows)
    shown = {name: default for name, default, _ in rows if default and not default.startswith(("$", "OTEL"))}
    assert Settings.read(shown) == (Settings(), [])


@pytest.mark.parametrize(
    ("spool", "environment", "folder"),
    [
        ("", {"HOME": "/home/a"}, "/home/a/.local/state/prefixscope/spool"),
        ("", {"HOME": "/home/a", "XDG_STATE_HOME": "/state"}, "/state/prefixscope/spool"),
        ("/var/spool/x", {}, "/var/spool/x"),
        ("off", {}, None),
    ],
)
def test_where_the_spool_is(spool: str, environment: dict[str, str], folder: str | None) -> None:
    """Where the user keeps state, unless told otherwise."""
    assert Settings(spool=spool).spool_folder(environment) == (Path(folder) if folder else None)
