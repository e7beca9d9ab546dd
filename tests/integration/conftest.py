"""Fixtures of the tests that put everything together."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Command, command_for
from tests.support.ingest_fixture import IngestFixture

from lakehouse.config.settings import Settings
from lakehouse.lake import Lake


@pytest.fixture
def fixture(shared_lake: Lake, namespace: str, tmp_path: Path) -> IngestFixture:
    return IngestFixture(shared_lake, f"{namespace}.things", tmp_path / "files")


@pytest.fixture
def command(shared_lake: Lake, shared_settings: Settings) -> Command:
    return command_for(shared_settings.home)
