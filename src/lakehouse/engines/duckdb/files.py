"""Tables that are read from a list of Parquet files, as Hudi tables are."""

from __future__ import annotations

from lakehouse.core.quoting import name as _name
from lakehouse.core.quoting import text as _text
from lakehouse.core.tables import Scan
from lakehouse.engines.duckdb.types import duckdb_type


def select_files(scan: Scan) -> str:
    """A query over the files of a table, or without rows if it has none."""
    return f"SELECT {_names(scan)} FROM {_parquet(scan)}" if scan.files else _no_rows(scan)


def select_with_nulls(scan: Scan) -> str:
    """The same with nulls for missing columns; counts do not come from footers then."""
    return f"SELECT {_names(scan)} FROM (SELECT * FROM {_parquet(scan)} UNION ALL BY NAME {_no_rows(scan)})"


def _names(scan: Scan) -> str:
    return ", ".join(
        f"nullif({_name(column.name)}, '') AS {_name(column.name)}"
        if column.name in scan.empty_is_null
        else _name(column.name)
        for column in scan.columns
    )


def _parquet(scan: Scan) -> str:
    files = ", ".join(_text(file) for file in scan.files)
    # Older files lack newer columns; by name, a missing column is null.
    return f"read_parquet([{files}], union_by_name = true, hive_partitioning = false)"


def _no_rows(scan: Scan) -> str:
    nulls = ", ".join(f"CAST(NULL AS {duckdb_type(column.type)}) AS {_name(column.name)}" for column in scan.columns)
    return f"SELECT {nulls or '1'} WHERE false"
