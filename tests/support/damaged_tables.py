"""A lake without Spark, writers that damage its tables, and a maintainer whose clock is ahead."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow
from pyarrow import parquet
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from lakehouse.core.catalog import Catalog
from lakehouse.core.files import LOCAL, local_path
from lakehouse.core.metadata_file import load_metadata
from lakehouse.core.names import TableName
from lakehouse.core.properties import new_table_properties
from lakehouse.core.requests import MaintainRequest
from lakehouse.lake import Lake
from lakehouse.maintenance.maintain import Maintainer
from lakehouse.maintenance.report import MaintenanceReport
from lakehouse.pyiceberg_internals import DeleteManifestWriter
from tests.support.light_runs import pyiceberg

T = "shop.sales"
NAME = TableName.parse(T)
SCHEMA = pyarrow.schema([("id", pyarrow.int64()), ("day", pyarrow.string())])
ICEBERG = Schema(NestedField(1, "id", LongType()), NestedField(2, "day", StringType()))
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
FUTURE_DAYS = 60


def catalog_of(lake: Lake) -> Catalog:
    return lake.refs.branches.catalog


def rows(ids: Iterable[int], day: str = "mon") -> pyarrow.Table:
    listed = list(ids)
    return pyarrow.table({"id": listed, "day": [day] * len(listed)}, schema=SCHEMA)


def create(lake: Lake, table: str = T, branch: str = "main", **options: Any) -> Any:
    """A table as PyIceberg creates it."""
    theirs = pyiceberg(lake, branch)
    theirs.create_namespace_if_not_exists(table.partition(".")[0])
    return theirs.create_table(table, schema=ICEBERG, properties=new_table_properties(), **options)


def append(lake: Lake, ids: Iterable[int], table: str = T, branch: str = "main", day: str = "mon") -> None:
    theirs = pyiceberg(lake, branch)
    theirs.load_table(table).append(rows(ids, day))
    theirs.close()


def delete(lake: Lake, condition: str, table: str = T, branch: str = "main") -> None:
    """Copy-on-write, as PyIceberg deletes."""
    theirs = pyiceberg(lake, branch)
    theirs.load_table(table).delete(condition)
    theirs.close()


def damaged(lake: Lake, files: int = 6, table: str = T) -> None:
    """A table of so many files with one row each: 0, 1, 2, …"""
    create(lake, table)
    for number in range(files):
        append(lake, [number], table)


def ids(lake: Lake, table: str = T, **options: str) -> list[int]:
    return [row[0] for row in lake.sql(f"select id from {table} order by id", **options).rows()]


def opened(lake: Lake, table: str = T, branch: str = "main") -> Any:
    """PyIceberg's table at the present pointer."""
    pointer = catalog_of(lake).on(branch).pointer(TableName.parse(table))
    assert pointer is not None
    return StaticTable.from_metadata(pointer)


def data_files(lake: Lake, table: str = T, branch: str = "main") -> list[Path]:
    paths = [task.file.file_path for task in opened(lake, table, branch).scan().plan_files()]
    return sorted(local_path(path) for path in paths)


def delete_by_position(lake: Lake, ids: Sequence[int], table: str = T) -> None:
    """Merge-on-read, as Spark deletes: one delete file for each data file with such a row."""
    name, catalog = TableName.parse(table), catalog_of(lake)
    pointer = catalog.pointer(name)
    assert pointer is not None
    theirs = StaticTable.from_metadata(pointer)
    raw = load_metadata(pointer, lake._components.maintainer().files)
    snapshot, sequence = uuid.uuid4().int >> 66, raw["last-sequence-number"] + 1
    folder = pointer.rpartition("/")[0]
    entries = []
    for task in theirs.scan().plan_files():
        content = parquet.read_table(local_path(task.file.file_path)).column("id").to_pylist()
        places = [place for place, id in enumerate(content) if id in ids]
        if places:
            entries.append(_delete_file(theirs, task.file, places, snapshot))
    output = theirs.io.new_output(f"{folder}/{uuid.uuid4()}-m0.avro")
    with DeleteManifestWriter(theirs.spec(), theirs.schema(), output, snapshot, "gzip") as writer:
        for entry in entries:
            writer.add(entry)
    place = f"{folder}/snap-{snapshot}-{uuid.uuid4()}.avro"
    current = theirs.current_snapshot()
    with write_manifest_list(2, theirs.io.new_output(place), snapshot, current.snapshot_id, sequence, "gzip") as listed:
        listed.add_manifests([*current.manifests(theirs.io), writer.to_manifest_file()])
    summary = dict(raw["snapshots"][-1]["summary"])
    summary |= {"operation": "delete", "added-position-deletes": str(len(ids))}
    for key, more in (("total-delete-files", len(entries)), ("total-position-deletes", len(ids))):
        summary[key] = str(int(summary.get(key, 0)) + more)
    now = max(raw["last-updated-ms"] + 1, int(datetime.now(UTC).timestamp() * 1000))
    raw["snapshots"].append(
        {
            "snapshot-id": snapshot,
            "parent-snapshot-id": current.snapshot_id,
            "sequence-number": sequence,
            "timestamp-ms": now,
            "manifest-list": place,
            "summary": summary,
            "schema-id": raw["current-schema-id"],
        }
    )
    raw |= {"current-snapshot-id": snapshot, "last-sequence-number": sequence, "last-updated-ms": now}
    raw["refs"]["main"]["snapshot-id"] = snapshot
    raw["snapshot-log"].append({"snapshot-id": snapshot, "timestamp-ms": now})
    new = f"{folder}/00099-{uuid.uuid4()}.metadata.json"
    local_path(new).write_text(json.dumps(raw))
    assert catalog.swap_pointer(name, pointer, new)


