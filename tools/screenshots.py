"""Pictures of the console over the demo lake, for README.md and docs/console.md: `make screenshots`.

`python tools/screenshots.py [HOME]` takes the lake of `lake demo` in HOME, or makes one. Needs Chromium.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
LAKE = Path(sys.executable).parent / "lake"
#: What all pictures may take together; they are in every clone.
MOST_BYTES = 1_500_000
BRANCH = "new_scores"
CHART = "select month, sum(revenue) as revenue, sum(trips) as trips\nfrom gold.fct_hourly_revenue\ngroup by month\norder by month"
#: The address of each picture, and what is there once the page has all of its content.
PAGES = {
    "home": ("/ui", "main table"),
    "table": ("/ui/t/demo.orders", "#rows td"),
    "sql": (f"/ui/sql?{urlencode({'q': CHART, 'chart': 'bar,month,revenue'})}", "#chart canvas"),
    "branch": (f"/ui/b/{BRANCH}?table=demo.leads", "tr.changed, tr.added, tr.removed"),
    "lineage": ("/ui/lineage", "svg .node"),
    "ask": (f"/ui/ask?{urlencode({'q': 'top 3 hours by revenue paid in cash in January 2026'})}", "#answer table"),
}
WIDTH, HEIGHT = 1280, 800


@contextmanager
def demo_lake(given: str) -> Iterator[Path]:
    """The folder of a lake with the tables of `lake demo`; its service is stopped at the end."""
    folder = Path(given) if given else Path(tempfile.mkdtemp(prefix="lake-pictures-"))
    try:
        if not (folder / "run" / "demo").is_dir():
            lake(folder, "demo")
        if BRANCH not in lake(folder, "branch", "list"):
            lake(folder, "branch", "create", BRANCH)
            lake(folder, "--branch", BRANCH, "sql", "update demo.leads set score = score + 1 where city is not null")
        yield folder
    finally:
        lake(folder, "down")
        if not given:
            shutil.rmtree(folder)


def lake(home: Path, *arguments: str) -> str:
    """What a command prints."""
    environment = {**os.environ, "LAKE_HOME": str(home)}
    done = subprocess.run([LAKE, *arguments], env=environment, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"lake {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def take(chromium: Any, home: Path, theme: str) -> None:
    """Take the picture of every page in one theme."""
    context = chromium.new_context(
        color_scheme=theme, viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce"
    )
    page = context.new_page()
    link = lake(home, "ui", "--no-browser").splitlines()[-1]
    page.goto(link)
    page.wait_for_url("**/ui")
    origin = f"{urlsplit(link).scheme}://{urlsplit(link).netloc}"
    protocol = context.new_cdp_session(page)
    for name, (address, ready) in PAGES.items():
        page.goto(origin + address, wait_until="networkidle")
        page.wait_for_selector(ready)
        page.mouse.move(0, 0)
        page.wait_for_timeout(500)  # a chart draws itself
        picture = protocol.send("Page.captureScreenshot", {"format": "webp", "quality": 82})["data"]
        (IMAGES / f"{name}-{theme}.webp").write_bytes(base64.b64decode(picture))
    context.close()


def main() -> None:
    """Take all pictures."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not browser:
        raise SystemExit("No Chromium is installed: apt-get install chromium")
    IMAGES.mkdir(exist_ok=True)
    with demo_lake(sys.argv[1] if len(sys.argv) > 1 else "") as home, sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox", "--font-render-hinting=none"])
        for theme in ("light", "dark"):
            take(chromium, home, theme)
        chromium.close()
    total = sum(file.stat().st_size for file in IMAGES.glob("*.webp"))
    if total > MOST_BYTES:
        raise SystemExit(f"The pictures take {total:,} bytes, more than {MOST_BYTES:,}: lower the quality.")
    sys.stdout.write(f"{len(list(IMAGES.glob('*.webp')))} pictures in {IMAGES.relative_to(ROOT)}, {total:,} bytes\n")


if __name__ == "__main__":
    main()
