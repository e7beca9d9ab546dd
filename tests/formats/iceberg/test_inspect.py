"""The metadata of an Iceberg table as a tree: every layer with its paths, counts and bounds, and the content of its files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType, StructType, TimestampType
from tests.conftest import cache_only
from tests.support.damaged_tables import catalog_of, delete_by_position

from lakehouse.config.load import load_settings
from lakehouse.core.errors import NotFoundError, TableError, UnknownChoiceError, WhenError
from lakehouse.core.files import local_path
from lakehouse.core.inspection import MetadataNode
from lakehouse.core.names import TableName
from lakehouse.engine_config import snippet
from lakehouse.lake import Lake
from lakehouse.lake.assemble import assemble

SCHEMA = Schema(
    NestedField(1, "id", IntegerType(), required=False),
    NestedField(2, "at", TimestampType(), required=False),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "home", StructType(NestedField(5, "zip", StringType(), required=False)), required=False),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, DayTransform(), "at_day"))


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """A lake with `shop.visits`: partitioned by day, three snapshots, four schemas; the last snapshot deletes a row by position."""
    home = tmp_path_factory.mktemp("inspect") / "lake"
    settings = load_settings({"home": home}, folder=home.parent, environ=cache_only())
    with assemble(settings) as lake:
        names: dict[str, Any] = {}
        exec(snippet("pyiceberg", settings), names)  # noqa: S102 - what users are told to run
        catalog = names["catalog"]
        catalog.create_namespace("shop")
        table = catalog.create_table("shop.visits", SCHEMA, partition_spec=BY_DAY)
        table.append(_rows(SCHEMA, [1, 2], "2026-01-14", "Ann"))
        with table.update_schema() as update:
            update.add_column("city", StringType(), "where")
        with table.update_schema() as update:
            update.rename_column("name", "full_name")
            update.update_column("id", LongType())
            update.add_column(("home", "street"), StringType())
        table.append(_rows(table.schema(), [3, 4], "2026-01-15", None))
        with table.update_schema() as update:
            update.delete_column("city")
        catalog.close()
        delete_by_position(lake, [3], "shop.visits")
        yield lake


def _rows(schema: Schema, ids: list[int], day: str, name: str | None) -> Any:
    import pyarrow
    from pyiceberg.io.pyarrow import schema_to_pyarrow

    shape = schema_to_pyarrow(schema, include_field_ids=False)
    values = {"id": ids, "at": [f"{day}T12:00:00"] * len(ids)}
    columns = [
        pyarrow.array(values.get(column, [name] * len(ids)) if column != "home" else [None] * len(ids))
        for column in shape.names
    ]
    return pyarrow.table([array.cast(kind) for array, kind in zip(columns, shape.types, strict=True)], shape)


def children(node: MetadataNode, *kinds: str) -> list[MetadataNode]:
    """The nodes of some kinds below a node, at any depth."""
    below = [descendant for child in node.children for descendant in [child, *children(child)]]
    return [node for node in below if not kinds or node.kind in kinds]


def test_every_layer_is_there_with_its_path_counts_and_bounds(lake: Lake) -> None:
    tree = lake.inspect("shop.visits", layer="files")
    assert (tree.kind, tree.path, tree.facts["snapshots"]) == (
        "metadata",
        catalog_of(lake).pointer(TableName.parse("shop.visits")),
        3,
    )
    newest, *older = children(tree, "snapshot")
    assert newest.facts["is_current"] and [node.left_out for node in older] == [1, 1]
    (manifest_list,) = newest.children
    files = children(manifest_list, "data", "position-deletes")
    shown = sorted((node.kind, node.facts["partition"], node.facts["rows"]) for node in files)
    assert shown == [
        ("data", "at_day=2026-01-14", 2),
        ("data", "at_day=2026-01-15", 2),
        ("position-deletes", "at_day=2026-01-15", 1),
    ]
    assert all(local_path(node.path).stat().st_size == node.facts["bytes"] for node in files)
    data = {node.facts["partition"]: node.facts for node in files if node.kind == "data"}
    # The column was widened since: this file has a bound of four bytes.
    assert data["at_day=2026-01-14"]["bounds"]["id"] == [1, 2]
    assert data["at_day=2026-01-14"]["bounds"]["full_name"] == ["Ann", "Ann"]
    assert data["at_day=2026-01-15"]["bounds"]["at"] == ["2026-01-15T12:00:00"] * 2
    assert data["at_day=2026-01-15"]["nulls"]["full_name"] == 2


def test_the_schemas_say_what_each_changed_and_since_which_snapshot(lake: Lake) -> None:
    schemas = children(lake.inspect("shop.visits", layer="snapshots"), "schema")
    first, last = lake.history("shop.visits")[:2]
    changes = [
        [(change["change"], change["column"], change["before"], change["after"]) for change in schema.facts["changes"]]
        for schema in schemas
    ]
    assert changes[0] == []
    assert changes[1] == [("added", "city", "", "string")]
    assert sorted(changes[2]) == [
        ("added", "home.street", "", "string"),
        ("renamed", "full_name", "name", "full_name"),
        ("type changed", "id", "int", "bigint"),
    ]
    assert changes[3] == [("dropped", "city", "string", "")]
    assert [schema.facts["first_snapshot"] for schema in schemas] == [
        first.id,
        "",
        last.id,
        lake.history("shop.visits")[2].id,
    ]


def test_a_snapshot_and_a_manifest_are_chosen_and_what_is_left_out_is_counted(lake: Lake) -> None:
    first = lake.history("shop.visits")[0].id
    then = lake.inspect("shop.visits", first, "files")
    assert [node.name for node in children(then, "snapshot")] == [first] and then.left_out == 2
    assert len(children(then, "data")) == 1 and not children(then, "schema")
    limited = lake.inspect("shop.visits", layer="files", limit=1)
    assert len(children(limited, "snapshot")) == 1 and limited.left_out == 2
    (manifest_list,) = children(limited, "manifest-list")
    assert (len(manifest_list.children), manifest_list.left_out) == (1, 2)
    manifest = children(lake.inspect("shop.visits"), "manifest")[-1]
    assert manifest.children == () and manifest.left_out == 1
    opened = lake.inspect("shop.visits", layer="files", manifest=manifest.name)
    assert [node.path for node in children(opened, "manifest")] == [manifest.path]
    with pytest.raises(UnknownChoiceError, match="layer"):
        lake.inspect("shop.visits", layer="rows")
    with pytest.raises(NotFoundError, match="no manifest"):
        lake.inspect("shop.visits", manifest="other.avro")
    with pytest.raises(WhenError):
        lake.inspect("shop.visits", "12345")


def test_each_file_of_the_tree_is_shown_and_no_other(lake: Lake, tmp_path: Path) -> None:
    tree = lake.inspect("shop.visits", layer="files")
    for node in [tree, *children(tree)]:
        if node.path:
            file = lake.inspect_file("shop.visits", node.path)
            assert (file.kind, file.path, file.left_out) == (node.kind, node.path, 0)
            assert json.loads(file.text)
    (manifest_list,) = children(tree, "manifest-list")
    assert len(json.loads(lake.inspect_file("shop.visits", manifest_list.name).text)["records"]) == 3
    (deletes,) = children(tree, "position-deletes")
    assert "file_path" in "".join(json.loads(lake.inspect_file("shop.visits", deletes.path).text)["schema"])
    data = next(node for node in children(tree, "data") if node.facts["partition"].endswith("14"))
    named = next(node for node in children(tree, "manifest") if data in node.children)
    assert lake.inspect_file("shop.visits", data.path, manifest=named.path).kind == "data"
    secret = tmp_path / "secret.json"
    secret.write_text('{"key": "of another"}')
    for path in (str(secret), f"file://{secret}", "../secret.json", "", "/etc/passwd"):
        with pytest.raises(NotFoundError, match="no file of this table"):
            lake.inspect_file("shop.visits", path)


def test_a_file_that_metadata_names_but_that_is_another_tables_is_not_shown(lake: Lake, tmp_path: Path) -> None:
    """Clients of the REST catalog write metadata files, and may name anything in them."""
    secret = tmp_path / "secret.json"
    secret.write_text('{"key": "of another"}')

    def point_at_secret(raw: dict[str, Any]) -> None:
        raw["metadata-log"].append({"metadata-file": f"file://{secret}", "timestamp-ms": raw["last-updated-ms"]})
        raw["snapshots"][0]["manifest-list"] = f"file://{secret}"

    before = rewritten(lake, point_at_secret)
    try:
        with pytest.raises((NotFoundError, TableError)) as refused:
            lake.inspect_file("shop.visits", f"file://{secret}")
        assert "of another" not in str(refused.value)
    finally:
        point_back(lake, before)


def test_gzipped_metadata_is_read(lake: Lake) -> None:
    expected = lake.inspect("shop.visits").facts
    before = rewritten(lake, lambda raw: None, gzip.compress)
    try:
        assert lake.inspect("shop.visits").facts == expected
        assert '"table-uuid"' in lake.inspect_file("shop.visits", lake.inspect("shop.visits").name).text
    finally:
        point_back(lake, before)


def test_a_table_without_snapshots_has_a_schema_and_nothing_else(lake: Lake) -> None:
    lake.ingest_rows([{"id": 1}], into="shop.empty")

    def forget(raw: dict[str, Any]) -> None:
        raw |= {"snapshots": [], "current-snapshot-id": -1, "refs": {}, "snapshot-log": []}

    rewritten(lake, forget, table="shop.empty")
    tree = lake.inspect("shop.empty", layer="files")
    assert [node.kind for node in tree.children] == ["schema"]
    with pytest.raises(NotFoundError):
        lake.inspect_file("shop.empty", "nothing.avro")


def rewritten(lake: Lake, change: Any, encode: Any = bytes, table: str = "shop.visits") -> str:
    """Point a table at a changed copy of its metadata file; returns the pointer before."""
    name, catalog = TableName.parse(table), catalog_of(lake)
    before = catalog.pointer(name)
    assert before is not None
    raw = json.loads(local_path(before).read_text())
    change(raw)
    new = local_path(before).with_name(f"copy-{len(list(local_path(before).parent.iterdir()))}.metadata.json")
    new.write_bytes(encode(json.dumps(raw).encode()))
    assert catalog.swap_pointer(name, before, f"file://{new}")
    return before


def point_back(lake: Lake, pointer: str, table: str = "shop.visits") -> None:
    name, catalog = TableName.parse(table), catalog_of(lake)
    now = catalog.pointer(name)
    assert now is not None and catalog.swap_pointer(name, now, pointer)
