"""A shop with orders, and a shell on it in a terminal, shared by the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import create_shop
from tests.support.terminal import Terminal, shell


@pytest.fixture(scope="module")
def own_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shop of this file's own, which its tests may change."""
    return create_shop(tmp_path_factory.mktemp("shell") / "shop")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of the shell, with its history."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def narrow(own_shop: Path, folder: Path) -> Iterator[Terminal]:
    """A shell in a terminal of 80 columns."""
    with shell(own_shop, folder) as terminal:
        yield terminal


@pytest.fixture
def terminal(narrow: Terminal) -> Terminal:
    """The same shell, with nothing typed."""
    narrow.send("\x03")
    narrow.read()
    return narrow
