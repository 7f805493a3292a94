"""Every SQL statement of the project, one a file. ``load("report/spend")`` gives the text of ``report/spend.sql``."""

from functools import cache
from importlib.resources import files


@cache
def load(name: str) -> str:
    """The statement in ``queries/<name>.sql``.

    Raises:
        FileNotFoundError: there is no such file.
    """
    return files(__package__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
