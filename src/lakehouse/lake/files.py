"""The methods of a lake that take files and rows in, and write files out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakehouse.core.names import MAIN, TableName
from lakehouse.core.requests import IngestRequest, ReadOptions
from lakehouse.lake.maintenance import MaintenanceMethods

if TYPE_CHECKING:
    import pyarrow

    from lakehouse.ingest.report import IngestReport


class FileMethods(MaintenanceMethods):
    """What a lake does with files. `Lake` adds pipelines and branches."""

    def ingest(  # noqa: PLR0913 - one keyword per field of IngestRequest
        self,
        *sources: str | Path,
        into: str,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        format: str = "",
        contract: str = "evolve",
        partition_by: str = "",
        sort_by: str = "",
        force: bool = False,
        read: ReadOptions | None = None,
        dry_run: bool = False,
        branch: str = "",
    ) -> IngestReport:
        """Ingest files into a table: one atomic commit, each file once.

        Args:
            sources: files, globs and folders, local or s3://, of CSV, TSV, JSON lines or Parquet, plain or compressed.
            into: the table; it is created if missing.
            mode: append, upsert or replace (default: upsert with a key, else append).
            key: columns that identify a row.
            order_by: of several rows with one key, the highest value of this column wins (default: the last row).
            format: format of a new table (default: iceberg).
            contract: evolve, freeze or quarantine rows that do not fit the table's schema.
            partition_by: partition transforms of a new table, e.g. `days(ts)`.
            sort_by: sort order of a new table.
            force: ingest files again that were ingested before.
            read: how to read the files (default: detect).
            dry_run: report what would be done; write nothing.
            branch: the branch of the table (default: this lake's).
        """
        return self.ingest_files(
            IngestRequest(
                sources=tuple(str(source) for source in sources),
                table=TableName.parse(into),
                mode=mode,
                key=tuple(key),
                order_by=order_by,
                format=format,
                contract=contract,
                partition_by=partition_by,
                sort_by=sort_by,
                force=force,
                read=read or ReadOptions(),
                dry_run=dry_run,
                branch=branch,
            )
        )

    def ingest_files(self, request: IngestRequest) -> IngestReport:
        """Run a typed request; `ingest` builds one."""
        tables = self._tables(request.branch)
        branch = "" if tables.branch == MAIN else tables.branch
        ingester = self._components.ingester(branch)
        if request.dry_run:
            return ingester.run(request)
        tables.check_writable()
        from lakehouse.runs.model import new_run_id

        observed = replace(request, branch=branch)
        return self._components.observer().ingest(observed, new_run_id(), lambda: ingester.run(request))

    def ingest_rows(  # noqa: PLR0913 - one keyword per option
        self,
        rows: Iterable[Mapping[str, Any]] | pyarrow.Table,
        into: str,
        *,
        mode: str = "",
        key: Sequence[str] = (),
        order_by: str = "",
        contract: str = "evolve",
        force: bool = False,
        branch: str = "",
    ) -> IngestReport:
        """Ingest rows at once, without Spark; the table is created if missing. The same rows are ingested once.

        Args:
            rows: dicts, or an Arrow table.
            force: ingest rows again that were ingested before.
        """
        from lakehouse.ingest.rows import rows_file

        with rows_file(rows) as file:
            return self.ingest_files(
                IngestRequest(
                    (str(file),),
                    TableName.parse(into),
                    mode=mode,
                    key=tuple(key),
                    order_by=order_by,
                    contract=contract,
                    force=force,
                    branch=branch,
                    names={str(file): file.name},
                    light=True,
                )
            )

    def export(self, name: str, file: str | Path, as_of: str = "", branch: str = "") -> int:
        """Write a table to a CSV, JSON lines, Parquet or Arrow file, chosen by its suffix; returns the row count."""
        from lakehouse.tables.export import export_scan

        table, tables = TableName.parse(name), self._tables(branch)
        scan = tables.format_of(table).scan(table, tables.snapshot_at(table, as_of))
        return export_scan(self._components.duckdb, scan, Path(file))
