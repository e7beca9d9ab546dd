"""`lake mcp` with the official client, and the messages that the official client does not send."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from tests.conftest import cache_only
from tests.mcp.conftest import SLOW, call, refused, runs_on_its_own_branch

from lakehouse.lake import Lake
from lakehouse.mcp.server import McpServer
from lakehouse.mcp.stdio import StdioServer

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


def started(home: Path, *options: str) -> StdioServerParameters:
    """The command that a client starts; it lists on standard error what it imports, and may keep compiled modules."""
    environment = {**cache_only(), "LAKE_HOME": str(home), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = ["-X", "importtime", "-m", "lakehouse", "mcp", *options]
    return StdioServerParameters(command=sys.executable, args=command, env=environment, cwd=home.parent)


def test_every_reading_tool_answers_and_loads_neither_java_nor_the_sdk(lake_home: Path, tmp_path: Path) -> None:
    async def use(client: Client) -> dict[str, Any]:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == READING.keys()
        assert all(tool.annotations and tool.annotations.read_only_hint and tool.output_schema for tool in tools)
        return {name: await call(client, name, **arguments) for name, arguments in READING.items()}

    async def main() -> Any:
        with (tmp_path / "imports").open("w") as errors:
            async with Client(stdio_client(started(lake_home), errlog=errors)) as client:
                return await use(client)

    answers = asyncio.run(main())
    assert answers["query"]["rows"] == [["Ada"], ["Bo"]]
    assert (answers["ask"]["answered"], answers["ask"]["rows"]) == (True, [[2]])
    assert answers["query"]["columns"][0]["type"] == "string"
    assert [table["name"] for table in answers["list_tables"]["tables"]] == ["crm.leads"]
    assert answers["history"]["snapshots"][0]["rows"] == 2
    assert answers["diff"] | {"rows": None} == {"added": 0, "removed": 0, "changed": 0, "rows": None}
    assert answers["health"]["tables"][0]["table"] == "crm.leads"
    imported = {line.rpartition("|")[2].strip() for line in (tmp_path / "imports").read_text().splitlines()}
    assert "lakehouse.mcp.stdio" in imported
    assert not imported & {"py4j", "pyspark", "mcp", "mcp_types"}


def test_what_an_agent_writes_is_on_its_branch_and_the_server_starts_within_a_second(lake_home: Path) -> None:
    async def use(client: Client) -> Any:
        assert {tool.name for tool in (await client.list_tools()).tools} == READING.keys() | WRITING
        made = await call(client, "create_branch", name="agent_trial")
        assert "lake branch merge agent_trial" in made["next_steps"]
        rows = [{"id": 3, "name": "Cy", "score": 90}]
        assert "never main" in await refused(client, "ingest", table="crm.leads", rows=rows, branch="main")
        wrote = await call(client, "ingest", table="crm.leads", rows=rows, branch="agent_trial", key=["id"])
        assert (wrote["inserted"], wrote["branch"]) == (1, "agent_trial")
        changed = await call(client, "diff_branch", branch="agent_trial")
        await runs_on_its_own_branch(client)
        assert [(table["table"], table["change"]) for table in changed["tables"]] == [("crm.leads", "changed")]
        counts = "select count(*) as n from crm.leads"
        return [(await call(client, "query", sql=counts, branch=name))["rows"] for name in ("main", "agent_trial")]

    async def main() -> Any:
        before = set(_children())
        with open(os.devnull, "w") as nowhere:
            # The handshake of the versions before 2026-07-28.
            async with Client(stdio_client(started(lake_home, "--write"), errlog=nowhere), mode="legacy") as client:
                [server] = set(_children()) - before
                seconds = _processor_time(server)
                return seconds, await use(client)

    seconds, counts = asyncio.run(main())
    assert counts == [[[2]], [[3]]]
    assert seconds < 1, "until the handshake; bench/results has the time by the clock"


def _children() -> list[int]:
    tasks = Path("/proc/self/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def _processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Wire:
    """Sends lines to a server on a thread of this process, and reads what it answers."""

    def __init__(self, to: int, answers: int) -> None:
        self._to, self._answers = os.fdopen(to, "wb"), os.fdopen(answers, "rb")
        self.rest = b""
        """What came after the input was closed."""

    def send(self, message: Any) -> None:
        self._to.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")
        self._to.flush()

    def receive(self) -> Any:
        return json.loads(self._answers.readline())

    def ask(self, method: str, **params: Any) -> Any:
        self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        return self.receive()

    def close_input(self) -> None:
        self._to.close()

    def close(self) -> None:
        with self._answers:
            self.rest = self._answers.read()


@contextmanager
def wired(lake: Lake) -> Iterator[Wire]:
    """A server until the block ends, which closes its input."""
    (lines, to), (answers, out) = os.pipe(), os.pipe()
    wire = Wire(to, answers)

    def serve() -> None:
        with os.fdopen(lines, "rb") as given, os.fdopen(out, "wb") as written:
            StdioServer(McpServer(writes=False), lake, written).serve(given)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        wire.close_input()
        thread.join(60)
        assert not thread.is_alive()
        wire.close()


def test_a_message_that_is_none_is_answered_with_an_error_and_the_next_one_is_served(lake: Lake) -> None:
    with wired(lake) as wire:
        for line, code in (
            (b"hello", -32700),
            (b"[]", -32600),
            (b'{"id": {}, "method": "ping"}', -32600),
            (b'{"id": 1, "method": "ping", "params": 3}', -32600),
        ):
            wire.send(line)
            assert wire.receive()["error"]["code"] == code, line
        wire.send({"jsonrpc": "2.0", "method": "notifications/unheard_of"})
        wire.send({"jsonrpc": "2.0", "id": 9, "result": {}})
        assert wire.ask("no/method")["error"]["code"] == -32601
        assert wire.ask("ping")["result"] == {}


def test_the_version_is_the_clients_or_the_newest_and_one_of_tomorrow_is_refused(lake: Lake) -> None:
    with wired(lake) as wire:
        for asked, version in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
            assert wire.ask("initialize", protocolVersion=asked)["result"]["protocolVersion"] == version
        error = wire.ask("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2099-01-01"})["error"]
        assert (error["code"], error["data"]["requested"]) == (-32022, "2099-01-01")
        assert "2026-07-28" in error["data"]["supported"]


def test_a_long_call_reports_progress_and_a_canceled_one_is_never_answered(lake: Lake) -> None:
    with wired(lake) as wire:
        params = {"name": "query", "arguments": {"sql": SLOW}, "_meta": {"progressToken": "p"}}
        wire.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params})
        steps = [wire.receive()["params"] for _ in range(2)]
        assert [(step["progressToken"], step["progress"]) for step in steps] == [("p", 1), ("p", 2)]
        wire.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "slow"}})
        wire.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        while (message := wire.receive()).get("method") == "notifications/progress":
            pass
        assert message == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert b"slow" not in wire.rest


def test_a_client_that_leaves_stops_its_statement(lake: Lake) -> None:
    with wired(lake) as wire:
        params = {"name": "query", "arguments": {"sql": SLOW}, "_meta": {"progressToken": "p"}}
        wire.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": params})
        wire.receive()
        begun = time.monotonic()
    assert time.monotonic() - begun < 30, "the statement alone would take minutes"
