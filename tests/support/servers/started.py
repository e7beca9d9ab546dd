"""Wait for a server of the tests, or show what it said instead of starting."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

_TIMEOUT_S = 300
_LAST_WORDS = 2000


def wait_until(ready: Callable[[], bool], name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when it is ready; the tests that need it fail with the end of its log if it never is."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"{name} did not start:\n{log.read_text()[-_LAST_WORDS:]}", pytrace=False)
        time.sleep(0.05)
