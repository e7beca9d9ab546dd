"""The only module that uses parts of PyIceberg which are not its documented API.

A new release may change them without notice. `REVIEWED_VERSION` is the release they were read in; a test fails when another
one is installed, and tests/test_pyiceberg_internals.py covers each of them.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.catalog import MetastoreCatalog, PropertiesUpdateSummary
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.catalog.rest import RestCatalog as RestClient
from pyiceberg.io import FileIO, InputFile, load_file_io
from pyiceberg.manifest import (
    DEFAULT_READ_VERSION,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    ManifestContent,
    ManifestWriterV2,
)
from pyiceberg.partitioning import PARTITION_FIELD_ID_START
from pyiceberg.schema import Schema
from pyiceberg.table import StagedTable, StaticTable, Table, Transaction
from pyiceberg.table.metadata import TableMetadata, TableMetadataUtil, TableMetadataV1, TableMetadataV2, TableMetadataV3
from pyiceberg.typedef import IcebergBaseModel, Record

from lakehouse.core.metadata_file import uncompressed

if TYPE_CHECKING:
    from pyiceberg.io.pyarrow import ArrowScan
    from pyiceberg.table import FileScanTask

REVIEWED_VERSION = "0.12.0"
NEWEST_FORMAT = 3
#: Refers to the schema, spec or order that the same commit has added last.
LAST_ADDED = -1
#: Rows and Arrow bytes that one row group of a new file has at most.
_GROUP_ROWS, _GROUP_BYTES = 2**20, 256 * 2**20
_METADATA = {1: TableMetadataV1, 2: TableMetadataV2, NEWEST_FORMAT: TableMetadataV3}


# ---- the REST client --------------------------------------------------------------------------------------------


def rest_endpoints(client: RestClient) -> set[str]:
    """Return the endpoints that a server's configuration lists."""
    return {str(endpoint) for endpoint in client._supported_endpoints}


def rest_table_url(client: RestClient, namespace: str, table: str) -> str:
    """Return the URL of a table."""
    path = client._split_identifier_for_path((namespace, table))
    return str(client.url(f"namespaces/{path['namespace']}/tables/{path['table']}"))


def rest_get(client: RestClient, url: str) -> Any:
    """Send a GET request with the client's authentication, and return the response."""
    return client._session.get(url)


def rest_post(client: RestClient, url: str, body: Mapping[str, Any]) -> Any:
    """Send a POST request with the client's authentication, and return the response."""
    return client._session.post(url, json=body)


# ---- a catalog of one's own -------------------------------------------------------------------------------------


class StagingCatalog(MetastoreCatalog):  # type: ignore[misc] # PyIceberg's types are not checked
    """A catalog that writes metadata files and stores their locations; subclasses add where it stores them."""

    def stage_new_table(self, identifier: Any, schema: Any, location: str | None, *layout: Any) -> StagedTable:
        """Return a table with its first metadata, which is not written yet; `layout` is spec, order and properties."""
        return self._create_staged_table(identifier, schema, location, *layout)

    def stage_update(self, current: Table | None, key: Any, requirements: Any, updates: Any) -> StagedTable:
        """Return a table with updates applied, which are not written yet; an error if a requirement does not hold."""
        return self._update_and_stage_table(current, key, requirements, updates)

    def write_staged(self, staged: StagedTable) -> None:
        """Write the metadata file of a staged table."""
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)

    def file_io(self, location: str, properties: Mapping[str, str] | None = None) -> Any:
        """Return the FileIO for a location."""
        return self._load_file_io(dict(properties or {}), location)

    def update_properties(
        self, current: Mapping[str, str], removals: set[str] | None, updates: Mapping[str, str]
    ) -> tuple[PropertiesUpdateSummary, dict[str, str]]:
        """Return the summary and the result of a change of properties."""
        summary, result = self._get_updated_props_and_update_summary(dict(current), removals, dict(updates))
        return summary, result

    def default_location(self, namespace: str, table: str) -> str:
        """Return the location of a new table."""
        return str(super()._get_default_warehouse_location(namespace, table))

    def _get_default_warehouse_location(self, database_name: str, table_name: str) -> str:
        return self.default_location(database_name, table_name)


# ---- metadata ---------------------------------------------------------------------------------------------------


def metadata_at(location: str, io: FileIO) -> TableMetadata:
    """Return the metadata in a file. PyIceberg's own reader takes a file for gzipped by its name, not by its content."""
    with io.new_input(location).open() as stream:
        return TableMetadataUtil.parse_raw(uncompressed(stream.read()).decode())


