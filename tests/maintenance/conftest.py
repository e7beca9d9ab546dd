"""A lake of one's own, which starts no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.light_runs import with_settings

from lakehouse.lake import Lake


@pytest.fixture
def lake(home: Path) -> Iterator[Lake]:
    with with_settings(home) as lake:
        yield lake
