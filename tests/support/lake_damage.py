"""Ways to damage a lake, each with what `lake verify` must say of it."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pyarrow import parquet

from lakehouse.core.files import local_path
from lakehouse.core.names import MAIN, TableName
from lakehouse.formats.iceberg import avro
from tests.support.small_lake import SmallLake

ORDERS, ITEMS = TableName("shop", "orders"), TableName("shop", "items")


@dataclass(frozen=True)
class Damage:
    """One kind of damage: it is planted by a function, which returns what the finding must name."""

    id: str
    plant: Callable[[SmallLake], str]
    kind: str
    is_damage: bool = True
    deep: bool = False


def metadata(small: SmallLake, table: TableName = ORDERS, branch: str = MAIN) -> Path:
    pointer = small.catalog.on(branch).pointer(table)
    assert pointer is not None
    return local_path(pointer)


def manifest_list(small: SmallLake) -> Path:
    raw = json.loads(metadata(small).read_text())
    current = next(snapshot for snapshot in raw["snapshots"] if snapshot["snapshot-id"] == raw["current-snapshot-id"])
    return local_path(current["manifest-list"])


def manifest(small: SmallLake) -> Path:
    return local_path(avro.read(manifest_list(small).read_bytes()).records[0]["manifest_path"])


def data(small: SmallLake) -> Path:
    return local_path(avro.read(manifest(small).read_bytes()).records[0]["data_file"]["file_path"])


def _remove(file: Callable[[SmallLake], Path]) -> Callable[[SmallLake], str]:
    def plant(small: SmallLake) -> str:
        path = file(small)
        path.unlink()
        return path.name

    return plant


def _cut(file: Callable[[SmallLake], Path]) -> Callable[[SmallLake], str]:
    def plant(small: SmallLake) -> str:
        path = file(small)
        path.write_bytes(path.read_bytes()[:-40])
        return path.name

    return plant


def _flip(file: Callable[[SmallLake], Path], at: Callable[[bytes], int], count: int = 16) -> Callable[[SmallLake], str]:
    """Change bytes, but not the length."""

    def plant(small: SmallLake) -> str:
        path = file(small)
        content = bytearray(path.read_bytes())
        start = at(bytes(content))
        content[start : start + count] = bytes(255 - byte for byte in content[start : start + count])
        path.write_bytes(content)
        return path.name

    return plant


def _first_page(content: bytes) -> int:
    import io

    column = parquet.ParquetFile(io.BytesIO(content)).metadata.row_group(0).column(0)
    return int(column.dictionary_page_offset or column.data_page_offset)


def _change_metadata(**changes: object) -> Callable[[SmallLake], str]:
    def plant(small: SmallLake) -> str:
        path = metadata(small)
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
        return path.name

    return plant


def _execute(*statements: str, names: str) -> Callable[[SmallLake], str]:
    def plant(small: SmallLake) -> str:
        with sqlite3.connect(small.home / "catalog.db") as db:
            for statement in statements:
                db.execute(statement)
        db.close()
        return names

    return plant


def _statistics(small: SmallLake) -> str:
    gone = f"{metadata(small).parent}/ndv.puffin"
    described = {"snapshot-id": 1, "statistics-path": gone, "file-size-in-bytes": 9, "file-footer-size-in-bytes": 9}
    return _change_metadata(statistics=[{**described, "blob-metadata": []}])(small) and "ndv.puffin"


def _checksum(small: SmallLake) -> str:
    """A byte in a key of the manifest's header: only Hadoop's checksum tells."""
    path = manifest(small)
    content = bytearray(path.read_bytes())
    sums = b"".join(zlib.crc32(content[at : at + 512]).to_bytes(4, "big") for at in range(0, len(content), 512))
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\x00" + struct.pack(">i", 512) + sums)
    at = content.index(b"partition-spec-id")
    content[at] ^= 1
    path.write_bytes(content)
    return path.name


def _log_entry(small: SmallLake) -> str:
    """The state before the publish, which no branch and no tag has."""
    (change,) = small.catalog.log(limit=10)[0].tables
    with sqlite3.connect(small.home / "catalog.db") as db:
        for table in ("lake_branch_tables", "lake_tag_tables", "iceberg_tables"):
            db.execute(f"DELETE FROM {table} WHERE metadata_location = ?", (change.before,))
    db.close()
    assert change.before is not None
    local_path(change.before).unlink()
    return local_path(change.before).name


def _unreachable(small: SmallLake) -> str:
    path = data(small).with_name("orphan.parquet")
    path.write_bytes(data(small).read_bytes())
    os.utime(path, (1, 1))
    return path.name


def _run(**changes: object) -> Callable[[SmallLake], str]:
    def plant(small: SmallLake) -> str:
        path = small.home / "runs" / "r1.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}) if changes else "{")
        return path.name

    return plant


def _elsewhere(small: SmallLake) -> str:
    return _change_metadata(location=f"file://{small.home}/elsewhere/orders")(small)


def _catalog(small: SmallLake) -> str:
    file = small.home / "catalog.db"
    file.write_bytes(b"SQLite format 3\x00" + b"\xff" * 8192)
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)
    return "catalog"


def _branch_metadata(small: SmallLake) -> Path:
    return metadata(small, ORDERS, "exp")


def _tag_metadata(small: SmallLake) -> Path:
    pointers = small.catalog.tag_pointers("v1")
    assert pointers is not None
    return local_path(pointers[ORDERS])


def _dropped_metadata(small: SmallLake) -> Path:
    return local_path(small.catalog.dump_state().dropped[0].entry.pointer)


_MARK: Callable[[bytes], int] = lambda content: len(content) - 16  # noqa: E731 - the mark at the end of a block
_SWAP = (
    "UPDATE iceberg_tables SET metadata_location = (SELECT metadata_location FROM iceberg_tables"
    " WHERE catalog_name = 'lake' AND table_name = 'orders') WHERE catalog_name = 'lake' AND table_name = 'items'"
)

DAMAGES = (
    Damage("metadata-missing", _remove(metadata), "missing"),
    Damage("metadata-cut", _cut(metadata), "corrupt"),
    Damage("metadata-of-a-branch-missing", _remove(_branch_metadata), "missing"),
    Damage("metadata-of-a-tag-missing", _remove(_tag_metadata), "missing"),
    Damage("metadata-of-a-dropped-table-missing", _remove(_dropped_metadata), "missing"),
    Damage("metadata-of-a-log-entry-missing", _log_entry, "dangling", is_damage=False),
    Damage("current-snapshot-unknown", _change_metadata(**{"current-snapshot-id": 7}), "dangling"),
    Damage("schema-unknown", _change_metadata(**{"current-schema-id": 9}), "corrupt"),
    Damage("statistics-missing", _statistics, "missing"),
    Damage("manifest-list-missing", _remove(manifest_list), "missing"),
    Damage("manifest-list-changed", _flip(manifest_list, _MARK), "corrupt"),
    Damage("manifest-missing", _remove(manifest), "missing"),
    Damage("manifest-cut", _cut(manifest), "truncated"),
    Damage("manifest-changed", _flip(manifest, _MARK), "corrupt"),
    Damage("manifest-does-not-match-its-checksum", _checksum, "corrupt"),
    Damage("data-missing", _remove(data), "missing"),
    Damage("data-cut", _cut(data), "truncated"),
    Damage("data-footer-changed", _flip(data, lambda content: len(content) - 24), "corrupt"),
    Damage("data-page-changed", _flip(data, _first_page), "corrupt", deep=True),
    Damage("table-elsewhere", _elsewhere, "misplaced", is_damage=False),
    Damage("pointers-mixed-up", _execute(_SWAP, names=""), "misplaced"),
    Damage("file-unreachable", _unreachable, "unreachable", is_damage=False),
    Damage("run-without-its-branch", _run(branch="run_gone"), "dangling"),
    Damage("run-without-its-publish", _run(id="r9", state="published", commit="99"), "dangling"),
    Damage("run-unreadable", _run(), "corrupt"),
    Damage("tag-without-a-row", _execute("DELETE FROM lake_tags WHERE name = 'v1'", names="catalog"), "corrupt"),
    Damage(
        "branch-without-a-row", _execute("DELETE FROM lake_branches WHERE name = 'exp'", names="catalog"), "corrupt"
    ),
    Damage(
        "drop-without-a-pointer",
        _execute("DELETE FROM iceberg_tables WHERE catalog_name = 'lake__dropped'", names="catalog"),
        "corrupt",
    ),
    Damage("catalog-damaged", _catalog, "corrupt"),
)