def _delete_file(table: Any, file: Any, places: Sequence[int], snapshot: int) -> Any:
    path = local_path(file.file_path).parent / f"{uuid.uuid4()}-deletes.parquet"
    schema = pyarrow.schema(
        [
            pyarrow.field("file_path", pyarrow.string(), False, {"PARQUET:field_id": "2147483546"}),
            pyarrow.field("pos", pyarrow.int64(), False, {"PARQUET:field_id": "2147483545"}),
        ]
    )
    parquet.write_table(
        pyarrow.table({"file_path": [file.file_path] * len(places), "pos": list(places)}, schema=schema), path
    )
    described = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=f"file://{path}",
        file_format=FileFormat.PARQUET,
        partition=file.partition or Record(),
        record_count=len(places),
        file_size_in_bytes=path.stat().st_size,
        lower_bounds={2147483546: file.file_path.encode()},
        upper_bounds={2147483546: file.file_path.encode()},
    )
    described.spec_id = table.spec().spec_id
    return ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=snapshot, data_file=described)


def maintainer(lake: Lake, days: float = 0, **settings: Any) -> Maintainer:
    """The lake's maintainer with its clock some days ahead, and other settings."""
    own = lake._components.maintainer()
    return replace(
        own,
        settings=replace(own.settings, **settings),
        now=lambda: datetime.now(UTC) + timedelta(days=days),
    )


def expire_all(lake: Lake, **settings: Any) -> MaintenanceReport:
    """Maintain in a far future: everything that nothing refers to goes at once."""
    options = {"keep_snapshots": 1, "delete_after_hours": 0, "undrop_days": 10_000, **settings}
    return maintainer(lake, FUTURE_DAYS, **options).run(MaintainRequest())


def before_publish(maintained: Maintainer, action: Callable[[], None]) -> Maintainer:
    """The maintainer, but another writer acts right before its first publish."""
    done: list[bool] = []
    publish = maintained.committer.publish

    def first_act(branch: str, commit: Any) -> Any:
        if not done:
            done.append(True)
            action()
        return publish(branch, commit)

    return replace(maintained, committer=replace(maintained.committer, publish=first_act))


def stored_files(lake: Lake) -> set[str]:
    folder = lake.folder / "warehouse"
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def orphan_of(lake: Lake, content: bytes = b"PAR1", name: str = "orphan.parquet") -> Path:
    """A file that a writer left behind, in the folder of the table."""
    file = data_files(lake)[0].parent / name
    file.write_bytes(content)
    return file


def many_tables(lake: Lake, count: int) -> None:
    """So many tables of ten snapshots, as their metadata files alone."""
    damaged(lake, 1)
    raw = load_metadata(opened(lake).metadata_location, LOCAL)
    first = raw["snapshots"][0]
    numbers = range(first["snapshot-id"], first["snapshot-id"] + 10)
    raw["snapshots"] = [{**first, "snapshot-id": number, "parent-snapshot-id": number - 1} for number in numbers]
    raw["current-snapshot-id"] = raw["snapshots"][-1]["snapshot-id"]
    folder = lake.folder / "warehouse" / "many"
    folder.mkdir()
    pointers = []
    for number in range(count):
        file = folder / f"{number}.metadata.json"
        file.write_text(json.dumps({**raw, "table-uuid": str(uuid.uuid4())}))
        pointers.append(("lake", "many", f"t{number}", f"file://{file}", None, "TABLE"))
    with sqlite3.connect(lake.folder / "catalog.db") as db:
        db.executemany("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?, ?, ?)", pointers)
