"""Shared by the tests of `lake ingest`: a folder of files and a table to ingest them into."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakehouse.ingest.report import IngestReport
from lakehouse.lake import Lake
from tests.support.repetitions import repetitions

both_formats = pytest.mark.parametrize("table_format", ["iceberg", "hudi"])
#: Hudi too in `make test-faults`: the file has other tests that try the same with Hudi.
one_format_or_both = pytest.mark.parametrize("table_format", repetitions(smoke=["iceberg"], full=["iceberg", "hudi"]))


@dataclass(frozen=True)
class IngestFixture:
    """A folder of files and one table to ingest them into."""

    lake: Lake
    table: str
    folder: Path

    def file(self, name: str, content: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def ingest(self, content: str, name: str = "in.csv", **options: Any) -> IngestReport:
        return self.lake.ingest(self.file(name, content), into=self.table, **options)

    def rows(self, columns: str = "*", table: str = "") -> list[tuple[Any, ...]]:
        return self.lake.sql(f"SELECT {columns} FROM {table or self.table} ORDER BY 1, 2", engine="duckdb").rows()

    def types(self) -> dict[str, str]:
        return {column.name: column.type for column in self.lake.describe(self.table).columns}

    def exists(self, suffix: str = "") -> bool:
        return self.table + suffix in [str(info.name) for info in self.lake.tables()]


def counts(report: IngestReport) -> tuple[int, int, int, int, int]:
    return (report.rows_read, report.inserted, report.updated, report.unchanged, report.rejected)
