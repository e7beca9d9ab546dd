"""MCP of a service with the official client: every tool, with the rights of a key."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from tests.mcp.conftest import SLOW, call, refused, runs_on_its_own_branch
from tests.support.servers.service import Client as HttpClient
from tests.support.servers.service import Served, ServedPipelines

Use = Callable[[Client], Awaitable[Any]]


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


def test_a_key_may_do_what_it_may_do_elsewhere(served: Served) -> None:
    served.admin.insert("mcp_own.t?key=id", [{"id": 1}])
    served.admin.insert("mcp_other.t", [{"id": 2, "text": "canary"}])
    served.admin.post("/branches", {"name": "mcp_read"})
    table = {"table": "mcp_own.t"}
    reads = {
        "describe_table": table,
        "ask": {"question": "how many rows in mcp_own.t"},
        "history": table,
        "travel": {**table, "when": "now"},
        "diff": {**table, "start": "now"},
        "lineage": table,
        "health": table,
        "runs": {},
        "diff_branch": {"branch": "mcp_read"},
    }

    async def use(client: Client) -> Any:
        for tool, arguments in reads.items():
            await call(client, tool, **arguments)
        tables = [listed["name"] for listed in (await call(client, "list_tables"))["tables"]]
        rows = (await call(client, "query", sql="select id from mcp_own.t"))["rows"]
        hidden = await refused(client, "query", sql="select * from mcp_other.t")
        branch = await refused(client, "create_branch", name="mcp_trial")
        pipeline = await refused(client, "run_pipeline", pipeline="market")
        schema = str((await client.read_resource("lake://tables/mcp_own.t/schema")).contents[0].text)
        return tables, rows, hidden, (branch, pipeline), schema

    tables, rows, hidden, writes, schema = over_http(served.client("reader", namespaces=["mcp_own"]), use)
    assert (tables, rows) == (["mcp_own.t"], [[1]])
    assert "mcp_other" in hidden and "canary" not in hidden
    assert all("writer" in refusal or "scope" in refusal for refusal in writes)
    assert '"name":"id"' in schema


def test_documents_and_prompts_lead_in(served: Served) -> None:
    async def use(client: Client) -> Any:
        documents = [str(resource.uri) for resource in (await client.list_resources()).resources]
        texts = [(await client.read_resource(uri)).contents[0].text for uri in documents]
        prompts = {prompt.name for prompt in (await client.list_prompts()).prompts}
        prompt = await client.get_prompt("explain_change", {"table": "crm.leads"})
        return documents, all(texts), prompts, str(prompt.messages[0].content.text)

    documents, have_texts, prompts, prompt = over_http(served.client("reader"), use)
    assert (documents, have_texts) == (["lake://docs/sql", "lake://docs/questions", "lake://docs/branches"], True)
    assert prompts == {"explore", "explain_change"}
    assert "crm.leads" in prompt


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


def test_a_pipeline_runs_on_a_branch_of_its_own(pipelined: ServedPipelines) -> None:
    over_http(pipelined.client("agent"), runs_on_its_own_branch)


def test_twenty_clients_are_answered_at_once(served: Served) -> None:
    served.admin.insert("mcp_many.t", [{"id": number} for number in range(20)])
    caller = served.client("reader")  # hashing a key of each would take longer than the rest

    async def read(number: int) -> Any:
        async with AsyncExitStack() as stack:
            client = await _connected(stack, caller)
            return (await call(client, "query", sql=f"select id from mcp_many.t where id = {number}"))["rows"]

    async def main() -> list[Any]:
        return await asyncio.gather(*(read(number) for number in range(20)))

    assert asyncio.run(main()) == [[[number]] for number in range(20)]


def test_a_client_that_leaves_cancels_its_query(served: Served) -> None:
    pool = served.service.queries.pool

    async def main() -> None:
        async with AsyncExitStack() as stack:
            client = await _connected(stack, served.client("reader"))
            asking = asyncio.create_task(client.call_tool("query", {"sql": SLOW}))
            async with asyncio.timeout(60):
                while not pool.busy:
                    await asyncio.sleep(0.05)
            asking.cancel()

    asyncio.run(main())
    until = time.monotonic() + 60
    while pool.busy and time.monotonic() < until:
        time.sleep(0.1)
    assert not pool.busy
