"""SQL over Arrow tables in memory, for tables that are built without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def query(sql: str, **tables: pa.Table) -> pa.Table:
    """The result of a DuckDB query in which tables have the names of the keywords; timestamps are in UTC."""
    import duckdb

    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for name, rows in tables.items():
            engine.register(name, rows)
        return engine.sql(sql).to_arrow_table()
