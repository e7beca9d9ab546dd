"""PyIceberg's internals are used in one module, and as the pinned version has them."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyiceberg
import pytest
from pyarrow import parquet
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import pyarrow as arrow_io
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import StringType

from lakehouse import pyiceberg_internals as internals

ROOT = Path(__file__).parents[1]
#: What the module relies on, with the parameters that it passes. Read PyIceberg's source again before you change a line.
SIGNATURES: dict[Any, list[str]] = {
    MetastoreCatalog._create_staged_table: [
        "self",
        "identifier",
        "schema",
        "location",
        "partition_spec",
        "sort_order",
        "properties",
    ],
    MetastoreCatalog._update_and_stage_table: ["self", "current_table", "table_identifier", "requirements", "updates"],
    MetastoreCatalog._write_metadata: ["metadata", "io", "metadata_path"],
    MetastoreCatalog._load_file_io: ["self", "properties", "location"],
    MetastoreCatalog._get_updated_props_and_update_summary: ["self", "current_properties", "removals", "updates"],
    MetastoreCatalog._get_default_warehouse_location: ["self", "database_name", "table_name"],
    RestCatalog._split_identifier_for_path: ["self", "identifier", "kind"],
    RestCatalog.url: ["self", "endpoint", "prefixed", "kwargs"],
    arrow_io.compute_statistics_plan: ["schema", "table_properties"],
    arrow_io.parquet_path_to_id_mapping: ["schema"],
    arrow_io.data_file_statistics_from_parquet_metadata: [
        "parquet_metadata",
        "stats_columns",
        "parquet_column_mapping",
    ],
    DataFile.from_args: ["_table_format_version", "arguments"],
}


def test_the_pinned_version_is_the_reviewed_one() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = re.search(r"==([\d.]+)", extras["iceberg"][0])
    assert pinned is not None
    assert pinned[1] == pyiceberg.__version__ == internals.REVIEWED_VERSION


@pytest.mark.parametrize("function", SIGNATURES, ids=lambda function: function.__qualname__)
def test_an_internal_has_the_reviewed_parameters(function: Any) -> None:
    assert list(inspect.signature(function).parameters) == SIGNATURES[function]


def test_the_rest_client_has_the_attributes_that_are_used() -> None:
    source = inspect.getsource(RestCatalog)
    assert "self._session = " in source and "self._supported_endpoints" in source


def private_names(file: Path) -> set[str]:
    """The private attributes of other objects that a module uses, and the internal modules that it imports."""
    tree = ast.parse(file.read_text())
    own = {"self", "cls"}
    names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in own)
    }
    return names & {function.__name__ for function in SIGNATURES} | names & {"_session", "_supported_endpoints"}


def test_no_other_module_uses_internals() -> None:
    files = [file for file in (ROOT / "src").rglob("*.py") if file.name != "pyiceberg_internals.py"]
    assert private_names(ROOT / "src" / "lakehouse" / "pyiceberg_internals.py")
    assert {str(file): names for file in files if (names := private_names(file))} == {}
    helpers = ("data_file_statistics_from_parquet_metadata", "IcebergBaseModel.model_dump_json", "TableMetadataV3")
    assert [str(file) for file in files if any(name in file.read_text() for name in helpers)] == []


@pytest.fixture
def table(tmp_path: Path) -> Table:
    catalog = InMemoryCatalog("test", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("shop")
    return catalog.create_table("shop.orders", pa.schema([("id", pa.int64()), ("name", pa.string())]))


def test_a_data_file_has_counts_and_bounds(table: Table, tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("name", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
    )
    parquet.write_table(pa.table({"id": [3, 1], "name": ["b", None]}, schema=schema), file)
    entry = internals.parquet_data_file(table, str(file), f"file://{file}", file.stat().st_size, Record())
    assert (entry.record_count, entry.null_value_counts[2]) == (2, 1)
    assert int.from_bytes(entry.lower_bounds[1], "little") == 1
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(entry)
    assert table.scan().to_arrow().num_rows == 2


@pytest.mark.parametrize("version", [1, 2, 3])
def test_empty_metadata_of_every_version_can_be_dumped(version: int) -> None:
    assert f'"format-version":{version}' in internals.dump_metadata(internals.empty_metadata(version))


def test_another_version_is_refused() -> None:
    with pytest.raises(KeyError):
        internals.empty_metadata(4)


@pytest.mark.parametrize(("enabled", "manifests"), [("true", 1), ("false", 7)])
def test_appends_merge_manifests_unless_the_table_says_no(table: Table, enabled: str, manifests: int) -> None:
    properties = {"commit.manifest.min-count-to-merge": "3", "commit.manifest-merge.enabled": enabled}
    with table.transaction() as change:
        change.set_properties(properties)
    for number in range(7):
        file = internals.write_data_file(table, rows(number), Record(), None)
        with table.transaction() as change, internals.merging_append(change, {}) as append:
            append.append_data_file(file)
    assert len(table.current_snapshot().manifests(table.io)) == manifests
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(7))
    assert len(table.history()) == 7


def rows(number: int) -> list[pa.RecordBatch]:
    return pa.table({"id": [number], "name": ["x"]}).to_batches()


def test_copies_of_metadata_share_snapshots_but_no_list(table: Table) -> None:
    table.append(pa.table({"id": [1], "name": ["x"]}))
    internals.fast_commits()
    before = table.metadata
    after = before.model_copy(deep=True)
    assert after == before and after.snapshots[0] is before.snapshots[0]
    after.snapshots.clear()
    after.properties["owner"] = "me"
    assert len(before.snapshots) == 1 and "owner" not in before.properties


def test_a_commit_leaves_the_metadata_of_the_table_before_it_alone(table: Table) -> None:
    internals.fast_commits()
    before = table.metadata
    table.append(pa.table({"id": [1], "name": ["x"]}))
    with table.update_schema() as change:
        change.add_column("more", StringType())
    assert (len(before.snapshots), len(before.schemas), before.refs) == (0, 1, {})
    assert (len(table.metadata.snapshots), len(table.metadata.schemas)) == (1, 2)
