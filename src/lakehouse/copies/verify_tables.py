"""Check Iceberg tables: every metadata file that a ref has, and everything below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import partial
from typing import Any

from lakehouse.copies.findings import CORRUPT, DANGLING, MISPLACED, MISSING, Finding
from lakehouse.copies.verify_files import Problem, Warehouse, check_data
from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import TableError
from lakehouse.core.metadata_file import parse_metadata
from lakehouse.core.state import TableEntry
from lakehouse.formats.iceberg import avro, relocate
from lakehouse.formats.iceberg.avro import AvroError
from lakehouse.formats.iceberg.references import normalized

_THREADS = 8
_DELETED = 2
#: The counts of a manifest list, by the status of the entries that they count.
_COUNTS = (("existing_files_count", 0), ("added_files_count", 1), ("deleted_files_count", 2))
_VERSIONED = (("schemas", "schema-id", "current-schema-id"), ("partition-specs", "spec-id", "default-spec-id"))


@dataclass(frozen=True)
class _Owner:
    """The table that a file belongs to."""

    table: str
    ref: str
    folders: tuple[str, ...]
    """Where its files may be."""


@dataclass
class TableChecks:
    """Checks tables; reads each file once."""

    warehouse: Warehouse
    deep: bool = False
    anywhere: bool = False
    """Files may be outside the folders of their tables: the lake is a clone."""
    findings: list[Finding] = field(default_factory=list)
    needed: set[str] = field(default_factory=set)
    """The names of all files that were found in metadata."""
    snapshots: int = 0
    total_bytes: int = 0
    uuids: dict[str, str] = field(default_factory=dict)
    """The UUID of each table by its pointer."""
    _manifests: dict[str, dict[int, int] | None] = field(default_factory=dict)
    _work: list[Callable[[], Finding | None]] = field(default_factory=list)

    def check(self, by: str, entry: TableEntry) -> None:
        """Check a metadata file and all that it refers to; files with data are checked by `finish`."""
        owner = _Owner(str(entry.table), by, ())
        content = self._read(entry.pointer, owner)
        if content is None:
            return
        try:
            raw = parse_metadata(entry.pointer, content)
            location = raw["location"]
        except (TableError, KeyError) as exc:
            self._add(owner, entry.pointer, (CORRUPT, f"it is no metadata file: {exc}"))
            return
        self.needed.update(self.warehouse.names.of(logged["metadata-file"]) for logged in raw.get("metadata-log") or ())
        places = [raw.get("properties", {}).get(name) for name in relocate.PATH_PROPERTIES]
        owner = _Owner(
            owner.table, by, tuple(normalized(folder).rstrip("/") + "/" for folder in (location, *places) if folder)
        )
        self._check_place(owner, entry.pointer)
        self.uuids[entry.pointer] = str(raw.get("table-uuid") or raw.get("view-uuid") or "")
        if "view-uuid" in raw:
            return
        self._check_ids(owner, entry.pointer, raw)
        for statistics in (*(raw.get("statistics") or ()), *(raw.get("partition-statistics") or ())):
            self._check_file(owner, statistics["statistics-path"], statistics.get("file-size-in-bytes", -1))
        for snapshot in raw.get("snapshots") or ():
            self._check_snapshot(owner, snapshot)

    def finish(self) -> None:
        """Check the files with data, several at once."""
        with ThreadPoolExecutor(_THREADS) as threads:
            self.findings += [finding for finding in threads.map(lambda work: work(), self._work) if finding]
        self._work.clear()

    # ---- metadata -----------------------------------------------------------------------------------------------

    def _check_ids(self, owner: _Owner, uri: str, raw: Mapping[str, Any]) -> None:
        known = {snapshot["snapshot-id"] for snapshot in raw.get("snapshots") or ()}
        wanted = {name: ref["snapshot-id"] for name, ref in (raw.get("refs") or {}).items()}
        if raw.get("current-snapshot-id") not in (None, -1):
            wanted["its current snapshot"] = raw["current-snapshot-id"]
        for name, snapshot in wanted.items():
            if snapshot not in known:
                self._add(owner, uri, (DANGLING, f"{name} is snapshot {snapshot}, which it does not have"))
        for listed, id_name, current in _VERSIONED:
            if listed in raw and raw.get(current) not in {version[id_name] for version in raw[listed]}:
                self._add(owner, uri, (CORRUPT, f"{current} is {raw.get(current)}, which it does not have"))

    def _check_snapshot(self, owner: _Owner, snapshot: Mapping[str, Any]) -> None:
        uri = snapshot.get("manifest-list")
        if not uri or self.warehouse.names.of(uri) in self.needed:
            return
        self.snapshots += 1
        for record in self._records(uri, owner, "manifest list") or ():
            self._check_manifest(owner, record)

    def _check_manifest(self, owner: _Owner, described: Mapping[str, Any]) -> None:
        uri = described["manifest_path"]
        if uri not in self._manifests:
            entries = self._records(uri, owner, "manifest", described["manifest_length"])
            self._manifests[uri] = None if entries is None else Counter(entry["status"] for entry in entries)
            for entry in entries or ():
                if entry["status"] != _DELETED:
                    self._plan_data(owner, entry["data_file"])
        counts = self._manifests[uri]
        stated = {status: described.get(name) for name, status in _COUNTS}
        if counts is not None and any(count not in (None, -1, counts.get(at, 0)) for at, count in stated.items()):
            self._add(owner, uri, (CORRUPT, "it has another number of files than its manifest list states"))

    def _records(self, uri: str, owner: _Owner, kind: str, size: int = -1) -> Sequence[dict[str, Any]] | None:
        """Return the records of an Avro file; None, with a finding, if it cannot be read."""
        content = self._read(uri, owner, size)
        if content is None:
            return None
        try:
            return avro.read(content).records
        except AvroError as exc:
            self._add(owner, uri, (CORRUPT, f"it is no {kind}: {exc}"))
            return None

    def _plan_data(self, owner: _Owner, file: Mapping[str, Any]) -> None:
        uri, name = file["file_path"], self.warehouse.names.of(file["file_path"])
        if name in self.needed:
            return
        self.needed.add(name)
        self._check_place(owner, uri)
        size, rows = file["file_size_in_bytes"], file["record_count"]
        self.total_bytes += size
        if file.get("content", relocate.DATA) != relocate.DATA and file["file_format"].upper() == "PUFFIN":
            rows = -1
        self._work.append(partial(self._check_data, owner, uri, size, file["file_format"], rows))

    def _check_data(self, owner: _Owner, uri: str, size: int, file_format: str, rows: int) -> Finding | None:
        problem = self.warehouse.check(uri, size) or check_data(self.warehouse, uri, file_format, rows, self.deep)
        return _finding(owner, uri, problem) if problem else None

    # ---- files --------------------------------------------------------------------------------------------------

    def _read(self, uri: str, owner: _Owner, size: int = -1) -> bytes | None:
        """Return the content of a small file; None, with a finding, if it is missing, truncated or changed."""
        self.needed.add(self.warehouse.names.of(uri))
        problem = self.warehouse.check(uri, size) or self.warehouse.check_sum(uri)
        if problem is None:
            try:
                content = self.warehouse.files.read(uri)
                self.total_bytes += len(content)
                return content
            except FileNotFoundError:
                problem = MISSING, "there is no such file"
        self._add(owner, uri, problem)
        return None

    def _check_file(self, owner: _Owner, uri: str, size: int) -> None:
        self.needed.add(self.warehouse.names.of(uri))
        if problem := self.warehouse.check(uri, size):
            self._add(owner, uri, problem)

    def _check_place(self, owner: _Owner, uri: str) -> None:
        if not self.anywhere and not normalized(uri).startswith(owner.folders):
            self.findings.append(
                Finding(MISPLACED, uri, f"it is outside {owner.folders[0]}", owner.table, owner.ref, is_damage=False)
            )

    def _add(self, owner: _Owner, uri: str, problem: Problem) -> None:
        self.findings.append(_finding(owner, uri, problem))


def _finding(owner: _Owner, uri: str, problem: Problem) -> Finding:
    return Finding(problem[0], uri, problem[1], owner.table, owner.ref)


def same_tables(entries: Iterator[tuple[str, TableEntry]], uuids: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the tables of one branch or tag that are the same table under two names: a pointer was mixed up."""
    seen: dict[tuple[str, str], TableEntry] = {}
    for by, entry in entries:
        uuid = uuids.get(entry.pointer, "")
        if not uuid or by == "dropped":
            continue
        first = seen.setdefault((by, uuid), entry)
        if first.table != entry.table:
            yield Finding(MISPLACED, entry.pointer, f"it is a metadata file of {first.table}", str(entry.table), by)
