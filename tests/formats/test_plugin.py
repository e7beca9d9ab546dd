"""The format of examples/plugin, installed from its wheel: tables that others write, read like all others and never changed."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from lakehouse.config.settings import Settings
from lakehouse.core.errors import NoSuchTableError, NotSupportedError, WhenError
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

pytestmark = pytest.mark.usefixtures("plugin")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake with a table of two files."""
    opened = assemble(Settings(home=tmp_path / "lake", formats=("iceberg", "hudi", "parquet")))
    folder = opened.folder / "parquet" / "crm" / "leads"
    folder.mkdir(parents=True)
    for number in (1, 2):
        rows = pyarrow.table({"id": pyarrow.array([number], pyarrow.int32()), "name": [f"n{number}"]})
        pyarrow.parquet.write_table(rows, folder / f"{number}.parquet")
    return opened


@pytest.mark.parametrize("engine", ["duckdb", "polars", "auto"])
def test_its_tables_are_read_by_every_engine_that_gets_scans(lake: Lake, engine: str) -> None:
    rows = lake.sql("select id, name from crm.leads where id < 9 order by id", engine=engine).rows()
    assert rows == [(1, "n1"), (2, "n2")]


def test_they_are_listed_and_described(lake: Lake) -> None:
    info = lake.describe("crm.leads")
    assert (info.format, [(column.name, column.type) for column in info.columns]) == (
        "parquet",
        [("id", "int"), ("name", "string")],
    )
    assert info.current is not None and (info.current.rows_total, info.current.files_total) == (2, 2)
    assert [str(table.name) for table in lake.tables()] == ["crm.leads"]
    assert [table.table for table in lake.health()] == [], "what can only be read is not maintained"


def test_what_others_write_is_not_dropped_and_has_no_past(lake: Lake) -> None:
    with pytest.raises(NotSupportedError, match="belongs to those who write"):
        lake.drop("crm.leads")
    with pytest.raises(WhenError, match="did not exist yet"):
        lake.travel("crm.leads", "2001-01-01")
    with pytest.raises(NoSuchTableError):
        lake.describe("crm.nothing")
