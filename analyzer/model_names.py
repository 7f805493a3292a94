"""One spelling for a model's name, however it was sent, served or resold. Pure; standard library only."""

import re
from functools import lru_cache

# Each step takes away one thing that names where or when a model is served, not which model it is.
_HOST = re.compile(r"^(?:[a-z-]+\.)+(?=[a-z])")  # us.anthropic. / amazon. / global.openai. (no digits: not "gpt-5.")
_TAG = re.compile(r"(?:-v\d+)?(?::|@|\[).*$", re.DOTALL)  # -v1:0 / :free / @20250929 / [1m]
_REVISION = re.compile(r"(?<=\d)-v\d+$")  # claude-opus-4-6-v1
_DATE = re.compile(r"-20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])(?=$|-)")  # -20250929 / -2025-08-07
_CLAUDE_VERSION_FIRST = re.compile(r"^claude-(\d+(?:-\d+)?)-([a-z]+)")  # claude-3-7-sonnet
_CLAUDE_ZERO = re.compile(r"^(claude-[a-z]+-\d+)-0(?=$|-)")  # claude-opus-4-0


@lru_cache(maxsize=4096)
def bare_name(model: str) -> str:
    """The model's own name: lower case, without vendor path, region, release date, revision and tag.

    ``us.anthropic.claude-sonnet-4-5-20250929-v1:0``, ``anthropic/claude-4.5-sonnet`` and ``claude-sonnet-4-5@20250929``
    are all ``claude-sonnet-4-5``. Claude is spelled family first with dashes; other vendors keep their dots.
    """
    name = model.strip().lower()
    if name.startswith("ft:"):  # OpenAI fine-tunes: ft:<base model>:<organisation>:<name>:<id>
        name = name.split(":")[1]
    name = name.rsplit("/", 1)[-1]
    name = _TAG.sub("", _HOST.sub("", name))
    name = _DATE.sub("", name).removesuffix("-latest")
    return _claude(name) if name.startswith("claude") else name


def _claude(name: str) -> str:
    name = _REVISION.sub("", name.replace(".", "-"))
    name = _CLAUDE_VERSION_FIRST.sub(r"claude-\2-\1", name)
    return _CLAUDE_ZERO.sub(r"\1", name)
