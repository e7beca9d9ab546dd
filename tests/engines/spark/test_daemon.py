"""What the client sends to the warm Spark arrives there whole."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields

from lakehouse.core.engine import Query
from lakehouse.core.names import TableName
from lakehouse.core.requests import QueryRequest, WriteTarget
from lakehouse.core.statement import Statement, TableUse
from lakehouse.engines.spark.daemon.app import StatementBody
from lakehouse.engines.spark.daemon.client import statement_body

REQUEST = QueryRequest(
    sql="select 1",
    as_of="yesterday",
    limit=7,
    explain=True,
    dialect="duckdb",
    arrow=False,
    branch="draft",
    parameters={"text": "1", "whole": 1, "part": 1.5, "flag": True, "nothing": None},
    files={"staged": "/folder"},
    settings={"spark.sql.shuffle.partitions": "2"},
    write=WriteTarget("hudi", "/table", {"option": "1"}, {"column": "comment"}),
    ingest_into="shop.orders",
    maintains="shop.refunds",
    stream=True,
    mark="of this statement",
)
USE = TableUse(TableName("shop", "orders"), 14, 25, "1", "snapshots", "o", is_target=True)
STATEMENT = Statement(
    "select * from shop.orders", "write", (USE,), "hudi", renames=True, truncates=True, untranslated="a hint"
)


def received(query: Query) -> Query:
    body = StatementBody.model_validate_json(json.dumps(statement_body(query, "0" * 32)))
    return Query(body.request, body.reason, body.statement, views=body.views)


def test_every_field_of_a_request_and_a_statement_reaches_the_daemon() -> None:
    for given in (REQUEST, STATEMENT, USE):
        for field in fields(given):
            default = field.default if field.default_factory is MISSING else field.default_factory()
            same = getattr(given, field.name) == default
            assert not same or field.name == "tree", f"{field.name} of {type(given).__name__} has its default here"
    query = Query(REQUEST, "why", STATEMENT, views=(TableName("shop", "view"),))
    assert received(query) == query


def test_values_of_parameters_keep_their_types() -> None:
    values = received(Query(REQUEST, "", STATEMENT)).request.parameters
    assert [type(value) for value in values.values()] == [str, int, float, bool, type(None)]


def test_the_syntax_tree_stays_where_the_statement_was_parsed() -> None:
    statement = Statement("select 1", "read", tree=object())
    assert received(Query(QueryRequest("select 1"), "", statement)).statement.tree is None
