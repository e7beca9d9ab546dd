"""A Hudi table in small files, what its maintenance is asked to do, and its rows."""

from __future__ import annotations

from typing import Any

from lakehouse.core.names import TableName
from lakehouse.core.requests import MaintainRequest, QueryRequest
from lakehouse.lake import Lake


def with_small_files(lake: Lake, table: str) -> None:
    """A table with two rows in two files."""
    lake.sql(f"create table {table} (id int, name string) using hudi tblproperties (primaryKey = 'id')")
    for row in ("1, 'Ada'", "2, 'Bob'"):
        # With the default limit, the second insert would fill up the file of the first one.
        new_file = {"hoodie.parquet.small.file.limit": "0"}
        lake.query(QueryRequest(f"insert into {table} values ({row})", settings=new_file), "spark")


def request(table: str, dry_run: bool = False) -> MaintainRequest:
    return MaintainRequest((TableName.parse(table),), dry_run, only=("compact", "expire"))


def names(lake: Lake, table: str, **options: str) -> list[tuple[Any, ...]]:
    return lake.sql(f"select id, name from {table} order by id", **options).rows()
