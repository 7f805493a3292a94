"""Pictures of the dashboard over the sample traffic, for the README and for eyes that check it.

python tests/dashboard/screenshots.py [FOLDER]          those of README and docs, into docs/images
python tests/dashboard/screenshots.py FOLDER --all      every page, 1440 and 900 pixels wide, light and dark
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from playwright.sync_api import Browser  # noqa: E402 - the path above

from browsing import browser, served, watched  # noqa: E402
from dashboards import MAIN, PAGES  # noqa: E402

_README = {
    "weekly": "/",
    "finding": "/finding?service=billing-assistant",  # a leak whose break can be seen
    "caches": "/caches",
}
_SCREEN, _TALLEST = 1200, 5000  # pixels


def shoot(found: Browser, home: str, address: str, path: Path, *, width: int, scheme: str, whole: bool) -> None:
    """One page, as high as it is, or as much of it as a screen shows."""
    with watched(found, home, width=width, scheme=scheme) as watch:
        watch.open(address)
        height = watch.page.locator(MAIN).evaluate("main => main.scrollHeight") if whole else _SCREEN
        watch.page.set_viewport_size({"width": width, "height": min(height, _TALLEST)})
        watch.page.wait_for_timeout(800)  # charts are drawn anew in the larger window
        watch.page.screenshot(path=path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Pictures of the dashboard over the sample traffic.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    parser.add_argument("--all", action="store_true", help="every page in both widths and themes")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PREFIXSCOPE_KEY"] = "readme"  # the ids of the README
    with (
        tempfile.TemporaryDirectory() as scratch,
        served("--demo", log=Path(scratch) / "log") as home,
        browser() as found,
    ):
        if not arguments.all:
            for page, address in _README.items():
                path = arguments.folder / f"{page}.png"
                shoot(found, home, address, path, width=1440, scheme="light", whole=False)
            return
        for page in PAGES:
            for width in (1440, 900):
                for scheme in ("light", "dark"):
                    path = arguments.folder / f"{page}-{width}-{scheme}.png"
                    address = "/" if page == "weekly" else f"/{page}"
                    shoot(found, home, address, path, width=width, scheme=scheme, whole=True)


if __name__ == "__main__":
    main()
