"""The methods of the protocol on a lake: what a model reads, and what it may not do."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from lakehouse.lake import Lake
from lakehouse.mcp.server import Caller, McpServer, ProtocolError


def answer(lake: Lake, method: str, **params: Any) -> dict[str, Any]:
    return McpServer(writes=True).answer(method, params, Caller(lambda: nullcontext(lake), lambda text: None))


def called(lake: Lake, tool: str, **arguments: Any) -> Any:
    result = answer(lake, "tools/call", name=tool, arguments=arguments)
    return result["content"][0]["text"] if result["isError"] else result["structuredContent"]


def test_a_model_reads_what_every_tool_and_argument_is_for(lake: Lake) -> None:
    for tool in answer(lake, "tools/list")["tools"]:
        assert tool["description"].endswith("."), tool["name"]
        for name, argument in tool["inputSchema"].get("properties", {}).items():
            assert argument["description"], (tool["name"], name)
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["outputSchema"]["type"] == "object"


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
def test_the_tool_query_only_reads_tables(lake: Lake, statement: str) -> None:
    assert answer(lake, "tools/call", name="query", arguments={"sql": statement})["isError"]
    assert lake.table_names() == ["crm.leads"]
    assert lake.sql("select count(*) from crm.leads").rows() == [(2,)]


@pytest.mark.parametrize(
    ("tool", "arguments", "advice"),
    [
        ("query", {"sql": "select * from crm.lead"}, "Did you mean crm.leads?"),
        ("query", {"statement": "select 1"}, "sql: Field required; statement: Extra inputs are not permitted."),
        ("query", {"sql": "select 1", "limit": 5000}, "limit: Input should be less than or equal to 1000"),
        ("describe_table", {"table": "crm.lead"}, "crm.leads"),
        ("ingest", {"table": "crm.leads", "rows": [{"id": 1}], "branch": "main"}, "never main. Make one with"),
        ("run_pipeline", {"pipeline": "markets"}, "market"),
        ("diff_branch", {"branch": "nowhere"}, "nowhere"),
        ("travel", {"table": "crm.leads", "when": "before long"}, "before long"),
    ],
)
def test_an_error_says_what_to_do(lake: Lake, tool: str, arguments: dict[str, Any], advice: str) -> None:
    assert advice in called(lake, tool, **arguments)


def test_rows_are_cut_at_the_limit_and_long_texts_too(lake: Lake) -> None:
    few = called(lake, "query", sql="select id from range(50)", limit=5)
    assert (len(few["rows"]), few["is_cut"]) == (5, True)
    long = called(lake, "query", sql="select repeat('x', 5000) as x")
    assert (len(long["rows"][0][0]), long["is_cut"]) == (1001, True)


def test_what_is_not_there_is_an_error_with_the_choices(lake: Lake) -> None:
    for method, params, choice in (
        ("tools/call", {"name": "drop_table"}, "list_tables"),
        ("resources/read", {"uri": "lake://docs/secrets"}, "lake://docs/sql"),
        ("resources/read", {"uri": "lake://tables/crm.leads/rows"}, "lake://tables/{table}/schema"),
        ("resources/read", {"uri": "lake://tables/crm.lead/schema"}, "crm.leads"),
        ("resources/read", {"uri": "lake://tables/crm.lead/metrics"}, "crm.leads"),
        ("prompts/get", {"name": "explain_change"}, "table, since"),
        ("prompts/get", {"name": "forget"}, "explore"),
        ("tables/drop", {}, "no method tables/drop"),
    ):
        with pytest.raises(ProtocolError) as error:
            answer(lake, method, **params)
        assert choice in error.value.message, method
