"""Fixtures of the tests that put everything together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command, command_for
from tests.desk import Desk

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake


@pytest.fixture
def desk(shared_lake: Lake, namespace: str, tmp_path: Path) -> Desk:
    return Desk(shared_lake, f"{namespace}.things", tmp_path / "files")


@pytest.fixture
def command(shared_lake: Lake, shared_settings: Settings) -> Command:
    return command_for(shared_settings.home)