def table_at(location: str, properties: Mapping[str, str]) -> StaticTable:
    """Return the table that a metadata file describes, for reading."""
    metadata = metadata_at(location, load_file_io(dict(properties), location))
    io = load_file_io({**properties, **metadata.properties}, location)
    return StaticTable(("static-table", location), metadata, location, io, NoopCatalog("static-table"))


def dump_metadata(metadata: TableMetadata) -> str:
    """Return table metadata as JSON. Its own method refuses version 3, because PyIceberg cannot write such tables' data."""
    return str(IcebergBaseModel.model_dump_json(metadata))


def empty_metadata(version: int) -> TableMetadata:
    """Return metadata before its first update. It is not valid yet, so nothing is checked; KeyError for a wrong version."""
    fields: dict[str, Any] = {
        "location": "",
        "last_column_id": 0,
        "schemas": [],
        "partition_specs": [],
        "sort_orders": [],
        "current_schema_id": LAST_ADDED,
        "default_spec_id": LAST_ADDED,
        "default_sort_order_id": LAST_ADDED,
        "last_partition_id": PARTITION_FIELD_ID_START - 1,
    }
    if version == NEWEST_FORMAT:
        fields["next_row_id"] = 0
    return _METADATA[version].model_construct(**fields)


# ---- commits ----------------------------------------------------------------------------------------------------


def fast_commits() -> None:
    """Let copies of metadata share their snapshots, schemas and specs, which never change.

    PyIceberg copies all metadata of a table, deeply, six to twenty times for a commit: a second after 300 snapshots.
    """
    for metadata in _METADATA.values():
        metadata.__deepcopy__ = _copy


def _copy(metadata: TableMetadata, memo: Any = None) -> TableMetadata:
    copied = metadata.model_copy()
    for name, value in vars(metadata).items():
        if isinstance(value, list | dict):
            vars(copied)[name] = value.copy()
    return copied


def merging_append(transaction: Transaction, notes: Mapping[str, str]) -> Any:
    """Return an append that merges manifests when there are 100 small ones: Iceberg's default, but not PyIceberg's."""
    append = transaction.update_snapshot(dict(notes)).merge_append()
    enabled = transaction.table_metadata.properties.get("commit.manifest-merge.enabled", "true")
    append._merge_enabled = enabled.lower() == "true"
    return append


# ---- manifests --------------------------------------------------------------------------------------------------


class BytesInput(InputFile):  # type: ignore[misc] # PyIceberg's types are not checked
    """A file that was read already."""

    def __init__(self, content: bytes, location: str = "") -> None:
        super().__init__(location)
        self._content = content

    def __len__(self) -> int:
        return len(self._content)

    def exists(self) -> bool:
        return True

    def open(self, seekable: bool = True) -> Any:
        return BytesIO(self._content)


def read_avro(content: bytes, *fields: int | tuple[int, int]) -> list[tuple[Any, ...]]:
    """Return some fields of every record of an Avro file, by their ids; a pair names a field of a nested record.

    A field that the file lacks is None.
    """
    # With the file's own schema: a projection fails where it leaves out a list or map.
    with AvroFile(BytesInput(content)) as records:
        paths = [_path(records.schema.as_struct(), field) for field in fields]
        return [tuple(_value(record, path) for path in paths) for record in records]


def _path(struct: Any, field: int | tuple[int, int]) -> tuple[int, ...] | None:
    """Return the positions of a field in the record and in the nested record; None if the file lacks it."""
    first, *rest = field if isinstance(field, tuple) else (field,)
    for position, nested in enumerate(struct.fields):
        if nested.field_id == first:
            below = _path(nested.field_type, rest[0]) if rest else ()
            return None if below is None else (position, *below)
    return None


def _value(record: Any, path: tuple[int, ...] | None) -> Any:
    if path is None:
        return None
    for position in path:
        record = record[position]
    return record


