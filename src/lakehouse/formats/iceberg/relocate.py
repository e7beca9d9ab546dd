"""Rewrite the paths in the metadata of Iceberg tables, for tables whose files have moved.

Paths are in metadata files, manifest lists, manifests, position delete files and deletion vectors, each of which states the
length of the ones below it. So a table is rewritten from its delete files up.
"""

from __future__ import annotations

import copy
import io
import json
import struct
from collections.abc import Callable
from typing import Any

from lakehouse.core.dataclass import dataclass
from lakehouse.core.errors import NotSupportedError
from lakehouse.core.metadata_file import compressed_like, parse_metadata
from lakehouse.formats.iceberg import avro

Move = Callable[[str], str]

#: The content of a data file, as manifests number it.
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
#: The field id of the column `file_path` in position delete files.
_FILE_PATH_ID = 2147483546
_FILE_PATH = "file_path"
#: Properties of a table that hold locations.
PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_PUFFIN = b"PFA1"
_PUFFIN_TAIL = 12  # payload size, flags, magic


@dataclass(frozen=True)
class MovedDeletes:
    """A position delete file after its paths were rewritten."""

    content: bytes
    lowest: str = ""
    highest: str = ""
    """The first and the last path in it; empty for deletion vectors."""


def move_metadata(uri: str, content: bytes, move: Move) -> bytes:
    """Rewrite the paths in a metadata file of a table or a view."""
    raw = move_table(parse_metadata(uri, content), move)
    return compressed_like(content, json.dumps(raw).encode())


def move_table(raw: dict[str, Any], move: Move) -> dict[str, Any]:
    """Rewrite the paths in the metadata of a table or a view."""
    raw = copy.deepcopy(raw)
    raw["location"] = move(raw["location"])
    for name in PATH_PROPERTIES:
        if name in raw.get("properties", {}):
            raw["properties"][name] = move(raw["properties"][name])
    for listed, key in (
        ("snapshots", "manifest-list"),
        ("metadata-log", "metadata-file"),
        ("statistics", "statistics-path"),
        ("partition-statistics", "statistics-path"),
    ):
        for entry in raw.get(listed) or ():
            if key in entry:
                entry[key] = move(entry[key])
    for snapshot in raw.get("snapshots") or ():
        if "manifests" in snapshot:  # version 1 without a manifest list
            snapshot["manifests"] = [move(manifest) for manifest in snapshot["manifests"]]
    return raw


def move_manifest_list(content: bytes, move: Move, length_of: Callable[[str], int]) -> bytes:
    """Rewrite the paths in a manifest list.

    Args:
        length_of: returns the length that a manifest has after it was rewritten, by its path before.
    """
    manifest_list = avro.read(content)
    for record in manifest_list.records:
        record["manifest_length"] = length_of(record["manifest_path"])
        record["manifest_path"] = move(record["manifest_path"])
    return avro.write(manifest_list)


def move_manifest(content: bytes, move: Move, deletes_of: Callable[[str, str], MovedDeletes | None]) -> bytes:
    """Rewrite the paths in a manifest.

    Args:
        deletes_of: returns a position delete file after it was rewritten, by its path before and its format; None for one
            that is gone, because the snapshot removed it.
    """
    manifest = avro.read(content)
    for entry in manifest.records:
        file = entry["data_file"]
        if file.get("content", DATA) == POSITION_DELETES:
            moved = deletes_of(file["file_path"], file["file_format"])
            if moved is not None:
                _describe(file, moved)
        if file.get("referenced_data_file") is not None:
            file["referenced_data_file"] = move(file["referenced_data_file"])
        file["file_path"] = move(file["file_path"])
    return avro.write(manifest)


def _describe(file: dict[str, Any], moved: MovedDeletes) -> None:
    """Set the size and the bounds of a delete file in its manifest entry."""
    file["file_size_in_bytes"] = len(moved.content)
    for name, value in (("lower_bounds", moved.lowest), ("upper_bounds", moved.highest)):
        for bound in file.get(name) or ():
            if bound["key"] == _FILE_PATH_ID:
                bound["value"] = value.encode()


def move_deletes(content: bytes, file_format: str, move: Move) -> MovedDeletes:
    """Rewrite the paths in a position delete file or in the footer of a file of deletion vectors."""
    if file_format.upper() == "PUFFIN":
        return MovedDeletes(_move_puffin(content, move))
    if file_format.upper() != "PARQUET":
        raise NotSupportedError(
            f"Position delete files of the format {file_format} cannot be moved.",
            "Compact the table first, so that it has none: lake maintain",
        )
    return _move_parquet_deletes(content, move)


def _move_parquet_deletes(content: bytes, move: Move) -> MovedDeletes:
    import pyarrow
    from pyarrow import compute, parquet

    table = parquet.read_table(io.BytesIO(content))
    at = table.schema.get_field_index(_FILE_PATH)
    paths = table.column(at).unique().to_pylist()
    moved = {path: move(path) for path in paths}
    column = pyarrow.array([moved[path] for path in table.column(at).to_pylist()], pyarrow.string())
    field = table.schema.field(at)
    table = table.set_column(at, field.with_type(pyarrow.string()), column)
    # Readers expect the order of (file_path, pos). Paths with different prefixes may sort differently after the move.
    order = compute.sort_indices(table, [(_FILE_PATH, "ascending"), ("pos", "ascending")])
    out = io.BytesIO()
    parquet.write_table(table.take(order), out, compression="zstd", store_schema=False)
    ordered = sorted(moved.values())
    return MovedDeletes(out.getvalue(), ordered[0] if ordered else "", ordered[-1] if ordered else "")


def _move_puffin(content: bytes, move: Move) -> bytes:
    """Rewrite the footer. The blobs before it keep their offsets, which manifests state."""
    payload_size, flags = struct.unpack("<iI", content[-_PUFFIN_TAIL:-4])
    start = len(content) - _PUFFIN_TAIL - payload_size
    if content[-4:] != _PUFFIN or start < 8 or content[start - 4 : start] != _PUFFIN:
        raise ValueError("it is not a Puffin file")
    if flags:
        raise NotSupportedError("Puffin files with a compressed footer cannot be moved.", "Compact the table first.")
    footer = json.loads(content[start : start + payload_size])
    for blob in footer["blobs"]:
        properties = blob.get("properties", {})
        if "referenced-data-file" in properties:
            properties["referenced-data-file"] = move(properties["referenced-data-file"])
    payload = json.dumps(footer).encode()
    return content[:start] + payload + struct.pack("<iI", len(payload), 0) + _PUFFIN
