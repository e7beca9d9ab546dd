"""One lake with the tables of the demo, for all tests of the agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.agent_eval import NOON
from tests.support.agent_lakes import fill_demo

from lakehouse import open_lake
from lakehouse.agent.ask import Asker
from lakehouse.lake import Lake


@pytest.fixture(scope="session")
def demo_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(home=tmp_path_factory.mktemp("asked") / "lake") as lake:
        fill_demo(lake)
        yield lake


@pytest.fixture(scope="session")
def asker(demo_lake: Lake) -> Asker:
    return demo_lake.asker(now=NOON)
