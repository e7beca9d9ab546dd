"""The MCP server with the official client: over standard input and output, and over HTTP with keys."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from tests.conftest import LAKE, cache_only
from tests.support.servers.service import Client as HttpClient
from tests.support.servers.service import Served

from lakehouse.config.load import load_settings
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble
from lakehouse.mcp.server import build_server

LEADS = [{"id": 1, "name": "Ada", "score": 70}, {"id": 2, "name": "Bo", "score": 40}]
READING = {
    "list_tables": {},
    "describe_table": {"table": "crm.leads"},
    "query": {"sql": "select name from crm.leads order by id"},
    "ask": {"question": "how many leads"},
    "history": {"table": "crm.leads"},
    "travel": {"table": "crm.leads", "when": "now"},
    "diff": {"table": "crm.leads", "start": "now"},
    "lineage": {"table": "crm.leads"},
    "health": {},
    "runs": {},
    "diff_branch": {"branch": "exp"},
}
WRITING = {"create_branch", "run_pipeline", "ingest"}
Use = Callable[[Client], Awaitable[Any]]


@pytest.fixture(scope="module")
def lake_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home: Path = tmp_path_factory.mktemp("mcp") / "lake"
    with _open(home) as lake:
        lake.ingest_rows(LEADS, "crm.leads", key=["id"])
        lake.refs.branches.create("exp")
    return home


def _open(home: Path) -> Lake:
    return assemble(load_settings({"home": home}, folder=home.parent, environ=cache_only()))


def over_stdio(home: Path, use: Use, *options: str) -> Any:
    """Use the server that `lake mcp` starts."""
    environment = {**cache_only(), "LAKE_HOME": str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}

    async def main() -> Any:
        server = StdioServerParameters(command=str(LAKE), args=["mcp", *options], env=environment, cwd=home.parent)
        async with Client(stdio_client(server)) as client:
            return await use(client)

    return asyncio.run(main())


def over_http(caller: HttpClient, use: Use) -> Any:
    """Use the server of a service, with the key of a caller."""

    async def main() -> Any:
        async with AsyncExitStack() as stack:
            return await use(await _connected(stack, caller))

    return asyncio.run(main())


async def _connected(stack: AsyncExitStack, caller: HttpClient) -> Client:
    http = await stack.enter_async_context(
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {caller.key}"}, timeout=60)
    )
    transport = streamable_http_client(f"{caller.url}/mcp", http_client=http)
    return await stack.enter_async_context(Client(transport))


async def call(client: Client, tool: str, /, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content


async def refused(client: Client, tool: str, /, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return str(answer.content[0].text)


def test_every_reading_tool_answers_over_standard_input_and_output(lake_home: Path) -> None:
    async def use(client: Client) -> dict[str, Any]:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING.keys()
        assert all(tool.annotations and tool.annotations.read_only_hint and tool.output_schema for tool in tools)
        return {name: await call(client, name, **arguments) for name, arguments in READING.items()}

    answers = over_stdio(lake_home, use)
    assert answers["query"]["rows"] == [["Ada"], ["Bo"]]
    assert (answers["ask"]["answered"], answers["ask"]["rows"]) == (True, [[2]])
    assert answers["query"]["columns"][0]["type"] == "string"
    assert [table["name"] for table in answers["list_tables"]["tables"]] == ["crm.leads"]
    assert answers["history"]["snapshots"][0]["rows"] == 2
    assert answers["diff"] | {"rows": None} == {"added": 0, "removed": 0, "changed": 0, "rows": None}
    assert answers["health"]["tables"][0]["table"] == "crm.leads"


def test_what_an_agent_writes_is_on_its_branch(lake_home: Path) -> None:
    async def use(client: Client) -> Any:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING.keys() | WRITING
        made = await call(client, "create_branch", name="agent_trial")
        assert "lake branch merge agent_trial" in made["next_steps"]
        rows = [{"id": 3, "name": "Cy", "score": 90}]
        assert "never main" in await refused(client, "ingest", table="crm.leads", rows=rows, branch="main")
        wrote = await call(client, "ingest", table="crm.leads", rows=rows, branch="agent_trial", key=["id"])
        assert (wrote["inserted"], wrote["branch"]) == (1, "agent_trial")
        changed = await call(client, "diff_branch", branch="agent_trial")
        assert [(table["table"], table["change"]) for table in changed["tables"]] == [("crm.leads", "changed")]
        counts = "select count(*) as n from crm.leads"
        return [(await call(client, "query", sql=counts, branch=name))["rows"] for name in ("main", "agent_trial")]

    assert over_stdio(lake_home, use, "--write") == [[[2]], [[3]]]


@pytest.mark.parametrize(
    "statement",
    [
        "drop table crm.leads",
        "insert into crm.leads values (9, 'x', 1)",
        "delete from crm.leads",
        "create table crm.other as select 1",
        "set spark.sql.ansi.enabled = true",
        "select * from read_csv('/etc/passwd')",
        "select 1; drop table crm.leads",
    ],
)
def test_the_tool_query_only_reads_tables(lake_home: Path, statement: str) -> None:
    with _open(lake_home) as lake:

        async def use() -> str:
            async with Client(build_server(lambda context: nullcontext(lake), writes=True)) as client:
                return await refused(client, "query", sql=statement)

        assert asyncio.run(use())
        assert lake.table_names() == ["crm.leads"]
        assert lake.sql("select count(*) from crm.leads").rows() == [(2,)]


def test_an_error_says_what_to_do(lake_home: Path) -> None:
    with _open(lake_home) as lake:

        async def use() -> str:
            async with Client(build_server(lambda context: nullcontext(lake), writes=False)) as client:
                return await refused(client, "query", sql="select * from crm.lead")

        assert "Did you mean crm.leads?" in asyncio.run(use())


def test_rows_are_cut_at_the_limit_and_long_texts_too(lake_home: Path) -> None:
    with _open(lake_home) as lake:

        async def use() -> Any:
            async with Client(build_server(lambda context: nullcontext(lake), writes=False)) as client:
                few = await call(client, "query", sql="select id from range(50)", limit=5)
                long = await call(client, "query", sql="select repeat('x', 5000) as x")
                return few, long

        few, long = asyncio.run(use())
        assert (len(few["rows"]), few["is_cut"]) == (5, True)
        assert (len(long["rows"][0][0]), long["is_cut"]) == (1001, True)


def test_a_canceled_call_stops_its_statement(lake_home: Path) -> None:
    slow = "select count(*) from range(3000000) a join range(3000000) b on a.id % 3 = b.id % 5"
    with _open(lake_home) as lake:

        async def use() -> float:
            async with Client(build_server(lambda context: nullcontext(lake), writes=False)) as client:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.call_tool("query", {"sql": slow}), 1)
                begun = time.monotonic()
                await call(client, "query", sql="select 1")
                return time.monotonic() - begun

        assert asyncio.run(use()) < 5


def test_schemas_metrics_and_docs_are_resources_and_prompts_lead_in(lake_home: Path) -> None:
    with _open(lake_home) as lake:

        async def use() -> tuple[str, set[str], str]:
            async with Client(build_server(lambda context: nullcontext(lake), writes=False)) as client:
                schema = await client.read_resource("lake://tables/crm.leads/schema")
                metrics = json.loads((await client.read_resource("lake://tables/crm.leads/metrics")).contents[0].text)
                assert (metrics["entity"], metrics["metrics"]["leads"]) == ("leads", "count(*)")
                assert metrics["dimensions"]["score"] == "number"
                for topic in ("sql", "questions", "branches"):
                    assert (await client.read_resource(f"lake://docs/{topic}")).contents[0].text
                prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
                prompt = await client.get_prompt("explain_change", {"table": "crm.leads"})
                return str(schema.contents[0].text), prompts, str(prompt.messages[0].content.text)

        schema, prompts, prompt = asyncio.run(use())
        assert '"name":"score"' in schema
        assert prompts == {"explore", "explain_change"}
        assert "crm.leads" in prompt


def test_over_http_a_key_may_do_what_it_may_do_elsewhere(served: Served) -> None:
    served.admin.insert("mcp_own.t", [{"id": 1}])
    served.admin.insert("mcp_other.t", [{"id": 2, "text": "canary"}])
    reader = served.client("reader", namespaces=["mcp_own"])

    async def use(client: Client) -> Any:
        tables = [table["name"] for table in (await call(client, "list_tables"))["tables"]]
        rows = (await call(client, "query", sql="select id from mcp_own.t"))["rows"]
        hidden = await refused(client, "query", sql="select * from mcp_other.t")
        branch = await refused(client, "create_branch", name="mcp_trial")
        return tables, rows, hidden, branch

    tables, rows, hidden, branch = over_http(reader, use)
    assert (tables, rows) == (["mcp_own.t"], [[1]])
    assert "mcp_other" in hidden and "canary" not in hidden
    assert "writer" in branch or "scope" in branch


def test_without_a_key_nothing_answers(served: Served) -> None:
    assert HttpClient(served.url).post("/mcp", {}).status_code == 401


def test_an_agents_key_writes_on_branches_only(served: Served) -> None:
    served.admin.insert("mcp_agent.t", [{"id": 1}])

    async def use(client: Client) -> Any:
        await call(client, "create_branch", name="mcp_agents_own")
        await call(client, "ingest", table="mcp_agent.t", rows=[{"id": 2}], branch="mcp_agents_own")
        return (await call(client, "diff_branch", branch="mcp_agents_own"))["tables"]

    changed = over_http(served.client("agent"), use)
    assert [(table["table"], table["rows_after"]) for table in changed] == [("mcp_agent.t", 2)]
    assert served.admin.rows("select count(*) as n from mcp_agent.t") == [{"n": 1}]


def test_twenty_clients_are_answered_at_once(served: Served) -> None:
    served.admin.insert("mcp_many.t", [{"id": number} for number in range(20)])
    callers = [served.client("reader") for _ in range(20)]

    async def one(number: int) -> Any:
        async with AsyncExitStack() as stack:
            client = await _connected(stack, callers[number])
            return (await call(client, "query", sql=f"select id from mcp_many.t where id = {number}"))["rows"]

    async def main() -> list[Any]:
        return await asyncio.gather(*(one(number) for number in range(20)))

    assert asyncio.run(main()) == [[[number]] for number in range(20)]


def test_a_client_that_leaves_cancels_its_query(served: Served) -> None:
    slow = "select count(*) from range(3000000) a join range(3000000) b on a.id % 3 = b.id % 5"
    pool = served.service.queries.pool

    async def main() -> None:
        async with AsyncExitStack() as stack:
            client = await _connected(stack, served.client("reader"))
            asking = asyncio.create_task(client.call_tool("query", {"sql": slow}))
            async with asyncio.timeout(30):
                while not pool.busy:
                    await asyncio.sleep(0.05)
            asking.cancel()

    asyncio.run(main())
    until = time.monotonic() + 10
    while pool.busy and time.monotonic() < until:
        time.sleep(0.1)
    assert not pool.busy


def test_reads_load_no_java(lake_home: Path) -> None:
    code = (
        "import asyncio, sys; from contextlib import nullcontext; from mcp.client.client import Client; from lakehouse.lake.assemble import assemble;"
        "from lakehouse.config.load import load_settings; from lakehouse.mcp.server import build_server\n"
        "async def main(lake):\n"
        "    async with Client(build_server(lambda context: nullcontext(lake), writes=False)) as client:\n"
        "        await client.call_tool('query', {'sql': 'select count(*) from crm.leads'})\n"
        "with assemble(load_settings()) as lake: asyncio.run(main(lake))\n"
        "assert not {'py4j', 'pyspark'} & set(sys.modules), 'Spark was loaded'"
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**cache_only(), "LAKE_HOME": str(lake_home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
