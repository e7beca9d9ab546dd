"""A filled lake, which starts no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.small_lake import SmallLake, filled_folder, put_back


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lake, which is put back before each test."""
    return filled_folder(tmp_path_factory.mktemp("filled"))


@pytest.fixture
def small(filled: Path) -> Iterator[SmallLake]:
    with put_back(filled) as lake:
        yield lake
