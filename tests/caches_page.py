"""What the tests of the page on response caches share: a log of its own, and how the page is worked and read."""

import json
from collections.abc import Sequence
from typing import Any

from streamlit.testing.v1 import AppTest

from semantic_traffic import line

LINES = [
    line("How do I renew my licence?", "Fill in form 7.", 0),
    line("how do I renew my  licence?", "Fill in form 7.", 60),  # an exact repeat
    line("How can I renew my licence please?", "Fill in form 7.", 120),  # the same in other words
    line("Is the office open on Monday?", "Yes, from 9.", 240),
    line("Is the office open on Sunday?", "No.", 300),  # a false match
    line("Do you open at 9 today?", "Yes.", 360),
    line("Do you open at 9 today?", "No.", 420),  # a stale match
    line("Write a poem about rain", "Rain.", 480, temperature=1.0),
]


def uploaded(app: AppTest, content: bytes, name: str = "log.jsonl") -> AppTest:
    """The page after a log was given to it."""
    app.file_uploader[0].upload(name, content).run()
    return press(app, "Replay these")


def press(app: AppTest, label: str) -> AppTest:
    return next(button for button in app.button if button.label == label).click().run()


def log_of(lines: Sequence[Any]) -> bytes:
    return "".join(f"{json.dumps(entry)}\n" for entry in lines).encode()


def shown(app: AppTest) -> str:
    """All that is written on the page."""
    kinds = (app.markdown, app.text, app.caption, app.error, app.title)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def figures(app: AppTest) -> dict[str, str]:
    return {str(metric.label).replace("\\", ""): str(metric.value).replace("\\", "") for metric in app.metric}


def text_of(markdown: str) -> str:
    """Markdown of ours as it reads."""
    return markdown.replace("\\", "").replace("\u2060", "")
