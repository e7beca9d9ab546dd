"""A lake with two tables of one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.light_runs import ONE, TWO, run
from tests.support.transaction_pipelines import opened

from lakehouse.lake import Lake


@pytest.fixture
def lake(home: Path) -> Iterator[Lake]:
    with opened(home) as lake:
        run(lake, "first", ONE, TWO)
        yield lake
