"""Small tables in the memory of a query process: which ones, that they hold the same rows, and what happens where a copy is impossible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import pyarrow
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)
from tests.support.small_lake import SmallLake, opened

from lakehouse.core.files import local_path
from lakehouse.core.names import TableName
from lakehouse.core.tables import Scan
from lakehouse.engines.duckdb import ViewCatalogs
from lakehouse.engines.duckdb.connection import connect
from lakehouse.engines.duckdb.workers.copies import SmallTables

KINDS = Schema(
    NestedField(1, "i", IntegerType()),
    NestedField(2, "d", DoubleType()),
    NestedField(3, "n", DecimalType(20, 2)),
    NestedField(4, "s", StringType()),
    NestedField(5, "b", BinaryType()),
    NestedField(6, "f", FixedType(2)),
    NestedField(7, "u", UUIDType()),
    NestedField(8, "day", DateType()),
    NestedField(9, "t", TimestampType()),
    NestedField(10, "tz", TimestamptzType()),
    NestedField(11, "l", ListType(12, IntegerType(), element_required=False)),
    NestedField(13, "m", MapType(14, StringType(), 15, IntegerType(), value_required=False)),
    NestedField(16, "r", StructType(NestedField(17, "x", StringType()))),
)
AT = datetime(2026, 3, 29, 1, 30, 0, 123456)
ROW = {
    "i": 1,
    "d": -0.0,
    "n": Decimal("1.50"),
    "s": "",
    "b": b"\x00",
    "f": b"ab",
    "u": UUID(int=2**127).bytes,
    "day": date(2026, 1, 1),
    "t": AT,
    "tz": AT.replace(tzinfo=UTC),
    "l": [1, None],
    "m": {"a": None},
    "r": {"x": "y"},
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallLake]:
    with opened(tmp_path_factory.mktemp("copies") / "lake") as small:
        small.make("shop.orders")
        small.add("shop.orders", 1, 2, 3)
        kinds = small.writer().create_table("shop.kinds", KINDS)
        shape = kinds.schema().as_arrow()  # with the ids that the table gave its fields
        columns = [pyarrow.array([value, None], field.type) for value, field in zip(ROW.values(), shape, strict=True)]
        kinds.append(pyarrow.table(columns, shape))
        yield small


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with closing(connect()) as opened_connection:
        yield opened_connection


def scan_of(small: SmallLake, table: str) -> Scan:
    return small.backend.formats["iceberg"].scan(TableName.parse(table))


def is_copied(connection: duckdb.DuckDBPyConnection, catalogs: ViewCatalogs, scan: Scan) -> bool:
    """Whether a table is copied; its name is `t` then, in the catalog that the connection uses."""
    catalogs.use(connection, (("t", scan),))
    kind = "SELECT table_type FROM information_schema.tables WHERE table_catalog = current_database()"
    return connection.execute(kind).fetchall() == [("BASE TABLE",)]


def described(connection: duckdb.DuckDBPyConnection) -> tuple[list[object], list[object]]:
    """Columns and rows of `t`."""
    rows = connection.execute("SELECT * FROM t").fetchall()
    return [(name, str(kind)) for name, kind, *_ in connection.description or ()], [repr(row) for row in rows]


@pytest.mark.parametrize("table", ["shop.orders", "shop.kinds"])
def test_a_copy_has_the_columns_and_rows_of_the_view(
    small: SmallLake, connection: duckdb.DuckDBPyConnection, table: str
) -> None:
    scan = scan_of(small, table)
    catalogs, views = ViewCatalogs(SmallTables(1 << 30).create), ViewCatalogs()
    assert is_copied(connection, catalogs, scan)
    copy = described(connection)
    views.use(connection, (("t", scan),))
    assert described(connection) == copy


def test_large_tables_and_those_of_unknown_size_are_not_copied(
    small: SmallLake, connection: duckdb.DuckDBPyConnection
) -> None:
    scan, catalogs = scan_of(small, "shop.orders"), ViewCatalogs(SmallTables(1 << 30).create)
    for other in (
        replace(scan, total_bytes=10 << 20),
        replace(scan, total_rows=10**7),
        replace(scan, total_bytes=None),
        replace(scan, total_rows=None),
    ):
        assert not is_copied(connection, catalogs, other)
        assert len(described(connection)[1]) == 3


def test_the_memory_of_all_copies_is_limited(small: SmallLake, connection: duckdb.DuckDBPyConnection) -> None:
    small.make("shop.many")
    small.add("shop.many", *range(50_000))
    scan = scan_of(small, "shop.many")
    first, second = (ViewCatalogs(SmallTables(memory).create) for memory in (1 << 30, 100_000))
    assert is_copied(connection, first, scan)
    assert not is_copied(connection, second, scan), "what there is already counts"


def test_a_table_that_cannot_be_copied_is_read_as_far_as_possible(
    connection: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    with opened(tmp_path / "lake") as damaged:
        damaged.make("shop.orders")
        damaged.add("shop.orders", 1)
        for task in damaged.writer().load_table("shop.orders").scan().plan_files():
            local_path(task.file.file_path).unlink()
        catalogs = ViewCatalogs(SmallTables(1 << 30).create)
        assert not is_copied(connection, catalogs, scan_of(damaged, "shop.orders"))
        with pytest.raises(duckdb.IOException):
            connection.execute("SELECT * FROM t").fetchall()
