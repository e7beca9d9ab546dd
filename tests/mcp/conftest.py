"""A lake and a service for the tests of MCP, and how the official client is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from tests.conftest import cache_only
from tests.support.servers.service import PIPELINE, pipelined, served

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

__all__ = ["pipelined", "served"]

LEADS = [{"id": 1, "name": "Ada", "score": 70}, {"id": 2, "name": "Bo", "score": 40}]
SLOW = "select count(*) from range(3000000) a join range(3000000) b on a.id % 3 = b.id % 5"


@pytest.fixture(scope="session")
def lake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home: Path = tmp_path_factory.mktemp("mcp") / "lake"
    (home.parent / "lake.toml").write_text('pipelines = ["mcp_pipelines"]\n')
    (home.parent / "mcp_pipelines.py").write_text(PIPELINE)
    with assemble(load_settings({"home": home}, folder=home.parent, environ=cache_only())) as lake:
        lake.ingest_rows(LEADS, "crm.leads", key=["id"])
        lake.refs.branches.create("exp")
    return home


@pytest.fixture(scope="session")
def lake(lake_home: Path) -> Iterator[Lake]:
    with assemble(load_settings({"home": lake_home}, folder=lake_home.parent, environ=cache_only())) as lake:
        yield lake


async def call(client: Client, tool: str, /, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return str(answer.content[0].text)


async def runs_on_its_own_branch(client: Client) -> None:
    """Run the pipeline `steps`, whose result is on a branch and not on main."""
    counted = "select count(*) from steps.t"
    before = await client.call_tool("query", {"sql": counted})
    run = await call(client, "run_pipeline", pipeline="steps", light=True)
    assert (run["state"], run["pipeline"], run["rows"]) == ("kept", "steps", 1)
    branch = run["branch"]
    assert run["next_steps"] == [f"lake branch {verb} {branch}" for verb in ("diff", "merge", "drop")]
    assert (await call(client, "runs"))["runs"][0]["id"] == run["id"]
    assert (await call(client, "lineage", table="steps.t"))["pipeline"] == "steps"
    changed = (await call(client, "diff_branch", branch=branch))["tables"]
    assert [table["table"] for table in changed] == ["steps.t"]
    assert (await call(client, "query", sql=counted, branch=branch))["rows"] == [[1]]
    after = await client.call_tool("query", {"sql": counted})
    assert (after.is_error, after.structured_content) == (before.is_error, before.structured_content), (
        "main is as before"
    )
