"""The texts of TPC-H and TPC-DS, translated for the engines of a lake, and their tables written to one."""

from __future__ import annotations

import re

import duckdb

from lakehouse.lake import Lake

#: What Trino's stricter dialect does not take, and how the same is written there.
FOR_TRINO = {
    r"GROUP BY\s+supplier_no": "GROUP BY l_suppkey",
    r"(?<!cast\()(?<!date )'(\d{4}-\d{2}-\d{2})'": r"DATE '\1'",
    r"d_date \+ 5": "d_date + INTERVAL '5' DAY",
    r"grouping\(\w+\)\+grouping\(\w+\) = 0": "lochierarchy = 0",
}


def written_to(lake: Lake, plain: duckdb.DuckDBPyConnection, namespace: str) -> None:
    """Write every table of a database to a lake, with PyIceberg."""
    from pyiceberg.catalog import load_catalog

    lake.tables()
    with load_catalog("lake", **lake._components.runner().catalog.pyiceberg_properties()) as writer:
        writer.create_namespace(namespace)
        for (name,) in plain.execute("show tables").fetchall():
            rows = plain.execute(f"select * from {name}").to_arrow_table()
            writer.create_table(f"{namespace}.{name}", schema=rows.schema).append(rows)


def texts(plain: duckdb.DuckDBPyConnection, suite: str) -> list[str]:
    return [query for _, query in plain.execute(f"select query_nr, query from {suite}_queries() order by 1").fetchall()]


def with_namespace(text: str, tables: list[str], namespace: str = "main", dialect: str = "spark") -> str:
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(text, dialect="duckdb")
    for table in tree.find_all(exp.Table):
        if table.name in tables and not table.db:
            table.set("db", exp.to_identifier(namespace))
    return str(tree.sql(dialect=dialect))


def for_trino(text: str) -> str:
    for pattern, replacement in FOR_TRINO.items():
        text = re.sub(pattern, replacement, text, flags=re.IGNORECASE)
    return text
