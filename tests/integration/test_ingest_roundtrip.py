"""After an ingest the table has what Python's csv module reads from the file, for any cells and dialect."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.csv_texts import CELLS, DIALECTS
from tests.support.repetitions import repetitions

from lakehouse.core.requests import ReadOptions
from lakehouse.lake import Lake

pytestmark = [pytest.mark.spark, pytest.mark.faults]

WIDTH = 3
ROWS = st.lists(st.lists(CELLS, min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=12)


class CsvTable:
    """A table of strings to which files in any dialect are appended."""

    name = "t_csv_roundtrip.cells"

    def __init__(self, lake: Lake, file: Path) -> None:
        self._lake, self._file = lake, file

    def rows(self) -> Counter[tuple[str, ...]]:
        return Counter(self._lake.sql(f"select * from {self.name}", engine="duckdb").rows())

    def append(self, text: str, dialect: dict[str, Any]) -> None:
        self._file.write_bytes(text.encode())
        read = ReadOptions(
            null_words=(),
            delimiter=dialect["delimiter"],
            quote=dialect["quotechar"],
            escape=dialect.get("escapechar") or dialect["quotechar"],
            encoding="utf-8",
            header=False,
            all_text=True,
        )
        report = self._lake.ingest(self._file, into=self.name, mode="append", force=True, read=read)
        assert report.rejected == 0


@pytest.fixture(scope="module")
def table(shared_lake: Lake, tmp_path_factory: pytest.TempPathFactory) -> CsvTable:
    table = CsvTable(shared_lake, tmp_path_factory.mktemp("csv") / "in.csv")
    table.append("a,b,c\n", DIALECTS[0])
    return table


@pytest.mark.parametrize(
    "dialect", DIALECTS, ids=["commas", "semicolons", "single quotes", "all quoted", "backslashes"]
)
@given(cells=ROWS)
@settings(
    max_examples=repetitions(smoke=5, full=100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_what_python_reads_is_what_the_table_holds(
    table: CsvTable, dialect: dict[str, Any], cells: list[list[str]]
) -> None:
    out = io.StringIO()
    csv.writer(out, **dialect).writerows(cells)
    expected = [tuple(row) for row in csv.reader(io.StringIO(out.getvalue(), newline=""), **dialect) if row]
    before = table.rows()
    table.append(out.getvalue(), dialect)
    assert table.rows() == before + Counter(expected)
