"""How long each test file takes and which servers it shares: the timing file, and the pytest plugin that measures it."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
#: The committed file, by which `make test` balances its lanes.
COMMITTED = ROOT / "tests" / "timings.json"
#: What the last `make test` measured. `make timings` copies it over the committed file.
MEASURED = ROOT / ".pytest_timings.json"
#: Names the file to which the plugin writes.
VARIABLE = "TEST_TIMINGS"

#: What the tests of a file share, from the most expensive down (tests/conftest.py decides it for every test).
FAMILIES = ("stack", "session", "warm", "servers", "sparks", "spark", "plain")
#: For a file that was never measured.
DEFAULT_SECONDS = 5.0


@dataclass(frozen=True)
class Timing:
    """One test file."""

    path: str
    family: str = "plain"
    seconds: float = DEFAULT_SECONDS


def read(path: Path) -> dict[str, Timing]:
    """The timings in a file by test file; empty if there is no such file."""
    if not path.is_file():
        return {}
    return {name: Timing(name, *entry) for name, entry in json.loads(path.read_text()).items()}


def write(path: Path, timings: dict[str, Timing]) -> None:
    """Write timings, one test file a line, so that a diff shows what changed."""
    lines = [f'  "{name}": {json.dumps([timings[name].family, timings[name].seconds])}' for name in sorted(timings)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


class Recorder:
    """Adds up the seconds that pytest reports, and keeps the most expensive family of each file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._families: dict[str, str] = {}
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_collection_finish(self, session: Any) -> None:
        for item in session.items:
            name, marker = item.nodeid.partition("::")[0], item.get_closest_marker("family")
            known = self._families.get(name, "plain")
            self._families[name] = min(known, marker.args[0] if marker else "plain", key=FAMILIES.index)

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self) -> None:
        seconds = {
            name: round(self._seconds[name], 1) if name in self._seconds else DEFAULT_SECONDS for name in self._families
        }
        write(self._path, {name: Timing(name, self._families[name], spent) for name, spent in seconds.items()})


def pytest_configure(config: Any) -> None:
    """Measure if a file is named to write to."""
    if os.environ.get(VARIABLE):
        config.pluginmanager.register(Recorder(Path(os.environ[VARIABLE])))