class DeleteManifestWriter(ManifestWriterV2):  # type: ignore[misc] # PyIceberg's types are not checked
    """Writes a manifest of delete files, which PyIceberg itself only reads."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


# ---- data files -------------------------------------------------------------------------------------------------


def parquet_data_file(table: Table, path: str, uri: str, size: int, partition: Record) -> Any:
    """Return the manifest entry of a Parquet file, with the counts and bounds by which readers skip it."""
    from pyarrow import parquet
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    schema = table.schema()
    statistics = data_file_statistics_from_parquet_metadata(
        parquet_metadata=parquet.read_metadata(path),
        stats_columns=compute_statistics_plan(schema, table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(schema),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=uri,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=size,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )


def stream_file(scan: ArrowScan, io: FileIO, task: FileScanTask) -> Iterator[Any]:
    """Yield the rows of a data file without the deleted ones; the public method holds all of them in memory."""
    from pyiceberg.io.pyarrow import _read_all_delete_files

    yield from scan._record_batches_from_scan_tasks_and_deletes([task], _read_all_delete_files(io, [task]))


def write_data_file(table: Table, batches: Iterable[Any], partition: Record, sort_order_id: int | None) -> Any:
    """Write record batches with the table's columns to one new Parquet file; returns its manifest entry, None if empty.

    The batches are written as they come, in row groups of some size, so that memory holds one group.
    """
    import pyarrow
    from pyiceberg.io.fileformat import FileFormatFactory
    from pyiceberg.io.pyarrow import _to_requested_schema
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.schema import sanitize_column_names
    from pyiceberg.table.locations import load_location_provider

    schema, model = sanitize_column_names(table.schema()), FileFormatFactory.get(FileFormat.PARQUET)
    places = load_location_provider(table.metadata.location, table.metadata.properties)
    output = table.io.new_output(places.new_data_location(f"00000-0-{uuid.uuid4()}.parquet"))
    writer = model.create_writer(output, schema, table.metadata.properties)
    types: Any = None
    for group in _row_groups(batches):
        converted = [
            _to_requested_schema(schema, table.schema(), batch, include_field_ids=True, format_model=model)
            for batch in group
        ]
        types = types or converted[0].schema
        # A column that a file lacks is a large_string, one that it has a string: the writer takes one of them.
        writer.write(
            pyarrow.Table.from_batches([batch if batch.schema == types else batch.cast(types) for batch in converted])
        )
    if types is None:
        return None
    statistics = writer.close()
    data_file = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=output.location,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=len(output),
        sort_order_id=sort_order_id,
        equality_ids=None,
        key_metadata=None,
        **statistics.to_serialized_dict(),
    )
    data_file.spec_id = table.spec().spec_id
    return data_file


def _row_groups(batches: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the batches that have rows, in groups of about one row group."""
    group: list[Any] = []
    rows = size = 0
    for batch in batches:
        if batch.num_rows:
            group.append(batch)
            rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield group
            group, rows, size = [], 0, 0
    if group:
        yield group


# ---- manifests of clients ---------------------------------------------------------------------------------------

#: The fields with locations. Some readers find a field by its id and others by its name.
_LOCATION_IDS = {"manifest_path": 500, "data_file": 2, "file_path": 100}
#: The key of the schema in an Avro file, after its length.
_SCHEMA_KEY = b"\x16avro.schema"


def listed_manifests(source: InputFile) -> Iterator[str]:
    """Return the manifests that a manifest list names; raises ValueError if readers might disagree on them."""
    schema = MANIFEST_LIST_FILE_SCHEMAS[DEFAULT_READ_VERSION]
    place = [field.name for field in schema.fields].index("manifest_path")
    return (str(record[place]) for record in _avro_records(source, schema))


def listed_data_files(source: InputFile) -> Iterator[str]:
    """Return the data and delete files that a manifest names; raises ValueError if readers might disagree on them."""
    schema = MANIFEST_ENTRY_SCHEMAS[DEFAULT_READ_VERSION]
    fields = {field.name: (place, field) for place, field in enumerate(schema.fields)}
    place, data_file = fields["data_file"]
    path = [field.name for field in data_file.field_type.fields].index("file_path")
    return (str(record[place][path]) for record in _avro_records(source, schema))


def _avro_records(source: InputFile, schema: Schema) -> list[Any]:
    """Return the records of a file that a client wrote, so that no other reader finds others in it.

    PyIceberg ends at an empty block and takes the last of two equal keys; other readers do not.
    """
    with source.open() as stream:
        content = stream.read()
    if content.count(_SCHEMA_KEY) != 1:
        raise ValueError("the file does not have one schema")
    try:
        with AvroFile[Any](source, schema) as reader:
            _check_fields(json.loads(reader.header.meta["avro.schema"], object_pairs_hook=_without_repeats))
            records = list(reader)
            if reader.decoder.tell() != len(content):
                raise ValueError("the file goes on after its end")
    except Exception as exc:  # noqa: BLE001 - whatever a decoder says about a file that anyone may have written
        raise ValueError(f"the file is no Avro of Iceberg: {exc}") from exc
    return records


def _check_fields(schema: Any) -> None:
    """Refuse a schema in which a field with locations has the id or the name of another, or a second name."""
    if isinstance(schema, list):
        for part in schema:
            _check_fields(part)
    elif isinstance(schema, dict):
        name, number = str(schema.get("name")), schema.get("field-id")
        names_location = name in _LOCATION_IDS or number in _LOCATION_IDS.values()
        if "aliases" in schema or (number is not None and names_location and _LOCATION_IDS.get(name) != number):
            raise ValueError("a field of the file has the id or the name of another")
        for part in schema.values():
            _check_fields(part)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("the schema of the file has a key twice")
    return dict(pairs)
