"""`lake verify`: walk a lake and report every file, ref and table that is not as it should be. Nothing is changed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from lakehouse.copies.backup_store import BackupStore
from lakehouse.copies.clone import CLONE_FILE
from lakehouse.copies.content import hudi_folders, is_checksum
from lakehouse.copies.equality import Side, differences
from lakehouse.copies.findings import (
    CORRUPT,
    DANGLING,
    DIFFERENT,
    MISSING,
    UNREACHABLE,
    UNREADABLE,
    Finding,
    VerifyReport,
)
from lakehouse.copies.lake_parts import LakeParts
from lakehouse.copies.restore import BackupSource, side_of
from lakehouse.copies.verify_files import Warehouse, check_data
from lakehouse.copies.verify_tables import TableChecks, same_tables
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import HomeError, LakeError, NotSupportedError
from lakehouse.core.format import TableFormat
from lakehouse.core.names import MAIN, TableName
from lakehouse.core.state import CatalogState
from lakehouse.formats.hudi.slices import instant_of
from lakehouse.formats.iceberg.references import ReferenceReader
from lakehouse.storage.raw import RAW_FOLDER
from lakehouse.storage.tree import UNFINISHED
from lakehouse.tables.directory import Tables

if TYPE_CHECKING:
    from lakehouse.engines.duckdb import DuckDB

Progress = Callable[[str], None]

#: A file that nothing refers to may be one that a writer is about to commit.
_GRACE_S = 3600
_RAW = f"{RAW_FOLDER}/"
_CHECKED = "checked"
_METADATA = (".json", ".avro")


@dataclass
class Verifier:
    """Checks one lake."""

    parts: LakeParts
    tables: Tables
    duckdb: DuckDB
    progress: Progress = lambda _: None
    findings: list[Finding] = field(default_factory=list)

    def run(self, tables: Sequence[str] = (), deep: bool = False, against: BackupStore | None = None) -> VerifyReport:
        """Check everything, or only some tables.

        Args:
            deep: also read all data.
            against: compare with the newest backup.
        """
        begin = time.monotonic()
        only = {TableName.parse(table) for table in tables}
        try:
            self.findings += [Finding(CORRUPT, "catalog", problem) for problem in self.parts.catalog.problems()]
            state = self.parts.catalog.dump_state()
        except HomeError as exc:
            finding = Finding(CORRUPT, "catalog", exc.message)
            return VerifyReport((finding,), 0, 0, 0, 0, time.monotonic() - begin)
        for table in only:
            self.tables.format_of(table)
        self.progress("Listing the files")
        stats = {stat.name: stat for stat in self.parts.warehouse.list()}
        warehouse = Warehouse(self.parts.warehouse, self.parts.files, self.parts.names, stats)
        is_clone = (self.parts.home / CLONE_FILE).exists()
        checks = TableChecks(warehouse, deep, is_clone)
        self._check_iceberg(state, checks, only)
        folders = hudi_folders(stats)
        self._check_hudi(warehouse, folders, only, deep)
        self._check_engines(only, deep)
        if not only:
            self.findings += self._check_runs(state)
            self.findings += self._unreachable(warehouse, checks.needed, folders, deep)
        if against is not None:
            self.findings += self._different(state, against)
        count = len(only) or len(state.main) + len(folders)
        files = len(checks.needed) if only else len(stats)
        return VerifyReport(
            tuple(dict.fromkeys(self.findings)),
            count,
            checks.snapshots,
            files,
            checks.total_bytes,
            time.monotonic() - begin,
        )

    # ---- tables -------------------------------------------------------------------------------------------------

    def _check_iceberg(self, state: CatalogState, checks: TableChecks, only: set[TableName]) -> None:
        self.progress("Checking the tables")
        seen: set[str] = set()
        for by, entry in state.entries():
            if entry.pointer not in seen and (not only or entry.table in only):
                seen.add(entry.pointer)
                checks.check(by, entry)
        checks.finish()
        self.findings += checks.findings
        self.findings += same_tables(state.entries(), checks.uuids)
        for logged in state.logged():
            if logged.pointer not in seen and (not only or logged.table in only):
                seen.add(logged.pointer)
                self._check_logged(checks, logged.by, logged.table, logged.pointer)

    def _check_logged(self, checks: TableChecks, by: str, table: TableName, pointer: str) -> None:
        """Check what only the log refers to: it may have expired, so a missing file is no damage."""
        name = checks.warehouse.names.of(pointer)
        checks.needed.add(name)
        if checks.warehouse.size(pointer) is None:
            detail = "its metadata file has expired or is missing, so the entry cannot be reverted"
            self.findings.append(Finding(DANGLING, pointer, detail, str(table), by, is_damage=False))
            return
        try:
            references = ReferenceReader(self.parts.files)
            checks.needed.update(checks.warehouse.names.of(file.uri) for file in references.table(pointer))
            checks.needed.update(checks.warehouse.names.of(uri) for uri in references.metadata(pointer).previous)
        except FileNotFoundError:
            pass  # a snapshot of it has expired
        except LakeError as exc:
            self.findings.append(Finding(CORRUPT, pointer, exc.message, str(table), by))

    def _check_hudi(self, warehouse: Warehouse, folders: Sequence[str], only: set[TableName], deep: bool) -> None:
        hudi = self.tables.formats.get("hudi")
        known = {str(name) for name in hudi.tables()} if hudi else set()
        for folder in folders:
            namespace, _, name = folder.rpartition("/")
            table = TableName(namespace.removesuffix(".db"), name)
            if hudi is None or (only and table not in only):
                continue
            if str(table) not in known:
                detail = "it is a Hudi table that the catalog does not have"
                self.findings.append(Finding(DANGLING, folder, detail, is_damage=False))
                continue
            self.findings += _hudi_findings(hudi, table, warehouse, folder, deep)

    def _check_engines(self, only: set[TableName], deep: bool) -> None:
        """Read a row, or with `deep` all rows, of every table on main with DuckDB."""
        self.progress("Reading the tables")
        damaged = {
            finding.table for finding in self.findings if finding.is_damage and finding.where.endswith(_METADATA)
        }
        for name, table_format in self.tables.all():
            if str(name) in damaged:
                # DuckDB ends the whole process on some damaged metadata.
                detail = "it was not read, because its metadata is damaged"
                self.findings.append(Finding(UNREADABLE, str(name), detail, str(name), MAIN))
            elif not only or name in only:
                try:
                    self._read(name, table_format, deep)
                except NotSupportedError:
                    continue  # only Spark reads it
                except LakeError as exc:
                    self.findings.append(Finding(UNREADABLE, str(name), f"DuckDB: {exc.message}", str(name), MAIN))

    def _read(self, name: TableName, table_format: TableFormat, deep: bool) -> None:
        scan = table_format.scan(name)
        if not deep:
            self.duckdb.query(f"SELECT * FROM {_CHECKED} LIMIT 1", {_CHECKED: scan}, "verify").rows()
            return
        query = f"SELECT count(*), bit_xor(hash({_CHECKED})) FROM {_CHECKED}"
        ((row_count, _),) = self.duckdb.query(query, {_CHECKED: scan}, "verify").rows()
        if scan.total_rows is not None and row_count != scan.total_rows:
            detail = f"DuckDB reads {row_count} rows, and the metadata states {scan.total_rows}"
            self.findings.append(Finding(UNREADABLE, str(name), detail, str(name), MAIN))

    # ---- the rest -----------------------------------------------------------------------------------------------

    def _check_runs(self, state: CatalogState) -> Iterator[Finding]:
        branches = {branch.ref.name for branch in state.branches}
        entries = {entry.id for entry in state.log} | {entry.commit.run for entry in state.log}
        for file in sorted((self.parts.home / "runs").glob("*.json")):
            try:
                record = json.loads(file.read_text())
                run, kind, branch = record["id"], record["state"], record["branch"]
            except (ValueError, KeyError, TypeError) as exc:
                yield Finding(CORRUPT, str(file), f"it is no record of a run: {exc}", ref=f"run {file.stem}")
                continue
            if kind == "kept" and branch not in branches:
                yield Finding(DANGLING, str(file), f"its branch {branch} does not exist", ref=f"run {run}")
            if kind == "published" and record.get("commit") and not {record["commit"], run} & entries:
                yield Finding(DANGLING, str(file), "the log has no publish of it", ref=f"run {run}")

    def _unreachable(
        self, warehouse: Warehouse, needed: set[str], folders: Sequence[str], deep: bool
    ) -> Iterator[Finding]:
        newest = (time.time() - _GRACE_S) * 1e9
        inside = tuple(f"{folder}/" for folder in folders)
        for name, stat in sorted(warehouse.stats.items()):
            is_young = stat.modified_ns > newest
            if name in needed or is_checksum(name) or name.startswith((_RAW, *inside)) or (is_young and not deep):
                continue
            what = "it was never finished" if name.endswith(UNFINISHED) else "nothing refers to it"
            what += "; it is new: a writer may be about to commit it" if is_young else ""
            yield Finding(UNREACHABLE, warehouse.names.uri(name), what, is_damage=False)

    def _different(self, state: CatalogState, store: BackupStore) -> Iterator[Finding]:
        store.check()
        source = BackupSource(store, store.manifest())
        same_kind = source.manifest.catalog == self.parts.kind
        here = Side(state, self.parts.names, self.parts.files.read)
        for difference in differences(side_of(source), here, same_kind):
            yield Finding(DIFFERENT, store.tree.uri, difference.what, difference.table, difference.ref)


def _hudi_findings(
    hudi: TableFormat, table: TableName, warehouse: Warehouse, folder: str, deep: bool
) -> Iterator[Finding]:
    try:
        slices = hudi.file_slices(table)
        needed = {path for file_slice in slices if file_slice.is_latest for path in file_slice.files}
        hudi.history(table)
    except LakeError as exc:
        yield Finding(UNREADABLE, folder, exc.message, str(table), MAIN)
        return
    except Exception as exc:  # noqa: BLE001 - hudi-rs raises bare Exceptions
        yield Finding(CORRUPT, folder, f"its timeline cannot be read: {exc}", str(table), MAIN)
        return
    inside = [name for name in warehouse.stats if name.startswith(f"{folder}/") and name.endswith(".parquet")]
    for name in sorted(f"{folder}/{path}" for path in needed):
        if warehouse.size(warehouse.names.uri(name)) is None:
            yield Finding(MISSING, name, "there is no such file", str(table), MAIN)
    written = {path for file_slice in slices for path in file_slice.files}
    first = min((file_slice.instant for file_slice in slices), default="")
    for name in inside:
        if deep and name.removeprefix(f"{folder}/") not in written and instant_of(name) >= first:
            detail = "no completed instant wrote it"
            yield Finding(UNREACHABLE, warehouse.names.uri(name), detail, str(table), MAIN, is_damage=False)
        if problem := check_data(warehouse, warehouse.names.uri(name), "PARQUET", -1, deep):
            yield Finding(problem[0], warehouse.names.uri(name), problem[1], str(table), MAIN)
