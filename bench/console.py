"""How long the pages of the console take: on the server, and until a browser paints them.

`python -m bench.console [--rounds N] [--counts 10 2000]` measures every page over a small lake, and the pages of tables after 10 and
2,000 snapshots and beside 10 and 2,000 tables. Needs Chromium and playwright (docs/console.md). Keeps bench/results/console.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import requests

from bench.growth import TABLE, with_snapshots
from bench.lakes import catalog_of, metadata_location
from bench.measure import Figure, Ratio, Times, beside_own, report, waited
from bench.serve import serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
#: Seconds until the first contentful paint: with an empty cache, and with what an earlier page left in it.
COLD_LIMIT, WARM_LIMIT = 0.5, 0.2
#: How much slower a page may be after 200 times the snapshots or tables.
GROWTH_LIMIT = 1.5
NAMESPACES = 20
#: Answers with some bytes of JSON: what the browser itself takes until it paints, with the load that the machine has.
EMPTY = "/healthz"
PAGES = ("/ui", f"/ui/t/{TABLE}", "/ui/sql", "/ui/b", "/ui/runs", "/ui/lineage", "/ui/health", "/ui/ingest", "/ui/ask")
TABS = ("", "?tab=schema", "?tab=history", "?tab=metadata")
_PAINT = """new Promise((resolve) => new PerformanceObserver((list, observer) => {
  const paint = list.getEntriesByName("first-contentful-paint")[0];
  if (paint) { observer.disconnect(); resolve(paint.startTime); }
}).observe({ type: "paint", buffered: true }))"""


@dataclass(frozen=True)
class PageTimes:
    """Seconds of one page: of the server until its last byte, and of the browser until its first contentful paint.

    `cold` and `warm` come from an empty page, as by a bookmark; `onward` comes from another page of the console, as after a click.
    """

    server: Times
    cold: Times
    warm: Times
    onward: Times

    def without_first(self) -> PageTimes:
        """The same without the round that warmed up."""
        return PageTimes(*(Times(times.runs[1:]) for times in (self.server, self.cold, self.warm, self.onward)))


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    if not CHROMIUM:
        raise SystemExit("No Chromium is installed: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise SystemExit("Playwright is not installed: .venv/bin/pip install playwright==1.65.0") from None
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def page_times(chromium: Any, url: str, paths: Sequence[str], rounds: int) -> dict[str, PageTimes]:
    """The times of each page in every round, after one that warms up the server.

    Args:
        url: the address of a service without keys.
    """
    runs: dict[str, list[tuple[float, float, float, float]]] = {path: [] for path in paths}
    for _ in range(rounds + 1):
        for path in paths:
            other = next(page for page in ("/ui/b", "/ui/ask") if page != path)
            runs[path].append((_server_time(url + path), *_paint_times(chromium, url + path, url + other)))
    return {
        path: PageTimes(*(Times(tuple(kind)) for kind in zip(*taken, strict=True))).without_first()
        for path, taken in runs.items()
    }


def _server_time(address: str) -> float:
    started = time.perf_counter()
    requests.get(address, timeout=60).raise_for_status()
    return time.perf_counter() - started


def _paint_times(chromium: Any, address: str, other: str) -> tuple[float, float, float]:
    """The first paint in a new browser context, that of the same page afterwards, and that of it from another page."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    times = []
    for before in ("", "about:blank", other):
        if before:
            page.goto(before, wait_until="load")
        page.goto(address, wait_until="load")
        times.append(page.evaluate(_PAINT) / 1000)
    context.close()
    cold, warm, onward = times
    return cold, warm, onward


def with_tables(home: Path, count: int) -> None:
    """A lake with this number of tables in some namespaces, each with a metadata file of its own."""
    with_snapshots(home, 10)
    catalog = catalog_of(home)
    first = Path(metadata_location(home, TABLE).removeprefix("file://"))
    content: dict[str, Any] = json.loads(first.read_text())
    for number in range(NAMESPACES):
        catalog.create_namespace_if_not_exists(f"bench{number}")
    for number in range(count - 1):
        file = first.parent / f"{number + 100:05}-copy.metadata.json"
        file.write_text(json.dumps(content))
        catalog.register_table(f"bench{number % NAMESPACES}.t{number}", f"file://{file}")


def every_page(chromium: Any, scratch: Path, rounds: int) -> list[Figure]:
    """Every page over a lake with one table of ten snapshots."""
    home = scratch / "small"
    with_snapshots(home, 10)
    with serving({"LAKE_HOME": str(home)}) as (url, _):
        times = page_times(chromium, url, (EMPTY, *PAGES), rounds)
    figures = []
    for path, taken in times.items():
        is_ours = path != EMPTY
        figures.append(waited(f"first paint of {path}, cold", taken.cold, COLD_LIMIT if is_ours else None))
        figures.append(waited(f"first paint of {path}, warm", taken.warm, WARM_LIMIT if is_ours else None))
        figures.append(waited(f"first paint of {path}, onward", taken.onward, WARM_LIMIT if is_ours else None))
        figures.append(waited(f"server time of {path}", taken.server))
    return figures


def growth(chromium: Any, scratch: Path, counts: Sequence[int], rounds: int) -> tuple[list[Ratio], list[Figure]]:
    """The pages of a table and of all tables, in small and in large lakes."""
    ratios: list[Ratio] = []
    figures: list[Figure] = []
    kinds = (("snapshots", with_snapshots, [f"/ui/t/{TABLE}{tab}" for tab in TABS]),
             ("tables", with_tables, ["/ui", f"/ui/t/{TABLE}"]))  # fmt: skip
    for kind, fill, paths in kinds:
        times: dict[int, dict[str, PageTimes]] = {}
        for count in counts:
            home = scratch / f"{kind}{count}"
            fill(home, count)
            with serving({"LAKE_HOME": str(home)}) as (url, _):
                times[count] = page_times(chromium, url, paths, rounds)
            print(f"measured {count} {kind}", flush=True)
        first, *others = counts
        for path in paths:
            for count, taken in times.items():
                figures.append(waited(f"server time of {path}, {count:,} {kind}", taken[path].server))
                figures.append(waited(f"first paint of {path}, {count:,} {kind}, cold", taken[path].cold, COLD_LIMIT))
            for count in others:
                small, large = times[first][path], times[count][path]
                for what, few, many in (("server", small.server, large.server), ("paint", small.cold, large.cold)):
                    name = f"{what} of {path}, {count:,} {kind}"
                    # Of the server's time a few milliseconds are noise, so only what a person sees has a limit.
                    limit = GROWTH_LIMIT if what == "paint" else None
                    ratios.append(replace(beside_own(name, many, f"{first} {kind}", few), limit=limit))
    return ratios, figures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--counts", type=int, nargs="+", default=[10, 2_000])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as scratch, browser() as chromium:
        figures = every_page(chromium, Path(scratch), asked.rounds)
        ratios, grown = growth(chromium, Path(scratch), asked.counts, asked.rounds)
    return report("console", ratios, figures=[*figures, *grown])


if __name__ == "__main__":
    sys.exit(main())
