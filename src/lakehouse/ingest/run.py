"""Ingest files into a table: one atomic commit, each file once.

An attempt never changes the table before its last step. It changes an Iceberg table on a branch, schema and rows alike,
and publishes the branch if the metadata pointer of the table is still the same; otherwise it starts again on the new
state. A Hudi table gets one Hudi commit. An ingest that is killed leaves only files that no table refers to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lakehouse.core.catalog import Catalog
from lakehouse.core.dataclass import dataclass
from lakehouse.core.engine import SparkRunner
from lakehouse.core.errors import CommitConflictError
from lakehouse.core.files import LOCAL, Files, RemoteFiles
from lakehouse.core.names import TableName
from lakehouse.core.requests import IngestRequest
from lakehouse.engines.duckdb import DuckDB
from lakehouse.ingest.attempt import IngestAttempt
from lakehouse.ingest.files import SourceFile, content_hash, discover, fetch_remote
from lakehouse.ingest.report import IngestReport
from lakehouse.ingest.target import TargetContext
from lakehouse.ingest.work_folder import exclusive, work_folder
from lakehouse.tables.directory import Tables

_MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class Ingester:
    """Ingests files into the tables of a lake."""

    tables: Tables
    catalog: Catalog
    duckdb: DuckDB
    spark: SparkRunner
    folder: Path
    """The folder for staged files and locks."""
    memory_limit: int
    store: RemoteFiles | None = None
    """Reads sources that are URLs; without it only local files can be ingested."""
    files: Files = LOCAL
    """The files of the warehouse."""

    def run(self, request: IngestRequest) -> IngestReport:
        """Ingest the files, or with `dry_run` report what an ingest would do."""
        files = [
            replace(file, name=request.names.get(file.path, file.name))
            for file in discover(request.sources, self.store)
        ]
        with exclusive(self.folder, request.table), work_folder(self.folder) as work:
            new, skipped = self._select_new(request, files, work / "fetched")
            for number in range(_MAX_ATTEMPTS):
                context = self._context(request.table)
                attempt = IngestAttempt(context, request, new, work / str(number), self.memory_limit)
                if not new:
                    return IngestReport(request.table, attempt.default_mode(), skipped=skipped, dry_run=request.dry_run)
                report = attempt.plan() if request.dry_run else attempt.load()
                if report is not None:
                    return replace(report, skipped=skipped)
        raise CommitConflictError(
            f"Other writers changed {request.table} during all {_MAX_ATTEMPTS} attempts to commit.",
            "Nothing was written. Try again when fewer writers are active.",
        )

    def _context(self, table: TableName) -> TargetContext:
        table_format = self.tables.find(table)
        return TargetContext(
            self.tables,
            self.catalog,
            self.spark,
            self.duckdb,
            table,
            table_format.describe(table) if table_format else None,
            self.files,
        )

    def _select_new(
        self, request: IngestRequest, files: Sequence[SourceFile], download_folder: Path
    ) -> tuple[dict[str, SourceFile], tuple[str, ...]]:
        """Select the files to ingest, by content hash and each content once; the second part names the others."""
        known = set() if request.force else self._ingested(request.table)
        new: dict[str, SourceFile] = {}
        # A known fingerprint saves the download.
        skipped = [file.name for file in files if file.fingerprint in known]
        candidates = [file for file in files if file.fingerprint not in known]
        for file in fetch_remote(candidates, self.store, download_folder):
            digest = request.identity or content_hash(file)
            if digest in known or digest in new:
                skipped.append(file.name)
            else:
                new[digest] = file
        return new, tuple(skipped)

    def _ingested(self, table: TableName) -> set[str]:
        """Content hashes and fingerprints of all files in the table; a replace or rollback removes a file from it."""
        table_format = self.tables.find(table)
        history = {snapshot.id: snapshot for snapshot in table_format.history(table)} if table_format else {}
        snapshot = next((ancestor for ancestor in history.values() if ancestor.is_current), None)
        hashes: set[str] = set()
        while snapshot is not None:
            for note in ("sha256", "objects"):
                hashes.update(filter(None, snapshot.notes.get(note, "").split(",")))
            # Our own snapshots record their mode, because an upsert may rewrite all rows as an overwrite.
            # Iceberg's own operation `replace` is a compaction, which leaves every row.
            mode = snapshot.notes.get("mode", "")
            if mode == "replace" or (not mode and snapshot.operation == "insert_overwrite"):
                break
            snapshot = history.get(snapshot.parent)
        return hashes
